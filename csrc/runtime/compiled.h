// A plan with where its inputs come from and what becomes of its outputs.
#pragma once

#include <span>
#include <vector>

#include "runtime/executable.h"
#include "runtime/variable.h"

namespace gradcell {

/// A trace made into something that runs again on other arguments without Python.
struct Compiled {
  struct Source {
    int argument = -1;  ///< else a variable, else a captured array
    VariablePtr variable;
    Array captured;
    const Type* type = nullptr;  ///< the variable's, which it has to have
  };
  std::shared_ptr<const Executable> executable;
  std::vector<Source> inputs;
  std::vector<uint64_t> constants;
  std::vector<VariablePtr> updated;  ///< targets of the outputs behind the first `result_count`
  size_t result_count = 0;

  /// The updated variables and the types of their new values; after all else.
  void update(std::vector<VariablePtr> variables, std::span<const Type> types);
  /// The results, after the variables are updated: all of them, or if it throws none. Arguments in
  /// the order of Trace::argument.
  std::vector<Array> run(std::span<const Array> arguments) const;
  /// The same with all that the plan computes; in the places of new values are old ones.
  std::vector<Array> run_whole(std::span<const Array> arguments) const;

 private:
  bool read_variables(std::vector<StoragePtr>& in) const;
  std::vector<const Type*> types_;  ///< by updated variable
  std::vector<int> over_;  ///< the input that is it, if the plan may overwrite that; -1: none
};

}  // namespace gradcell

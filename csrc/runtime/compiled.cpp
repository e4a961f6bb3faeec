#include "runtime/compiled.h"

#include <unordered_map>
#include <utility>

#include "runtime/plan_cache.h"

namespace gradcell {

void Compiled::update(std::vector<VariablePtr> variables, std::span<const Type> types) {
  updated = std::move(variables);
  std::unordered_map<const Variable*, int> input_of;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].variable) input_of[inputs[i].variable.get()] = narrow<int>(i);
  for (size_t u = 0; u < updated.size(); ++u) {
    types_.push_back(updated[u]->record(types[u]));
    const auto input = input_of.find(updated[u].get());
    const bool over = input != input_of.end() &&
                      executable->may_overwrite(input->second, narrow<int>(result_count + u));
    over_.push_back(over ? input->second : -1);
  }
}

bool Compiled::read_variables(std::vector<StoragePtr>& in) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].variable) continue;
    const StoragePtr* storage = inputs[i].variable->look(inputs[i].type);
    if (!storage) return false;
    in[i] = *storage;
  }
  return true;
}

std::vector<Array> Compiled::run(std::span<const Array> arguments) const {
  std::vector<Array> out = run_whole(arguments);
  out.resize(result_count);
  return out;
}

std::vector<Array> Compiled::run_whole(std::span<const Array> arguments) const {
  std::vector<StoragePtr> in(inputs.size());
  bool variables = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Source& s = inputs[i];
    if (s.variable)
      variables = true;
    else
      in[i] =
          s.argument >= 0 ? arguments[static_cast<size_t>(s.argument)].storage : s.captured.storage;
  }
  if (updated.empty()) {
    if (variables) look_at_variables([&] { return read_variables(in); });
    return run_plan(*executable, in, constants, {});
  }
  Exclusive held(updated);
  std::vector<int> over(result_count + updated.size(), -1);
  look_at_variables([&] {
    if (!held.free() || !read_variables(in)) return false;
    held.take();
    for (size_t u = 0; u < updated.size(); ++u)
      if (over_[u] >= 0 && held.may_write(u, in[static_cast<size_t>(over_[u])]))
        over[result_count + u] = over_[u];
    return true;
  });
  std::vector<Array> out = run_plan(*executable, in, constants, over);
  in.clear();
  held.commit(std::span(out).subspan(result_count, updated.size()), types_);
  return out;
}

}  // namespace gradcell

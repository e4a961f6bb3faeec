// A plan made ready for the device in use: the CPU's engine or a GPU's behind one call.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/storage.h"

namespace gradcell {

class Executable {
 public:
  virtual ~Executable() = default;
  /// The memory of the inputs; the plan's outputs. On a GPU they are there when the work before is
  /// done. `over`: by output the input whose memory it gets, which that may overwrite; -1, or
  /// no more of them: new memory.
  virtual std::vector<Array> run(std::span<const std::shared_ptr<Storage>> inputs,
                                 std::span<const uint64_t> constants,
                                 std::span<const int> over) const = 0;
  /// Whether a run can write this output over this input: every row is read before it is written,
  /// and nothing that could still fail follows.
  virtual bool may_overwrite(int input, int output) const = 0;
  virtual double work() const = 0;  ///< estimated nanoseconds on one thread, for who waits
};

/// Plans of `roots` for the device of the graph's settings, made anew.
std::shared_ptr<const Executable> make_executable(const Graph& g, std::span<const NodeId> live,
                                                  std::span<const NodeId> roots,
                                                  std::span<const NodeId> cuts);

/// Throws Runtime if that GPU cannot be used: no driver, too old a driver, no such GPU, a missing
/// library. (-1, the CPU, always can.)
void require_device(int number);
/// From the next trace on, once required.
void use_device(int number);
/// What cuda_plan() of these settings is for: the GPU in use, or the one that they name.
Target target_of(const Settings& settings);

}  // namespace gradcell

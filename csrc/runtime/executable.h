// A plan made ready for the device in use: the CPU's engine or a GPU's behind one call.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/storage.h"

namespace gradcell {

/// An output that is the new value of the variable that is this input.
struct Update {
  int input, output;
};

class Executable {
 public:
  virtual ~Executable() = default;
  /// One array an input; the plan's outputs. On a GPU they are there when the work before is done.
  /// An updated variable may keep its memory where the plan allows it and nobody else refers to it
  /// (the variable does, and `inputs`).
  virtual std::vector<Array> run(std::span<const Array> inputs, std::span<const uint64_t> constants,
                                 std::span<const Update> updates) const = 0;
  virtual double work() const = 0;  ///< estimated nanoseconds on one thread, for who waits
};

/// Plans of `roots` for the device in use, made anew.
std::shared_ptr<const Executable> make_executable(const Graph& g, std::span<const NodeId> live,
                                                  std::span<const NodeId> roots,
                                                  std::span<const NodeId> cuts);

/// -1: the CPU. Any other number: that GPU, from the next plan on. Throws Runtime if it cannot be
/// used: no driver, too old a driver, no such GPU, a missing library.
void use_device(int number);
int device_in_use();

}  // namespace gradcell

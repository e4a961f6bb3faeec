// Loops that are one kernel: a block of threads takes a few rows of the body, or its only one,
// through all steps. What is carried and the weights stay on the chip, and no block ever waits for
// another one: a step takes the time of some barriers, not of launches.
//
// Such are bodies that are one region (plan/plan.h) without sums over rows, by rows or with each
// tensor as one row, whose weights fit into shared memory and registers. Threads share the elements
// of a value: element e, which is feature e % F of row e / F, is that of thread e % threads.
#pragma once

#include <optional>

#include "cuda/tiles/phases.h"
#include "ir/settings.h"
#include "plan/loop_plan.h"
#include "plan/planner.h"

namespace gradcell::cuda {

struct LoopKernel {
  /// Its buffers are inputs of the body, and of stores what the loop keeps.
  Region region;
  std::vector<TensorDesc> inputs;  ///< of the body
  std::vector<DType> carried_types;
  StepsOfRegion steps;
  Phases phases;
  int32_t rows = 1, threads = 32;  ///< of a block
  /// By instruction, among how many threads an element's terms are shared; 0: one has all of them.
  std::vector<int32_t> parts;
  /// Of a matrix: how many columns each thread has, and how many fours of terms of each; how many
  /// of these are in registers, and where in shared memory the others are.
  struct Held {
    int32_t columns = 0, fours = 0, kept = 0;
    size_t place = 0;
  };
  std::vector<Held> held;
  std::vector<int64_t> fetched;  ///< by load: where a step's and the next one's are; -1: in memory
  std::vector<size_t> carried;   ///< where a step's and the next one's are
  size_t values_at = 0;          ///< where the phases' values begin
  size_t shared_bytes = 0;
  double cycles = 0;  ///< of the launch
  bool keeps() const;
};

/// The quicker way of two; none: no kernel takes the body through its steps.
std::optional<LoopKernel> find_loop_kernel(const PlanGraph& body, const LoopFrame& loop,
                                           const Target& target);

}  // namespace gradcell::cuda

// The plan of a loop: its body's, made once, and what goes in and out of it from step to step. What
// none of the wanted results needs is left out of the body.
#pragma once

#include "plan/plan.h"

namespace gradcell {

/// What goes in and out of a loop's body, whatever engine runs it.
struct LoopFrame {
  /// Where an input of the body's plan comes from.
  struct Input {
    enum class Kind : uint8_t { Carried, Sliced, Same } kind;
    size_t index;  ///< Carried: into `carried`; else the loop's input
  };
  struct Carried {
    size_t first;     ///< the loop's input that the first step gets
    size_t output;    ///< of the body's plan
    int result = -1;  ///< of the loop, after the last step; -1: nobody asks for it
  };
  struct Kept {
    size_t output;  ///< of the body's plan
    size_t result;  ///< of the loop: has it in all steps
  };

  int64_t steps = 0;
  bool reverse = false;
  std::vector<Input> inputs;  ///< of the body's plan, in its order
  std::vector<Carried> carried;
  std::vector<Kept> kept;
};

/// A loop with its body's graph, of which an engine plans the live part.
struct FramedLoop {
  LoopFrame frame;
  Graph body;
  std::vector<NodeId> live, roots;
};
/// loops: nodes that are one loop, in the order of the plan's results.
FramedLoop frame_loop(const Graph& g, std::span<const NodeId> loops);

struct LoopPlan : LoopFrame {
  Plan body;
};
LoopPlan plan_loop(const Graph& g, std::span<const NodeId> loops);

}  // namespace gradcell

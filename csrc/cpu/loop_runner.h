// Loops: a body's plan, run once for each step.
//
// Holds: where no row of the body's tensors meets another, each thread takes its rows through all
// steps, without waiting for others; else the threads meet after every stage of every step. What is
// carried lies where it is kept for all steps, or in two places that take turns. A run in the
// steady state allocates nothing.
#pragma once

#include "cpu/engine.h"
#include "plan/loop_plan.h"

namespace gradcell::cpu {

class LoopRunner {
 public:
  explicit LoopRunner(const LoopPlan& plan);
  ~LoopRunner();

  /// One pointer an input and a result of the loop.
  void run(const void* const* inputs, void* const* results) const;
  double work() const;  ///< estimated nanoseconds on one thread

 private:
  struct Steps;
  /// Where an output of the body is written.
  struct Place {
    int kept = -1;     ///< the result that has it in all steps
    int carried = -1;  ///< or else in the memory of what is carried
  };

  const LoopPlan& plan_;
  Runner body_;
  std::vector<Place> places_;    ///< by output of the body
  std::vector<size_t> offsets_;  ///< of what is carried: in memory of the run's own
  size_t bytes_ = 0;             ///< of that memory
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace gradcell::cpu

// Loops: a body's plan, run once for each step.
//
// Holds: where no row of the body's tensors meets another, each thread takes its rows through all
// steps, without waiting for others; else the threads meet after every stage of every step. Where
// arrays lie in each step says plan/loop_steps.h. A run in the steady state allocates nothing.
#pragma once

#include "cpu/run/engine.h"
#include "plan/loop_steps.h"

namespace gradcell::cpu {

class LoopRunner {
 public:
  explicit LoopRunner(const LoopPlan& plan);

  /// One pointer an input and a result of the loop.
  void run(const void* const* inputs, void* const* results) const;
  double work() const;  ///< estimated nanoseconds on one thread

 private:
  const LoopPlan& plan_;
  LoopPlaces places_;
  Runner body_;
};

}  // namespace gradcell::cpu

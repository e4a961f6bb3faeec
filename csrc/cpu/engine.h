// The CPU engine: prepares a plan for this machine and runs it.
//
// Holds: results do not depend on the number of threads (each region's rows are cut into chunks
// that depend on its shape alone, and chunks' reductions are merged in order). A prepared plan may
// be run by several threads at once. A run in the steady state allocates nothing.
#pragma once

#include <memory>

#include "plan/plan.h"

namespace gradcell::cpu {

class Executable {
 public:
  explicit Executable(Plan plan);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const Plan& plan() const { return plan_; }

  /// One pointer an input and an output; outputs that alias others are null. Dense, row-major.
  void run(const void* const* inputs, void* const* outputs, const uint64_t* constants) const;

 private:
  struct Context;
  class ContextLease;
  Plan plan_;
  size_t side_bytes_ = 64;  ///< uniforms, packed weights and accumulators of the largest stage
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace gradcell::cpu

// The CPU engine: prepares a plan for this machine and runs it.
//
// Holds: results do not depend on the number of threads (each region's rows are cut into chunks
// that depend on its shape alone, and chunks' reductions are merged in order). A prepared plan may
// be run by several threads at once. A run in the steady state allocates nothing.
#pragma once

#include <memory>

#include "cpu/communicator.h"
#include "cpu/program.h"

namespace gradcell::cpu {

class ProfiledPlan;

/// A plan made ready for this machine.
class Runner {
 public:
  explicit Runner(Plan plan);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  const Plan& plan() const { return program_.plan; }
  double work() const { return program_.work; }  ///< estimated nanoseconds on one thread

  /// One pointer an input and an output; outputs that alias others are null. Dense, row-major.
  void run(const void* const* inputs, void* const* outputs, const uint64_t* constants) const;

 private:
  struct Context;
  class ContextLease;
  void run(Context& context, const uint64_t* constants, Exchange* exchange,
           ProfiledPlan* profile) const;
  uint64_t serial_;  ///< no two plans of a process have the same
  Program program_;
  Agenda agenda_;  ///< of the plan's collectives
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace gradcell::cpu

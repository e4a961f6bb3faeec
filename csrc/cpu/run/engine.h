// The CPU engine: prepares a plan for this machine and runs it.
//
// Holds: results do not depend on the number of threads (each region's rows are cut into chunks
// that depend on its shape alone, and chunks' reductions are merged in order). A prepared plan may
// be run by several threads at once. Once a run has written to its outputs, regions allocate
// nothing.
#pragma once

#include <memory>
#include <unordered_map>

#include "base/thread_pool.h"
#include "cpu/program/program.h"
#include "cpu/run/communicator.h"

namespace gradcell::cpu {

class LoopRunner;
class ProfiledPlan;
struct RunState;
enum class Room : uint8_t;

/// An input of a plan that is run step after step: what the step before has made, a slice of what
/// there is for all steps, or the same.
enum class StepInput : uint8_t { Carried, Sliced, Same };

/// A plan made ready for this machine.
class Runner {
 public:
  explicit Runner(Plan plan);
  /// Of a plan that is run step after step, with constants among its inputs. room: by buffer;
  /// carried: in memory where nobody else reads or writes but before the first step, and after the
  /// last; ends: whether something is to be done when a step has ended.
  Runner(Plan plan, const std::vector<StepInput>& inputs, std::vector<Room> room,
         std::span<const Carry> carried, bool ends);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  const Plan& plan() const { return program_.plan; }
  double work() const { return work_; }  ///< estimated nanoseconds on one thread

  /// One pointer an input and an output; outputs that alias others are null. Dense, row-major.
  void run(const void* const* inputs, void* const* outputs, const uint64_t* constants) const;

  /// Says where a step's inputs and outputs lie; `own` is memory for what is carried.
  using BindStep =
      FunctionRef<void(std::byte* own, int64_t step, const void** inputs, void** outputs)>;
  /// Called when a step has made rows first to last of `rows`.
  using EndStep =
      FunctionRef<void(std::byte* own, int64_t step, int64_t first, int64_t last, int64_t rows)>;
  void run_steps(int64_t steps, size_t own_bytes, BindStep bind, EndStep end,
                 FunctionRef<void(std::byte* own)> finish) const;

 private:
  struct Context;
  class ContextLease;
  /// again: the last run of the context was one of the same steps, on this thread.
  void run(Context& context, const uint64_t* constants, Exchange* exchange, ProfiledPlan* profile,
           bool again = false) const;
  void run_whole(const Call& call, const void* const* in, std::span<void* const> buffers,
                 const uint64_t* constants) const;
  void prepare_context(Context& context, const RunState& state) const;
  void run_apart(Context& context, int64_t steps, size_t own_bytes, BindStep bind,
                 EndStep end) const;
  uint64_t serial_;  ///< no two plans of a process have the same
  Program program_;
  Agenda agenda_;  ///< of the plan's collectives
  double work_ = 0;
  bool apart_ = false;  ///< rows go through all steps without meeting others
  bool alone_ = false;  ///< a step is one region of tiles, on one thread
  bool ends_ = false;   ///< a step has an end
  std::vector<Room> room_;
  std::unordered_map<const LoopPlan*, std::unique_ptr<LoopRunner>> loops_;
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace gradcell::cpu

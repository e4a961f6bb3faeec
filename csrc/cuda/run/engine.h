// The CUDA engine: loads a plan's kernels and runs it on a device.
//
// Holds: a run enqueues work and returns; it waits for nothing, except while the algorithms of new
// products are timed in a plan's second run. An output that the caller wants in an input's place is
// written there. For the others a plan keeps, from its second run on, a few sets of buffers and
// hands out the one that nobody holds any more: so that a training step finds the same buffers
// again, is captured as a CUDA graph, and from then on is one launch. Runs on other places, as two
// models of one structure have them, are graphs of their own. What varies from run to run does not
// change that: inputs that come from ever other places, as batches do, are copied into a slot of
// the plan's own, and constants are set in the graph. A loop's body runs once a step, on the same
// stream, in a captured graph as nodes of it.
//
// All of this is guarded by the device's mutex. What is kept goes when the device's memory is
// short: an idle plan holds nothing but its kernels then.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <unordered_map>

#include "cuda/cuda_plan.h"
#include "cuda/run/device.h"

namespace gradcell::cuda {

using Blocks = std::vector<std::shared_ptr<DeviceBlock>>;

/// Runs a call on the host's memory.
using RunOnHost = void (*)(const Call&, const void* const* in, void* out);

/// A plan whose kernels are loaded on a device.
class Launcher : Keeper {
 public:
  /// Compiles the kernels for the device. Throws Runtime.
  Launcher(CudaPlan plan, Device& device, RunOnHost run_on_host);
  ~Launcher() override;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  const CudaPlan& plan() const { return plan_; }
  Device& device() const { return device_; }
  /// Whether it has run, products and all.
  bool tried() const { return ran_; }

  /// One pointer an input; a block for each output, empty for those that alias others. `given`: by
  /// output an input's block, into which it is written; null: a block of the launcher's.
  Blocks run(const std::vector<DevicePointer>& inputs, const uint64_t* constants,
             Blocks given) const;

 private:
  Blocks run_entered(const std::vector<DevicePointer>& inputs, const uint64_t* constants,
                     Blocks given) const;
  void let_go(const DeviceBlock* block) noexcept override;
  void load();
  /// Gives the launches that share memory as many rows as the device has room for.
  void fit_rows(CudaPlan& plan);
  /// Takes down what each step is called, those of loops' bodies too.
  void name_steps(const CudaPlan& plan);
  using Places = std::vector<DevicePointer>;  // by buffer
  struct Recorded;
  struct Packed;
  struct Constants;
  struct Arrays;
  /// What a run's steps have in common. `capturing`: takes the launches that have constants.
  struct Run {
    const uint64_t* constants;
    StreamHandle stream;
    Constants* capturing = nullptr;
  };
  /// Where an input has been lately, the latest first, and its slot once that was in too many
  /// places.
  struct Source {
    std::array<DevicePointer, 16> places{};
    int changes = 0, steady = 0;  ///< steady: runs in which it has stayed
    std::unique_ptr<DeviceBlock> slot;
  };
  /// An output that callers keep, as losses are: they get copies, of which these are the latest, as
  /// long as they keep those.
  struct Kept {
    bool copied = false;
    size_t next = 0;       ///< the oldest of the copies
    size_t forgotten = 0;  ///< runs in a row in which that was held no more
    std::array<std::weak_ptr<DeviceBlock>, 16> copies;
  };
  /// Buffers of a run's outputs, but for those that it is given.
  Blocks fresh_outputs(const Blocks& given) const;
  /// A kept set of outputs that nobody else holds, or a new one.
  std::shared_ptr<Blocks> free_outputs(const std::vector<DevicePointer>& inputs,
                                       const Blocks& given, size_t most) const;
  /// Whether what callers hold of a set is small. It is theirs then, the sets get other buffers,
  /// and from now on these outputs are copied out.
  bool leave_to_callers(const Blocks& set, const std::vector<DevicePointer>& inputs) const;
  size_t most_sets(const std::vector<DevicePointer>& given) const;
  size_t most_graphs() const;
  /// Whether a set has buffers for the outputs that a run is not given.
  bool is_for(const Blocks& set, const Blocks& given) const;
  /// Where the run finds its inputs: those that vary are copied into their slots.
  std::vector<DevicePointer> settled(const std::vector<DevicePointer>& inputs,
                                     const std::vector<DevicePointer>& given) const;
  bool needs_slot(size_t input, DevicePointer at, bool other) const;
  /// Memory for the temporaries, null where there are none.
  std::shared_ptr<DeviceBlock> arena_of_run() const;
  /// Whether a graph of its launches pays.
  bool is_captured() const;
  Places places(const std::vector<DevicePointer>& inputs, const Blocks& outputs,
                DevicePointer arena) const;
  Places places(const Recorded& r) const;
  /// Leaves r without a graph where the driver refuses, as it may when another library waits for
  /// the whole device meanwhile.
  void capture(Recorded& r) const;
  /// Sets the constants of a graph; leaves r without one where the driver refuses.
  void set_constants(Recorded& r, const uint64_t* constants) const;
  /// What the caller gets beside what was given: the set's outputs, or buffers for copies of those
  /// that callers keep.
  Blocks results(const Blocks& set, Blocks given) const;
  void copy_out(const Blocks& set, const Blocks& results) const;
  void enqueue(const CudaPlan& plan, const Places& buffers, const Run& run) const;
  void enqueue(const CudaPlan& plan, const Step& s, const Places& buffers, const Run& run) const;
  void multiply(const CudaPlan& plan, const Gemm& p, const Places& buffers, const Run& run) const;
  void compute_on_host(const Call& c, const Places& buffers, const Run& run) const;
  void repeat(const Loop& loop, const Places& buffers, const Run& run) const;
  void launch(const Step& s, const Places& buffers, const Run& run) const;
  Packed packed(const Step& s, const Places& buffers, const uint64_t* constants) const;
  std::string named(const CudaPlan& plan, const Step& s) const;
  std::string description(const CudaPlan& plan) const;

  CudaPlan plan_;
  Device& device_;
  const RunOnHost run_on_host_;
  void* module_ = nullptr;
  std::vector<void*> functions_;
  bool wide_ = false;
  size_t launches_ = 0;  ///< of a run
  mutable std::atomic<bool> ran_{false};
  mutable bool running_ = false;
  std::shared_ptr<const std::string> description_;  ///< what runs, in words
  /// Of each step; empty unless each is waited for.
  std::unordered_map<const Step*, std::string> names_;
  mutable std::vector<Source> sources_;
  mutable std::shared_ptr<Device::Arena> arena_;
  mutable std::list<std::shared_ptr<Blocks>> outputs_;  ///< the latest first
  mutable std::vector<Kept> kept_;                      ///< by output
  /// Whether callers hold small outputs for several calls, but not for many: each of them finds its
  /// own sets again.
  mutable bool many_sets_ = false;
  mutable std::list<Recorded> recorded_;  ///< the latest first
  mutable int refusals_ = 0;
};

}  // namespace gradcell::cuda

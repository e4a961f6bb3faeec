// The CUDA engine: loads a plan's kernels and runs it on a device.
//
// Holds: a run enqueues work and returns; it waits for nothing, except while the algorithms of new
// products are timed in a plan's second run. From its second run on, a plan keeps a few sets of
// output buffers and hands out the one that nobody holds any more: so that a training step finds
// the same buffers again, is captured as a CUDA graph, and from then on is one launch. What varies
// from run to run does not change that: inputs that come from ever other places, as batches do, are
// copied into a slot of the plan's own, and constants are set in the graph. A loop's body runs once
// a step, on the same stream, in a captured graph as nodes of it.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "cuda/cuda_plan.h"
#include "cuda/run/device.h"

namespace gradcell::cuda {

using Blocks = std::vector<std::shared_ptr<DeviceBlock>>;

/// Runs a call on the host's memory.
using RunOnHost = void (*)(const Call&, const void* const* in, void* out);

/// A plan whose kernels are loaded on a device.
class Launcher {
 public:
  /// Compiles the kernels for the device. Throws Runtime.
  Launcher(CudaPlan plan, Device& device, RunOnHost run_on_host);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  const CudaPlan& plan() const { return plan_; }
  Device& device() const { return device_; }

  /// One pointer an input; a block for each output, empty for those that alias others.
  Blocks run(const std::vector<DevicePointer>& inputs, const uint64_t* constants) const;

 private:
  Blocks run_entered(const std::vector<DevicePointer>& inputs, const uint64_t* constants) const;
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
  /// Where an input has been lately, and its slot once that was in too many places.
  struct Source {
    DevicePointer latest = 0, before = 0;
    int changes = 0;
    std::unique_ptr<DeviceBlock> slot;
  };
  Blocks fresh_outputs() const;
  /// A kept set of outputs that nobody else holds, or a new one.
  std::shared_ptr<Blocks> free_outputs(const std::vector<DevicePointer>& inputs) const;
  /// Whether a set can be written again. Small outputs that callers keep, as losses are, do not
  /// stand in the way: from now on they are copied out.
  bool make_free(const Blocks& outputs, const std::vector<DevicePointer>& inputs) const;
  /// Where the run finds its inputs: those that vary are copied into their slots.
  std::vector<DevicePointer> settled(const std::vector<DevicePointer>& inputs) const;
  bool needs_slot(size_t input, DevicePointer at) const;
  /// Whether a graph of its launches pays.
  bool is_captured() const;
  Places places(const std::vector<DevicePointer>& inputs, const Blocks& outputs,
                DevicePointer arena) const;
  /// Leaves r without a graph where the driver refuses, as it may when another library waits for
  /// the whole device meanwhile.
  void capture(Recorded& r) const;
  /// Sets the constants of a graph; leaves r without one where the driver refuses.
  void set_constants(Recorded& r, const uint64_t* constants) const;
  Blocks handed_out(const Blocks& outputs) const;
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
  mutable std::mutex mutex_;
  mutable bool ran_ = false;
  std::shared_ptr<const std::string> description_;  ///< what runs, in words
  /// Of each step; empty unless each is waited for.
  std::unordered_map<const Step*, std::string> names_;
  mutable std::vector<Source> sources_;
  mutable std::shared_ptr<DeviceBlock> arena_;
  mutable std::list<std::shared_ptr<Blocks>> outputs_;  ///< the latest first
  mutable std::vector<uint8_t> copied_;   ///< outputs that callers keep: they get copies
  mutable std::list<Recorded> recorded_;  ///< the latest first
  mutable int refusals_ = 0;
};

}  // namespace gradcell::cuda

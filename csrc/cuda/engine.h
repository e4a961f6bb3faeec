// The CUDA engine: loads a plan's kernels and runs it on a device.
//
// Holds: a run enqueues work and returns; it waits for nothing. A plan that runs again on the same
// buffers and constants is captured as a CUDA graph, and from then on is one launch.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "cuda/cuda_plan.h"
#include "cuda/device.h"

namespace gradcell::cuda {

class Executable {
 public:
  /// Compiles the kernels for the device. Throws Runtime.
  Executable(CudaPlan plan, Device& device);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const CudaPlan& plan() const { return plan_; }
  Device& device() const { return device_; }

  /// One pointer an input and an output; outputs that alias others are 0.
  void run(const DevicePointer* inputs, const DevicePointer* outputs,
           const uint64_t* constants) const;

  size_t captures() const { return captures_; }  ///< graphs made so far

 private:
  struct Recorded;
  void enqueue(const std::vector<DevicePointer>& buffers, const uint64_t* constants) const;
  void launch(const Step& s, const std::vector<DevicePointer>& buffers,
              const uint64_t* constants) const;

  CudaPlan plan_;
  Device& device_;
  void* module_ = nullptr;
  std::vector<void*> functions_;
  bool wide_ = false;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<DeviceBlock> arena_;
  mutable std::list<Recorded> recorded_;  ///< the latest first
  mutable size_t captures_ = 0;
};

}  // namespace gradcell::cuda

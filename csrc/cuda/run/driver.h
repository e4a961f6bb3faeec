// The CUDA driver: the functions that the engine uses, and owners of what they make.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "base/narrow.h"
#include "cuda/run/library.h"

namespace gradcell::cuda {

using DevicePointer = unsigned long long;
using StreamHandle = void*;
using EventHandle = void*;

inline constexpr unsigned kNoTiming = 2;  // CU_EVENT_DISABLE_TIMING
inline constexpr int kNotReady = 600;     // CUDA_ERROR_NOT_READY

/// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNode {
  void* function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** parameters;
  void** extra;
  void *kernel, *context;
};

/// An error after which the driver refuses all work of the process on that GPU.
class Fatal : public Error {
 public:
  using Error::Error;
};

/// libcuda's functions, by the names and types of the driver API's reference.
class Driver {
 public:
  /// Opened and initialised at the first use. Throws Runtime: no driver, driver too old, no GPU.
  static const Driver& get();

  /// Whether this process is a fork of one that had opened the driver, which cannot be used here.
  static bool forked();

  /// Throws Runtime, or Memory for an allocation that failed, or Fatal.
  void check(int result, const char* what) const;
  /// f(arguments...), checked.
  template <class... Parameters, class... Arguments>
  void call(const Function<int(Parameters...)>& f, Arguments... arguments) const {
    auto* const function = static_cast<int (*)(Parameters...)>(f);
    check(function(as_parameter<Parameters>(arguments)...), f.name);
  }
  std::string error_text(int result) const;

 private:
  template <class Parameter, class Argument>
  static Parameter as_parameter(Argument x) {
    if constexpr (std::is_integral_v<Parameter> && std::is_integral_v<Argument>)
      return narrow<Parameter>(x);
    else
      return x;
  }
  Driver();
  int supported_version() const;
  int usable_devices() const;
  Library library_;

 public:
  Function<int(unsigned)> cuInit{library_, "cuInit"};
  Function<int(int*)> cuDriverGetVersion{library_, "cuDriverGetVersion"};
  Function<int(int, const char**)> cuGetErrorString{library_, "cuGetErrorString"};
  const int version = supported_version();  ///< 13000: CUDA 13.0; an older one lacks what follows
  Function<int(int*)> cuDeviceGetCount{library_, "cuDeviceGetCount"};
  Function<int(int*, int)> cuDeviceGet{library_, "cuDeviceGet"};
  Function<int(char*, int, int)> cuDeviceGetName{library_, "cuDeviceGetName"};
  Function<int(int*, int, int)> cuDeviceGetAttribute{library_, "cuDeviceGetAttribute"};
  Function<int(void**, int)> cuDevicePrimaryCtxRetain{library_, "cuDevicePrimaryCtxRetain"};
  Function<int(void**)> cuCtxGetCurrent{library_, "cuCtxGetCurrent"};
  Function<int(void*)> cuCtxSetCurrent{library_, "cuCtxSetCurrent"};
  Function<int()> cuCtxSynchronize{library_, "cuCtxSynchronize"};
  Function<int(size_t*, size_t*)> cuMemGetInfo{library_, "cuMemGetInfo_v2"};
  Function<int(DevicePointer*, size_t)> cuMemAlloc{library_, "cuMemAlloc_v2"};
  Function<int(DevicePointer)> cuMemFree{library_, "cuMemFree_v2"};
  Function<int(void**, size_t, unsigned)> cuMemHostAlloc{library_, "cuMemHostAlloc"};
  Function<int(void*, int, DevicePointer)> cuPointerGetAttribute{library_, "cuPointerGetAttribute"};
  Function<int(DevicePointer, const void*, size_t, StreamHandle)> cuMemcpyHtoDAsync{
      library_, "cuMemcpyHtoDAsync_v2"};
  Function<int(void*, DevicePointer, size_t, StreamHandle)> cuMemcpyDtoHAsync{
      library_, "cuMemcpyDtoHAsync_v2"};
  Function<int(DevicePointer, DevicePointer, size_t, StreamHandle)> cuMemcpyDtoDAsync{
      library_, "cuMemcpyDtoDAsync_v2"};
  Function<int(DevicePointer, unsigned char, size_t, StreamHandle)> cuMemsetD8Async{
      library_, "cuMemsetD8Async"};
  Function<int(StreamHandle*, unsigned)> cuStreamCreate{library_, "cuStreamCreate"};
  Function<int(StreamHandle)> cuStreamSynchronize{library_, "cuStreamSynchronize"};
  Function<int(StreamHandle, EventHandle, unsigned)> cuStreamWaitEvent{library_,
                                                                       "cuStreamWaitEvent"};
  Function<int(EventHandle*, unsigned)> cuEventCreate{library_, "cuEventCreate"};
  Function<int(EventHandle, StreamHandle)> cuEventRecord{library_, "cuEventRecord"};
  Function<int(EventHandle)> cuEventSynchronize{library_, "cuEventSynchronize"};
  Function<int(EventHandle)> cuEventQuery{library_, "cuEventQuery"};
  Function<int(float*, EventHandle, EventHandle)> cuEventElapsedTime{library_,
                                                                     "cuEventElapsedTime"};
  Function<int(EventHandle)> cuEventDestroy{library_, "cuEventDestroy_v2"};
  /// All that has been put on any stream of a context: since CUDA 12.5.
  Function<int(void*, EventHandle)> cuCtxRecordEvent{library_, "cuCtxRecordEvent", kMayLack};
  Function<int(StreamHandle, int*)> cuStreamIsCapturing{library_, "cuStreamIsCapturing"};
  Function<int(StreamHandle, int)> cuStreamBeginCapture{library_, "cuStreamBeginCapture_v2"};
  Function<int(StreamHandle, void**)> cuStreamEndCapture{library_, "cuStreamEndCapture"};
  /// (stream, status, id, graph, dependencies, how many)
  Function<int(StreamHandle, int*, unsigned long long*, void**, void* const**, size_t*)>
      cuStreamGetCaptureInfo{library_, "cuStreamGetCaptureInfo_v2"};
  Function<int(void**, void*, unsigned long long)> cuGraphInstantiate{
      library_, "cuGraphInstantiateWithFlags"};
  Function<int(void*, StreamHandle)> cuGraphLaunch{library_, "cuGraphLaunch"};
  Function<int(void*, void*, const KernelNode*)> cuGraphExecKernelNodeSetParams{
      library_, "cuGraphExecKernelNodeSetParams_v2"};
  Function<int(void*)> cuGraphExecDestroy{library_, "cuGraphExecDestroy"};
  Function<int(void*)> cuGraphDestroy{library_, "cuGraphDestroy"};
  Function<int(void**, const void*)> cuModuleLoadData{library_, "cuModuleLoadData"};
  Function<int(void*)> cuModuleUnload{library_, "cuModuleUnload"};
  Function<int(void**, void*, const char*)> cuModuleGetFunction{library_, "cuModuleGetFunction"};
  Function<int(void*, int, int)> cuFuncSetAttribute{library_, "cuFuncSetAttribute"};
  Function<int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
               StreamHandle, void**, void**)>
      cuLaunchKernel{library_, "cuLaunchKernel"};
  const int device_count = usable_devices();
};

}  // namespace gradcell::cuda

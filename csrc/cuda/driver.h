// The CUDA driver: the functions that the engine uses, and owners of what they make.
#pragma once

#include <cstdint>
#include <string>

#include "cuda/library.h"

namespace gradcell::cuda {

using DevicePointer = unsigned long long;
using StreamHandle = void*;
using EventHandle = void*;

/// libcuda's functions, by the names and types of the driver API's reference.
class Driver {
 public:
  /// Opened and initialised at the first use. Throws Runtime: no driver, driver too old, no GPU.
  static const Driver& get();

  int version() const { return version_; }  ///< 13000: CUDA 13.0
  int device_count() const { return device_count_; }

  /// Throws Runtime, or Memory for an allocation that failed.
  void check(int result, const char* what) const;
  std::string error_text(int result) const;

  int (*cuInit)(unsigned) = nullptr;
  int (*cuDriverGetVersion)(int*) = nullptr;
  int (*cuGetErrorString)(int, const char**) = nullptr;
  int (*cuDeviceGetCount)(int*) = nullptr;
  int (*cuDeviceGet)(int*, int) = nullptr;
  int (*cuDeviceGetName)(char*, int, int) = nullptr;
  int (*cuDeviceGetAttribute)(int*, int, int) = nullptr;
  int (*cuDevicePrimaryCtxRetain)(void**, int) = nullptr;
  int (*cuCtxSetCurrent)(void*) = nullptr;
  int (*cuCtxSynchronize)() = nullptr;
  int (*cuMemGetInfo)(size_t*, size_t*) = nullptr;
  int (*cuMemAlloc)(DevicePointer*, size_t) = nullptr;
  int (*cuMemFree)(DevicePointer) = nullptr;
  int (*cuMemHostAlloc)(void**, size_t, unsigned) = nullptr;
  int (*cuPointerGetAttribute)(void*, int, DevicePointer) = nullptr;
  int (*cuMemcpyHtoDAsync)(DevicePointer, const void*, size_t, StreamHandle) = nullptr;
  int (*cuMemcpyDtoHAsync)(void*, DevicePointer, size_t, StreamHandle) = nullptr;
  int (*cuMemcpyDtoDAsync)(DevicePointer, DevicePointer, size_t, StreamHandle) = nullptr;
  int (*cuMemsetD8Async)(DevicePointer, unsigned char, size_t, StreamHandle) = nullptr;
  int (*cuStreamCreate)(StreamHandle*, unsigned) = nullptr;
  int (*cuStreamSynchronize)(StreamHandle) = nullptr;
  int (*cuStreamWaitEvent)(StreamHandle, EventHandle, unsigned) = nullptr;
  int (*cuEventCreate)(EventHandle*, unsigned) = nullptr;
  int (*cuEventRecord)(EventHandle, StreamHandle) = nullptr;
  int (*cuEventSynchronize)(EventHandle) = nullptr;
  int (*cuStreamBeginCapture)(StreamHandle, int) = nullptr;
  int (*cuStreamEndCapture)(StreamHandle, void**) = nullptr;
  int (*cuGraphInstantiate)(void**, void*, unsigned long long) = nullptr;
  int (*cuGraphLaunch)(void*, StreamHandle) = nullptr;
  int (*cuGraphExecDestroy)(void*) = nullptr;
  int (*cuGraphDestroy)(void*) = nullptr;
  int (*cuModuleLoadData)(void**, const void*) = nullptr;
  int (*cuModuleUnload)(void*) = nullptr;
  int (*cuModuleGetFunction)(void**, void*, const char*) = nullptr;
  int (*cuLaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        StreamHandle, void**, void**) = nullptr;

 private:
  Driver();
  Library library_;
  int version_ = 0, device_count_ = 0;
};

}  // namespace gradcell::cuda

#include "cuda/driver.h"

#include "base/error.h"

namespace gradcell::cuda {

namespace {

constexpr int kOutOfMemory = 2;       // CUDA_ERROR_OUT_OF_MEMORY
constexpr int kOldestDriver = 12000;  // what the compilers of the cuda12 extra need

}  // namespace

const Driver& Driver::get() {
  static const auto* driver = new Driver;  // a failed attempt is made again at the next call
  return *driver;
}

Driver::Driver()
    : library_({library_paths().driver, "libcuda.so.1"},
               "no NVIDIA driver was found: libcuda.so.1 cannot be opened. Install the driver, or "
               "use device_target='CPU'") {
  library_.find(cuInit, "cuInit");
  library_.find(cuDriverGetVersion, "cuDriverGetVersion");
  library_.find(cuGetErrorString, "cuGetErrorString");
  check(cuDriverGetVersion(&version_), "cuDriverGetVersion");
  require(version_ >= kOldestDriver, ErrorKind::Runtime,
          "the NVIDIA driver is too old: it supports CUDA ", version_ / 1000, ".",
          version_ % 1000 / 10, ", gradcell needs 12.0 or later");
  library_.find(cuDeviceGetCount, "cuDeviceGetCount");
  library_.find(cuDeviceGet, "cuDeviceGet");
  library_.find(cuDeviceGetName, "cuDeviceGetName");
  library_.find(cuDeviceGetAttribute, "cuDeviceGetAttribute");
  library_.find(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  library_.find(cuCtxSetCurrent, "cuCtxSetCurrent");
  library_.find(cuCtxSynchronize, "cuCtxSynchronize");
  library_.find(cuMemGetInfo, "cuMemGetInfo_v2");
  library_.find(cuMemAlloc, "cuMemAlloc_v2");
  library_.find(cuMemFree, "cuMemFree_v2");
  library_.find(cuMemHostAlloc, "cuMemHostAlloc");
  library_.find(cuPointerGetAttribute, "cuPointerGetAttribute");
  library_.find(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  library_.find(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  library_.find(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
  library_.find(cuMemsetD8Async, "cuMemsetD8Async");
  library_.find(cuStreamCreate, "cuStreamCreate");
  library_.find(cuStreamSynchronize, "cuStreamSynchronize");
  library_.find(cuStreamWaitEvent, "cuStreamWaitEvent");
  library_.find(cuEventCreate, "cuEventCreate");
  library_.find(cuEventRecord, "cuEventRecord");
  library_.find(cuEventSynchronize, "cuEventSynchronize");
  library_.find(cuStreamBeginCapture, "cuStreamBeginCapture_v2");
  library_.find(cuStreamEndCapture, "cuStreamEndCapture");
  library_.find(cuGraphInstantiate, "cuGraphInstantiateWithFlags");
  library_.find(cuGraphLaunch, "cuGraphLaunch");
  library_.find(cuGraphExecDestroy, "cuGraphExecDestroy");
  library_.find(cuGraphDestroy, "cuGraphDestroy");
  library_.find(cuModuleLoadData, "cuModuleLoadData");
  library_.find(cuModuleUnload, "cuModuleUnload");
  library_.find(cuModuleGetFunction, "cuModuleGetFunction");
  library_.find(cuLaunchKernel, "cuLaunchKernel");
  int result = cuInit(0);
  if (result == 0) result = cuDeviceGetCount(&device_count_);
  require(result == 0 && device_count_ > 0, ErrorKind::Runtime,
          "the NVIDIA driver is installed but reports no usable GPU",
          result == 0 ? "" : str(" (", error_text(result), ")"), ". Use device_target='CPU'");
}

std::string Driver::error_text(int result) const {
  const char* text = nullptr;
  if (cuGetErrorString(result, &text) != 0 || !text) text = "unknown error";
  return text;
}

void Driver::check(int result, const char* what) const {
  if (result == 0) return;
  fail(result == kOutOfMemory ? ErrorKind::Memory : ErrorKind::Runtime, what,
       " failed: ", error_text(result), " (CUDA error ", result, ")");
}

}  // namespace gradcell::cuda

#include "cuda/run/driver.h"

#include <algorithm>
#include <atomic>

#include "base/system/system.h"

namespace gradcell::cuda {

namespace {

std::atomic<bool> g_forked{false};

constexpr int kOutOfMemory = 2;       // CUDA_ERROR_OUT_OF_MEMORY
constexpr int kOldestDriver = 12000;  // what the compilers of the cuda12 extra need
/// Of cuda.h, those after which "any further CUDA work will return the same error", or "the process
/// must be terminated": uncorrectable memory and link errors, contained errors, illegal and
/// misaligned addresses, illegal instructions, failed launches, tensor memory that is not given
/// back, an MPS server that ended its client, errors of an external device.
constexpr int kFatal[] = {214, 220, 226, 700, 702, 710, 714, 715,
                          716, 717, 718, 719, 721, 810, 911};

}  // namespace

const Driver& Driver::get() {
  static const auto* driver = new Driver;  // a failed attempt is made again at the next call
  return *driver;
}

Driver::Driver()
    : library_(
          {library_paths().driver, "libcuda.so.1"},
          "no NVIDIA driver was found: libcuda.so.1 cannot be opened. Install the driver, with "
          "which gradcell uses GPUs on Linux, or use device_target='CPU'") {
  system::in_forked_children([] { g_forked = true; });
}

bool Driver::forked() { return g_forked; }

int Driver::supported_version() const {
  int version = 0;
  check(cuDriverGetVersion(&version), "cuDriverGetVersion");
  require(version >= kOldestDriver, ErrorKind::Runtime,
          "the NVIDIA driver is too old: it supports CUDA ", version / 1000, ".",
          version % 1000 / 10, ", gradcell needs 12.0 or later");
  return version;
}

int Driver::usable_devices() const {
  int count = 0, result = cuInit(0);
  if (result == 0) result = cuDeviceGetCount(&count);
  require(result == 0 && count > 0, ErrorKind::Runtime,
          "the NVIDIA driver is installed but reports no usable GPU",
          result == 0 ? "" : str(" (", error_text(result), ")"), ". Use device_target='CPU'");
  return count;
}

std::string Driver::error_text(int result) const {
  const char* text = nullptr;
  if (cuGetErrorString(result, &text) != 0 || !text) text = "unknown error";
  return text;
}

void Driver::check(int result, const char* what) const {
  if (result == 0) return;
  const std::string text = str(what, " failed: ", error_text(result), " (CUDA error ", result, ")");
  if (std::ranges::find(kFatal, result) != std::end(kFatal)) throw Fatal(ErrorKind::Runtime, text);
  fail(result == kOutOfMemory ? ErrorKind::Memory : ErrorKind::Runtime, text);
}

}  // namespace gradcell::cuda

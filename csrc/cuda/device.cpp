#include "cuda/device.h"

#include <bit>
#include <map>

#include "ir/error.h"

namespace gradcell::cuda {

namespace {

constexpr int kNonBlocking = 1;              // CU_STREAM_NON_BLOCKING
constexpr int kMajorOf = 75, kMinorOf = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*

/// Sizes in eighths of a power of two, so that shapes that vary a little find their blocks again.
size_t rounded(size_t bytes) {
  if (bytes <= 512) return 512;
  size_t step = std::max<size_t>(512, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

}  // namespace

Device& Device::get(int number) {
  static std::mutex mutex;
  static auto* devices = new std::map<int, std::unique_ptr<Device>>;
  const Driver& driver = Driver::get();
  require(number >= 0 && number < driver.device_count(), ErrorKind::Runtime, "device_id ", number,
          " is not there: this machine has ", driver.device_count(), " GPU",
          driver.device_count() == 1 ? "" : "s", ", numbered from 0");
  std::lock_guard lock(mutex);
  auto& entry = (*devices)[number];
  if (!entry) entry.reset(new Device(number));
  return *entry;
}

Device::Device(int number) : driver_(Driver::get()), number_(number) {
  int device = 0, major = 0, minor = 0;
  driver_.check(driver_.cuDeviceGet(&device, number), "cuDeviceGet");
  char name[256] = {};
  driver_.check(driver_.cuDeviceGetName(name, sizeof name - 1, device), "cuDeviceGetName");
  name_ = name;
  driver_.check(driver_.cuDeviceGetAttribute(&major, kMajorOf, device), "cuDeviceGetAttribute");
  driver_.check(driver_.cuDeviceGetAttribute(&minor, kMinorOf, device), "cuDeviceGetAttribute");
  capability_ = major * 10 + minor;
  require(capability_ >= 75, ErrorKind::Runtime, "the GPU ", name_, " has compute capability ",
          major, ".", minor, "; gradcell needs 7.5 or later");
  // The primary context is the one that the CUDA runtime, and so CuPy and PyTorch, use.
  driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device), "cuDevicePrimaryCtxRetain");
  enter();
  driver_.check(driver_.cuStreamCreate(&stream_, kNonBlocking), "cuStreamCreate");
}

void Device::enter() const { driver_.check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

CublasLt& Device::products() {
  if (!products_) products_ = std::make_unique<CublasLt>();
  return *products_;
}

DevicePointer Device::workspace() {
  if (!workspace_) workspace_ = allocate(CublasLt::kWorkspace);
  return workspace_;
}

DevicePointer Device::allocate(size_t bytes) {
  enter();
  size_t size = rounded(bytes);
  {
    std::lock_guard lock(memory_mutex_);
    auto& blocks = free_[size];
    if (!blocks.empty()) {
      DevicePointer p = blocks.back();
      blocks.pop_back();
      cached_ -= size;
      in_use_ += size;
      return p;
    }
  }
  DevicePointer p = 0;
  if (driver_.cuMemAlloc(&p, size) != 0) {
    release_cached();
    int result = driver_.cuMemAlloc(&p, size);
    if (result != 0) {
      size_t available = 0, total = 0;
      driver_.cuMemGetInfo(&available, &total);
      fail(ErrorKind::Memory, "out of memory on GPU ", number_, " (", name_, "): asked for ", bytes,
           " bytes; tensors hold ", in_use_, " bytes, ", available, " of ", total,
           " bytes are free");
    }
  }
  std::lock_guard lock(memory_mutex_);
  in_use_ += size;
  return p;
}

void Device::release(DevicePointer p, size_t bytes) {
  size_t size = rounded(bytes);
  std::lock_guard lock(memory_mutex_);
  free_[size].push_back(p);
  in_use_ -= size;
  cached_ += size;
}

void Device::release_cached() {
  enter();
  synchronise();
  std::lock_guard lock(memory_mutex_);
  for (auto& [size, blocks] : free_)
    for (DevicePointer p : blocks) driver_.cuMemFree(p);
  free_.clear();
  cached_ = 0;
}

void Device::upload(DevicePointer to, const void* from, size_t bytes) {
  enter();
  driver_.check(driver_.cuMemcpyHtoDAsync(to, from, bytes, stream_), "cuMemcpyHtoDAsync");
  // The caller may change or free its memory at once.
  synchronise();
}

DevicePointer Device::status() {
  if (!status_) {
    DevicePointer p = allocate(sizeof(int));
    int zero = 0;
    upload(p, &zero, sizeof zero);
    status_ = p;
  }
  return status_;
}

void Device::download(void* to, DevicePointer from, size_t bytes) {
  enter();
  int status = 0;
  driver_.check(driver_.cuMemcpyDtoHAsync(to, from, bytes, stream_), "cuMemcpyDtoHAsync");
  if (status_)
    driver_.check(driver_.cuMemcpyDtoHAsync(&status, status_, sizeof status, stream_),
                  "cuMemcpyDtoHAsync");
  synchronise();
  if (status == 0) return;
  int zero = 0;
  upload(status_, &zero, sizeof zero);
  fail(ErrorKind::Index,
       "an index was out of range for the axis that it is taken from, in work on GPU ", number_,
       " since the last time a value was read");
}

void Device::synchronise() const {
  driver_.check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

}  // namespace gradcell::cuda

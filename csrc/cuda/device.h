// One GPU: its context, its stream, its memory. All work of the process on a device goes through
// one stream, in order: memory that is given back can be handed out again at once.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuda/cublaslt.h"
#include "cuda/driver.h"

namespace gradcell::cuda {

class Device {
 public:
  /// Throws Runtime for a number that is not there.
  static Device& get(int number);

  int number() const { return number_; }
  const std::string& name() const { return name_; }
  int capability() const { return capability_; }  ///< 90: sm_90
  StreamHandle stream() const { return stream_; }
  CublasLt& products();
  DevicePointer workspace();  ///< of cuBLASLt

  /// Makes the device's context this thread's. Every entry from outside begins so.
  void enter() const;

  /// 256-byte aligned, uninitialised; from the cache where a block of that size is free. Throws
  /// Memory: what was asked, what is held, what is free.
  DevicePointer allocate(size_t bytes);
  void release(DevicePointer p, size_t bytes);
  void release_cached();
  size_t in_use() const { return in_use_; }
  size_t cached() const { return cached_; }

  void upload(DevicePointer to, const void* from, size_t bytes);
  /// Where kernels flag an index that is out of range.
  DevicePointer status();
  /// Waits for all work before; throws Index if some of it met an index out of range.
  void download(void* to, DevicePointer from, size_t bytes);
  void synchronise() const;

  /// Held while work is enqueued: the stream has one writer.
  std::mutex& mutex() { return mutex_; }

 private:
  explicit Device(int number);
  const Driver& driver_;
  int number_;
  std::string name_;
  int capability_ = 0;
  void* context_ = nullptr;
  StreamHandle stream_ = nullptr;
  std::mutex mutex_, memory_mutex_;
  std::unordered_map<size_t, std::vector<DevicePointer>> free_;
  size_t in_use_ = 0, cached_ = 0;
  std::unique_ptr<CublasLt> products_;
  DevicePointer workspace_ = 0;
  std::atomic<DevicePointer> status_{0};
};

/// Bytes of a device, for as long as anything needs them.
class DeviceBlock {
 public:
  DeviceBlock(Device& device, size_t bytes)
      : device_(device), bytes_(bytes), pointer_(bytes ? device.allocate(bytes) : 0) {}
  ~DeviceBlock() {
    if (pointer_) device_.release(pointer_, bytes_);
  }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;

  Device& device() const { return device_; }
  DevicePointer pointer() const { return pointer_; }
  size_t bytes() const { return bytes_; }

 private:
  Device& device_;
  size_t bytes_;
  DevicePointer pointer_;
};

}  // namespace gradcell::cuda

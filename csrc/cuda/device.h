// One GPU: its context, its stream, its memory. All work of the process on a device goes through
// one stream, in order: memory that is given back can be handed out again at once.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuda/cublaslt.h"
#include "cuda/driver.h"
#include "cuda/staging.h"

namespace gradcell::cuda {

struct DeviceProperties {
  std::string name;
  int capability;  ///< 90: sm_90
};
/// Makes no context. Throws Runtime.
DeviceProperties properties_of(int number);

class Device {
 public:
  /// Throws Runtime for a number that is not there.
  static Device& get(int number);
  /// Null if nobody has asked for it yet.
  static Device* if_made(int number);

  int number() const { return number_; }
  const std::string& name() const { return properties_.name; }
  int capability() const { return properties_.capability; }  ///< 90: sm_90
  StreamHandle stream() const { return stream_; }
  /// Where graphs are captured: nothing ever runs on it, so that transfers of other threads are not
  /// recorded among a plan's steps.
  StreamHandle capture_stream() const { return capture_stream_; }
  /// Made at the first call, which throws if cuBLASLt is missing.
  CublasLt& products();
  DevicePointer workspace();  ///< of cuBLASLt

  /// Makes the device's context this thread's. Every entry from outside begins so.
  void enter() const;
  /// The same where errors have nowhere to go.
  void enter_quietly() const noexcept { driver_.cuCtxSetCurrent(context_); }

  /// 256-byte aligned, uninitialised; from the cache where a block of that size is free. Throws
  /// Memory: what was asked, what is held, what is free.
  DevicePointer allocate(size_t bytes);
  void release(DevicePointer p, size_t bytes);
  void release_cached();
  size_t in_use() const { return in_use_; }
  size_t cached() const { return cached_; }

  /// The caller may change or free `from` at once.
  void upload(DevicePointer to, const void* from, size_t bytes);
  void copy(DevicePointer to, DevicePointer from, size_t bytes);
  /// Where kernels flag an index that is out of range.
  DevicePointer status();
  /// Waits for all work before; throws Index if some of it met an index out of range.
  void download(void* to, DevicePointer from, size_t bytes);
  void synchronise() const;
  /// Waits for all streams of the device, other libraries' too. Errors have nowhere to go.
  void synchronise_all() noexcept;

  /// Work on this device comes after what is on another stream by now, or the other way about.
  void wait_for(StreamHandle other);
  void let_wait(StreamHandle other);

  /// Held while work is enqueued: the stream has one writer. A destructor may find it held.
  std::recursive_mutex& mutex() { return mutex_; }

 private:
  explicit Device(int number);
  const Driver& driver_;
  int number_;
  DeviceProperties properties_;
  void* context_ = nullptr;
  void order(StreamHandle first, StreamHandle then);

  StreamHandle stream_ = nullptr, capture_stream_ = nullptr;
  EventHandle event_ = nullptr;
  std::unique_ptr<Staging> staging_;
  std::recursive_mutex mutex_;
  std::mutex memory_mutex_, event_mutex_;
  std::unordered_map<size_t, std::vector<DevicePointer>> free_;
  std::atomic<size_t> in_use_{0}, cached_{0};
  std::once_flag products_once_;
  std::unique_ptr<CublasLt> products_;
  DevicePointer workspace_ = 0;
  std::atomic<DevicePointer> status_{0};
};

/// Bytes of a device, for as long as anything needs them: the device's own, or another library's.
///
/// Memory that other libraries can reach waits, in the end, for all that may still use it: theirs
/// for this engine's stream, ours, once shared, for every stream.
class DeviceBlock {
 public:
  DeviceBlock(Device& device, size_t bytes)
      : device_(device), bytes_(bytes), pointer_(bytes ? device.allocate(bytes) : 0) {}
  DeviceBlock(Device& device, DevicePointer pointer, size_t bytes, std::function<void()> give_back)
      : device_(device), bytes_(bytes), pointer_(pointer), give_back_(std::move(give_back)) {}
  ~DeviceBlock();
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;

  Device& device() const { return device_; }
  DevicePointer pointer() const { return pointer_; }
  size_t bytes() const { return bytes_; }
  /// Other libraries will use it, on streams of their own.
  void share() { shared_ = true; }
  bool foreign() const { return give_back_ != nullptr; }

 private:
  Device& device_;
  size_t bytes_;
  DevicePointer pointer_;
  std::function<void()> give_back_;
  std::atomic<bool> shared_{false};
};

}  // namespace gradcell::cuda

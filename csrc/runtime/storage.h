// Memory of tensors: blocks from a caching allocator, or foreign memory kept alive by its owner.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "plan/plan.h"

namespace gradcell {

namespace cuda {
class Device;
class DeviceBlock;
class LateWord;
}  // namespace cuda

/// An array's bytes: on the host, on a GPU, or on both once either has been asked for. They are
/// never changed while shared, so that the two copies stay equal; memory of other libraries, which
/// they may change, is copied again each time.
class Storage {
 public:
  /// 64-byte aligned, uninitialised. Throws Memory.
  static std::shared_ptr<Storage> allocate(size_t bytes);
  /// Memory that belongs to somebody else: `release` runs when the last reference goes.
  static std::shared_ptr<Storage> wrap(void* data, size_t bytes, bool writable,
                                       std::function<void()> release);

  /// Bytes that a GPU holds, the engine's own or foreign; the host gets them when it asks.
  static std::shared_ptr<Storage> on_device(std::shared_ptr<cuda::DeviceBlock> block, size_t bytes);

  Storage(void* data, size_t bytes, std::function<void()> release, bool writable = true);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const {
    void* p = data_.load(std::memory_order_acquire);
    return p ? p : fetch();
  }
  /// The bytes on a GPU, sent there at the first call. Foreign memory is sent at every call: its
  /// owner may have written to it.
  std::shared_ptr<cuda::DeviceBlock> on(cuda::Device& device) const;
  size_t bytes() const { return bytes_; }
  /// Whether data() returns at once, without waiting for a GPU.
  bool on_host() const { return data_.load(std::memory_order_acquire) != nullptr; }
  /// The GPU that holds these bytes; -1: none.
  int device() const { return number_.load(std::memory_order_acquire); }
  bool has_device() const { return device() >= 0; }
  /// Whether the memory is somebody else's: nothing here ever writes to it.
  bool borrowed() const { return borrowed_; }
  /// Whether its owner, or whoever is shown it, may write to it.
  bool writable() const { return writable_; }
  /// Whether others may write to the bytes unseen: foreign memory, and what they have been shown.
  bool exposed() const { return borrowed_ || exposed_.load(std::memory_order_relaxed); }
  void expose() { exposed_.store(true, std::memory_order_relaxed); }
  /// The same bytes in memory of their own on the GPU that alone has these; null: the host has
  /// them.
  std::shared_ptr<Storage> copied_on_device() const;

 private:
  void* fetch() const;
  std::atomic<bool> exposed_{false};
  bool borrowed_ = false, writable_ = true;
  mutable std::atomic<int> number_{-1};  ///< of the GPU of device_
  mutable std::atomic<void*> data_;      ///< null: only a GPU has them yet
  size_t bytes_;
  std::function<void()> release_;  ///< empty: the block goes back to the allocator
  mutable void* host_ = nullptr;   ///< the latest copy of foreign memory of a GPU
  mutable std::shared_ptr<cuda::DeviceBlock> device_;
};

/// Bytes that live tensors hold, and bytes kept for reuse.
struct MemoryInfo {
  size_t in_use, cached;
};
MemoryInfo memory_info();
/// Gives cached blocks back to the system.
void release_cached_memory();

/// A dense, row-major tensor with a value. Its elements never change once it is shared.
struct Array {
  DType dtype = DType::Float32;
  Dims dims;
  std::shared_ptr<Storage> storage;

  int64_t count() const { return element_count(dims); }
  size_t bytes() const { return static_cast<size_t>(count()) * item_size(dtype); }
  void* data() const { return storage->data(); }
};

Array empty_array(DType dtype, Dims dims);
/// The same elements in memory of their own.
Array duplicate(const Array& a);
/// For another holder: the same array, or a duplicate if others may write to it unseen.
inline Array shared(const Array& a) { return a.storage->exposed() ? duplicate(a) : a; }

/// A look at a number that steps leave behind, which waits for none of them.
class Watch {
 public:
  /// Looks that go by from one copy of a GPU's number to the next.
  static constexpr int kEach = 32;

  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// The int32 of an array of one element: as it is, where the host has it. One that a GPU holds is
  /// sent for at the first look and then at each kEach-th one; a look says what has come by then,
  /// 0 before the first. What has not come when the next is to be sent for is waited for.
  int32_t look(const Array& a);

 private:
  std::mutex mutex_;
  std::unique_ptr<cuda::LateWord> word_;
  int looks_ = 0;
  int32_t latest_ = 0;
};

}  // namespace gradcell

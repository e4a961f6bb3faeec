// Memory of tensors: blocks from a caching allocator, or foreign memory kept alive by its owner.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "plan/plan.h"

namespace gradcell {

class Storage {
 public:
  /// 64-byte aligned, uninitialised. Throws Memory.
  static std::shared_ptr<Storage> allocate(size_t bytes);
  /// Memory that belongs to somebody else: `release` runs when the last reference goes.
  static std::shared_ptr<Storage> wrap(void* data, size_t bytes, std::function<void()> release);

  Storage(void* data, size_t bytes, std::function<void()> release);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_;
  size_t bytes_;
  std::function<void()> release_;  ///< empty: the block goes back to the allocator
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

}  // namespace gradcell

#include "runtime/storage.h"

#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace gradcell {

namespace {

/// Free blocks by size. Sizes are rounded up to eighths of a power of two, so that a loop whose
/// shapes vary a little still finds its blocks again.
class Cache {
 public:
  static Cache& instance() {
    static auto* cache = new Cache;  // outlives every tensor, those of exiting threads included
    return *cache;
  }

  static size_t rounded(size_t bytes) {
    if (bytes <= 64) return 64;
    size_t step = std::max<size_t>(64, std::bit_floor(bytes) / 8);
    return (bytes + step - 1) / step * step;
  }

  void* take(size_t bytes) {
    size_t size = rounded(bytes);
    {
      std::lock_guard lock(mutex_);
      in_use_ += size;
      auto& blocks = free_[size];
      if (!blocks.empty()) {
        void* p = blocks.back();
        blocks.pop_back();
        cached_ -= size;
        return p;
      }
    }
    void* p = size < bytes ? nullptr : std::aligned_alloc(64, size);
    if (!p) {
      release_all();
      p = size < bytes ? nullptr : std::aligned_alloc(64, size);
    }
    if (!p) {
      std::lock_guard lock(mutex_);
      in_use_ -= size;
      fail(ErrorKind::Memory, "out of memory: a tensor needs ", bytes, " bytes; tensors hold ",
           in_use_, " bytes already");
    }
    return p;
  }

  void give(void* p, size_t bytes) {
    size_t size = rounded(bytes);
    {
      std::lock_guard lock(mutex_);
      in_use_ -= size;
      if (cached_ + size <= kMaxCached) {
        free_[size].push_back(p);
        cached_ += size;
        return;
      }
    }
    std::free(p);
  }

  void release_all() {
    std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : free_)
      for (void* p : blocks) std::free(p);
    free_.clear();
    cached_ = 0;
  }

  MemoryInfo info() {
    std::lock_guard lock(mutex_);
    return {in_use_, cached_};
  }

 private:
  static constexpr size_t kMaxCached = size_t(256) << 20;
  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_;
  size_t in_use_ = 0, cached_ = 0;
};

}  // namespace

Storage::Storage(void* data, size_t bytes, std::function<void()> release)
    : data_(data), bytes_(bytes), release_(std::move(release)) {}

Storage::~Storage() {
  if (release_)
    release_();
  else
    Cache::instance().give(data_, bytes_);
}

std::shared_ptr<Storage> Storage::allocate(size_t bytes) {
  return std::make_shared<Storage>(Cache::instance().take(bytes), bytes, nullptr);
}

std::shared_ptr<Storage> Storage::wrap(void* data, size_t bytes, std::function<void()> release) {
  return std::make_shared<Storage>(data, bytes, std::move(release));
}

MemoryInfo memory_info() { return Cache::instance().info(); }
void release_cached_memory() { Cache::instance().release_all(); }

Array empty_array(DType dtype, Dims dims) {
  Array a{dtype, std::move(dims), nullptr};
  int64_t n = a.count();
  size_t bytes;
  if (__builtin_mul_overflow(static_cast<size_t>(n), item_size(dtype), &bytes) ||
      bytes > (size_t(1) << 47))
    fail(ErrorKind::Memory, "a tensor of shape ", to_string(a.dims), " and dtype ", name(dtype),
         " does not fit into memory");
  a.storage = Storage::allocate(bytes);
  return a;
}

}  // namespace gradcell

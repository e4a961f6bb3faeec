#include "runtime/storage.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "base/waiting.h"
#include "cuda/run/device.h"

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
      auto& blocks = free_[size];
      in_use_ += size;
      if (!blocks.empty()) {
        void* p = blocks.back();
        blocks.pop_back();
        cached_ -= size;
        return p;
      }
    }
    void* p = size < bytes ? nullptr : allocate(size);
    if (!p) {
      release_all();
      p = size < bytes ? nullptr : allocate(size);
    }
    if (!p) {
      std::lock_guard lock(mutex_);
      in_use_ -= size;
      fail(ErrorKind::Memory, "out of memory: a tensor needs ", bytes, " bytes; tensors hold ",
           in_use_, " bytes already");
    }
    return p;
  }

  void give(void* p, size_t bytes) noexcept {
    size_t size = rounded(bytes);
    {
      std::lock_guard lock(mutex_);
      in_use_ -= size;
      if (cached_ + size <= kMaxCached && kept(size, p)) {
        cached_ += size;
        return;
      }
    }
    system::release(p);
  }

  void release_all() {
    std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : free_)
      for (void* p : blocks) system::release(p);
    free_.clear();
    cached_ = 0;
  }

  MemoryInfo info() {
    std::lock_guard lock(mutex_);
    return {in_use_, cached_};
  }

 private:
  static constexpr size_t kMaxCached = size_t(256) << 20;
  /// Under the lock: whether there is memory to note a free block.
  bool kept(size_t size, void* p) noexcept {
    try {
      free_[size].push_back(p);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_;
  size_t in_use_ = 0, cached_ = 0;
};

}  // namespace

Storage::Storage(void* data, size_t bytes, std::function<void()> release, bool writable)
    : borrowed_(release != nullptr),
      writable_(writable),
      data_(data),
      bytes_(bytes),
      release_(std::move(release)) {}

Storage::~Storage() {
  void* data = data_.load(std::memory_order_relaxed);
  if (release_)
    release_();
  else if (data)
    Cache::instance().give(data, bytes_);
  if (host_) Cache::instance().give(host_, bytes_);
}

namespace {

/// Copies between the host and a GPU: rare, so that one lock for all of them will do.
std::mutex& transfer_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

}  // namespace

std::shared_ptr<Storage> Storage::on_device(std::shared_ptr<cuda::DeviceBlock> block,
                                            size_t bytes) {
  auto s = std::make_shared<Storage>(nullptr, bytes, nullptr);
  s->borrowed_ = block->foreign();
  s->number_ = block->device().number();
  s->device_ = std::move(block);
  return s;
}

void* Storage::fetch() const {
  std::lock_guard lock(transfer_mutex());
  if (void* p = data_.load(std::memory_order_relaxed)) return p;
  void* p = host_ ? host_ : host_ = Cache::instance().take(bytes_);
  if (bytes_ > 0) device_->device().download(p, device_->pointer(), bytes_);
  if (device_->foreign()) return p;
  host_ = nullptr;
  data_.store(p, std::memory_order_release);
  return p;
}

std::shared_ptr<cuda::DeviceBlock> Storage::on(cuda::Device& device) const {
  {
    std::lock_guard lock(transfer_mutex());
    if (device_ && &device_->device() == &device) return device_;
  }
  void* from = data();  // from the host, or by way of it from another GPU
  auto block = std::make_shared<cuda::DeviceBlock>(device, bytes_);
  if (bytes_ > 0) device.upload(block->pointer(), from, bytes_);
  if (release_) return block;
  std::shared_ptr<cuda::DeviceBlock> old;  // goes after the lock: it may be another library's
  std::lock_guard lock(transfer_mutex());
  if (device_ && device_->foreign()) return block;
  old = std::exchange(device_, block);
  number_.store(device.number(), std::memory_order_release);
  return block;
}

std::shared_ptr<Storage> Storage::copied_on_device() const {
  if (on_host() || bytes_ == 0) return nullptr;
  std::shared_ptr<cuda::DeviceBlock> from;
  {
    std::lock_guard lock(transfer_mutex());
    from = device_;
  }
  cuda::Device& device = from->device();
  auto block = std::make_shared<cuda::DeviceBlock>(device, bytes_);
  device.copy(block->pointer(), from->pointer(), bytes_);
  return on_device(std::move(block), bytes_);
}

std::shared_ptr<Storage> Storage::allocate(size_t bytes) {
  auto give = [bytes](void* p) { Cache::instance().give(p, bytes); };
  std::unique_ptr<void, decltype(give)> block(Cache::instance().take(bytes), give);
  auto storage = std::make_shared<Storage>(block.get(), bytes, nullptr);
  block.release();
  return storage;
}

std::shared_ptr<Storage> Storage::wrap(void* data, size_t bytes, bool writable,
                                       std::function<void()> release) {
  return std::make_shared<Storage>(data, bytes, std::move(release), writable);
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

Array duplicate(const Array& a) {
  if (auto storage = a.storage->copied_on_device()) return {a.dtype, a.dims, std::move(storage)};
  Array out = empty_array(a.dtype, a.dims);
  const size_t bytes = a.bytes(), parts = std::clamp<size_t>(bytes >> 18, 1, 16);
  if (bytes == 0) return out;
  auto* const from = static_cast<const std::byte*>(a.data());
  auto* const to = static_cast<std::byte*>(out.data());
  parallel_for(parts, [&](int p, int) {
    const auto part = static_cast<size_t>(p);
    const size_t first = bytes * part / parts, last = bytes * (part + 1) / parts;
    std::memcpy(to + first, from + first, last - first);
  });
  return out;
}

Watch::Watch() = default;
Watch::~Watch() = default;

int32_t Watch::look(const Array& a) {
  require(a.dtype == DType::Int32 && a.count() == 1, ErrorKind::Runtime, "what is watched is ",
          name(a.dtype), " of shape ", to_string(a.dims), ", not an int32");
  if (a.storage->on_host()) {
    int32_t now = 0;
    std::memcpy(&now, a.data(), sizeof now);
    return now;
  }
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return 0;  // another thread looks
  cuda::Device& device = cuda::Device::get(a.storage->device());
  if (word_ && &word_->device() != &device) word_.reset();
  const bool sends = !word_ || ++looks_ >= kEach;
  if (word_ && sends && !word_->has_come()) letting_others_run([&] { word_->wait(); });
  if (word_ && word_->has_come()) latest_ = word_->value();
  if (!sends) return latest_;
  if (!word_) word_ = std::make_unique<cuda::LateWord>(device);
  word_->send_for(a.storage->on(device)->pointer());
  looks_ = 0;
  return latest_;
}

}  // namespace gradcell

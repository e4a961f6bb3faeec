// Memory that is kept from one run to the next: fresh pages cost as much as the work in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/memory.h"

namespace gradcell {

/// One block, aligned to 64 bytes, as large as has been asked for so far.
class Scratch {
 public:
  /// At least that many bytes; what the block held may be gone. Throws Memory.
  std::byte* get(size_t bytes) {
    if (bytes > size_) {
      data_.reset();
      size_ = (bytes + 4095) / 4096 * 4096;
      data_.reset(static_cast<std::byte*>(allocate(size_)));
      if (!data_) {
        size_ = 0;
        fail(ErrorKind::Memory, "out of memory: ", bytes, " bytes of scratch");
      }
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { system::release(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

/// A thread's room for elements, until it asks again with the same purpose: a type that names it.
template <class T, class Purpose>
T* kept(int64_t elements) {
  thread_local Scratch scratch;
  return reinterpret_cast<T*>(scratch.get(static_cast<size_t>(elements) * sizeof(T)));
}

}  // namespace gradcell

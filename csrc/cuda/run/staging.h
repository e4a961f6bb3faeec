// Pinned host memory that transfers go through, in two halves: one is filled or emptied while the
// other is on its way. So an upload returns as soon as its bytes have been copied off.
#pragma once

#include <mutex>

#include "cuda/run/driver.h"

namespace gradcell::cuda {

class Staging {
 public:
  /// Where no pinned memory is to be had, transfers take the pageable way.
  explicit Staging(const Driver& driver);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// The caller may change or free `from` when this returns; the copy is in the stream's order.
  void upload(DevicePointer to, const void* from, size_t bytes, StreamHandle stream);
  /// The bytes are there when this returns, and all work before is done. Returns the word at `flag`
  /// (0: there is none), and clears it, so that one download alone sees what was flagged.
  int download(void* to, DevicePointer from, size_t bytes, StreamHandle stream, DevicePointer flag);

 private:
  static constexpr size_t kHalf = size_t(4) << 20;
  struct Half {
    unsigned char* memory = nullptr;
    EventHandle done = nullptr;  ///< of the last transfer through it
  };
  void wait(const Half& h) const;

  const Driver& driver_;
  std::mutex mutex_;
  Half halves_[2];
  int pageable_word_ = 0;
  int* word_ = &pageable_word_;
  int next_ = 0;
};

}  // namespace gradcell::cuda

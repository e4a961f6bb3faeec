// Pinned host memory that transfers go through, in two halves: one is filled or emptied while the
// other is on its way. So an upload returns as soon as its bytes have been copied off.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

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
  /// A word that a copy can go to while the host does something else, until it is given back.
  int* take_word();
  void give_word(int* word);

 private:
  static constexpr size_t kWords = 1024;  ///< that are made at a time
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
  std::vector<int*> words_;                       ///< free ones
  std::vector<std::unique_ptr<int[]>> pageable_;  ///< where those are without pinned memory
};

}  // namespace gradcell::cuda

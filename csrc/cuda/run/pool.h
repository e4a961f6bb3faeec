// The memory that a device's driver has given, and which of it is free: segments, which are divided
// for smaller blocks and joined again. Knows addresses and sizes alone.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "cuda/run/driver.h"

namespace gradcell::cuda {

class Pool {
 public:
  struct Piece {
    DevicePointer pointer = 0;
    size_t bytes = 0;
    EventHandle until = nullptr;  ///< when it is free
  };
  /// From here on blocks are parts of larger segments; smaller ones get a segment of about their
  /// size.
  static constexpr size_t kLarge = size_t{1} << 20;

  /// The size that a block has for so many bytes.
  static size_t rounded(size_t bytes);

  /// A piece of a rounded size, or little more, in use from now on; none: its pointer is 0.
  Piece take(size_t bytes);
  /// A segment of the driver's, in use.
  void add(DevicePointer p, size_t bytes);
  /// Is free, or will be. Returns its size.
  size_t give(DevicePointer p, EventHandle until = nullptr);
  /// What a piece in use has.
  size_t size_of(DevicePointer p) const { return pieces_.at(p).bytes; }
  /// The free segments of at least so many bytes: no longer the pool's. `wait`: for an event.
  std::vector<Piece> without_free(size_t least, FunctionRef<void(EventHandle)> wait);
  /// The bytes of free segments of at least so many.
  size_t whole(size_t least) const;
  size_t free_bytes() const { return free_bytes_; }

 private:
  struct State {
    size_t bytes;
    bool begins, free = false;  ///< begins: a segment
    EventHandle until = nullptr;
    uint64_t order = 0;
  };
  using Place = std::map<DevicePointer, State>::iterator;
  bool is_whole(std::map<DevicePointer, State>::const_iterator at) const;
  void enter(Place at, EventHandle until);
  void leave(Place at);
  std::map<DevicePointer, State> pieces_;
  /// By size; of one size the latest that was given back comes first, so that a loop finds the same
  /// blocks again.
  std::map<std::pair<size_t, uint64_t>, DevicePointer> free_;
  uint64_t next_ = UINT64_MAX;
  size_t free_bytes_ = 0;
};

}  // namespace gradcell::cuda

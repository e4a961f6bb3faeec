// Offsets in one block of memory for buffers of which not all are needed at the same time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradcell {

class Arena {
 public:
  explicit Arena(size_t alignment) : alignment_(alignment) {}

  /// The first gap for a buffer that is needed from time `first` to `last`.
  size_t place(size_t bytes, int32_t first, int32_t last) {
    bytes = (bytes + alignment_ - 1) / alignment_ * alignment_;
    size_t at = 0;
    for (const Block& b : blocks_) {  // ascending offsets
      if (b.last < first || last < b.first) continue;
      if (at + bytes <= b.offset) break;
      at = std::max(at, b.offset + b.bytes);
    }
    const Block block{at, bytes, first, last};
    blocks_.insert(std::ranges::upper_bound(blocks_, at, {}, &Block::offset), block);
    size_ = std::max(size_, at + bytes);
    return at;
  }
  size_t size() const { return size_; }

 private:
  struct Block {
    size_t offset, bytes;
    int32_t first, last;
  };
  size_t alignment_;
  std::vector<Block> blocks_;
  size_t size_ = 0;
};

}  // namespace gradcell

// Offsets in one block of memory for buffers of which not all are needed at the same time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace gradcell {

class Arena {
 public:
  explicit Arena(size_t alignment) : alignment_(alignment) {}

  /// The first gap for a buffer that is needed from time `first` to `last`.
  size_t place(size_t bytes, int32_t first, int32_t last) {
    bytes = (bytes + alignment_ - 1) / alignment_ * alignment_;
    if (bytes == 0) return 0;
    size_t at = 0;
    for (const Block& b : blocks_) {  // ascending offsets
      if (!b.taken(first, last)) continue;
      if (at + bytes <= b.offset) break;
      at = std::max(at, b.offset + b.bytes);
    }
    const auto key = [](const Block& b) { return std::pair(b.offset, b.bytes); };
    auto block = std::ranges::lower_bound(blocks_, std::pair(at, bytes), {}, key);
    if (block == blocks_.end() || key(*block) != std::pair(at, bytes))
      block = blocks_.insert(block, {at, bytes, {}});
    block->times.emplace(first, last);
    size_ = std::max(size_, at + bytes);
    return at;
  }
  size_t size() const { return size_; }

 private:
  /// Where buffers lie, one after the other: of a long program there are far fewer than buffers.
  struct Block {
    size_t offset, bytes;
    std::map<int32_t, int32_t> times;  ///< last by first; no two overlap

    bool taken(int32_t first, int32_t last) const {
      const auto after = times.upper_bound(last);
      return after != times.begin() && std::prev(after)->second >= first;
    }
  };
  size_t alignment_;
  std::vector<Block> blocks_;
  size_t size_ = 0;
};

}  // namespace gradcell

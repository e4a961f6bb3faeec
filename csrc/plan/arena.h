// Offsets in one block of memory for buffers of which not all are needed at the same time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

namespace gradcell {

class Arena {
 public:
  /// For times from 0 on, so many.
  Arena(size_t alignment, size_t times)
      : alignment_(alignment), times_(std::bit_ceil(times + 1)), nodes_(2 * times_) {}

  /// The first gap for a buffer that is needed from time `first` to `last`.
  size_t place(size_t bytes, int32_t first, int32_t last) {
    bytes = (bytes + alignment_ - 1) / alignment_ * alignment_;
    if (bytes == 0) return 0;
    std::vector<const Taken*> there;
    const auto begin = static_cast<size_t>(first), end = static_cast<size_t>(last) + 1;
    each(0, times_, 1, begin, end, [&](size_t node, bool whole) {
      there.push_back(&nodes_[node].whole);
      if (whole) there.push_back(&nodes_[node].any);
    });
    size_t at = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const Taken* t : there)
        for (size_t next; (next = t->end_of(at, bytes)) > at; moved = true) at = next;
    }
    each(0, times_, 1, begin, end, [&](size_t node, bool whole) {
      if (whole) nodes_[node].whole.add(at, at + bytes);
      nodes_[node].any.add(at, at + bytes);
    });
    size_ = std::max(size_, at + bytes);
    return at;
  }
  size_t size() const { return size_; }

 private:
  /// Offsets at which something lies.
  class Taken {
   public:
    void add(size_t begin, size_t end) {
      auto at = runs_.lower_bound(begin);
      if (at != runs_.begin() && std::prev(at)->second >= begin) --at;
      while (at != runs_.end() && at->first <= end) {
        begin = std::min(begin, at->first), end = std::max(end, at->second);
        at = runs_.erase(at);
      }
      runs_.emplace(begin, end);
    }
    /// Where what lies in the way of [begin, begin + bytes) ends; begin: nothing does.
    size_t end_of(size_t begin, size_t bytes) const {
      auto at = runs_.lower_bound(begin + bytes);
      if (at == runs_.begin()) return begin;
      return std::max(begin, std::prev(at)->second);
    }

   private:
    std::map<size_t, size_t> runs_;  ///< end by beginning; they do not touch
  };
  /// Of a tree of times: what is needed all the time of a node, but not of the one above it, and
  /// what is needed at any of its times.
  struct Node {
    Taken whole, any;
  };

  /// Calls f(node, whole) for the nodes on the way down to the times [begin, end), `whole` for
  /// those that are made of them alone. A node has the times [from, to).
  template <class F>
  static void each(size_t from, size_t to, size_t node, size_t begin, size_t end, F f) {
    const bool whole = begin <= from && to <= end;
    f(node, whole);
    if (whole) return;
    const size_t middle = (from + to) / 2;
    if (begin < middle) each(from, middle, 2 * node, begin, end, f);
    if (end > middle) each(middle, to, 2 * node + 1, begin, end, f);
  }

  size_t alignment_;
  size_t times_;
  std::vector<Node> nodes_;
  size_t size_ = 0;
};

}  // namespace gradcell

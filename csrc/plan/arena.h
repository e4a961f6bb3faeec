// Offsets in one block of memory for buffers of which not all are needed at the same time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/narrow.h"

namespace gradcell {

/// The free places of a block without an end; what is free behind each other is one place. They
/// are a treap by offset whose nodes know the largest place below them: a call takes about the
/// logarithm of their number.
class FreePlaces {
 public:
  FreePlaces() { add(0, SIZE_MAX); }

  /// The first place of so many bytes, which must be more than 0.
  size_t take(size_t bytes) {
    int32_t at = root_;
    for (;;)
      if (largest(nodes_[at].left) >= bytes)
        at = nodes_[at].left;
      else if (nodes_[at].bytes() >= bytes)
        break;
      else
        at = nodes_[at].right;
    const size_t begin = nodes_[at].begin, end = nodes_[at].end;
    remove(begin);
    if (begin + bytes < end) add(begin + bytes, end);
    return begin;
  }

  /// Makes free what has been taken.
  void give(size_t begin, size_t end) {
    const auto [before, after] = split(root_, begin);
    const int32_t last = outermost(before, &Node::right), next = outermost(after, &Node::left);
    root_ = merge(before, after);
    if (last >= 0 && nodes_[last].end == begin) remove(begin = nodes_[last].begin);
    if (next >= 0 && nodes_[next].begin == end) remove(std::exchange(end, nodes_[next].end));
    add(begin, end);
  }

 private:
  struct Node {
    size_t begin, end;
    size_t largest = 0;  ///< of this and those below
    uint32_t priority;
    int32_t left = -1, right = -1;
    size_t bytes() const { return end - begin; }
  };

  size_t largest(int32_t at) const { return at < 0 ? 0 : nodes_[at].largest; }

  int32_t outermost(int32_t at, int32_t Node::* side) const {
    while (at >= 0 && nodes_[at].*side >= 0) at = nodes_[at].*side;
    return at;
  }

  void look_below(int32_t at) {
    Node& n = nodes_[at];
    n.largest = std::max({n.bytes(), largest(n.left), largest(n.right)});
  }

  /// Those that begin before an offset, and the others.
  std::pair<int32_t, int32_t> split(int32_t at, size_t offset) {
    if (at < 0) return {-1, -1};
    const bool before = nodes_[at].begin < offset;
    const auto [a, b] = split(before ? nodes_[at].right : nodes_[at].left, offset);
    (before ? nodes_[at].right : nodes_[at].left) = before ? a : b;
    look_below(at);
    return before ? std::pair(at, b) : std::pair(a, at);
  }

  int32_t merge(int32_t a, int32_t b) {
    if (a < 0 || b < 0) return a < 0 ? b : a;
    const bool above = nodes_[a].priority > nodes_[b].priority;
    if (above)
      nodes_[a].right = merge(nodes_[a].right, b);
    else
      nodes_[b].left = merge(a, nodes_[b].left);
    look_below(above ? a : b);
    return above ? a : b;
  }

  void add(size_t begin, size_t end) {
    const auto added = narrow<int32_t>(nodes_.size());
    random_ = random_ * 1664525 + 1013904223;
    nodes_.push_back({begin, end, end - begin, random_});
    const auto [before, after] = split(root_, begin);
    root_ = merge(merge(before, added), after);
  }

  void remove(size_t begin) {
    const auto [before, rest] = split(root_, begin);
    root_ = merge(before, split(rest, begin + 1).second);
  }

  std::vector<Node> nodes_;  ///< of removed ones too
  int32_t root_ = -1;
  uint32_t random_ = 1;
};

class Arena {
 public:
  explicit Arena(size_t alignment) : alignment_(alignment) {}

  /// The first gap for a buffer that is needed from time `first` to `last`. Buffers come in the
  /// order in which they are first needed.
  size_t place(size_t bytes, int32_t first, int32_t last) {
    require(first >= now_, ErrorKind::Runtime, "planning: a buffer is placed too late");
    now_ = first;
    while (!taken_.empty() && std::get<0>(taken_.top()) < now_) {
      const auto [until, begin, end] = taken_.top();
      taken_.pop();
      free_.give(begin, end);
    }
    bytes = (bytes + alignment_ - 1) / alignment_ * alignment_;
    if (bytes == 0) return 0;
    const size_t at = free_.take(bytes);
    taken_.emplace(last, at, at + bytes);
    size_ = std::max(size_, at + bytes);
    return at;
  }
  size_t size() const { return size_; }

 private:
  using Taken = std::tuple<int32_t, size_t, size_t>;  // until when, from where to where
  std::priority_queue<Taken, std::vector<Taken>, std::greater<>> taken_;
  FreePlaces free_;
  int32_t now_ = INT32_MIN;
  size_t alignment_, size_ = 0;
};

}  // namespace gradcell

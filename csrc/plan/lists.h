// Many short lists of numbers, one behind the other: two allocations, however many lists.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/narrow.h"

namespace gradcell {

class Lists {
 public:
  /// Of no list yet: `add` appends to the one that `close` ends.
  Lists() : begin_{0} {}

  /// `each(f)` calls f(list, item) for every item, an item of a list after those before it; it is
  /// called twice and does the same both times.
  template <class Each>
  Lists(size_t count, Each each) : begin_(count + 1, 0) {
    each([&](size_t list, int32_t) { ++begin_[list + 1]; });
    for (size_t k = 0; k < count; ++k) begin_[k + 1] += begin_[k];
    items_.resize(begin_[count]);
    std::vector<uint32_t> end(begin_.begin(), begin_.end() - 1);
    each([&](size_t list, int32_t item) { items_[end[list]++] = item; });
  }

  size_t size() const { return begin_.size() - 1; }
  std::span<const int32_t> operator[](size_t k) const {
    return {items_.data() + begin_[k], items_.data() + begin_[k + 1]};
  }

  /// The items of the list that is not closed.
  std::span<int32_t> open() {
    return {items_.data() + begin_.back(), items_.data() + items_.size()};
  }
  void add(int32_t item) { items_.push_back(item); }
  /// Ends the list after its first `count` items.
  void close(size_t count) {
    items_.resize(begin_.back() + count);
    begin_.push_back(narrow<uint32_t>(items_.size()));
  }
  void reserve(size_t lists, size_t items) {
    begin_.reserve(lists + 1);
    items_.reserve(items);
  }

 private:
  std::vector<uint32_t> begin_;
  std::vector<int32_t> items_;
};

}  // namespace gradcell

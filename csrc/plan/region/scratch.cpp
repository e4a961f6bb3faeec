#include "plan/region/scratch.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "plan/lists.h"
#include "plan/region/spread.h"
#include "plan/region/uses.h"

namespace gradcell {

namespace {

size_t bytes_a_row(const TileValue& v) { return v.end() - v.begin(); }

/// From which instruction of the program to which each value lives; -1: loaded, the program's
/// length: stored. A value that is never used ends before it begins.
struct Lives {
  std::vector<int32_t> first, last;

  explicit Lives(const Region& r) {
    const auto n = narrow<int32_t>(r.program.size());
    first.assign(r.values.size(), n);
    last.assign(r.values.size(), -1);
    for (int32_t at = 0; at < n; ++at) {
      const Instruction& i = r.program[at];
      for (int k = 0; k < i.operand_count; ++k)
        if (!i.operand[k].uniform) use(i.operand[k].value, at);
      if (!accumulates(i)) use(i.dst, at);
    }
    for (const RowLoad& l : r.loads) {
      use(l.value, -1);
      if (period(l) > 0) use(l.value, n);  // may stay for the tiles that follow
    }
    for (const RowStore& s : r.stores)
      if (!s.from.uniform) use(s.from.value, n);
    for (int32_t at = n; at-- > 0;) keep_sources(r, at);
  }

 private:
  /// What an engine can read in place of a copy's or of products, until those are read.
  void keep_sources(const Region& r, int32_t at) {
    const Instruction& i = r.program[at];
    if (i.kind == TileOp::Copy && i.map >= 0 && last[i.dst] < narrow<int32_t>(r.program.size()) &&
        nested(r.maps[static_cast<size_t>(i.map)]))
      use(i.operand[0].value, last[i.dst]);
    if (i.kind != TileOp::FeatureReduce || i.combine != Combine::Sum || at == 0) return;
    const Instruction& made = r.program[at - 1];
    if (!is_product_of_values(made) || i.operand[0].uniform || made.dst != i.operand[0].value ||
        first[made.dst] != at - 1 || last[made.dst] != at)
      return;
    for (int k = 0; k < made.operand_count; ++k) use(made.operand[k].value, at);
  }

  void use(uint32_t v, int32_t at) {
    first[v] = std::min(first[v], at);
    last[v] = std::max(last[v], at);
  }
};

constexpr uint32_t kNoValue = UINT32_MAX;

/// For each value the one that takes its place: the result of the instruction that used it last.
std::vector<uint32_t> heirs(const Region& r, const Lives& lives) {
  std::vector<uint32_t> heir(r.values.size(), kNoValue);
  for (int32_t at = 0; at < narrow<int32_t>(r.program.size()); ++at) {
    const Instruction& i = r.program[at];
    if (accumulates(i) || lives.first[i.dst] != at) continue;
    for (int k = 0; k < i.operand_count; ++k) {
      if (i.operand[k].uniform || lives.last[i.operand[k].value] != at || !may_replace(r, i, k))
        continue;
      heir[i.operand[k].value] = i.dst;
      break;
    }
  }
  return heir;
}

/// The scratch of a row, in bytes.
class Space {
 public:
  size_t take(size_t size) {
    // The block freed last is the best to write to: the cache holds it still.
    if (auto fresh = freed_.find(size); fresh != freed_.end()) {
      const size_t at = fresh->second.back();
      fresh->second.pop_back();
      if (fresh->second.empty()) freed_.erase(fresh);
      return at;
    }
    if (auto same = by_size_.upper_bound({size, SIZE_MAX}); same != by_size_.begin())
      if (--same; same->first == size) {
        const size_t at = same->second;
        erase(at, size);
        return at;
      }
    join();
    const auto best = by_size_.lower_bound({size, 0});
    if (best == by_size_.end()) {
      const size_t at = top_;
      top_ += size;
      return at;
    }
    const auto [all, at] = *best;
    erase(at, all);
    if (all > size) insert(at + size, all - size);
    return at;
  }
  void give_back(size_t offset, size_t size) { freed_[size].push_back(offset); }
  size_t top() const { return top_; }

 private:
  void insert(size_t offset, size_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void erase(size_t offset, size_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  /// Makes one block of neighbours.
  void join() {
    for (const auto& [length, offsets] : freed_)
      for (size_t at : offsets) {
        size_t size = length;
        if (auto next = by_offset_.find(at + size); next != by_offset_.end()) {
          size += next->second;
          erase(next->first, next->second);
        }
        if (auto before = by_offset_.lower_bound(at); before != by_offset_.begin())
          if (--before; before->first + before->second == at) {
            at = before->first, size += before->second;
            erase(before->first, before->second);
          }
        insert(at, size);
      }
    freed_.clear();
  }

  std::unordered_map<size_t, std::vector<size_t>> freed_;  ///< since they were joined, by size
  std::map<size_t, size_t> by_offset_;                     ///< the others
  std::set<std::pair<size_t, size_t>> by_size_;            ///< the same: size, offset
  size_t top_ = 0;
};

}  // namespace

int64_t period(const RowLoad& load) {
  const View& v = load.view;
  return v.dims.size() == 2 && v.strides[0] == 0 ? v.dims[1] : 0;
}

bool may_replace(const Region& region, const Instruction& i, int k) {
  if (i.kind != TileOp::Elementwise && i.kind != TileOp::Chain && i.kind != TileOp::Formula &&
      i.kind != TileOp::Choose)
    return false;
  const Operand& o = i.operand[k];
  const TileValue &from = region.values[o.value], &to = region.values[i.dst];
  if (o.uniform || from.features != to.features || from.type != to.type) return false;
  if (from.head + from.tail + to.head + to.tail > 0) return false;
  return std::all_of(i.operand, i.operand + i.operand_count, [&](const Operand& other) {
    return other.uniform || other.value != o.value || dense(other);
  });
}

void place_values(Region& region) {
  auto& values = region.values;
  const Lives lives(region);
  const std::vector<uint32_t> heir = heirs(region, lives);
  std::vector<uint8_t> inherits(values.size(), 0);
  const size_t steps = region.program.size() + 2;
  const auto by_step = [&](const std::vector<int32_t>& step) {
    return Lists(steps, [&](auto add) {
      for (size_t v = 0; v < values.size(); ++v)
        if (lives.last[v] >= lives.first[v]) add(step[v] + 1, narrow<int32_t>(v));
    });
  };
  const Lists begin = by_step(lives.first), end = by_step(lives.last);
  for (size_t v = 0; v < values.size(); ++v)
    if (lives.last[v] >= lives.first[v] && heir[v] != kNoValue) inherits[heir[v]] = 1;
  Space space;
  auto place = [](TileValue& v, size_t begin) { v.offset += begin - v.begin(); };
  for (size_t t = 0; t < steps; ++t) {
    for (int32_t v : begin[t])
      if (!inherits[v]) place(values[v], space.take(bytes_a_row(values[v])));
    for (int32_t v : end[t]) {
      if (heir[v] != kNoValue)
        values[heir[v]].offset = values[v].offset;
      else
        space.give_back(values[v].begin(), bytes_a_row(values[v]));
    }
  }
  region.row_bytes = space.top();
}

}  // namespace gradcell

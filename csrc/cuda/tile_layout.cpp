#include "cuda/tile_layout.h"

#include <algorithm>

#include "plan/arena.h"
#include "plan/uses.h"

namespace gradcell::cuda {

namespace {

/// Weights up to this size together are copied to shared memory by each block.
constexpr size_t kMaxWeightBytes = 32 << 10;
constexpr int32_t kMostGroups = 16;
/// Fewer warps than this leave a multiprocessor waiting.
constexpr double kGoodGroups = 8;

class Layouter {
 public:
  explicit Layouter(const Region& r) : r_(r), values_(r.values.size()) {}

  TileLayout run() {
    order();
    for (TileItem& item : l_.items) place_in_phase(item);
    place_values();
    choose_groups();
    place_weights();
    return std::move(l_);
  }

 private:
  struct Life {
    int32_t written = -1;      ///< the latest phase that does
    int32_t read_across = -1;  ///< by other threads
    int32_t first = -1, last = -1;
    bool across = false;
  };

  /// Loads come before what first needs them, stores after what last writes them.
  void order() {
    std::vector<int64_t> load_of(r_.values.size(), -1), last(r_.values.size(), -1);
    for (size_t i = 0; i < r_.loads.size(); ++i)
      load_of[r_.loads[i].value] = static_cast<int64_t>(i);
    for (size_t at = 0; at < r_.program.size(); ++at)
      if (!accumulates(r_.program[at])) last[r_.program[at].dst] = static_cast<int64_t>(at);
    auto add = [&](TileItem::Kind kind, size_t index) {
      l_.items.push_back({kind, static_cast<uint32_t>(index)});
    };
    auto load = [&](const Operand& o) {
      if (o.uniform || load_of[o.value] < 0) return;
      add(TileItem::Kind::Load, static_cast<size_t>(load_of[o.value]));
      load_of[o.value] = -1;
    };
    auto store = [&](int64_t after) {
      for (size_t s = 0; s < r_.stores.size(); ++s) {
        const Operand& from = r_.stores[s].from;
        if (last[from.value] != after) continue;
        load(from);
        add(TileItem::Kind::Store, s);
      }
    };
    store(-1);
    for (size_t at = 0; at < r_.program.size(); ++at) {
      const Instruction& i = r_.program[at];
      for (int k = 0; k < i.operand_count; ++k) load(i.operand[k]);
      add(TileItem::Kind::Compute, at);
      if (!accumulates(i) && last[i.dst] == static_cast<int64_t>(at)) store(last[i.dst]);
    }
  }

  /// f(value, whether by its own thread) for what an item reads.
  template <class F>
  void for_each_read(const TileItem& item, F f) const {
    if (item.kind == TileItem::Kind::Load) return;
    if (item.kind == TileItem::Kind::Store) {
      const RowStore& s = r_.stores[item.index];
      return f(s.from.value, reads_own(r_, s.from, s.features));
    }
    const Instruction& i = r_.program[item.index];
    for (int k = 0; k < i.operand_count; ++k) {
      if (i.operand[k].uniform) continue;
      const bool by_feature = i.kind == TileOp::Elementwise || i.kind == TileOp::Convert ||
                              i.kind == TileOp::Narrow || i.kind == TileOp::RowReduce ||
                              (i.kind == TileOp::Copy && i.map < 0);
      f(i.operand[k].value, by_feature && reads_own(r_, i.operand[k], i.features));
    }
    if (i.kind == TileOp::Scatter || i.accumulate) f(i.dst, true);
  }

  void place_in_phase(TileItem& item) {
    int64_t writes = -1;
    if (item.kind == TileItem::Kind::Load) writes = r_.loads[item.index].value;
    if (item.kind == TileItem::Kind::Compute && !accumulates(r_.program[item.index]))
      writes = r_.program[item.index].dst;
    bool waits = writes >= 0 && values_[writes].read_across == phase_;
    for_each_read(item,
                  [&](uint32_t v, bool own) { waits |= !own && values_[v].written == phase_; });
    item.phase = phase_ += waits;
    auto use = [&](Life& v) {
      if (v.first < 0) v.first = phase_;
      v.last = phase_;
    };
    for_each_read(item, [&](uint32_t v, bool own) {
      use(values_[v]);
      if (!own) values_[v].across = true, values_[v].read_across = phase_;
    });
    if (writes >= 0) use(values_[writes]), values_[writes].written = phase_;
  }

  void place_values() {
    l_.shared.assign(values_.size(), 0);
    l_.place.assign(values_.size(), 0);
    std::vector<uint32_t> kept;
    for (uint32_t v = 0; v < values_.size(); ++v)
      if (values_[v].across || values_[v].first != values_[v].last) kept.push_back(v);
    std::ranges::stable_sort(kept, {}, [&](uint32_t v) { return values_[v].first; });
    Arena arena(16);
    for (uint32_t v : kept) {
      const size_t bytes =
          static_cast<size_t>(r_.values[v].features) * compute_size(r_.values[v].type);
      l_.shared[v] = 1;
      l_.place[v] = arena.place(bytes, values_[v].first, values_[v].last);
    }
    l_.row_bytes = arena.size();
  }

  /// What a tile takes with so many groups: in each term of a product a thread loads a value and
  /// its weights, and multiplies.
  double cost(int32_t groups) const {
    double sum = 0;
    auto chunk = [&](int32_t features) { return (features + groups - 1) / groups; };
    for (const Instruction& i : r_.program) {
      if (accumulates(i)) continue;
      const int32_t c = chunk(i.features);
      sum += i.kind == TileOp::Product ? double(i.inner) * (c + 1 + (c + 3) / 4) : 4.0 * c;
    }
    return sum * groups * std::max(1.0, kGoodGroups / groups);
  }

  void choose_groups() {
    l_.groups = 8;  // whole warps, however few rows a block has
    if (cost(kMostGroups) < cost(l_.groups)) l_.groups = kMostGroups;
  }

  void place_weights() {
    size_t at = 0;
    for (const PackedWeights& w : r_.weights) {
      l_.weights.push_back(static_cast<int64_t>(at));
      at += static_cast<size_t>(w.k * l_.groups * packed(l_.chunk(w.m))) * compute_size(w.type);
      at = (at + 15) / 16 * 16;
    }
    if (at <= kMaxWeightBytes)
      l_.weight_bytes = at;
    else
      l_.weights.assign(l_.weights.size(), -1);
  }

  const Region& r_;
  std::vector<Life> values_;
  int32_t phase_ = 0;
  TileLayout l_;
};

}  // namespace

int32_t packed(int32_t chunk) { return chunk <= 2 ? chunk : (chunk + 3) / 4 * 4; }

bool reads_own(const Region& r, const Operand& o, int32_t features) {
  return dense(o) && r.values[o.value].features == features;
}

TileLayout lay_out(const Region& r) { return Layouter(r).run(); }

}  // namespace gradcell::cuda

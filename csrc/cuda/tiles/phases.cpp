#include "cuda/tiles/phases.h"

#include <algorithm>

#include "plan/arena.h"
#include "plan/region/uses.h"

namespace gradcell::cuda {

namespace {

using ItemKind = TileItem::Kind;

class PhaseFinder {
 public:
  PhaseFinder(const Region& r, const StepsOfRegion& steps)
      : r_(r), steps_(steps), values_(r.values.size()), parts_(r.program.size()) {}

  Phases run() {
    order();
    for (TileItem& item : p_.items) place_in_phase(item);
    place_values();
    return std::move(p_);
  }

 private:
  struct Life {
    int32_t written = -1;      ///< the latest phase that does
    int32_t read_across = -1;  ///< by other threads
    int32_t first = -1, last = -1;
    bool across = false;
    bool carried = false;
    void use(int32_t phase) {
      if (first < 0) first = phase;
      last = phase;
    }
  };

  bool has_parts(size_t at) const { return at < steps_.parts.size() && steps_.parts[at] > 0; }

  /// Loads come before what first needs them, stores after what last writes them, and results are
  /// collected where the first of them is needed.
  void order() {
    std::vector<int64_t> load_of(values_.size(), -1), last(values_.size(), -1);
    std::vector<uint32_t> open;  // whose parts are not collected yet
    for (size_t i = 0; i < r_.loads.size(); ++i)
      load_of[r_.loads[i].value] = static_cast<int64_t>(i);
    for (const auto& c : steps_.carried) load_of[c.value] = -1, values_[c.value].carried = true;
    for (size_t at = 0; at < r_.program.size(); ++at)
      if (!accumulates(r_.program[at])) last[r_.program[at].dst] = static_cast<int64_t>(at);
    auto add = [&](ItemKind kind, size_t index) {
      p_.items.push_back({kind, narrow<uint32_t>(index)});
    };
    auto collect = [&] {
      for (uint32_t at : open) add(ItemKind::Collect, at);
      open.clear();
    };
    auto is_open = [&](uint32_t v) {
      return std::ranges::any_of(open, [&](uint32_t at) { return r_.program[at].dst == v; });
    };
    auto need = [&](const Operand& o) {
      if (o.uniform) return;
      if (is_open(o.value)) collect();
      if (load_of[o.value] < 0) return;
      add(ItemKind::Load, static_cast<size_t>(load_of[o.value]));
      load_of[o.value] = -1;
    };
    auto leave = [&](int64_t after) {
      for (size_t s = 0; s < r_.stores.size(); ++s) {
        if (last[r_.stores[s].from.value] != after) continue;
        need(r_.stores[s].from);
        add(ItemKind::Store, s);
      }
      for (size_t k = 0; k < steps_.carried.size(); ++k) {
        if (last[steps_.carried[k].next.value] != after) continue;
        need(steps_.carried[k].next);
        add(ItemKind::Carry, k);
      }
    };
    leave(-1);
    for (size_t at = 0; at < r_.program.size(); ++at) {
      const Instruction& i = r_.program[at];
      for (int k = 0; k < i.operand_count; ++k) need(i.operand[k]);
      if (!accumulates(i) && is_open(i.dst)) collect();
      add(ItemKind::Compute, at);
      if (has_parts(at)) open.push_back(narrow<uint32_t>(at));
      if (!accumulates(i) && last[i.dst] == static_cast<int64_t>(at)) leave(last[i.dst]);
    }
    collect();
  }

  /// f(value, whether by its own thread) for what an item reads.
  template <class F>
  void for_each_read(const TileItem& item, F f) const {
    const auto own = [&](const Operand& o, int32_t features) { return reads_own(r_, o, features); };
    if (item.kind == ItemKind::Load) return;
    if (item.kind == ItemKind::Store) {
      const RowStore& s = r_.stores[item.index];
      return f(s.from.value, own(s.from, s.features));
    }
    if (item.kind == ItemKind::Carry) {
      const auto& c = steps_.carried[item.index];
      return f(c.next.value, own(c.next, r_.values[c.value].features));
    }
    const Instruction& i = r_.program[item.index];
    if (item.kind == ItemKind::Collect) {
      if (i.accumulate) f(i.dst, true);
      return;
    }
    for (int k = 0; k < i.operand_count; ++k) {
      if (i.operand[k].uniform) continue;
      const bool by_feature = i.kind == TileOp::Elementwise || i.kind == TileOp::Convert ||
                              i.kind == TileOp::Narrow || i.kind == TileOp::RowReduce ||
                              i.kind == TileOp::Surround || (i.kind == TileOp::Copy && i.map < 0);
      f(i.operand[k].value, by_feature && own(i.operand[k], i.features));
    }
    if ((i.kind == TileOp::Scatter || i.accumulate) && !has_parts(item.index)) f(i.dst, true);
  }

  int64_t written_by(const TileItem& item) const {
    if (item.kind == ItemKind::Load) return r_.loads[item.index].value;
    if (item.kind == ItemKind::Collect) return r_.program[item.index].dst;
    if (item.kind != ItemKind::Compute || has_parts(item.index)) return -1;
    return accumulates(r_.program[item.index]) ? -1 : int64_t{r_.program[item.index].dst};
  }

  void place_in_phase(TileItem& item) {
    const int64_t writes = written_by(item);
    bool waits = writes >= 0 && values_[writes].read_across == phase_;
    for_each_read(item,
                  [&](uint32_t v, bool own) { waits |= !own && values_[v].written == phase_; });
    if (item.kind == ItemKind::Collect) waits |= parts_[item.index].first == phase_;
    item.phase = phase_ += waits;
    for_each_read(item, [&](uint32_t v, bool own) {
      values_[v].use(phase_);
      if (!own) values_[v].across = true, values_[v].read_across = phase_, p_.meets = true;
    });
    if (writes >= 0) values_[writes].use(phase_), values_[writes].written = phase_;
    if (item.kind == ItemKind::Compute && has_parts(item.index)) parts_[item.index].use(phase_);
    if (item.kind == ItemKind::Collect) parts_[item.index].use(phase_), p_.meets = true;
  }

  void place_values() {
    p_.shared.assign(values_.size(), 0);
    p_.place.assign(values_.size(), 0);
    p_.parts.assign(parts_.size(), 0);
    struct Kept {
      const Life* life;
      size_t bytes;
      size_t* place;
    };
    std::vector<Kept> kept;
    for (size_t v = 0; v < values_.size(); ++v) {
      const TileValue& value = r_.values[v];
      p_.shared[v] = values_[v].carried || values_[v].across || values_[v].first != values_[v].last;
      if (values_[v].carried || !p_.shared[v]) continue;
      kept.push_back(
          {&values_[v],
           static_cast<size_t>(value.head + value.features + value.tail) * compute_size(value.type),
           &p_.place[v]});
    }
    for (size_t at = 0; at < parts_.size(); ++at)
      if (has_parts(at)) kept.push_back({&parts_[at], steps_.parts[at], &p_.parts[at]});
    std::ranges::stable_sort(kept, {}, [](const Kept& k) { return k.life->first; });
    Arena arena(16);
    for (const Kept& k : kept) *k.place = arena.place(k.bytes, k.life->first, k.life->last);
    p_.row_bytes = arena.size();
    for (const Life& v : values_) p_.meets_last |= v.carried && v.read_across == phase_;
  }

  const Region& r_;
  const StepsOfRegion& steps_;
  std::vector<Life> values_, parts_;
  int32_t phase_ = 0;
  Phases p_;
};

}  // namespace

bool reads_own(const Region& r, const Operand& o, int32_t features) {
  return dense(o) && r.values[o.value].features == features;
}

Phases find_phases(const Region& r, const StepsOfRegion& steps) {
  return PhaseFinder(r, steps).run();
}

}  // namespace gradcell::cuda

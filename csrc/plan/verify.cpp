#include "plan/verify.h"

#include <algorithm>
#include <map>

#include "ir/print.h"
#include "ops/source.h"
#include "plan/region/scratch.h"

namespace gradcell {

namespace {

template <class... Args>
void want(bool ok, const Args&... what) {
  if (!ok) fail(ErrorKind::Runtime, "invalid plan: ", what...);
}

class RegionChecker {
 public:
  RegionChecker(const Plan& plan, const Region& region)
      : plan_(plan), r_(region), defined_(region.values.size()), ended_(region.values.size()) {}

  void run() {
    want(r_.rows > 0, "a region without rows");
    want(r_.block > 0 && r_.rows % r_.block == 0, "rows that are no whole blocks");
    for (const Uniform& u : r_.uniforms) uniform(u);
    for (const PackedWeights& w : r_.weights) want(w.k > 0 && w.m > 0, "empty weights");
    for (size_t v = 0; v < r_.values.size(); ++v) value(r_.values[v], narrow<uint32_t>(v));
    find_last_uses();
    for (const RowLoad& l : r_.loads) {
      want(l.value < r_.values.size(), "a load to no value");
      if (l.viewed()) view(l);
      want(!defined_[l.value], "v", l.value, " is loaded twice");
      define(l.value);
    }
    for (at_ = 0; at_ < r_.program.size(); ++at_) instruction(r_.program[at_]);
    for (const RowStore& s : r_.stores) operand(s.from, s.features);
  }

 private:
  void uniform(const Uniform& u) const {
    want(u.count > 0, "an empty uniform");
    want(u.constant < narrow<int>(plan_.constants.size()), "a uniform of no constant");
    if (u.constant >= 0 || u.map.empty()) return;
    want(static_cast<int64_t>(u.map.size()) == u.count, "a uniform whose map has another length");
    auto have = static_cast<int64_t>(plan_.buffers[u.buffer].bytes / item_size(u.dtype));
    for (int32_t f : u.map) want(f >= 0 && f < have, "a uniform's map leaves its buffer");
  }

  void view(const RowLoad& l) const {
    int64_t first = l.view.offset, last = l.view.offset;
    for (size_t k = 0; k < l.view.dims.size(); ++k) {
      const int64_t reach = (l.view.dims[k] - 1) * l.view.strides[k];
      (reach < 0 ? first : last) += reach;
    }
    const auto have = static_cast<int64_t>(plan_.buffers[l.buffer].bytes / item_size(l.dtype));
    last += r_.values[l.value].features - 1;
    want(element_count(l.view.dims) == r_.rows && !plan_.buffers[l.buffer].feature_major &&
             !plan_.buffers[l.buffer].tiled && first >= 0 && last < have,
         "v", l.value, " is a view that its buffer does not have");
  }

  void value(const TileValue& v, uint32_t id) const {
    want(v.features > 0, "v", id, " has no features");
    auto direct = [&](int32_t index, size_t count) { return index < narrow<int32_t>(count); };
    want(direct(v.direct_in, r_.loads.size()) && direct(v.direct_out, r_.stores.size()), "v", id,
         " is in no such buffer");
    if (v.direct_in >= 0)
      want(r_.loads[v.direct_in].value == id, "v", id, " is not what is loaded");
    if (v.direct_out >= 0)
      want(r_.stores[v.direct_out].from.value == id, "v", id, " is not what is stored");
    want((v.direct_in < 0 && v.direct_out < 0) || v.features == 1, "v", id,
         " would need transposing");
  }

  void find_last_uses() {
    last_use_.assign(r_.values.size(), -1);
    for (size_t i = 0; i < r_.program.size(); ++i) {
      const Instruction& in = r_.program[i];
      for (int k = 0; k < in.operand_count; ++k) used(in.operand[k], static_cast<int64_t>(i));
      if (!accumulates(in)) used({false, in.dst}, static_cast<int64_t>(i));
    }
    for (const RowStore& s : r_.stores) used(s.from, static_cast<int64_t>(r_.program.size()));
  }

  void used(const Operand& o, int64_t at) {
    if (o.uniform) return;
    want(o.value < r_.values.size(), "an operand is no value");
    last_use_[o.value] = std::max(last_use_[o.value], at);
  }

  /// A value begins to live: nothing else that lives may share its scratch.
  void define(uint32_t v) {
    defined_[v] = 1;
    if (last_use_[v] < 0) return;
    size_t begin = r_.values[v].begin(), end = r_.values[v].end();
    want(end <= r_.row_bytes, "v", v, " ends outside the scratch");
    auto next = live_.lower_bound(begin);
    want(next == live_.end() || end <= next->first, "v", v, " overlaps another live value");
    want(next == live_.begin() || std::prev(next)->second <= begin, "v", v,
         " overlaps another live value");
    live_.emplace(begin, end);
  }

  /// `n` features are read through the operand.
  void operand(const Operand& o, int64_t n) const {
    int64_t have, from = 0;
    if (o.uniform) {
      want(o.value < r_.uniforms.size(), "an operand is no uniform");
      have = r_.uniforms[o.value].count;
    } else {
      want(defined_[o.value], "v", o.value, " is used before it is defined");
      from = -r_.values[o.value].head;
      have = r_.values[o.value].features + r_.values[o.value].tail;
    }
    int64_t last = o.base + (n - 1) * o.stride;
    want(std::min<int64_t>(o.base, last) >= from && std::max<int64_t>(o.base, last) < have,
         "an operand reads features ", o.base, " to ", last, " of ", have);
  }

  const std::vector<int32_t>& map(int32_t index, size_t n) const {
    want(index >= 0 && index < narrow<int32_t>(r_.maps.size()), "no such map");
    want(r_.maps[index].size() == n, "a map of another length");
    return r_.maps[index];
  }
  void in_range(const std::vector<int32_t>& m, const TileValue& v) const {
    for (int32_t f : m) want(f >= -v.head && f < v.features + v.tail, "a map leaves its value");
  }

  void operands(const Instruction& i) const {
    auto n = static_cast<size_t>(i.features);
    const Operand& a = i.operand[0];
    switch (i.kind) {
      case TileOp::Copy:
        if (i.map < 0) return operand(a, i.features);
        operand(a, 1);
        return in_range(map(i.map, n), r_.values[a.value]);
      case TileOp::Scatter:
        operand(a, i.inner);
        return in_range(map(i.map, static_cast<size_t>(i.inner)), {i.features, i.type});
      case TileOp::Surround:
        want(a.value == i.dst, "zeros around another value");
        return operand(a, i.features);
      case TileOp::FeatureReduce: {
        operand(a, 1);
        auto base = map(i.map, n), step = map(i.map2, static_cast<size_t>(i.inner));
        const TileValue& v = r_.values[a.value];
        const TileValue room{v.features + v.tail - a.base, v.type};
        in_range(base, room), in_range(step, room);
        want(*std::max_element(base.begin(), base.end()) +
                     int64_t(*std::max_element(step.begin(), step.end())) <
                 room.features,
             "a reduction leaves its value");
        return;
      }
      case TileOp::Product:
        want(i.weights < r_.weights.size(), "no such weights");
        want(r_.weights[i.weights].k == i.inner && r_.weights[i.weights].m == i.features,
             "weights of another shape");
        if (i.operand_count > 1) {
          want(i.operand[1].uniform && !i.accumulate, "a bias that is no uniform, or added again");
          operand(i.operand[1], i.features);
        }
        return operand(a, i.inner);
      case TileOp::WeightGrad:
        operand(a, i.features);
        return operand(i.operand[1], i.inner);
      case TileOp::Elementwise:
      case TileOp::Chain:
      case TileOp::Formula:
      case TileOp::Choose:
      case TileOp::Convert:
      case TileOp::Narrow:
      case TileOp::RowReduce:
        for (int k = 0; k < i.operand_count; ++k) operand(i.operand[k], i.features);
    }
  }

  void instruction(const Instruction& i) {
    want(i.features > 0, "an instruction without features");
    operands(i);
    if (accumulates(i)) {
      want(i.dst < r_.accumulators.size(), "no such accumulator");
      want(r_.accumulators[i.dst].features == i.features, "an accumulator of another shape");
    } else {
      want(i.dst < r_.values.size(), "a result to no value");
      want(r_.values[i.dst].features == i.features, "a result of another width");
      want(!i.accumulate || defined_[i.dst], "v", i.dst, " is added to before it is defined");
      if (!defined_[i.dst]) {
        for (int k = 0; k < i.operand_count; ++k)
          if (replaces(i, k)) release(i.operand[k].value);
        define(i.dst);
      }
      release(i.dst);
    }
    for (int k = 0; k < i.operand_count; ++k)
      if (!i.operand[k].uniform) release(i.operand[k].value);
  }

  /// Whether the result is made in place of operand k.
  bool replaces(const Instruction& i, int k) const {
    const Operand& o = i.operand[k];
    return !o.uniform && r_.values[o.value].offset == r_.values[i.dst].offset &&
           may_replace(r_, i, k);
  }

  void release(uint32_t v) {
    if (last_use_[v] != static_cast<int64_t>(at_) || ended_[v]) return;
    live_.erase(r_.values[v].begin());
    ended_[v] = 1;
  }

  const Plan& plan_;
  const Region& r_;
  std::vector<uint8_t> defined_, ended_;
  std::vector<int64_t> last_use_;
  std::map<size_t, size_t> live_;  // begin -> end, in bytes a row
  size_t at_ = 0;
};

/// When each buffer is written and last read.
class BufferChecker {
 public:
  explicit BufferChecker(const Plan& plan)
      : plan_(plan), written_(plan.buffers.size(), kNever), read_(plan.buffers.size(), -1) {}

  void run() {
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].place == Place::Input) written_[b] = -1;
      place(plan_.buffers[b]);
    }
    for (size_t s = 0; s < plan_.stages.size(); ++s) stage(plan_.stages[s], narrow<int32_t>(s));
    outputs();
    temporaries();
  }

 private:
  static constexpr int32_t kNever = INT32_MAX;

  void place(const Buffer& b) const {
    switch (b.place) {
      case Place::Input:
        want(b.index < plan_.inputs.size() && b.bytes == plan_.inputs[b.index].bytes(),
             "a buffer is no input");
        return;
      case Place::Output:
        want(b.index < plan_.outputs.size() && b.bytes == plan_.outputs[b.index].desc.bytes(),
             "a buffer is no output");
        return;
      case Place::Temp:
        want(b.offset + b.bytes <= plan_.arena_bytes, "a temporary ends outside the arena");
        if (b.within == UINT32_MAX) return;
        want(is_within(plan_.buffers[b.within], b), "a part lies outside what it is a part of");
    }
  }

  static bool is_within(const Buffer& whole, const Buffer& part) {
    return whole.place == Place::Temp && whole.offset <= part.offset &&
           part.offset + part.bytes <= whole.offset + whole.bytes;
  }
  bool is_part(BufferId part, BufferId whole) const {
    while (part != whole && part != UINT32_MAX) part = plan_.buffers[part].within;
    return part == whole;
  }

  void reads(BufferId b, int32_t stage) {
    want(b < plan_.buffers.size(), "no such buffer");
    want(written_[b] < stage, "buffer ", b, " is read in stage ", stage, " before it is written");
    want(ends_.empty() || ends_[b] <= stage, "buffer ", b, " is read before it has arrived");
    read_[b] = std::max(read_[b], stage);
  }
  void writes(BufferId b, int32_t stage) {
    want(b < plan_.buffers.size(), "no such buffer");
    want(written_[b] == kNever, "buffer ", b, " is written twice");
    written_[b] = stage;
  }

  void stage(const Stage& s, int32_t at) {
    auto as_rows = [&](BufferId b) {
      want(!plan_.buffers[b].feature_major && !plan_.buffers[b].tiled, "buffer ", b,
           " is read as if it were row-major");
    };
    for (const Region& r : s.regions) {
      for (const Uniform& u : r.uniforms)
        if (u.constant < 0) reads(u.buffer, at), as_rows(u.buffer);
      for (const PackedWeights& w : r.weights) reads(w.buffer, at), as_rows(w.buffer);
      for (const Accumulator& a : r.accumulators) as_rows(a.buffer);
      for (const RowLoad& l : r.loads) reads(l.buffer, at);
    }
    for (const Call& c : s.calls) {
      want(c.inputs.size() == c.in.size(), "a call's inputs lack descriptions");
      for (size_t k = 0; k < c.inputs.size(); ++k) {
        reads(c.inputs[k], at);
        want(plan_.buffers[c.inputs[k]].bytes == c.in[k].bytes(),
             "a call reads a buffer of another size");
      }
      want(c.constant < narrow<int>(plan_.constants.size()), "a call of no constant");
    }
    for (const Region& r : s.regions) {
      for (const RowStore& st : r.stores) writes(st.buffer, at);
      for (const Accumulator& a : r.accumulators) writes(a.buffer, at);
      RegionChecker(plan_, r).run();
    }
    for (const Call& c : s.calls) {
      writes(c.output, at);
      in_flight(c, at);
      want(plan_.buffers[c.output].bytes == c.out.bytes(),
           "a call writes a buffer of another size");
      want(c.more.size() == c.more_out.size() &&
               (c.more.empty() || c.loop || c.joined.size() == c.more.size() + 1),
           "a call's results lack descriptions");
      for (size_t k = 0; k < c.more.size(); ++k) {
        writes(c.more[k], at);
        want(plan_.buffers[c.more[k]].bytes == c.more_out[k].bytes(),
             "a call writes a buffer of another size");
      }
    }
  }

  /// A collective holds its buffers until a later stage waits for it, or to the end.
  void in_flight(const Call& c, int32_t at) {
    want((c.form == Form::Collective) == (c.sequence >= 0), "a collective without a place");
    if (c.sequence < 0) return;
    want(c.sequence == started_++, "collectives start out of order");
    auto end = narrow<int32_t>(plan_.stages.size());
    for (int32_t s = end; s-- > 0;)
      for (int32_t waited : plan_.stages[static_cast<size_t>(s)].waits)
        if (waited == c.sequence) end = s;
    want(end > at, "a collective is waited for before it starts");
    for (BufferId b : c.inputs) read_[b] = std::max(read_[b], end - 1);
    read_[c.output] = std::max(read_[c.output], end - 1);
    ends_.resize(plan_.buffers.size(), 0);
    ends_[c.output] = end;
  }

  void outputs() const {
    std::vector<int> buffers(plan_.outputs.size(), 0);
    for (size_t b = 0; b < plan_.buffers.size(); ++b)
      if (plan_.buffers[b].place == Place::Output) {
        ++buffers[plan_.buffers[b].index];
        want(written_[b] != kNever, "output ", plan_.buffers[b].index, " is never written");
      }
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      const PlanOutput& o = plan_.outputs[i];
      bool alias = o.alias_input >= 0 || o.alias_output >= 0;
      want(o.alias_input < narrow<int>(plan_.inputs.size()) && o.alias_output < narrow<int>(i),
           "output ", i, " stands for nothing");
      want(buffers[i] == (alias ? 0 : 1), "output ", i, " has ", buffers[i], " buffers");
    }
  }

  /// Temporaries that live at the same time lie apart.
  void temporaries() const {
    std::vector<BufferId> temps;
    for (BufferId b = 0; b < plan_.buffers.size(); ++b)
      if (plan_.buffers[b].place == Place::Temp && plan_.buffers[b].bytes > 0 &&
          written_[b] != kNever)
        temps.push_back(b);
    auto from = [&](BufferId b) { return plan_.buffers[b].offset; };
    std::sort(temps.begin(), temps.end(),
              [&](BufferId a, BufferId b) { return from(a) < from(b); });
    for (size_t i = 0; i < temps.size(); ++i)
      for (size_t j = i + 1;
           j < temps.size() && from(temps[j]) < from(temps[i]) + plan_.buffers[temps[i]].bytes;
           ++j) {
        BufferId a = temps[i], b = temps[j];
        bool together = written_[a] <= std::max(read_[b], written_[b]) &&
                        written_[b] <= std::max(read_[a], written_[a]);
        want(!together || is_part(a, b) || is_part(b, a), "temporaries ", a, " and ", b,
             " overlap while both live");
      }
  }

  const Plan& plan_;
  std::vector<int32_t> written_, read_;
  std::vector<int32_t> ends_;  ///< of what collectives write: the stage from which it is there
  int32_t started_ = 0;
};

}  // namespace

void verify_region_nodes(const RegionInputs& in, std::span<const NodeId> nodes) {
  const Graph& g = in.graph;
  const Labels& l = in.labels;
  auto want_node = [&](bool ok, NodeId id, const char* what) {
    if (!ok) fail(ErrorKind::Runtime, "invalid region: ", to_text(g, id), ": ", what);
  };
  for (size_t n = 0; n < nodes.size(); ++n) {
    NodeId id = nodes[n];
    const NodeLabel& me = l.node[id];
    want_node(n == 0 || nodes[n - 1] < id, id, "not in ascending order");
    want_node(me.in_region && me.rows > 0 && g.count(id) > 0, id, "it cannot run by rows");
    want_node(me.rows == l.node[nodes[0]].rows && me.block == l.node[nodes[0]].block, id,
              "its rows differ from the region's");
    want_node(me.stage == l.node[nodes[0]].stage, id, "its stage differs from the region's");
    want_node(!me.materialised || in.buffer_of[id] != UINT32_MAX, id,
              "it needs a buffer and has none");
    for (int k = 0; k < g[id].input_count; ++k) {
      NodeId p = l.storage[g.input(id, k)];
      bool immediate = is_constant(g, p) && access(g, l, id, k) == Access::Rows;
      bool beside = flows_in_tile(g, l, p, id, k);
      const NodeLabel& from = l.node[p];
      const bool again = from.in_region && !from.reducing && from.rows == me.rows &&
                         from.block == me.block && access(g, l, id, k) == Access::Rows;
      want_node(immediate || beside || again || in.buffer_of[p] != UINT32_MAX, id,
                "an input is nowhere to be read");
      want_node(!beside || std::binary_search(nodes.begin(), nodes.end(), p), id,
                "an input is in no tile");
      if (!immediate && access(g, l, id, k) == Access::Rows && !loads_view(g, l, id))
        want_node(g.count(p) % me.rows == 0, id, "an input does not divide into the region's rows");
    }
  }
}

void verify(const Plan& plan) { BufferChecker(plan).run(); }

}  // namespace gradcell

#include "plan/region/region_builder.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/interrupt.h"
#include "ops/ops.h"
#include "plan/joining.h"
#include "plan/moves.h"
#include "plan/region/schedule.h"
#include "plan/region/scratch.h"

namespace gradcell {

namespace {

/// True if a tensor of this dtype looks in memory as it does in a tile.
constexpr bool as_is(DType t) { return is_compute_type(t); }

using Map = std::vector<int32_t>;

/// For each feature of a view's box (what `axes` leave), the element it is, in units of `block`.
Map places(const View& v, RowAxes axes, int64_t block) {
  const Dims box(v.dims.begin() + static_cast<int64_t>(axes.lead),
                 v.dims.begin() + static_cast<int64_t>(axes.trail));
  Map map(static_cast<size_t>(element_count(box)));
  for_each_index(box, [&](int64_t i, const Dims& at) {
    int64_t f = v.offset;
    for (size_t k = 0; k < box.size(); ++k) f += at[k] * v.strides[axes.lead + k];
    map[i] = narrow<int32_t>(f / block);
  });
  return map;
}

/// base + stride * f for every f, if the map is of that form.
bool affine(const Map& map, int32_t& base, int32_t& stride) {
  if (map.empty()) return base = 0, stride = 1, true;
  base = map[0];
  stride = map.size() > 1 ? map[1] - map[0] : 1;
  for (size_t i = 0; i < map.size(); ++i)
    if (map[i] != base + stride * narrow<int32_t>(i)) return false;
  return true;
}

class Builder {
 public:
  Builder(const RegionInputs& in, std::span<const NodeId> nodes)
      : in_(in), g_(in.graph), nodes_(nodes) {
    region_.rows = in.labels.node[nodes[0]].rows;
    region_.block = in.labels.node[nodes[0]].block;
    view_.reserve(nodes.size() * 2);
  }

  Region build(bool joined) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (i % 1024 == 1023) check_interrupt();
      if (!is_seen_through(nodes_[i])) emit(nodes_[i]);
    }
    for (NodeId id : nodes_)
      if (in_.labels.node[id].materialised && !in_.labels.node[id].reducing) store(id);
    if (joined)
      for (auto* pass : {fold_biases, form_formulas, form_choices, form_chains}) {
        check_interrupt();
        pass(region_);
      }
    schedule();
    return std::move(region_);
  }

 private:
  int64_t rows() const { return region_.rows; }
  int32_t features(NodeId id) const { return narrow<int32_t>(g_.count(id) / rows()); }

  uint32_t new_value(int32_t features, Compute type) {
    region_.values.push_back({features, type});
    return narrow<uint32_t>(region_.values.size() - 1);
  }

  int32_t add_map(Map map) {
    region_.maps.push_back(std::move(map));
    return narrow<int32_t>(region_.maps.size() - 1);
  }

  /// An instruction for a node: `dst` is a value, or an accumulator.
  Instruction& append(TileOp kind, NodeId id, std::span<const Operand> operands, uint32_t dst,
                      int32_t features) {
    Instruction& i = region_.program.emplace_back();
    i.kind = kind;
    i.dtype = g_.dtype(id);
    i.type = type_of(operands.back());
    i.operand_count = narrow<uint8_t>(operands.size());
    std::ranges::copy(operands, i.operand);
    i.dst = dst;
    i.features = features;
    i.location = g_[id].location;
    return i;
  }

  // Operands ---------------------------------------------------------------------------------

  uint32_t uniform(BufferId buffer, int constant, DType dtype, int64_t count, Map map = {}) {
    const auto next = narrow<uint32_t>(region_.uniforms.size());
    const auto [known, fresh] =
        uniform_of_.try_emplace({constant, constant >= 0 ? 0 : buffer, dtype, count, map}, next);
    if (fresh)
      region_.uniforms.push_back(
          {buffer, constant, dtype, compute_type(dtype), count, std::move(map)});
    return known->second;
  }

  Operand whole_uniform(NodeId source) {
    return {true, uniform(in_.buffer_of[source], -1, g_.dtype(source), g_.count(source)), 0, 1};
  }

  /// The k-th input of a node as it is read by rows.
  Operand operand(NodeId id, int k) {
    NodeId source = in_.labels.storage[g_.input(id, k)];
    if (is_constant(g_, source)) {
      const int constant = in_.constant_of[source];
      require(constant >= 0, ErrorKind::Runtime, "planning: a constant that no run brings");
      return {true, uniform(0, constant, g_.dtype(source), 1), 0, 0};
    }
    if (auto it = view_.find(source); it != view_.end()) return it->second;
    if (in_.labels.whole && in_.fixed.has(source)) return view_[source] = whole_uniform(source);
    if (in_.buffer_of[source] != UINT32_MAX) return view_[source] = load(source);
    emit(source);  // computed here again, see recomputation.h
    return view_.at(source);
  }

  Operand load(NodeId source) {
    uint32_t v = new_value(features(source), compute_type(g_.dtype(source)));
    loaded_.insert(v);
    region_.loads.push_back({in_.buffer_of[source], g_.dtype(source), v});
    if (region_.values[v].features == 1 && as_is(g_.dtype(source)))
      region_.values[v].direct_in = narrow<int32_t>(region_.loads.size() - 1);
    return {false, v, 0, 1};
  }

  /// A view of what is stored, whose rows lie somewhere in it.
  Operand load(NodeId source, View view, size_t lead, int32_t features) {
    const uint32_t v = new_value(features, compute_type(g_.dtype(source)));
    loaded_.insert(v);
    view.dims.resize(lead), view.strides.resize(lead);
    region_.loads.push_back({in_.buffer_of[source], g_.dtype(source), v, merged(view)});
    const View& merged_view = region_.loads.back().view;
    if (features == 1 && merged_view.dims.size() == 1 && merged_view.strides[0] == 1 &&
        as_is(g_.dtype(source)))
      region_.values[v].direct_in = narrow<int32_t>(region_.loads.size() - 1);
    return {false, v, 0, 1};
  }

  /// `from` seen through a feature map; a copy where the map is not affine.
  Operand mapped(NodeId id, Operand from, Map map) {
    for (int32_t& f : map) f = from.base + from.stride * f;
    Operand view = from;
    if (affine(map, view.base, view.stride)) {
      if (map.size() == 1) view.stride = from.uniform ? 0 : 1;
      return view;
    }
    if (from.uniform) {
      const Uniform& u = region_.uniforms[from.value];
      int64_t n = static_cast<int64_t>(map.size());
      Map through = u.map.empty() ? map : Map();
      if (!u.map.empty())
        for (int32_t f : map) through.push_back(u.map[f]);
      return {true, uniform(u.buffer, u.constant, u.dtype, n, std::move(through)), 0, 1};
    }
    return copy(id, from.value, std::move(map));
  }

  Operand copy(NodeId id, uint32_t value, Map map) {
    auto n = narrow<int32_t>(map.size());
    const Operand from{false, value, 0, 1};
    uint32_t v = new_value(n, type_of(from));
    append(TileOp::Copy, id, std::array{from}, v, n).map = add_map(std::move(map));
    return {false, v, 0, 1};
  }

  /// An operand whose features are `n` neighbouring blocks of a value.
  Operand dense(NodeId id, Operand from, int32_t n) {
    if (!from.uniform && (from.stride == 1 || n == 1)) {
      from.stride = 1;
      return from;
    }
    uint32_t v = new_value(n, type_of(from));
    append(TileOp::Copy, id, std::array{from}, v, n);
    return {false, v, 0, 1};
  }

  Compute type_of(const Operand& o) const {
    return o.uniform ? region_.uniforms[o.value].type : region_.values[o.value].type;
  }

  // Nodes ------------------------------------------------------------------------------------

  void emit(NodeId id) {
    switch (info(form(g_, id)).tile) {
      case TileForm::Element:
        return elementwise(id);
      case TileForm::Convert:
        return cast(id);
      case TileForm::Move:
        return move(id);
      case TileForm::Reduce:
        return reduce(id);
      case TileForm::Product:
        return is_weight_gradient(g_, id) ? weight_grad(id) : matmul(id);
      case TileForm::Call:
        fail(ErrorKind::Runtime, "no tile form of ", info(g_[id].op).name);
    }
  }

  void elementwise(NodeId id) {
    const size_t n = g_.inputs(id).size();
    int32_t f = features(id);
    Operand in[3];
    bool any_rows = false;
    for (size_t k = 0; k < n; ++k) {
      in[k] = operand(id, narrow<int>(k));
      any_rows |= !in[k].uniform;
    }
    if (!any_rows) in[0] = dense(id, in[0], f);
    uint32_t dst = new_value(f, compute_type(g_.dtype(id)));
    Instruction& i = append(TileOp::Elementwise, id, std::span(in, n), dst, f);
    i.op = g_[id].op;
    i.dtype = g_.dtype(g_.inputs(id).back());
    view_[id] = {false, dst, 0, 1};
    if (g_.dtype(id) != DType::Bool) round_to_dtype(id, dst, f);
  }

  /// Rounds or wraps a value in place where its dtype is narrower than its compute type.
  void round_to_dtype(NodeId id, uint32_t value, int32_t f) {
    const Operand from{false, value, 0, 1};
    if (!as_is(g_.dtype(id))) append(TileOp::Narrow, id, std::array{from}, value, f);
  }

  void cast(NodeId id) {
    DType from = g_.dtype(g_.input(id, 0)), to = g_.dtype(id);
    Operand x = operand(id, 0);
    int32_t f = features(id);
    bool widening = (to == DType::Float32 && compute_type(from) == Compute::F32) ||
                    (to == DType::Int32 && compute_type(from) == Compute::I32) ||
                    (from == DType::Bool && compute_type(to) == Compute::I32);
    if (widening) {
      view_[id] = x;
      return;
    }
    x = dense(id, x, f);
    uint32_t dst = new_value(f, compute_type(to));
    append(TileOp::Convert, id, std::array{x}, dst, f);
    view_[id] = {false, dst, 0, 1};
    if (to != DType::Bool) round_to_dtype(id, dst, f);
  }

  /// Which axes of a row tensor count its rows.
  RowAxes row_axes(const Dims& dims) const {
    return gradcell::row_axes(dims, rows(), region_.block);
  }

  /// Whether a node is a view of a row that this region computes, which is read where it is needed.
  bool is_seen_through(NodeId id) const {
    return in_.labels.whole && form(g_, id) == Form::Move && in_.labels.node[id].in_region &&
           in_.buffer_of[id] == UINT32_MAX && is_view(spec(g_, id).movement(g_, id));
  }

  /// What a piece reads of a node's inputs.
  struct Source {
    NodeId id;  ///< whose input it is
    Piece piece;
    bool uniform;
  };
  /// Through views that nothing has been read through yet.
  Source source(NodeId id, const Piece& p) const {
    Source s{id, p, access(g_, in_.labels, id, p.input) == Access::Uniform};
    while (!s.uniform) {
      const NodeId x = in_.labels.storage[g_.input(s.id, s.piece.input)];
      if (!is_seen_through(x) || view_.contains(x)) break;
      const auto inner = composed(s.piece, spec(g_, x).movement(g_, x), g_.dims(x));
      if (!inner || access(g_, in_.labels, x, (*inner)[0].input) == Access::Uniform) break;
      s.id = x, s.piece = (*inner)[0];
    }
    return s;
  }

  /// An input's elements where a piece reads them.
  Operand taken(const Source& s, RowAxes axes) {
    Map map = places(s.piece.from, axes, s.uniform ? 1 : region_.block);
    if (!s.uniform) return mapped(s.id, operand(s.id, s.piece.input), std::move(map));
    NodeId x = g_.input(s.id, s.piece.input);
    const NodeId source = in_.labels.storage[x];
    for (; x != source; x = g_.input(x, 0)) {  // through views to what is stored
      if (form(g_, x) != Form::Move) continue;
      const View v = spec(g_, x).movement(g_, x).pieces[0].from;
      const Map view = places(v, {0, v.dims.size()}, 1);
      for (int32_t& f : map) f = view[f];
    }
    return mapped(s.id, whole_uniform(source), std::move(map));
  }

  void move(NodeId id) {
    const Movement m = spec(g_, id).movement(g_, id);
    const RowAxes axes = row_axes(g_.dims(id));
    if (loads_view(g_, in_.labels, id)) {
      const View& from = m.pieces[0].from;
      const bool one = is_row_one_element(from, axes.lead);
      Operand read =
          load(in_.labels.storage[g_.input(id, 0)], from, axes.lead, one ? 1 : features(id));
      if (one) read.stride = 0;
      view_[id] = read;
      return;
    }
    if (is_view(m)) {
      view_[id] = taken(source(id, m.pieces[0]), axes);
      return;
    }
    std::vector<Piece> pieces = m.pieces;
    if (m.zeros && pieces.size() == 1)
      if (const auto padded = surrounded(id, pieces[0], axes)) {
        view_[id] = *padded;
        return;
      }
    const uint32_t dst = new_value(features(id), compute_type(g_.dtype(id)));
    const bool whole = in_.labels.whole && !m.zeros;
    if (whole) largest_first(pieces);
    for (size_t n = 0; n < pieces.size(); ++n) {
      Map map = places(placed(pieces[n], g_.dims(id)), axes, region_.block);
      const Source s = source(id, pieces[n]);
      std::optional<Operand> from;
      if (n == 0 && whole) from = shifted(s, axes, map);
      if (!from) from = taken(s, axes);
      Instruction& i = append(TileOp::Scatter, id, std::array{*from}, dst, features(id));
      i.inner = narrow<int32_t>(map.size());
      i.zero = m.zeros;
      i.map = add_map(std::move(map));
    }
    view_[id] = {false, dst, 0, 1};
  }

  /// A value that the region computes, with zeros around it: it is made among them, once for all
  /// that are padded in other ways. (Of the only row: features of others lie apart.)
  std::optional<Operand> surrounded(NodeId id, const Piece& p, RowAxes axes) {
    const Map to = places(placed(p, g_.dims(id)), axes, region_.block);
    int32_t first, step;
    const Source s = source(id, p);
    if (!in_.labels.whole || s.uniform || !affine(to, first, step) || step != 1) return {};
    const Operand from = taken(s, axes);
    const auto count = narrow<int32_t>(to.size());
    TileValue& v = region_.values[from.value];
    if (from.uniform || from.base != 0 || from.stride != 1 || v.features != count || count == 1 ||
        loaded_.contains(from.value))
      return {};
    if (v.head + v.tail == 0) append(TileOp::Surround, id, std::array{from}, from.value, count);
    v.head = std::max(v.head, first);
    v.tail = std::max(v.tail, features(id) - first - count);
    return Operand{false, from.value, -first, 1};
  }

  static void largest_first(std::vector<Piece>& pieces) {
    const auto count = [](const Piece& p) { return element_count(p.from.dims); };
    std::swap(pieces[0], *std::ranges::max_element(pieces, {}, count));
  }

  /// The elements of a piece that are all shifted alike, with all between them, which other pieces
  /// write afterwards: so most of a grid that is rolled is moved as one run. to: their places.
  std::optional<Operand> shifted(const Source& s, RowAxes axes, Map& to) {
    if (s.uniform) return {};
    const Map map = places(s.piece.from, axes, region_.block);
    const int32_t shift = map[0] - to[0];
    for (size_t f = 0; f < to.size(); ++f)
      if (map[f] - to[f] != shift) return {};
    Operand from = operand(s.id, s.piece.input);
    if (from.uniform || from.stride != 1) return {};
    from.base += map[0];
    const int32_t first = to[0], count = to.back() - first + 1;
    to.resize(static_cast<size_t>(count));
    std::iota(to.begin(), to.end(), first);
    return from;
  }

  /// Reduces the features named by `axes` of x; returns the operand of the remaining ones.
  Operand reduce_features(NodeId id, NodeId x, std::span<const int64_t> axes, Operand from) {
    const Dims& dims = g_.dims(x);
    const RowAxes rows = row_axes(dims);
    View kept{{}, {}, 0}, gone{{}, {}, 0};
    const Dims strides = row_major(dims);
    for (size_t k = rows.lead; k < rows.trail; ++k) {
      View& v = contains(axes, k) ? gone : kept;
      v.dims.push_back(dims[k]);
      v.strides.push_back(strides[k]);
    }
    if (element_count(gone.dims) == 1) return from;
    from = dense(id, from, narrow<int32_t>(product(dims, rows.lead, rows.trail)));
    Map base = places(kept, {0, kept.dims.size()}, region_.block);
    Map step = places(gone, {0, gone.dims.size()}, region_.block);
    auto n = narrow<int32_t>(base.size());
    uint32_t dst = new_value(n, type_of(from));
    Instruction& i = append(TileOp::FeatureReduce, id, std::array{from}, dst, n);
    i.combine = spec(g_, id).combine;
    i.inner = narrow<int32_t>(step.size());
    i.map = add_map(std::move(base));
    i.map2 = add_map(std::move(step));
    return {false, dst, 0, 1};
  }

  void reduce(NodeId id) {
    NodeId x = g_.input(id, 0);
    Operand from = reduce_features(id, x, g_.attrs(id), operand(id, 0));
    if (!in_.labels.node[id].reducing) {
      view_[id] = from;
      round_to_dtype(id, from.value, features(id));
      return;
    }
    auto f = narrow<int32_t>(g_.count(id));
    from = dense(id, from, f);
    uint32_t a = accumulator(id, TileOp::RowReduce, type_of(from), f, 1);
    Instruction& i = append(TileOp::RowReduce, id, std::array{from}, a, f);
    i.combine = spec(g_, id).combine;
    i.inner = 1;
  }

  uint32_t accumulator(NodeId id, TileOp kind, Compute type, int32_t features, int32_t inner) {
    region_.accumulators.push_back(
        {kind, spec(g_, id).combine, type, features, inner, in_.buffer_of[id], g_.dtype(id)});
    return narrow<uint32_t>(region_.accumulators.size() - 1);
  }

  uint32_t packed_weights(NodeId id, NodeId b) {
    const bool tb = attributes<ProductAttributes>(g_, id).transpose_b;
    const Dims& db = g_.dims(b);
    const auto k = narrow<int32_t>(db[tb ? 1 : 0]), m = narrow<int32_t>(db[tb ? 0 : 1]);
    const PackedWeights w{in_.buffer_of[in_.labels.storage[b]],
                          g_.dtype(b),
                          compute_type(g_.dtype(b)),
                          k,
                          m,
                          tb ? 1 : m,
                          tb ? k : 1};
    const auto next = narrow<uint32_t>(region_.weights.size());
    const auto [known, fresh] = weights_of_.try_emplace({w.buffer, w.k, w.m, w.k_stride}, next);
    if (fresh) region_.weights.push_back(w);
    return known->second;
  }

  void matmul(NodeId id) {
    auto m = narrow<int32_t>(g_.dims(id)[1]);
    uint32_t dst = new_value(m, compute_type(g_.dtype(id)));
    for (int pair = 0; pair < g_[id].input_count; pair += 2) {
      uint32_t weights = packed_weights(id, g_.input(id, pair + 1));
      int32_t k = region_.weights[weights].k;
      Operand x = dense(id, operand(id, pair), k);
      Instruction& i = append(TileOp::Product, id, std::array{x}, dst, m);
      i.inner = k;
      i.weights = weights;
      i.accumulate = pair > 0;
    }
    view_[id] = {false, dst, 0, 1};
    round_to_dtype(id, dst, m);
  }

  void weight_grad(NodeId id) {
    int32_t k = narrow<int32_t>(g_.dims(id)[0]), m = narrow<int32_t>(g_.dims(id)[1]);
    uint32_t a = accumulator(id, TileOp::WeightGrad, compute_type(g_.dtype(id)), k, m);
    for (int pair = 0; pair < g_[id].input_count; pair += 2) {
      Operand x = dense(id, operand(id, pair), k), dy = dense(id, operand(id, pair + 1), m);
      append(TileOp::WeightGrad, id, std::array{x, dy}, a, k).inner = m;
    }
  }

  void store(NodeId id) {
    Operand from = view_.at(id);
    int32_t f = features(id);
    from = dense(id, from, f);
    region_.stores.push_back({in_.buffer_of[id], g_.dtype(id), from, f, type_of(from)});
    TileValue& v = region_.values[from.value];
    if (f == 1 && v.features == 1 && as_is(g_.dtype(id)) && v.direct_out < 0 &&
        !loaded_.contains(from.value))
      v.direct_out = narrow<int32_t>(region_.stores.size() - 1);
  }

  /// Of a few orders of the program, the one that needs the least scratch.
  void schedule() {
    region_.program = release_early(region_);
    place_values(region_);
    if (region_.program.size() < 16) return;
    std::vector<Instruction> original = region_.program, best = original;
    size_t least = region_.row_bytes;
    for (bool newest_first : {false, true}) {
      check_interrupt();
      region_.program = original;
      region_.program = depth_first(region_, newest_first);
      region_.program = release_early(region_);
      place_values(region_);
      if (region_.row_bytes >= least) continue;
      least = region_.row_bytes;
      best = region_.program;
    }
    region_.program = std::move(best);
    place_values(region_);
  }

  const RegionInputs& in_;
  const Graph& g_;
  std::span<const NodeId> nodes_;
  Region region_;
  std::unordered_map<NodeId, Operand> view_;
  std::map<std::tuple<int, BufferId, DType, int64_t, Map>, uint32_t> uniform_of_;
  std::map<std::tuple<BufferId, int32_t, int32_t, int64_t>, uint32_t> weights_of_;
  std::unordered_set<uint32_t> loaded_;  ///< values
};

}  // namespace

Region build_region(const RegionInputs& in, std::span<const NodeId> nodes, bool joined) {
  return Builder(in, nodes).build(joined);
}

}  // namespace gradcell

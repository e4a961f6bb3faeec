// Slices, and their adjoint, which places them. A slice of what was put together is taken from its
// parts, so that what is not picked need not be there.
#include "ops/elementwise.h"
#include "ops/moving/moving.h"
#include "ops/moving/rows.h"
#include "ops/steps.h"

namespace gradcell {

namespace {

constexpr Parameter kStart = attribute("start"), kStep = attribute("step");
constexpr Parameter kSliced[] = {kX, kStart, {Parameter::Kind::Shape, "size"}, kStep};
constexpr Parameter kPlaced[] = {kX, kShape, kStart, kStep};

/// Throws unless `count` places from start on, step apart, lie inside `dims`.
void check_box(const char* op, const Dims& dims, const SliceAttributes& a, const Dims& count) {
  const size_t rank = dims.size();
  bool ok = a.start.size() == rank && count.size() == rank && a.step.size() == rank;
  for (size_t k = 0; ok && k < rank; ++k) {
    const int64_t n = count[k];
    if (n > 0) {
      int64_t last;
      ok = !__builtin_mul_overflow(n - 1, a.step[k], &last) &&
           !__builtin_add_overflow(last, a.start[k], &last) && a.start[k] >= 0 &&
           a.start[k] < dims[k] && last >= 0 && last < dims[k] && (a.step[k] != 0 || n == 1);
    } else {
      ok = n == 0;
    }
  }
  if (!ok)
    fail(ErrorKind::Index, op, ": start ", to_string(a.start), ", size ", to_string(count),
         " and step ", to_string(a.step), " reach outside a tensor of shape ", to_string(dims));
}

/// Whether a box of these dimensions is all of `from`, in order.
bool is_all(const SliceAttributes& a, const Dims& box, const Dims& from) {
  auto each = [](std::span<const int64_t> numbers, int64_t is) {
    return std::ranges::all_of(numbers, [is](int64_t n) { return n == is; });
  };
  return box == from && each(a.start, 0) && each(a.step, 1);
}

/// A slice, or its adjoint, that takes all of a batch axis in front.
NodeId with_batch(Graph& g, NodeId id, const Batch& b) {
  const auto a = attributes<SliceAttributes>(g, id);
  const Dims start = behind_batch(0, a.start), step = behind_batch(1, a.step);
  return make(
      g, g[id].op,
      {b.inputs, encode(SliceAttributes{start, step}), {{}, behind_batch(b.size, g.dims(id))}});
}

NodeId of_slice(Graph& g, NodeId x, SliceSpec s) {
  const auto inner = attributes<SliceAttributes>(g, x);
  for (size_t k = 0; k < s.size.size(); ++k) {
    s.start[k] = inner.start[k] + s.start[k] * inner.step[k];
    s.step[k] *= inner.step[k];
  }
  return slice(g, g.input(x, 0), s);
}

/// Of the one piece that all of it lies in.
NodeId of_concat(Graph& g, NodeId x, SliceSpec s) {
  const auto axis = static_cast<size_t>(g.attrs(x)[0]);
  const int64_t n = s.size[axis], first = s.start[axis], last = first + (n - 1) * s.step[axis];
  if (n == 0) return kNoNode;
  int64_t begin = 0;
  for (NodeId piece : g.inputs(x)) {
    const int64_t end = begin + g.dims(piece)[axis];
    if (std::min(first, last) >= begin && std::max(first, last) < end) {
      s.start[axis] -= begin;
      return slice(g, piece, s);
    }
    begin = end;
  }
  return kNoNode;
}

NodeId of_broadcast(Graph& g, NodeId x, SliceSpec s) {
  const NodeId source = g.input(x, 0);
  const Dims aligned = aligned_source(g, x), to = s.size;
  for (size_t k = 0; k < aligned.size(); ++k)
    if (aligned[k] == 1) s.start[k] = 0, s.size[k] = 1, s.step[k] = 1;
  if (element_count(to) == 0) return kNoNode;
  return broadcast_to(g, slice(g, reshape(g, source, aligned), s), to);
}

NodeId of_transpose(Graph& g, NodeId x, const SliceSpec& s) {
  const std::span<const int64_t> perm = g.attrs(x);
  SliceSpec inner = s;
  for (size_t k = 0; k < perm.size(); ++k)
    inner.start[perm[k]] = s.start[k], inner.size[perm[k]] = s.size[k],
    inner.step[perm[k]] = s.step[k];
  return transpose(g, slice(g, g.input(x, 0), inner), perm);
}

/// Of what was reshaped by ones alone.
NodeId of_reshape(Graph& g, NodeId x, const SliceSpec& s) {
  const NodeId source = g.input(x, 0);
  const Dims full = g.dims(x), from = g.dims(source), to = s.size;
  if (element_count(to) == 0 || !differ_in_ones(full, from)) return kNoNode;
  const SliceSpec inner{without_ones(s.start, full, from, 0), without_ones(s.size, full, from, 1),
                        without_ones(s.step, full, from, 1)};
  return reshape(g, slice(g, source, inner), to);
}

/// Of a block among zeros: zeros beside it, and of the block what lies in it.
NodeId of_placed(Graph& g, NodeId x, SliceSpec s) {
  const auto block = attributes<SliceAttributes>(g, x);
  const NodeId source = g.input(x, 0);
  if (element_count(s.size) == 0 || element_count(g.dims(source)) == 0) return kNoNode;
  bool inside = true;
  for (size_t k = 0; k < s.size.size(); ++k) {
    const int64_t n = g.dims(source)[k], by = n > 1 ? block.step[k] : 1;
    const int64_t last = s.start[k] + (s.size[k] - 1) * s.step[k];
    const auto [low, high] = std::minmax({s.start[k], last});
    const auto [from, to] = std::minmax({block.start[k], block.start[k] + (n - 1) * by});
    if (high < from || low > to) return constant(g, g.dtype(x), s.size, 0);
    const int64_t step = s.size[k] > 1 ? s.step[k] : by;
    inside = inside && low >= from && high <= to && (s.start[k] - block.start[k]) % by == 0 &&
             step % by == 0;
    s.start[k] = (s.start[k] - block.start[k]) / by, s.step[k] = step / by;
  }
  return inside ? slice(g, source, s) : kNoNode;
}

/// x with y in the place of what begins at `start` along one axis.
NodeId joined(Graph& g, NodeId x, NodeId y, size_t axis, int64_t start) {
  const Dims all(g.dims(x));
  const int64_t end = start + g.dims(y)[axis];
  auto part = [&](int64_t from, int64_t to) {
    SliceSpec s{Dims(all.size(), 0), all, Dims(all.size(), 1)};
    s.start[axis] = from, s.size[axis] = to - from;
    return slice(g, x, s);
  };
  std::vector<NodeId> parts;
  if (start > 0) parts.push_back(part(0, start));
  parts.push_back(y);
  if (end < all[axis]) parts.push_back(part(end, all[axis]));
  return concat(g, parts, narrow<int>(axis));
}

class Slicing : public Viewing {
 public:
  explicit Slicing(Op op) : Viewing(op, Form::Move, kAttributes<SliceAttributes>, kSliced) {}

  Type infer(const Graph& g, const Draft& d) const override {
    check_box("Slice", g.dims(d.inputs[0]), decode<SliceAttributes>(d.attributes), d.asked.dims);
    return {g.dtype(d.inputs[0]), d.asked.dims};
  }

  NodeId simplify(Graph& g, Draft& d, const Type& type) const override {
    const NodeId x = d.inputs[0];
    const auto a = decode<SliceAttributes>(d.attributes);
    if (is_all(a, type.dims, g.dims(x))) return x;
    if (is_constant(g, x)) return constant_as(g, x, type);
    SliceSpec s{Dims(a.start.begin(), a.start.end()), type.dims,
                Dims(a.step.begin(), a.step.end())};
    switch (g[x].op) {
      case Op::Neg:
        return unary(g, Op::Neg, slice(g, g.input(x, 0), s));
      case Op::Slice:
        return of_slice(g, x, s);
      case Op::SliceScatter:
        return of_placed(g, x, s);
      case Op::Concat:
        return of_concat(g, x, s);
      case Op::BroadcastTo:
        return of_broadcast(g, x, s);
      case Op::Transpose:
        return of_transpose(g, x, s);
      case Op::Reshape:
        return of_reshape(g, x, s);
      default:
        return kNoNode;
    }
  }

  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    return make(g, Op::SliceScatter, {{&dy, 1}, g.attrs(id), {{}, g.dims(g.input(id, 0))}});
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override { return with_batch(g, id, b); }

  std::optional<View> lay(const View& x, std::span<const int64_t> attributes,
                          const Dims& to) const override {
    const auto a = decode<SliceAttributes>(attributes);
    View v{to, x.strides, x.offset};
    for (size_t k = 0; k < to.size(); ++k) {
      v.offset += v.strides[k] * a.start[k];
      v.strides[k] *= a.step[k];
    }
    return v;
  }

  NodeId put(Graph& g, NodeId x, std::span<const int64_t> attributes, NodeId y) const override {
    const Dims &box = g.dims(y), &all = g.dims(x);
    const auto a = decode<SliceAttributes>(attributes);
    const NodeId there = slice_scatter(g, y, all, a.start, a.step);
    if (there == y) return y;
    Dims partial;
    for (size_t k = 0; k < all.size(); ++k)
      if (box[k] != all[k] || (box[k] > 1 && a.step[k] != 1))
        partial.push_back(static_cast<int64_t>(k));
    if (const size_t k = partial.empty() ? 0 : static_cast<size_t>(partial[0]);
        partial.size() == 1 && box[k] > 0 && (box[k] == 1 || a.step[k] == 1))
      return joined(g, x, y, k, a.start[k]);
    const NodeId ones = constant(g, DType::Int32, box, 1), none = constant(g, DType::Int32, all, 0);
    const NodeId mask = binary(g, Op::Greater, slice_scatter(g, ones, all, a.start, a.step), none);
    return select(g, mask, there, x);
  }
};

// Placements --------------------------------------------------------------------------------------

/// What is the same all along an axis that it fills is placed once, and then repeated.
NodeId below_broadcast(Graph& g, NodeId x, const SliceAttributes& a, const Dims& to) {
  if (!is_constant(g, x) && !is_broadcast(g, x)) return kNoNode;
  Dims source = is_constant(g, x) ? Dims(to.size(), 1) : aligned_source(g, x);
  const Dims from = g.dims(x);
  Dims placed = to;
  for (size_t k = 0; k < to.size(); ++k) {
    const bool filled = a.start[k] == 0 && a.step[k] == 1 && from[k] == to[k];
    if (source[k] == 1 && filled)
      placed[k] = 1;
    else
      source[k] = from[k];
  }
  if (placed == to || element_count(to) == 0) return kNoNode;
  const Dims start(a.start.begin(), a.start.end()), step(a.step.begin(), a.step.end());
  const NodeId one = is_constant(g, x)
                         ? constant_bits(g, g.dtype(x), source, g[x].bits)
                         : broadcast_to(g, reshape(g, g.input(x, 0), aligned_source(g, x)), source);
  return broadcast_to(g, slice_scatter(g, one, placed, start, step), to);
}

class SlicePlacing : public Moving {
 public:
  explicit SlicePlacing(Op op) : Moving(op, Form::Move, kAttributes<SliceAttributes>, kPlaced) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const NodeId x = d.inputs[0];
    check_box("SliceScatter", d.asked.dims, decode<SliceAttributes>(d.attributes), g.dims(x));
    return {g.dtype(x), d.asked.dims};
  }

  NodeId simplify(Graph& g, Draft& d, const Type& type) const override {
    const auto a = decode<SliceAttributes>(d.attributes);
    const NodeId x = d.inputs[0];
    if (is_all(a, g.dims(x), type.dims)) return x;
    if (is_constant(g, x) && g[x].bits == 0) return constant(g, type.dtype, type.dims, 0);
    return below_broadcast(g, x, a, type.dims);
  }

  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    return make(g, Op::Slice, {{&dy, 1}, g.attrs(id), {{}, g.dims(g.input(id, 0))}});
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override { return with_batch(g, id, b); }

  Movement movement(const Graph& g, NodeId id) const override {
    const auto a = gradcell::attributes<SliceAttributes>(g, id);
    return {{{0, whole(g.dims(g.input(id, 0))), Dims(a.start.begin(), a.start.end()),
              Dims(a.step.begin(), a.step.end())}},
            true};
  }
};

}  // namespace

SPEC(Slice, Slicing)
SPEC(SliceScatter, SlicePlacing)

NodeId slice(Graph& g, NodeId x, const SliceSpec& s) {
  const Dims attributes = encode(SliceAttributes{s.start, s.step});
  return make(g, Op::Slice, {{&x, 1}, attributes, {{}, s.size}});
}

NodeId slice_scatter(Graph& g, NodeId x, std::span<const int64_t> dims,
                     std::span<const int64_t> start, std::span<const int64_t> step) {
  const Dims attributes = encode(SliceAttributes{start, step});
  return make(g, Op::SliceScatter, {{&x, 1}, attributes, {{}, Dims(dims.begin(), dims.end())}});
}

std::optional<Placement> placement(const Graph& g, NodeId id) {
  if (g[id].op != Op::SliceScatter) return {};
  const auto a = attributes<SliceAttributes>(g, id);
  return Placement{g.input(id, 0), Dims(a.start.begin(), a.start.end()),
                   Dims(a.step.begin(), a.step.end())};
}

NodeId rows(Graph& g, NodeId x, int64_t begin, int64_t count) {
  Dims dims = g.dims(x), start(dims.size(), 0);
  const Dims step(dims.size(), 1);
  dims[0] = count, start[0] = begin;
  return g.intern(Op::Slice, g.dtype(x), dims, {&x, 1}, encode(SliceAttributes{start, step}));
}

std::optional<int64_t> first_row(const Graph& g, NodeId id) {
  if (g[id].op != Op::Slice || g.dims(id).empty()) return {};
  const auto a = attributes<SliceAttributes>(g, id);
  return a.step[0] == 1 ? std::optional(a.start[0]) : std::nullopt;
}

NodeId step_of(Graph& g, NodeId x, int64_t t) {
  Dims start(g.dims(x).size(), 0), size = g.dims(x);
  const Dims step(size.size(), 1);
  start[0] = t, size[0] = 1;
  const NodeId whole[] = {x};
  const Dims box = encode(SliceAttributes{start, step});
  const NodeId one[] = {g.intern(Op::Slice, g.dtype(x), size, whole, box)};
  return g.intern(Op::Reshape, g.dtype(x), Dims(size.begin() + 1, size.end()), one, {});
}

NodeId from_steps(Graph& g, std::span<const NodeId> steps) {
  std::vector<NodeId> parts;
  const DType dtype = g.dtype(steps[0]);
  Dims dims = g.dims(steps[0]);
  dims.insert(dims.begin(), 1);
  for (const NodeId step : steps)
    parts.push_back(g.intern(Op::Reshape, dtype, dims, {&step, 1}, {}));
  if (parts.size() == 1) return parts[0];
  dims[0] = static_cast<int64_t>(parts.size());
  return g.intern(Op::Concat, dtype, dims, parts, encode(AxisAttributes{0}));
}

}  // namespace gradcell

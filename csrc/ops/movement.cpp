#include "ops/movement.h"

#include "base/promotion.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/identity.h"
#include "ops/reduction.h"

namespace gradcell {

namespace {

struct PermAttributes {
  std::span<const int64_t> perm;
  static constexpr auto fields() {
    return std::tuple{Field{"perm", AttributeKind::Perm, &PermAttributes::perm}};
  }
};
constexpr Parameter kShaped[] = {kX, kShape};
constexpr Parameter kPermuted[] = {kX, {Parameter::Kind::Attribute, "perm"}};
constexpr Parameter kSliced[] = {kX,
                                 {Parameter::Kind::Attribute, "start"},
                                 {Parameter::Kind::Shape, "size"},
                                 {Parameter::Kind::Attribute, "step"}};
constexpr Parameter kPlaced[] = {
    kX, kShape, {Parameter::Kind::Attribute, "start"}, {Parameter::Kind::Attribute, "step"}};
constexpr Parameter kJoined[] = {{Parameter::Kind::Tensors, "xs"}, kAxis};

/// A constant, whatever is done to its places, is a constant.
class Moving : public Linear {
 public:
  using Linear::Linear;

 protected:
  static NodeId constant_as(Graph& g, NodeId x, const Type& type) {
    return is_constant(g, x) ? constant_bits(g, type.dtype, type.dims, g[x].bits) : kNoNode;
  }
};

/// What a view of one input is.
class Viewing : public Moving {
 public:
  using Moving::Moving;
  bool views() const override { return true; }
  Movement movement(const Graph& g, NodeId id) const override {
    return moved(*lay(whole(g.dims(g.input(id, 0))), g.attrs(id), g.dims(id)));
  }
};

// Reshape -----------------------------------------------------------------------------------------

class Reshaping : public Moving {
 public:
  explicit Reshaping(Op op) : Moving(op, Form::Same, {}, kShaped) {}

  bool views() const override { return true; }

  Type infer(const Graph& g, const Draft& d) const override {
    const NodeId x = d.inputs[0];
    Dims to = d.asked.dims;
    int64_t known = 1, open = -1;
    for (size_t k = 0; k < to.size(); ++k) {
      require(to[k] >= -1, ErrorKind::Value, "Reshape: negative dimension in ", to_string(to));
      require(to[k] >= 0 || open < 0, ErrorKind::Value, "Reshape: only one dimension of ",
              to_string(to), " can be -1");
      if (to[k] < 0) open = static_cast<int64_t>(k);
    }
    if (open >= 0) {
      for (int64_t n : to) known *= n < 0 ? 1 : n;
      if (known > 0 && g.count(x) % known == 0) to[open] = g.count(x) / known;
    }
    if ((open >= 0 && to[open] < 0) || element_count(to) != g.count(x))
      fail(ErrorKind::Value, "Reshape: a tensor of shape ", to_string(g.dims(x)),
           " cannot take shape ", to_string(d.asked.dims));
    return {g.dtype(x), to};
  }

  NodeId simplify(Graph& g, Draft& d, const Type& type) const override {
    const NodeId x = d.inputs[0];
    if (g.dims(x) == type.dims) return x;
    if (g[x].op == op) return reshape(g, g.input(x, 0), type.dims);
    return constant_as(g, x, type);
  }

  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    return reshape(g, dy, Dims(g.dims(g.input(id, 0))));
  }

  std::optional<View> lay(const View& x, std::span<const int64_t>, const Dims& to) const override {
    return reshaped(x, to);
  }
  NodeId put(Graph& g, NodeId x, std::span<const int64_t>, NodeId y) const override {
    return reshape(g, y, Dims(g.dims(x)));
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    return reshape(g, b.inputs[0], behind_batch(b.size, g.dims(id)));
  }
  /// A block among zeros stays one where only dimensions of 1 come or go.
  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    const auto box = placement(g, dx[0]);
    const Dims from = g.dims(g.input(id, 0)), to = g.dims(id);
    if (!box || without_ones(from) != without_ones(to)) return Moving::tangent(g, id, dx);
    const Dims inner = g.dims(box->from);
    Dims size(to.size(), 1), start(to.size(), 0), step(to.size(), 1);
    size_t k = 0;
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i] == 1) continue;
      while (from[k] == 1) ++k;
      size[i] = inner[k], start[i] = box->start[k], step[i] = box->step[k];
      ++k;
    }
    // (Of a dimension of 1 there is one element or the block is empty.)
    if (element_count(size) != element_count(inner)) return Moving::tangent(g, id, dx);
    return slice_scatter(g, reshape(g, box->from, size), to, start, step);
  }

 private:
  static Dims without_ones(Dims dims) {
    std::erase(dims, 1);
    return dims;
  }
};

// Views -------------------------------------------------------------------------------------------

class Transposition : public Viewing {
 public:
  explicit Transposition(Op op) : Viewing(op, Form::Move, kAttributes<PermAttributes>, kPermuted) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const Dims& from = g.dims(d.inputs[0]);
    require(d.attributes.size() == from.size(), ErrorKind::Value,
            "Transpose: ", d.attributes.size(), " axes given for a tensor of shape ",
            to_string(from));
    Dims to;
    std::vector<uint8_t> seen(from.size(), 0);
    for (int64_t axis : d.attributes) {
      check_axis("Transpose", axis, from.size());
      require(!seen[axis], ErrorKind::Value, "Transpose: axis ", axis, " appears twice");
      seen[axis] = 1;
      to.push_back(from[axis]);
    }
    return {g.dtype(d.inputs[0]), to};
  }

  NodeId simplify(Graph& g, Draft& d, const Type& type) const override {
    const NodeId x = d.inputs[0];
    if (g[x].op == op) {
      Dims perm;
      for (int64_t axis : d.attributes) perm.push_back(g.attrs(x)[axis]);
      return transpose(g, g.input(x, 0), perm);
    }
    int64_t last = -1;
    bool order_kept = true;
    for (int64_t axis : d.attributes) {
      if (g.dims(x)[axis] == 1) continue;
      order_kept &= axis > last;
      last = axis;
    }
    return order_kept ? reshape(g, x, type.dims) : constant_as(g, x, type);
  }

  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    return put(g, kNoNode, g.attrs(id), dy);
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    return transpose(g, b.inputs[0], behind_batch(0, behind_batch(g.attrs(id))));
  }

  std::optional<View> lay(const View& x, std::span<const int64_t> perm,
                          const Dims& to) const override {
    View v{to, {}, x.offset};
    for (int64_t axis : perm) v.strides.push_back(x.strides[axis]);
    return v;
  }
  NodeId put(Graph& g, NodeId, std::span<const int64_t> perm, NodeId y) const override {
    Dims inverse(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<int64_t>(i);
    return transpose(g, y, inverse);
  }
};

class Broadcasting : public Viewing {
 public:
  explicit Broadcasting(Op op) : Viewing(op, Form::Move, {}, kShaped) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const Dims& from = g.dims(d.inputs[0]);
    Dims to = d.asked.dims;
    bool ok = from.size() <= to.size();
    for (size_t k = 0; k < to.size(); ++k) {
      const bool stands = k + from.size() >= to.size();  // -1 keeps a dimension
      require(to[k] != -1 || stands, ErrorKind::Value,
              "BroadcastTo: -1 stands for no dimension of shape ", to_string(from));
      if (!ok) continue;
      const int64_t n = source_dim(from, to, k);
      if (to[k] == -1) to[k] = n;
      ok = n == to[k] || (n == 1 && to[k] >= 0);
    }
    if (!ok)
      fail(ErrorKind::Value, "BroadcastTo: a tensor of shape ", to_string(from),
           " does not broadcast to ", to_string(to));
    return {g.dtype(d.inputs[0]), to};
  }

  NodeId simplify(Graph& g, Draft& d, const Type& type) const override {
    const NodeId x = d.inputs[0];
    if (is_constant(g, x)) return constant_as(g, x, type);
    if (g[x].op == op) return broadcast_to(g, g.input(x, 0), type.dims);
    return g.count(x) == element_count(type.dims) ? reshape(g, x, type.dims) : kNoNode;
  }

  /// Sums over the axes along which x was spread.
  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    const Dims from = g.dims(g.input(id, 0)), to = g.dims(id);
    Dims axes;
    for (size_t k = 0; k < to.size(); ++k)
      if (k + from.size() < to.size() || source_dim(from, to, k) != to[k])
        axes.push_back(static_cast<int64_t>(k));
    return reshape(g, sum(g, dy, axes), from);
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    const Dims from = g.dims(g.input(id, 0)), to = g.dims(id);
    Dims aligned(to.size() - from.size(), 1);
    aligned.insert(aligned.end(), from.begin(), from.end());
    const NodeId x = reshape(g, b.inputs[0], behind_batch(b.size, aligned));
    return broadcast_to(g, x, behind_batch(b.size, to));
  }

  std::optional<View> lay(const View& x, std::span<const int64_t>, const Dims& to) const override {
    View v{to, Dims(to.size(), 0), x.offset};
    const size_t missing = to.size() - x.dims.size();
    for (size_t k = 0; k < x.dims.size(); ++k)
      if (x.dims[k] != 1) v.strides[missing + k] = x.strides[k];
    return v;
  }
};

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

/// The attributes of a slice, or its adjoint, that takes all of a batch axis in front.
Dims box_behind_batch(const Graph& g, NodeId id) {
  const auto a = attributes<SliceAttributes>(g, id);
  const Dims start = behind_batch(0, a.start), step = behind_batch(1, a.step);
  return encode(SliceAttributes{start, step});
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
  return concat(g, parts, static_cast<int>(axis));
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
    const Dims& from = g.dims(x);
    bool all = type.dims == from;
    for (size_t k = 0; all && k < from.size(); ++k) all = a.start[k] == 0 && a.step[k] == 1;
    if (all) return x;
    if (is_constant(g, x)) return constant_as(g, x, type);
    if (g[x].op == Op::SliceScatter && g.dims(g.input(x, 0)) == type.dims &&
        std::ranges::equal(g.attrs(x), d.attributes))
      return g.input(x, 0);
    if (g[x].op != op) return kNoNode;
    const auto inner = gradcell::attributes<SliceAttributes>(g, x);  // a slice of a slice
    SliceSpec merged{{}, type.dims, {}};
    for (size_t k = 0; k < from.size(); ++k) {
      merged.start.push_back(inner.start[k] + a.start[k] * inner.step[k]);
      merged.step.push_back(a.step[k] * inner.step[k]);
    }
    return slice(g, g.input(x, 0), merged);
  }

  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    return make(g, Op::SliceScatter, {{&dy, 1}, g.attrs(id), {{}, g.dims(g.input(id, 0))}});
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    return make(g, op, {b.inputs, box_behind_batch(g, id), {{}, behind_batch(b.size, g.dims(id))}});
  }

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
    const Dims box(g.dims(y)), all(g.dims(x)), kept(attributes.begin(), attributes.end());
    const auto a = decode<SliceAttributes>(kept);
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
    bool all = g.dims(d.inputs[0]) == type.dims;
    for (size_t k = 0; all && k < type.dims.size(); ++k) all = a.start[k] == 0 && a.step[k] == 1;
    return all ? d.inputs[0] : kNoNode;
  }

  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    return make(g, Op::Slice, {{&dy, 1}, g.attrs(id), {{}, g.dims(g.input(id, 0))}});
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    return make(g, op, {b.inputs, box_behind_batch(g, id), {{}, behind_batch(b.size, g.dims(id))}});
  }

  Movement movement(const Graph& g, NodeId id) const override {
    const auto a = gradcell::attributes<SliceAttributes>(g, id);
    return {{{0, whole(g.dims(g.input(id, 0))), Dims(a.start.begin(), a.start.end()),
              Dims(a.step.begin(), a.step.end())}},
            true};
  }
};

class Concatenation : public Moving {
 public:
  explicit Concatenation(Op op) : Moving(op, Form::Move, kAttributes<AxisAttributes>, kJoined) {}

  Type infer(const Graph& g, const Draft& d) const override {
    require(!d.inputs.empty(), ErrorKind::Value, "Concat: needs at least one tensor");
    require(d.inputs.size() < 65536, ErrorKind::Value, "Concat: more than 65535 tensors");
    const auto axis = static_cast<size_t>(d.attributes[0]);
    const NodeId first = d.inputs[0];
    Dims to = g.dims(first);
    require(!to.empty(), ErrorKind::Value,
            "Concat: a tensor without dimensions cannot be concatenated");
    check_axis("Concat", d.attributes[0], to.size());
    for (NodeId x : d.inputs.subspan(1)) {
      const Dims& n = g.dims(x);
      bool ok = n.size() == to.size();
      for (size_t k = 0; ok && k < n.size(); ++k) ok = n[k] == to[k] || k == axis;
      if (!ok)
        fail(ErrorKind::Value, "Concat: shapes ", to_string(g.dims(first)), " and ", to_string(n),
             " differ elsewhere than on axis ", axis);
      check_same_dtype("Concat", g.dtype(first), g.dtype(x));
      to[axis] += n[axis];
    }
    return {g.dtype(first), to};
  }

  NodeId simplify(Graph&, Draft& d, const Type&) const override {
    return d.inputs.size() == 1 ? d.inputs[0] : kNoNode;
  }

  NodeId adjoint(Graph& g, NodeId id, int k, NodeId dy) const override {
    const Movement m = movement(g, id);
    const Piece& p = m.pieces[static_cast<size_t>(k)];
    return slice(g, dy, {p.start, p.from.dims, p.step});
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    std::vector<NodeId> in;
    for (size_t k = 0; k < b.inputs.size(); ++k) in.push_back(over_batch(g, b, k));
    return concat(g, in, static_cast<int>(g.attrs(id)[0]) + 1);
  }
  /// Zeros beside a single tangent are no part of a sum.
  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    size_t only = dx.size();
    for (size_t k = 0; k < dx.size(); ++k)
      if (dx[k] != kNoNode) only = only == dx.size() ? k : SIZE_MAX - 1;
    if (only >= dx.size()) return Moving::tangent(g, id, dx);
    const Movement m = movement(g, id);
    const Piece& p = m.pieces[only];
    return slice_scatter(g, dx[only], Dims(g.dims(id)), p.start, p.step);
  }

  Movement movement(const Graph& g, NodeId id) const override {
    const auto axis = static_cast<size_t>(g.attrs(id)[0]);
    const size_t rank = g.dims(id).size();
    Movement m;
    Dims start(rank, 0);
    for (int k = 0; k < g[id].input_count; ++k) {
      m.pieces.push_back({k, whole(g.dims(g.input(id, k))), start, Dims(rank, 1)});
      start[axis] += m.pieces.back().from.dims[axis];
    }
    return m;
  }

  NodeId apply(Graph& g, Draft d) const override {
    std::vector<NodeId> in(d.inputs.begin(), d.inputs.end());
    DType common = in.empty() ? DType::Bool : g.dtype(in[0]);
    for (NodeId x : in) common = promote(common, g.dtype(x));
    for (NodeId& x : in) x = cast(g, x, common);
    d.inputs = in;
    return make(g, op, d);
  }
};

}  // namespace

SPEC(Reshape, Reshaping)
SPEC(Transpose, Transposition)
SPEC(BroadcastTo, Broadcasting)
SPEC(Slice, Slicing)
SPEC(SliceScatter, SlicePlacing)
SPEC(Concat, Concatenation)

NodeId reshape(Graph& g, NodeId x, std::span<const int64_t> dims) {
  return make(g, Op::Reshape, {{&x, 1}, {}, {{}, Dims(dims.begin(), dims.end())}});
}

NodeId transpose(Graph& g, NodeId x, std::span<const int64_t> perm) {
  const Dims copy(perm.begin(), perm.end());
  return make(g, Op::Transpose, {{&x, 1}, copy});
}

NodeId move_axis(Graph& g, NodeId x, size_t from, size_t to) {
  Dims perm;
  for (size_t k = 0; k < g.dims(x).size(); ++k)
    if (k != from) perm.push_back(static_cast<int64_t>(k));
  perm.insert(perm.begin() + static_cast<int64_t>(to), static_cast<int64_t>(from));
  return transpose(g, x, perm);
}

NodeId broadcast_to(Graph& g, NodeId x, std::span<const int64_t> dims) {
  return make(g, Op::BroadcastTo, {{&x, 1}, {}, {{}, Dims(dims.begin(), dims.end())}});
}

bool is_broadcast(const Graph& g, NodeId id) { return g[id].op == Op::BroadcastTo; }

int64_t source_dim(const Dims& from, const Dims& to, size_t i) {
  const size_t missing = to.size() - from.size();
  return i < missing ? 1 : from[i - missing];
}

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

NodeId concat(Graph& g, std::span<const NodeId> xs, int axis) {
  const int64_t attributes[] = {axis};
  return make(g, Op::Concat, {xs, attributes});
}

NodeId transposed_matrix(const Graph& g, NodeId id) {
  if (g[id].op != Op::Transpose) return kNoNode;
  const auto perm = g.attrs(id);
  const auto r = static_cast<int64_t>(perm.size());
  for (int64_t k = 0; k < r - 2; ++k)
    if (perm[k] != k) return kNoNode;
  return perm[r - 2] == r - 1 && perm[r - 1] == r - 2 ? g.input(id, 0) : kNoNode;
}

}  // namespace gradcell

#include "ops/moving/moving.h"

#include "base/promotion.h"
#include "ops/combining/reduction.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/identity.h"
#include "ops/moving/rows.h"

namespace gradcell {

namespace {

struct PermAttributes {
  std::span<const int64_t> perm;
  static constexpr auto fields() {
    return std::tuple{Field{"perm", AttributeKind::Perm, &PermAttributes::perm}};
  }
};
constexpr Parameter kShaped[] = {kX, kShape};
constexpr Parameter kPermuted[] = {kX, attribute("perm")};
constexpr Parameter kJoined[] = {{Parameter::Kind::Tensors, "xs"}, kAxis};

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
      require(to[k] >= -1, ErrorKind::Value, "Reshape: negative dimension in ", listed(to));
      require(to[k] >= 0 || open < 0, ErrorKind::Value, "Reshape: only one dimension of ",
              listed(to), " can be -1");
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
    if (is_broadcast(g, x) &&
        differ_in_ones(g.dims(x), type.dims)) {  // the broadcast stays outside
      const Dims source = aligned_source(g, x), full = g.dims(x);
      const NodeId inner = reshape(g, g.input(x, 0), without_ones(source, full, type.dims, 1));
      return broadcast_to(g, inner, type.dims);
    }
    const auto box = placement(g, x);
    if (box && differ_in_ones(g.dims(x), type.dims) && g.count(box->from) > 0) {
      const Dims full = g.dims(x), from = g.dims(box->from), to = type.dims;
      return slice_scatter(g, reshape(g, box->from, without_ones(from, full, to, 1)), to,
                           without_ones(box->start, full, to, 0),
                           without_ones(box->step, full, to, 1));
    }
    return constant_as(g, x, type);
  }

  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    return reshape(g, dy, g.dims(g.input(id, 0)));
  }

  std::optional<View> lay(const View& x, std::span<const int64_t>, const Dims& to) const override {
    return reshaped(x, to);
  }
  NodeId put(Graph& g, NodeId x, std::span<const int64_t>, NodeId y) const override {
    return reshape(g, y, g.dims(x));
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    return reshape(g, b.inputs[0], behind_batch(b.size, g.dims(id)));
  }
};

// Views -------------------------------------------------------------------------------------------

class Transposition : public Viewing {
 public:
  explicit Transposition(Op op) : Viewing(op, Form::Move, kAttributes<PermAttributes>, kPermuted) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const Dims& from = g.dims(d.inputs[0]);
    require(d.attributes.size() == from.size(), ErrorKind::Value,
            "Transpose: ", d.attributes.size(), " axes given for a tensor of shape ", listed(from));
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
    return transpose(g, y, inverse(perm));
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
              "BroadcastTo: -1 stands for no dimension of shape ", listed(from));
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
    const Dims &from = g.dims(g.input(id, 0)), &to = g.dims(id);
    Dims axes;
    for (size_t k = 0; k < to.size(); ++k)
      if (k + from.size() < to.size() || source_dim(from, to, k) != to[k])
        axes.push_back(static_cast<int64_t>(k));
    return reshape(g, sum(g, dy, axes), from);
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    const NodeId x = reshape(g, b.inputs[0], behind_batch(b.size, aligned_source(g, id)));
    return broadcast_to(g, x, behind_batch(b.size, g.dims(id)));
  }

  std::optional<View> lay(const View& x, std::span<const int64_t>, const Dims& to) const override {
    View v{to, Dims(to.size(), 0), x.offset};
    const size_t missing = to.size() - x.dims.size();
    for (size_t k = 0; k < x.dims.size(); ++k)
      if (x.dims[k] != 1) v.strides[missing + k] = x.strides[k];
    return v;
  }
};

// Concatenation -----------------------------------------------------------------------------------

class Concatenation : public Moving {
 public:
  explicit Concatenation(Op op) : Moving(op, Form::Move, kAttributes<AxisAttributes>, kJoined) {}

  Type infer(const Graph& g, const Draft& d) const override {
    require(!d.inputs.empty(), ErrorKind::Value, "Concat: needs at least one tensor");
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
    const auto axis = static_cast<size_t>(g.attrs(id)[0]);
    Dims start(g.dims(id).size(), 0);  // (not by way of all pieces, which there may be many of)
    for (NodeId before : g.inputs(id).first(static_cast<size_t>(k)))
      start[axis] += g.dims(before)[axis];
    return slice(g, dy, {start, g.dims(g.input(id, k)), Dims(start.size(), 1)});
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    std::vector<NodeId> in;
    for (size_t k = 0; k < b.inputs.size(); ++k) in.push_back(over_batch(g, b, k));
    return concat(g, in, narrow<int>(g.attrs(id)[0]) + 1);
  }
  /// Zeros beside a single tangent are no part of a sum.
  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    size_t only = dx.size();
    for (size_t k = 0; k < dx.size(); ++k)
      if (dx[k] != kNoNode) only = only == dx.size() ? k : SIZE_MAX - 1;
    if (only >= dx.size()) return Moving::tangent(g, id, dx);
    const Movement m = movement(g, id);
    const Piece& p = m.pieces[only];
    return slice_scatter(g, dx[only], g.dims(id), p.start, p.step);
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

Dims aligned_source(const Graph& g, NodeId broadcast) {
  const Dims &from = g.dims(g.input(broadcast, 0)), &to = g.dims(broadcast);
  Dims aligned(to.size() - from.size(), 1);
  aligned.insert(aligned.end(), from.begin(), from.end());
  return aligned;
}

bool differ_in_ones(const Dims& a, const Dims& b) {
  size_t i = 0, j = 0;
  while (true) {
    while (i < a.size() && a[i] == 1) ++i;
    while (j < b.size() && b[j] == 1) ++j;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (a[i++] != b[j++]) return false;
  }
}

Dims without_ones(const Dims& values, const Dims& from, const Dims& to, int64_t of_ones) {
  Dims moved;
  size_t i = 0;
  for (int64_t d : to) {
    while (d != 1 && from[i] == 1) ++i;
    moved.push_back(d == 1 ? of_ones : values[i++]);
  }
  return moved;
}

SPEC(Reshape, Reshaping)
SPEC(Transpose, Transposition)
SPEC(BroadcastTo, Broadcasting)
SPEC(Concat, Concatenation)

NodeId reshape(Graph& g, NodeId x, std::span<const int64_t> dims) {
  return make(g, Op::Reshape, {{&x, 1}, {}, {{}, Dims(dims.begin(), dims.end())}});
}

NodeId transpose(Graph& g, NodeId x, std::span<const int64_t> perm) {
  return make(g, Op::Transpose, {{&x, 1}, perm});
}

std::optional<Dims> permutation(const Graph& g, NodeId id) {
  if (g[id].op != Op::Transpose) return {};
  return Dims(g.attrs(id).begin(), g.attrs(id).end());
}

Dims inverse(std::span<const int64_t> perm) {
  Dims back(perm.size());
  for (size_t k = 0; k < perm.size(); ++k) back[perm[k]] = static_cast<int64_t>(k);
  return back;
}

NodeId move_axis(Graph& g, NodeId x, size_t from, size_t to) {
  Dims perm;
  for (size_t k = 0; k < g.dims(x).size(); ++k)
    if (k != from) perm.push_back(static_cast<int64_t>(k));
  perm.insert(perm.begin() + static_cast<int64_t>(to), static_cast<int64_t>(from));
  return transpose(g, x, perm);
}

NodeId join_axes(Graph& g, NodeId x, size_t k) {
  Dims to = g.dims(x);
  to[k] *= to[k + 1];
  to.erase(to.begin() + static_cast<ptrdiff_t>(k) + 1);
  return reshape(g, x, to);
}

NodeId broadcast_to(Graph& g, NodeId x, std::span<const int64_t> dims) {
  return make(g, Op::BroadcastTo, {{&x, 1}, {}, {{}, Dims(dims.begin(), dims.end())}});
}

NodeId spread(Graph& g, NodeId one, std::span<const int64_t> dims) {
  return g.intern(Op::BroadcastTo, g.dtype(one), dims, {&one, 1});
}

NodeId joined_rows(Graph& g, std::span<const NodeId> xs) {
  Dims dims = g.dims(xs[0]);
  for (NodeId x : xs.subspan(1)) dims[0] += g.dims(x)[0];
  return g.intern(Op::Concat, g.dtype(xs[0]), dims, xs, Dims{0});
}

bool is_broadcast(const Graph& g, NodeId id) { return g[id].op == Op::BroadcastTo; }

int64_t source_dim(const Dims& from, const Dims& to, size_t i) {
  const size_t missing = to.size() - from.size();
  return i < missing ? 1 : from[i - missing];
}

NodeId concat(Graph& g, std::span<const NodeId> xs, int axis) {
  const int64_t attributes[] = {axis};
  return make(g, Op::Concat, {xs, attributes});
}

NodeId transposed_matrix(const Graph& g, NodeId id) {
  const auto perm = permutation(g, id);
  if (!perm) return kNoNode;
  const auto r = static_cast<int64_t>(perm->size());
  for (int64_t k = 0; k < r - 2; ++k)
    if ((*perm)[k] != k) return kNoNode;
  return (*perm)[r - 2] == r - 1 && (*perm)[r - 1] == r - 2 ? g.input(id, 0) : kNoNode;
}

}  // namespace gradcell

// Elementwise rules come from ops.def; those of structured ops are written out here.
#include "ad/rules.h"

namespace gradcell::ad {

namespace {

constexpr struct {
} ZERO, NONDIFF;

struct Rule {  // converts a row's adjoint expression to a value
  Value value;
  Rule(Value v) : value(v) {}  // NOLINT: a row's text is the conversion
  Rule(decltype(ZERO)) {}      // NOLINT
};

Value elementwise(Graph& g, NodeId id, int k, Value dy) {
  Value in[3];
  for (size_t i = 0; i < g.inputs(id).size(); ++i)
    in[i] = wrap(g, g.input(id, static_cast<int>(i)));
  Value y = wrap(g, id);
  switch (g[id].op) {
#define UNARY(Name, fn, cls, forward, adjoint) \
  case Op::Name: {                             \
    [[maybe_unused]] Value x = in[0];          \
    return Rule(adjoint).value;                \
  }
#define BINARY(Name, fn, cls, forward, da, db)   \
  case Op::Name: {                               \
    [[maybe_unused]] Value a = in[0], b = in[1]; \
    if (k == 0) return Rule(da).value;           \
    return Rule(db).value;                       \
  }
#define COMPARE(Name, ...) \
  case Op::Name:           \
    return {};
#define PREDICATE(Name, ...) \
  case Op::Name:             \
    return {};
#define TERNARY(Name, fn, forward, da, db)                  \
  case Op::Name: {                                          \
    [[maybe_unused]] Value c = in[0], a = in[1], b = in[2]; \
    if (k == 0) return {};                                  \
    if (k == 1) return Rule(da).value;                      \
    return Rule(db).value;                                  \
  }
#define STRUCTURED(...)
#include "ir/ops.def"
#include "ir/undef.h"
    default:
      break;
  }
  (void)y;
  fail(ErrorKind::NotImplemented, info(g[id].op).name, " has no derivative rule");
}

Dims inverse(std::span<const int64_t> perm) {
  Dims p(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) p[perm[i]] = static_cast<int64_t>(i);
  return p;
}

/// Sums over the axes along which `from` was broadcast to dy's shape.
Value unbroadcast(Value dy, const Dims& from) {
  Graph& g = *dy.graph;
  Dims to = dy.dims(), axes;
  size_t missing = to.size() - from.size();
  for (size_t i = 0; i < to.size(); ++i)
    if (i < missing || (from[i - missing] == 1 && to[i] != 1))
      axes.push_back(static_cast<int64_t>(i));
  return wrap(g, reshape(g, reduce(g, Op::ReduceSum, dy.id, axes), from));
}

/// A reduced tensor, spread out again over the shape that was reduced.
Value spread(Value reduced, const Dims& full, std::span<const int64_t> axes) {
  Graph& g = *reduced.graph;
  Dims kept = full;
  for (int64_t axis : axes) kept[axis] = 1;
  return wrap(g, broadcast_to(g, reshape(g, reduced.id, kept), full));
}

Value matmul_adjoint(Graph& g, NodeId id, int k, Value dy) {
  NodeId a = g.input(id, 0), b = g.input(id, 1);
  bool ta = g.attrs(id)[0], tb = g.attrs(id)[1];
  NodeId d;
  if (k == 0)
    d = ta ? matmul(g, b, dy.id, tb, true) : matmul(g, dy.id, b, false, !tb);
  else
    d = tb ? matmul(g, dy.id, a, true, ta) : matmul(g, a, dy.id, !ta, false);
  return wrap(g, d);
}

/// 1 / (number of ties) where x equals its maximum (or minimum) y, else 0.
Value extremum_weights(Graph& g, NodeId id) {
  NodeId x = g.input(id, 0);
  Dims axes(g.attrs(id).begin(), g.attrs(id).end()), full = g.dims(x);
  Value hit = wrap(g, x) == spread(wrap(g, id), full, axes);
  Value mask = wrap(g, cast(g, hit.id, g.dtype(x)));
  Value ties = wrap(g, reduce(g, Op::ReduceSum, mask.id, axes));
  if (!is_floating(g.dtype(x)))
    return wrap(g, binary(g, Op::FloorDiv, mask.id, spread(ties, full, axes).id));
  return mask / spread(ties, full, axes);
}

Value structured(Graph& g, NodeId id, int k, Value dy) {
  NodeId x = g.inputs(id).empty() ? kNoNode : g.input(id, k);
  auto attrs = [&] { return Dims(g.attrs(id).begin(), g.attrs(id).end()); };
  auto dims = [&](NodeId n) { return Dims(g.dims(n)); };
  switch (g[id].op) {
    case Op::StopGradient:
      return {};
    case Op::Alias:
      return dy;
    case Op::Cast:
      return wrap(g, cast(g, dy.id, g.dtype(x)));
    case Op::Reshape:
      return wrap(g, reshape(g, dy.id, dims(x)));
    case Op::Transpose:
      return wrap(g, transpose(g, dy.id, inverse(attrs())));
    case Op::BroadcastTo:
      return unbroadcast(dy, dims(x));
    case Op::Slice: {
      Dims a = attrs();
      auto rank = static_cast<int64_t>(a.size() / 2);
      return wrap(g, slice_scatter(g, dy.id, dims(x), Dims(a.begin(), a.begin() + rank),
                                   Dims(a.begin() + rank, a.end())));
    }
    case Op::SliceScatter: {
      Dims a = attrs();
      auto rank = static_cast<int64_t>(a.size() / 2);
      return wrap(
          g, slice(g, dy.id,
                   {Dims(a.begin(), a.begin() + rank), dims(x), Dims(a.begin() + rank, a.end())}));
    }
    case Op::Concat: {
      int64_t axis = g.attrs(id)[0], at = 0;
      for (int i = 0; i < k; ++i) at += g.dims(g.input(id, i))[axis];
      Dims start(g.dims(id).size(), 0), step(g.dims(id).size(), 1);
      start[axis] = at;
      return wrap(g, slice(g, dy.id, {start, dims(x), step}));
    }
    case Op::MatMul:
      return matmul_adjoint(g, id, k, dy);
    case Op::ReduceSum:
      return spread(dy, dims(x), attrs());
    case Op::ReduceMax:
    case Op::ReduceMin:
      return extremum_weights(g, id) * spread(dy, dims(x), attrs());
    case Op::CumSum: {
      Dims a = attrs();
      return wrap(g, cumsum(g, dy.id, static_cast<int>(a[0]), a[1], !a[2]));
    }
    case Op::Gather: {
      int64_t axis = g.attrs(id)[0];
      return wrap(g,
                  scatter_add(g, g.input(id, 1), dy.id, static_cast<int>(axis), g.dims(x)[axis]));
    }
    case Op::ScatterAdd:
      return wrap(g, gather(g, dy.id, g.input(id, 0), static_cast<int>(g.attrs(id)[0])));
    default:
      break;
  }
  fail(ErrorKind::NotImplemented, info(g[id].op).name, " has no derivative rule");
}

Value linear_tangent(Graph& g, NodeId id, std::span<const Value> dx) {
  std::vector<NodeId> in;
  for (size_t i = 0; i < dx.size(); ++i) {
    NodeId x = g.input(id, static_cast<int>(i));
    if (!is_floating(g.dtype(x)))
      in.push_back(x);
    else
      in.push_back(dx[i] ? dx[i].id : zeros_like(wrap(g, x)).id);
  }
  if (g[id].op == Op::Alias) return wrap(g, in[0]);
  Dims attrs(g.attrs(id).begin(), g.attrs(id).end()), dims = g.dims(id);
  return wrap(g, g.intern(g[id].op, g.dtype(id), dims, in, attrs));
}

}  // namespace

Value adjoint_of_input(Graph& g, NodeId id, int k, Value dy) {
  return is_elementwise(g[id].op) ? elementwise(g, id, k, dy) : structured(g, id, k, dy);
}

Value tangent_of(Graph& g, NodeId id, std::span<const Value> dx) {
  switch (info(g[id].op).tangent) {
    case TangentClass::Source:
    case TangentClass::NonDiff:
      return {};
    case TangentClass::Linear:
      return linear_tangent(g, id, dx);
    case TangentClass::Elementwise: {
      Value sum;
      for (size_t i = 0; i < dx.size(); ++i)
        if (dx[i]) sum = accumulate(sum, elementwise(g, id, static_cast<int>(i), dx[i]));
      return sum;
    }
    case TangentClass::Bilinear: {
      Value sum;
      bool ta = g.attrs(id)[0], tb = g.attrs(id)[1];
      if (dx[0]) sum = wrap(g, matmul(g, dx[0].id, g.input(id, 1), ta, tb));
      if (dx[1]) sum = accumulate(sum, wrap(g, matmul(g, g.input(id, 0), dx[1].id, ta, tb)));
      return sum;
    }
    case TangentClass::Own: {
      Dims axes(g.attrs(id).begin(), g.attrs(id).end());
      Value moved = extremum_weights(g, id) * dx[0];
      return wrap(g, reduce(g, Op::ReduceSum, moved.id, axes));
    }
  }
  fail(ErrorKind::NotImplemented, info(g[id].op).name, " has no tangent rule");
}

}  // namespace gradcell::ad

// Elementwise nodes, sources and casts. Structured ops have a file each in csrc/ops.
#include "ir/builder.h"

#include <bit>
#include <cmath>

#include "ir/fold.h"

namespace gradcell {

namespace {

NodeId like(Graph& g, NodeId x, double value) { return constant(g, g.dtype(x), g.dims(x), value); }

bool is_value(const Graph& g, NodeId id, double v) {
  return is_constant(g, id) && constant_value(g, id) == v;
}

bool is_power_of_two(double v) {
  int e;
  return std::isnormal(v) && std::fabs(std::frexp(v, &e)) == 0.5 && e > -100 && e < 100;
}

DType result_dtype(const Graph& g, Op op, NodeId x) {
  OpKind k = info(op).kind;
  return k == OpKind::Compare || k == OpKind::Predicate ? DType::Bool : g.dtype(x);
}

NodeId elementwise(Graph& g, Op op, std::span<const NodeId> in) {
  NodeId model = in.back();
  DType out = op == Op::Select ? g.dtype(model) : result_dtype(g, op, model);
  Dims dims = g.dims(model);
  return g.intern(op, out, dims, in);
}

/// op(broadcast(a), broadcast(b), constants) is broadcast(op(a, b, constants)): less work.
NodeId below_broadcast(Graph& g, Op op, std::span<const NodeId> in) {
  const Dims* small = nullptr;
  for (NodeId id : in) {
    if (is_constant(g, id)) continue;
    if (g[id].op != Op::BroadcastTo) return kNoNode;
    const Dims& d = g.dims(g.input(id, 0));
    if (small && *small != d) return kNoNode;
    small = &d;
  }
  if (!small || element_count(*small) >= g.count(in[0])) return kNoNode;
  Dims inner = *small, outer = g.dims(in[0]);
  NodeId lowered[3];
  for (size_t i = 0; i < in.size(); ++i)
    lowered[i] = is_constant(g, in[i]) ? constant_bits(g, g.dtype(in[i]), inner, g[in[i]].bits)
                                       : g.input(in[i], 0);
  NodeId y = in.size() == 1   ? unary(g, op, lowered[0])
             : in.size() == 2 ? binary(g, op, lowered[0], lowered[1])
                              : select(g, lowered[0], lowered[1], lowered[2]);
  return broadcast_to(g, y, outer);
}

NodeId simplify_pow(Graph& g, NodeId a, NodeId b) {
  if (!is_constant(g, b)) return kNoNode;
  double n = constant_value(g, b);
  bool floating = is_floating(g.dtype(a));
  if (n == 0) return like(g, a, 1);
  if (n == 1) return a;
  if (n == 2) return unary(g, Op::Square, a);
  if (n == 3) return binary(g, Op::Mul, unary(g, Op::Square, a), a);
  if (n == 4) return unary(g, Op::Square, unary(g, Op::Square, a));
  if (n == 0.5 && floating) return unary(g, Op::Sqrt, a);
  if (n == -1 && floating) return unary(g, Op::Reciprocal, a);
  return kNoNode;
}

/// Only rewrites that are exact in IEEE arithmetic (pow's small powers and square root aside).
NodeId simplify(Graph& g, Op op, NodeId a, NodeId b) {
  bool floating = is_floating(g.dtype(a));
  switch (op) {
    case Op::Add:
      if (!floating && is_value(g, b, 0)) return a;
      if (!floating && is_value(g, a, 0)) return b;
      if (g[b].op == Op::Neg) return binary(g, Op::Sub, a, g.input(b, 0));
      if (g[a].op == Op::Neg) return binary(g, Op::Sub, b, g.input(a, 0));
      return kNoNode;
    case Op::Sub:
      if (is_value(g, b, 0) && !std::signbit(constant_value(g, b))) return a;
      if (g[b].op == Op::Neg) return binary(g, Op::Add, a, g.input(b, 0));
      return kNoNode;
    case Op::Mul:
      if (is_value(g, b, 1)) return a;
      if (is_value(g, a, 1)) return b;
      if (is_value(g, b, -1)) return unary(g, Op::Neg, a);
      if (is_value(g, a, -1)) return unary(g, Op::Neg, b);
      if (g[a].op == Op::Neg && g[b].op == Op::Neg)
        return binary(g, Op::Mul, g.input(a, 0), g.input(b, 0));
      if (g[a].op == Op::Neg) return unary(g, Op::Neg, binary(g, Op::Mul, g.input(a, 0), b));
      if (g[b].op == Op::Neg) return unary(g, Op::Neg, binary(g, Op::Mul, a, g.input(b, 0)));
      if (a == b) return unary(g, Op::Square, a);
      return kNoNode;
    case Op::Div:
      if (is_value(g, b, 1)) return a;
      if (is_constant(g, b) && is_power_of_two(constant_value(g, b))) {
        double r = 1 / constant_value(g, b);
        NodeId reciprocal = like(g, b, r);
        // Narrow types hold powers of two whose reciprocals they do not.
        if (constant_value(g, reciprocal) == r) return binary(g, Op::Mul, a, reciprocal);
      }
      return kNoNode;
    case Op::Pow:
      return simplify_pow(g, a, b);
    case Op::Maximum:
    case Op::Minimum:
    case Op::LogicalAnd:
    case Op::LogicalOr:
      return a == b ? a : kNoNode;
    default:
      return kNoNode;
  }
}

void check_same(const Graph& g, Op op, NodeId a, NodeId b) {
  if (g.dims(a) != g.dims(b))  // the texts are made only where they are needed
    fail(ErrorKind::Value, info(op).name, ": shapes ", to_string(g.dims(a)), " and ",
         to_string(g.dims(b)), " differ");
  require(g.dtype(a) == g.dtype(b), ErrorKind::Type, info(op).name, ": dtypes ", name(g.dtype(a)),
          " and ", name(g.dtype(b)), " differ");
}

}  // namespace

NodeId leaf(Graph& g, DType dtype, std::span<const int64_t> dims) {
  return g.unique(Op::Leaf, dtype, dims, {});
}

NodeId constant_bits(Graph& g, DType dtype, std::span<const int64_t> dims, uint64_t bits) {
  return g.intern(Op::Const, dtype, dims, {}, {}, bits);
}

NodeId constant(Graph& g, DType dtype, std::span<const int64_t> dims, double value) {
  return constant_bits(g, dtype, dims, to_bits(dtype, value));
}

bool is_constant(const Graph& g, NodeId id) { return g[id].op == Op::Const; }

double constant_value(const Graph& g, NodeId id) {
  return is_floating(g.dtype(id)) ? std::bit_cast<double>(g[id].bits)
                                  : static_cast<double>(std::bit_cast<int64_t>(g[id].bits));
}

NodeId unary(Graph& g, Op op, NodeId x) {
  DType dtype = g.dtype(x);
  const OpInfo& row = info(op);
  require(row.cls != OpClass::Float || is_floating(dtype), ErrorKind::Type, row.name,
          " needs a floating dtype, got ", name(dtype));
  require(row.cls != OpClass::Bool || dtype == DType::Bool, ErrorKind::Type, row.name,
          " needs bool, got ", name(dtype));
  DType out = result_dtype(g, op, x);
  if (is_constant(g, x)) {
    uint64_t bits[] = {g[x].bits};
    return constant_bits(g, out, Dims(g.dims(x)), fold(op, dtype, out, bits));
  }
  if ((op == Op::Neg || op == Op::LogicalNot) && g[x].op == op) return g.input(x, 0);
  if (!is_floating(dtype) && (op == Op::Floor || op == Op::Ceil || op == Op::Round)) return x;
  NodeId in[] = {x};
  NodeId lower = below_broadcast(g, op, in);
  return lower != kNoNode ? lower : elementwise(g, op, in);
}

NodeId binary(Graph& g, Op op, NodeId a, NodeId b) {
  check_same(g, op, a, b);
  const OpInfo& row = info(op);
  DType dtype = g.dtype(a);
  require(row.cls != OpClass::Float || is_floating(dtype), ErrorKind::Type, row.name,
          " needs a floating dtype, got ", name(dtype));
  require(row.cls != OpClass::Bool || dtype == DType::Bool, ErrorKind::Type, row.name,
          " needs bool, got ", name(dtype));
  DType out = result_dtype(g, op, a);
  if (is_constant(g, a) && is_constant(g, b)) {
    uint64_t bits[] = {g[a].bits, g[b].bits};
    return constant_bits(g, out, Dims(g.dims(a)), fold(op, dtype, out, bits));
  }
  NodeId simple = simplify(g, op, a, b);
  if (simple != kNoNode) return simple;
  if (commutes(op) && (is_constant(g, a) || (!is_constant(g, b) && a > b))) std::swap(a, b);
  NodeId in[] = {a, b};
  NodeId lower = below_broadcast(g, op, in);
  return lower != kNoNode ? lower : elementwise(g, op, in);
}

NodeId select(Graph& g, NodeId c, NodeId a, NodeId b) {
  check_same(g, Op::Select, a, b);
  require(g.dtype(c) == DType::Bool, ErrorKind::Type, "Select: the condition must be bool, got ",
          name(g.dtype(c)));
  if (g.dims(c) != g.dims(a))
    fail(ErrorKind::Value, "Select: condition of shape ", to_string(g.dims(c)),
         " and values of shape ", to_string(g.dims(a)), " differ");
  if (is_constant(g, c)) return g[c].bits ? a : b;
  if (g[a].op == Op::Select && g.input(a, 0) == c) a = g.input(a, 1);
  if (g[b].op == Op::Select && g.input(b, 0) == c) b = g.input(b, 2);
  if (a == b) return a;
  NodeId in[] = {c, a, b};
  NodeId lower = below_broadcast(g, Op::Select, in);
  return lower != kNoNode ? lower : elementwise(g, Op::Select, in);
}

NodeId alias(Graph& g, NodeId x) {
  NodeId in[] = {x};
  return g.unique(Op::Alias, g.dtype(x), Dims(g.dims(x)), in);
}

NodeId stop_gradient(Graph& g, NodeId x) {
  if (is_constant(g, x) || g[x].op == Op::StopGradient) return x;
  NodeId in[] = {x};
  return g.intern(Op::StopGradient, g.dtype(x), Dims(g.dims(x)), in);
}

NodeId cast(Graph& g, NodeId x, DType dtype) {
  DType from = g.dtype(x);
  if (from == dtype) return x;
  Dims dims = g.dims(x);
  if (is_constant(g, x)) return constant_bits(g, dtype, dims, convert_bits(from, dtype, g[x].bits));
  if (g[x].op == Op::BroadcastTo) return broadcast_to(g, cast(g, g.input(x, 0), dtype), dims);
  NodeId in[] = {x};
  return g.intern(Op::Cast, dtype, dims, in);
}

NodeId iota(Graph& g, DType dtype, std::span<const int64_t> dims, int axis) {
  if (dims.empty()) return constant(g, dtype, dims, 0);
  require(axis >= 0 && axis < static_cast<int>(dims.size()), ErrorKind::Value, "Iota: axis ", axis,
          " is out of range for ", dims.size(), " dimensions");
  int64_t attrs[] = {axis};
  return g.intern(Op::Iota, dtype, dims, {}, attrs);
}

NodeId random_uniform(Graph& g, NodeId state, std::span<const int64_t> dims) {
  NodeId in[] = {state};
  return g.intern(Op::RandomUniform, DType::Float32, dims, in);
}

NodeId rebuild(Graph& to, const Graph& from, NodeId id, std::span<const NodeId> inputs) {
  const Node& n = from[id];
  to.location = n.location;
  to.order = n.order;
  if (n.op == Op::Leaf || n.op == Op::Alias) return to.unique(n.op, n.dtype, from.dims(id), inputs);
  return to.intern(n.op, n.dtype, from.dims(id), inputs, from.attrs(id), n.bits);
}

}  // namespace gradcell

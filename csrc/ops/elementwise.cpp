#include "ops/elementwise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "ir/fold.h"
#include "ops/complex.h"
#include "ops/families.h"
#include "ops/identity.h"
#include "ops/moving/movement.h"
#include "ops/value_of.h"
#include "ops/written_normal.h"

namespace gradcell {

// uint64. Engines compute it as int64, which is right for all that is defined modulo 2^64: sums,
// products, equality, bits. What depends on how large a number is (order, quotients, floats) is
// made of nodes of int64 as it is recorded, so planners and engines need to know nothing of it.

namespace symbolic {

namespace {

constexpr double kHighest = 0x1p63;  // what the highest bit stands for

Value as(DType t, Value x) { return {x.graph, cast(*x.graph, x.id, t)}; }
Value bits(Value x) { return as(DType::Int64, x); }
Value integer(Value condition) { return as(DType::Int64, condition); }

/// int64 in the order of the uint64 with these bits: the highest one is exchanged. And back.
Value ordered(Value x) { return bits(x) + -kHighest; }
Value unordered(Value x) { return as(DType::UInt64, x + -kHighest); }

/// Half of the uint64 with these bits, rounded down.
Value half_of(Value x) {
  return floor_div(x, 2.0) + where(x < 0.0, full_like(x, -kHighest), zeros_like(x));
}

/// a / b of the bits, rounded down. (H. S. Warren, Hacker's Delight, 2nd edition, 9-3: half of a is
/// positive, and twice its quotient is a / b or one below.)
Value quotient(Value a, Value b) {
  const Value near = 2.0 * floor_div(half_of(a), b);
  const Value once = integer(ordered(a) >= ordered(b));  // b is 2^63 or more
  const Value rest = a - near * b;
  return where(b < 0.0, once, near + integer(ordered(rest) >= ordered(b)));
}

/// a^b of the bits. From 2^62 on an exponent is as good as any other with the same lower 62 bits:
/// a^(2^62) is 1, or 0 if a is even.
Value power(Value a, Value b) { return pow(a, where(b < 0.0, mod(b, 0x1p62) + 0x1p62, b)); }

Value to_float(Value x, DType t) {
  const Value n = bits(x), half = half_of(n), last = mod(half, 2.0);
  // (Of the bit that halving drops only whether it is set matters to rounding.)
  const Value odd = half - last + maximum(last, mod(n, 2.0));
  return where(n < 0.0, 2.0 * as(t, odd), as(t, n));
}

Value from_float(Value from) {
  const Value x = as(wide(from.dtype()), from);  // halves do not hold 2^63
  const Value high = x >= kHighest;
  const Value low = where(high, x - kHighest, x);
  const Value n = bits(low);
  return as(DType::UInt64, where(high, n + -kHighest, n));
}

}  // namespace

}  // namespace symbolic

namespace {

/// Whether the row of the op table is right modulo 2^64.
bool is_modular(Op op) {
  static constexpr Op kModular[] = {Op::Neg,   Op::Square, Op::Add,      Op::Sub,
                                    Op::Mul,   Op::Equal,  Op::NotEqual, Op::Select,
                                    Op::IsNan, Op::IsInf,  Op::IsFinite, Op::IsNegInf};
  return std::ranges::find(kModular, op) != std::end(kModular);
}

// The other rows of numbers, on uint64.
NodeId uint64_unary(Graph& g, Op op, NodeId x) {
  using namespace symbolic;  // NOLINT: the functions above
  if (op == Op::Sign) return as(DType::UInt64, wrap(g, x) != 0.0).id;
  return x;  // Abs, ReLU and what rounds
}

NodeId uint64_binary(Graph& g, Op op, NodeId x, NodeId y) {
  using namespace symbolic;  // NOLINT: the functions above
  const Value a = wrap(g, x), b = wrap(g, y);
  switch (op) {
    case Op::Pow:
      return as(DType::UInt64, power(bits(a), bits(b))).id;
    case Op::FloorDiv:
      return as(DType::UInt64, quotient(bits(a), bits(b))).id;
    case Op::Mod:
    case Op::Fmod:
      return (a - as(DType::UInt64, quotient(bits(a), bits(b))) * b).id;
    default: {
      const Value found{&g, binary(g, op, ordered(a).id, ordered(b).id)};
      return (info(op).kind == OpKind::Compare ? found : unordered(found)).id;
    }
  }
}

}  // namespace

NodeId uint64_cast(Graph& g, NodeId x, DType to) {
  using namespace symbolic;  // NOLINT: the functions above
  return (to == DType::UInt64 ? from_float(wrap(g, x)) : to_float(wrap(g, x), to)).id;
}

NodeId make_in_order(Graph& g, const Spec& s, const Draft& d) {
  std::vector<NodeId> in(d.inputs.begin(), d.inputs.end());
  for (NodeId& x : in)
    if (g.dtype(x) == DType::UInt64) x = symbolic::ordered(symbolic::wrap(g, x)).id;
  const bool back = s.infer(g, d).dtype == DType::UInt64;
  const NodeId y = make(g, s.op, {in, d.attributes, d.asked});
  return back ? symbolic::unordered(symbolic::wrap(g, y)).id : y;
}

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

/// The row's op on one, two or three inputs.
NodeId row(Graph& g, Op op, std::span<const NodeId> in) {
  return in.size() == 1   ? unary(g, op, in[0])
         : in.size() == 2 ? binary(g, op, in[0], in[1])
                          : select(g, in[0], in[1], in[2]);
}

/// op(broadcast(a), broadcast(b), constants) is broadcast(op(a, b, constants)): less work.
NodeId below_broadcast(Graph& g, Op op, std::span<const NodeId> in) {
  const Dims* small = nullptr;
  for (NodeId id : in) {
    if (is_constant(g, id)) continue;
    if (!is_broadcast(g, id)) return kNoNode;
    const Dims& d = g.dims(g.input(id, 0));
    if (small && *small != d) return kNoNode;
    small = &d;
  }
  if (!small || element_count(*small) >= g.count(in[0])) return kNoNode;
  const Dims &inner = *small, &outer = g.dims(in[0]);
  NodeId lowered[3];
  for (size_t i = 0; i < in.size(); ++i)
    lowered[i] = is_constant(g, in[i]) ? constant_bits(g, g.dtype(in[i]), inner, g[in[i]].bits)
                                       : g.input(in[i], 0);
  return broadcast_to(g, row(g, op, {lowered, in.size()}), outer);
}

NodeId lowered_or_made(Graph& g, Op op, std::span<const NodeId> in) {
  const NodeId lower = below_broadcast(g, op, in), model = in.back();
  return lower != kNoNode ? lower : g.intern(op, result_dtype(g, op, model), g.dims(model), in);
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

/// Only rewrites that are exact in IEEE arithmetic (pow's small powers and square root aside), or
/// more exact than what was written (ndtr).
NodeId simplify(Graph& g, Op op, NodeId a, NodeId b) {
  bool floating = is_floating(g.dtype(a));
  switch (op) {
    case Op::Add:
      if (!floating && is_value(g, b, 0)) return a;
      if (!floating && is_value(g, a, 0)) return b;
      if (g[b].op == Op::Neg) return binary(g, Op::Sub, a, g.input(b, 0));
      if (g[a].op == Op::Neg) return binary(g, Op::Sub, b, g.input(a, 0));
      return sum_by_normal(g, op, a, b);
    case Op::Sub:
      if (is_value(g, b, 0) && !std::signbit(constant_value(g, b))) return a;
      if (g[b].op == Op::Neg) return binary(g, Op::Add, a, g.input(b, 0));
      return sum_by_normal(g, op, a, b);
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
      return product_by_normal(g, a, b);
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

/// The square of a length, without the root.
NodeId square_of(Graph& g, NodeId length) {
  const Function f = function_of(g, length);
  if (f == Function::Root) return g.input(length, 1);
  if (f != Function::Hypot) return kNoNode;
  return binary(g, Op::Add, unary(g, Op::Square, g.input(length, 1)),
                unary(g, Op::Square, g.input(length, 2)));
}

void check_same(const Graph& g, Op op, NodeId a, NodeId b) {
  if (g.dims(a) != g.dims(b))  // the texts are made only where they are needed
    fail(ErrorKind::Value, info(op).name, ": shapes ", to_string(g.dims(a)), " and ",
         to_string(g.dims(b)), " differ");
  check_same_dtype(info(op).name, g.dtype(a), g.dtype(b));
}

void check_class(Op op, DType t) {
  const OpInfo& row = info(op);
  if (is_floating(t) && row.cls != OpClass::Bool) return;
  require(row.cls != OpClass::Float || is_floating(t), ErrorKind::Type, row.name,
          " needs a floating dtype, got ", name(t));
  require(row.cls != OpClass::Bool || t == DType::Bool, ErrorKind::Type, row.name,
          " needs bool, got ", name(t));
}

void check_condition(const Graph& g, NodeId c, NodeId values) {
  require(g.dtype(c) == DType::Bool, ErrorKind::Type, "Select: the condition must be bool, got ",
          name(g.dtype(c)));
  if (g.dims(c) != g.dims(values))
    fail(ErrorKind::Value, "Select: condition of shape ", to_string(g.dims(c)),
         " and values of shape ", to_string(g.dims(values)), " differ");
}

}  // namespace

NodeId unary(Graph& g, Op op, NodeId x) {
  DType dtype = g.dtype(x);
  if (is_complex(dtype)) return complex_unary(g, op, x);
  check_class(op, dtype);
  if (dtype == DType::UInt64 && !is_modular(op)) return uint64_unary(g, op, x);
  DType out = result_dtype(g, op, x);
  if (is_constant(g, x)) {
    uint64_t bits[] = {g[x].bits};
    return constant_bits(g, out, g.dims(x), fold(op, dtype, out, bits));
  }
  if ((op == Op::Neg || op == Op::LogicalNot) && g[x].op == op) return g.input(x, 0);
  if (op == Op::Square)
    if (const NodeId square = square_of(g, x); square != kNoNode) return square;
  if (!is_floating(dtype) && (op == Op::Floor || op == Op::Ceil || op == Op::Round)) return x;
  return lowered_or_made(g, op, {&x, 1});
}

NodeId binary(Graph& g, Op op, NodeId a, NodeId b) {
  check_same(g, op, a, b);
  DType dtype = g.dtype(a);
  if (is_complex(dtype)) return complex_binary(g, op, a, b);
  check_class(op, dtype);
  if (dtype == DType::UInt64 && !is_modular(op)) return uint64_binary(g, op, a, b);
  DType out = result_dtype(g, op, a);
  if (is_constant(g, a) && is_constant(g, b)) {
    uint64_t bits[] = {g[a].bits, g[b].bits};
    return constant_bits(g, out, g.dims(a), fold(op, dtype, out, bits));
  }
  NodeId simple = simplify(g, op, a, b);
  if (simple != kNoNode) return simple;
  if (commutes(op) && (is_constant(g, a) || (!is_constant(g, b) && a > b))) std::swap(a, b);
  const NodeId in[] = {a, b};
  return lowered_or_made(g, op, in);
}

NodeId select(Graph& g, NodeId c, NodeId a, NodeId b) {
  check_same(g, Op::Select, a, b);
  check_condition(g, c, a);
  if (is_complex(g.dtype(a))) return complex_select(g, c, a, b);
  if (is_constant(g, c)) return g[c].bits ? a : b;
  if (g[a].op == Op::Select && g.input(a, 0) == c) a = g.input(a, 1);
  if (g[b].op == Op::Select && g.input(b, 0) == c) b = g.input(b, 2);
  if (a == b) return a;
  const NodeId in[] = {c, a, b};
  return lowered_or_made(g, Op::Select, in);
}

NodeId accumulate(Graph& g, NodeId a, NodeId b) {
  if (a == kNoNode || b == kNoNode) return a == kNoNode ? b : a;
  // What is negated and placed among zeros is placed and taken away. (A zero may get another sign.)
  const auto negated = [&](NodeId x) {
    const auto p = placement(g, x);
    return p && g[p->from].op == Op::Neg;
  };
  if (negated(a) && !negated(b)) std::swap(a, b);
  if (!negated(b)) return binary(g, Op::Add, a, b);
  const Placement p = *placement(g, b);
  const Dims dims = g.dims(b);
  return binary(g, Op::Sub, a, slice_scatter(g, g.input(p.from, 0), dims, p.start, p.step));
}

// Derivatives
// --------------------------------------------------------------------------------------

namespace symbolic {

namespace {

constexpr struct {
} ZERO, NONDIFF;

struct Rule {  // converts a row's adjoint expression to a value
  Value value;
  Rule(Value v) : value(v) {}  // NOLINT: a row's text is the conversion
  Rule(decltype(ZERO)) {}      // NOLINT
};

Value adjoint_of(Graph& g, NodeId id, int k, Value dy) {
  Value in[3];
  for (size_t i = 0; i < g.inputs(id).size(); ++i) in[i] = wrap(g, g.input(id, narrow<int>(i)));
  Value y = wrap(g, id);
  switch (g[id].op) {
#define UNARY(Name, fn, cls, cost, forward, adjoint) \
  case Op::Name: {                                   \
    [[maybe_unused]] Value x = in[0];                \
    return Rule(adjoint).value;                      \
  }
#define BINARY(Name, fn, cls, cost, forward, da, db) \
  case Op::Name: {                                   \
    [[maybe_unused]] Value a = in[0], b = in[1];     \
    if (k == 0) return Rule(da).value;               \
    return Rule(db).value;                           \
  }
#define TERNARY(Name, fn, forward, da, db)                  \
  case Op::Name: {                                          \
    [[maybe_unused]] Value c = in[0], a = in[1], b = in[2]; \
    if (k == 0) return {};                                  \
    if (k == 1) return Rule(da).value;                      \
    return Rule(db).value;                                  \
  }
#include "ir/rows.h"
    default:
      break;
  }
  (void)y;
  fail(ErrorKind::NotImplemented, info(g[id].op).name, " has no derivative rule");
}

}  // namespace

}  // namespace symbolic

namespace {

class Row : public Spec {
 public:
  explicit Row(Op op) : Spec(op, Form::Elementwise, {}, {}) {}

  size_t input_count() const override {
    switch (info(op).kind) {
      case OpKind::Ternary:
        return 3;
      case OpKind::Binary:
      case OpKind::Compare:
        return 2;
      default:
        return 1;
    }
  }

  Type infer(const Graph& g, const Draft& d) const override {
    const size_t n = d.inputs.size();
    const NodeId model = d.inputs.back();
    for (size_t k = 0; k + 1 < n; ++k) {
      const NodeId x = d.inputs[k];
      if (n == 3 && k == 0)
        check_condition(g, x, model);
      else
        check_same(g, op, x, model);
    }
    check_class(op, g.dtype(model));
    require(g.dtype(model) != DType::UInt64 || is_modular(op), ErrorKind::Runtime, info(op).name,
            ": a node of uint64");
    return {result_dtype(g, op, model), g.dims(model)};
  }
  NodeId adjoint(Graph& g, NodeId id, int k, NodeId dy) const override {
    return symbolic::adjoint_of(g, id, k, symbolic::wrap(g, dy)).id;
  }
  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    if (dx.size() == 3 && dx[1] != kNoNode && dx[2] != kNoNode)
      return select(g, g.input(id, 0), dx[1], dx[2]);
    NodeId sum = kNoNode;
    for (size_t i = 0; i < dx.size(); ++i)
      if (dx[i] != kNoNode) sum = accumulate(g, sum, adjoint(g, id, narrow<int>(i), dx[i]));
    return sum;
  }
  NodeId batch(Graph& g, NodeId, const Batch& b) const override {
    NodeId in[3];
    for (size_t k = 0; k < b.inputs.size(); ++k) in[k] = over_batch(g, b, k);
    return row(g, op, {in, b.inputs.size()});
  }
  /// Those that the rules of arithmetic on series are about; the others follow by their tangents,
  /// which are made of these and of one another.
  Law law() const override {
    switch (op) {
      case Op::Neg:
      case Op::Add:
      case Op::Sub:
      case Op::Select:
        return Law::Linear;
      case Op::Mul:
      case Op::Square:
        return Law::Bilinear;
      case Op::Div:
        return Law::Quotient;
      default:
        return differentiable() ? Law::Smooth : Law::Constant;
    }
  }
  bool computes_with(int k) const override { return k > 0 || info(op).kind != OpKind::Ternary; }
  bool differentiable() const override { return info(op).differentiable; }
};

}  // namespace

const Spec& elementwise_spec(Op op) {
  static const auto rows = [] {
    std::vector<std::unique_ptr<const Row>> all;
    for (uint16_t i = 0; i < narrow<uint16_t>(Op::Count); ++i)
      all.push_back(std::make_unique<const Row>(static_cast<Op>(i)));
    return all;
  }();
  return *rows[static_cast<size_t>(op)];
}

}  // namespace gradcell

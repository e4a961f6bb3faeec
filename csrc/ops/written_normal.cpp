#include "ops/written_normal.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/element.h"

namespace gradcell {

namespace {

/// How far factors are looked for in a product of products.
constexpr int kDeep = 3;

NodeId times(Graph& g, NodeId x, double k) {
  return binary(g, Op::Mul, x, constant(g, g.dtype(x), Dims(g.dims(x)), k));
}

/// 2 k x for a number k of the graph, if that has no infinite factor.
NodeId times_twice(Graph& g, NodeId x, NodeId k) {
  const NodeId twice = constant(g, g.dtype(x), Dims(g.dims(x)), 2 * constant_value(g, k));
  return std::isfinite(constant_value(g, twice)) ? binary(g, Op::Mul, x, twice) : kNoNode;
}

/// Twice the difference of 1 and the next number.
double rounding(DType t) {
  int digits = 0;
  by_dtype(t, [&]<class S>() {
    if constexpr (kNarrowFloat<S>)
      digits = S::kDigits;
    else
      digits = std::numeric_limits<S>::digits;
  });
  return std::ldexp(1, 2 - digits);
}

/// ndtr(sqrt(2) u), where u is a number's multiple: what else costs no operation less.
NodeId normal(Graph& g, NodeId u, double sign) {
  double by = sign * std::numbers::sqrt2;
  NodeId x = u;
  bool scaled = false;
  for (int i = 0; i < kDeep; ++i) {
    const Op op = g[x].op;
    if (op == Op::Neg) {
      by = -by;
    } else if ((op == Op::Mul || op == Op::Div) && is_constant(g, g.input(x, 1))) {
      const double k = constant_value(g, g.input(x, 1));
      by = op == Op::Mul ? by * k : by / k;
      scaled = true;
    } else {
      break;
    }
    x = g.input(x, 0);
  }
  if (!scaled || !std::isnormal(by)) return kNoNode;
  if (std::fabs(std::fabs(by) - 1) <= rounding(g.dtype(x))) by = std::copysign(1, by);
  return unary(g, Op::Ndtr, times(g, x, by));
}

/// Half of 1 + erf, 1 - erf or erfc, by ndtr.
NodeId half_of_function(Graph& g, NodeId id) {
  const Op op = g[id].op;
  if (op == Op::Erfc) return normal(g, g.input(id, 0), -1);
  if (op != Op::Add && op != Op::Sub) return kNoNode;
  const NodeId one = g.input(id, op == Op::Add ? 1 : 0), erf = g.input(id, op == Op::Add ? 0 : 1);
  if (g[erf].op != Op::Erf || !is_constant(g, one) || constant_value(g, one) != 1) return kNoNode;
  return normal(g, g.input(erf, 0), op == Op::Add ? 1 : -1);
}

/// The product `id` with `change` of one of its factors.
template <class Change>
NodeId with_factor(Graph& g, NodeId id, int depth, Change change) {
  const NodeId changed = change(id);
  if (changed != kNoNode || g[id].op != Op::Mul || depth == 0) return changed;
  const NodeId a = g.input(id, 0), b = g.input(id, 1);
  if (const NodeId c = with_factor(g, a, depth - 1, change); c != kNoNode)
    return binary(g, Op::Mul, c, b);
  if (const NodeId c = with_factor(g, b, depth - 1, change); c != kNoNode)
    return binary(g, Op::Mul, a, c);
  return kNoNode;
}

/// Half of a product that has such a function as a factor.
NodeId halved(Graph& g, NodeId id) {
  return with_factor(g, id, kDeep, [&](NodeId f) { return half_of_function(g, f); });
}

/// Twice a product that has a number as a factor.
NodeId doubled(Graph& g, NodeId id) {
  return with_factor(g, id, kDeep, [&](NodeId f) {
    if (g[f].op != Op::Mul || !is_constant(g, g.input(f, 1))) return kNoNode;
    return times_twice(g, g.input(f, 0), g.input(f, 1));
  });
}

}  // namespace

NodeId product_by_normal(Graph& g, NodeId a, NodeId b) {
  if (is_constant(g, a)) std::swap(a, b);
  if (is_constant(g, b)) {
    const NodeId half = halved(g, a);
    return half == kNoNode ? kNoNode : times_twice(g, half, b);
  }
  for (const auto& [f, rest] : {std::pair(a, b), std::pair(b, a)}) {
    const NodeId half = half_of_function(g, f);
    if (half == kNoNode) continue;
    const NodeId twice = doubled(g, rest);
    return twice == kNoNode ? kNoNode : binary(g, Op::Mul, twice, half);
  }
  return kNoNode;
}

NodeId sum_by_normal(Graph& g, Op op, NodeId a, NodeId b) {
  if (is_constant(g, a))
    std::swap(a, b);
  else if (op == Op::Sub)
    return kNoNode;
  if (!is_constant(g, b) || g[a].op != Op::Mul) return kNoNode;
  const NodeId erf = g.input(a, 0), k = g.input(a, 1);
  if (g[erf].op != Op::Erf || !is_constant(g, k) || constant_value(g, k) != constant_value(g, b))
    return kNoNode;
  const NodeId half = normal(g, g.input(erf, 0), op == Op::Add ? 1 : -1);
  return half == kNoNode ? kNoNode : times_twice(g, half, b);
}

}  // namespace gradcell

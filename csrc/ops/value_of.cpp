#include "ops/value_of.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/families.h"
#include "ops/identity.h"

namespace gradcell {

namespace symbolic {

namespace {

Value in(DType t, Value x) { return {x.graph, cast(*x.graph, x.id, t)}; }
Value zero_where(Value c, Value x) { return where(c, zeros_like(x), x); }
Value both(Value a, Value b) { return logical_and(a, b); }
Value either(Value a, Value b) { return logical_or(a, b); }
/// x / y, 0 where y is 0.
Value over(Value x, Value y) {
  const Value none = y == 0.0;
  return zero_where(none, x / where(none, ones_like(y), y));
}

/// b (b - 1) ... (b - m + 1), or 1 for m = 0.
double falling(double b, int m) {
  double product = 1;
  for (int i = 0; i < m; ++i) product *= b - i;
  return product;
}

/// The n-th derivative by b of (b (b - 1) ... (b - m + 1)) a^b, over a^(b - m): a polynomial in
/// log(a) whose coefficients are polynomials in b.
Value polynomial(Value b, Value log_a, int m, int n) {
  std::vector<Value> c(static_cast<size_t>(n) + 1);  // the product's Taylor series at b; null: 0
  c[0] = b;
  if (n > 0) c[1] = ones_like(b);
  for (int i = 1; i < m; ++i)
    for (auto j = static_cast<size_t>(n) + 1; j-- > 0;) {
      if (!c[j]) continue;
      if (j < static_cast<size_t>(n)) c[j + 1] = c[j + 1] ? c[j + 1] + c[j] : c[j];
      c[j] = c[j] * (b - double(i));
    }
  Value sum = c[0];
  double weight = 1;
  for (int j = 1; j <= n; ++j) {
    weight *= n - j + 1;
    sum = zero_where(both(sum == 0.0, isinf(log_a)), sum * log_a);
    if (const Value next = c[static_cast<size_t>(j)]) sum = sum + next * weight;
  }
  return sum;
}

Value power_value(Value a, Value b, int m, int n) {
  const Value y = pow(a, b - double(m));
  if (m == 0) {
    if (n == 0) return y;
    // 0^b is 0 for all b > 0, and so are its derivatives by b; they are taken to be at b = 0 too.
    const Value log_a = log(a);
    Value logs = log_a;
    for (int i = 1; i < n; ++i) logs = logs * log_a;
    const Value plain = y * logs;
    return zero_where(y == 0.0, where(a == 0.0, zero_where(b == 0.0, plain), plain));
  }
  const Value factor = polynomial(b, n > 0 ? log(a) : b, m, n);
  if (n == 0) return zero_where(factor == 0.0, factor * y);
  return zero_where(either(factor == 0.0, y == 0.0), factor * y);
}

Value hypot_value(Value a, Value b) {
  const DType t = a.dtype();
  const Value endless = full_like(a, std::numeric_limits<double>::infinity());
  const Value x = in(wide(t), a), y = in(wide(t), b), by = scale(x, y), u = x * by, v = y * by;
  return where(either(isinf(a), isinf(b)), endless, in(t, sqrt(u * u + v * v) / by));
}

/// a and b, a number by which their squares are finite, and the sum of these. The nodes are such
/// that rows of formulas.def make one instruction of the number, and one of what the sum goes into.
struct Scaled {
  Value a, b, by, squares;
  Scaled(Value x, Value y) : a(in(wide(x.dtype()), x)), b(in(wide(y.dtype()), y)) {
    const bool wide = a.dtype() == DType::Float64;
    const double least = wide ? 0x1p-1022 : 0x1p-126;
    const double most =
        wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
    const auto [u, v] = std::minmax(a, b, [](Value p, Value q) { return p.id < q.id; });
    const Value size = maximum(maximum(abs(u), abs(v)), full_like(u, least));
    by = 2.0 / minimum(size, full_like(u, most));  // (so that the inverse sum is below 1)
    const Value s = u * by, t = v * by;
    squares = s * s + t * t;
  }
};

Value direction_value(Value a, Value b) {
  const Scaled s(a, b);
  const Value rest = rsqrt(s.squares), some = minimum(rest, full_like(rest, 0x1p64));  // inf at 0
  return where(both(isinf(a), isfinite(b)), sign(a), in(a.dtype(), s.a * some * s.by));
}

Value xlogy_value(Value a, Value b) {
  // elsewhere 0 log(b) is 0 by itself
  const Value finite = both(b > 0.0, isfinite(b));
  const Value bare = both(a == 0.0, logical_not(either(finite, isnan(b))));
  return zero_where(bare, a * log(b));
}

Value quotient_value(Value a, Value b, int n) {
  Value y = a;
  for (int i = 0; i < n; ++i) y = y / b;
  return zero_where(both(a == 0.0, b == 0.0), y);
}

Value unmarked(Function f, Value a, Value b, int m, int n) {
  switch (f) {
    case Function::Power:
      return power_value(a, b, m, n);
    case Function::Hypot:
      return hypot_value(a, b);
    case Function::Direction:
      return direction_value(a, b);
    case Function::Turn: {
      const Scaled s(a, b);
      return in(a.dtype(), s.b * (1.0 / s.squares) * s.by * s.by);
    }
    case Function::Slant: {
      const Value x = in(wide(a.dtype()), a), size = abs(x);
      const double far = x.dtype() == DType::Float64 ? 0x1p500 : 0x1p60;
      return in(a.dtype(), where(size > far, 1.0 / size, rsqrt(x * x + 1.0)));
    }
    case Function::Root:
      return sqrt(a);
    case Function::XLogY:
      return xlogy_value(a, b);
    case Function::Quotient:
      return quotient_value(a, b, n);
    case Function::LowerGamma:
      return zeros_like(a);
    case Function::Complement:
      return (1.0 - a) * (1.0 + a);
    case Function::Difference:
      return (a - b) * (a + b);
    case Function::Bell:
      return 1.0 / (1.0 + a * a);
    case Function::Count:
      break;
  }
  fail(ErrorKind::Runtime, "ValueOf: no function");
}

/// The derivative by a, or by b.
Value slope(Function f, Value a, Value b, int m, int n, bool by_b) {
  switch (f) {
    case Function::Power:
      return power(a, b, m + !by_b, n + by_b);
    case Function::Hypot:
      return by_b ? direction(b, a) : direction(a, b);
    case Function::Direction: {
      const Value other = direction(b, a), length = hypot(a, b);
      return by_b ? over(-(direction(a, b) * other), length) : over(other * other, length);
    }
    case Function::Turn: {
      const Value u = direction(a, b), v = direction(b, a), length = hypot(a, b);
      return (by_b ? difference(u, v) : -2.0 * (u * v)) / length / length;
    }
    case Function::Slant: {
      const Value y = slant(a);
      return -((a * y) * y) * y;
    }
    case Function::Root:
      return over(full_like(a, 0.5), value_of(Function::Root, a, {}));
    case Function::XLogY:
      return by_b ? value_of(Function::Quotient, a, b, 0, 1) : log(b);
    case Function::Quotient:
      return by_b ? value_of(f, a, b, 0, n + 1) * -double(n) : pow(b, -double(n));
    case Function::LowerGamma:
      return by_b ? value_of(f, a, b, 0, n + 1) : exp(-a) * power(a, b, 0, n);
    case Function::Complement:
      return -2.0 * a;
    case Function::Difference:
      return by_b ? -2.0 * b : 2.0 * a;
    case Function::Bell:
      return (-2.0 * (a * bell(a))) * bell(a);
    case Function::Count:
      break;
  }
  fail(ErrorKind::Runtime, "ValueOf: no function");
}

/// Powers of which one operand is a number are plain: nothing is asked by that one, and of 0 and
/// whole exponents the builder knows what they are.
Value plain_power(Value a, Value b, int m, int n) {
  const Graph& g = *a.graph;
  if (is_constant(g, b.id) && n == 0) {
    const double c = constant_value(g, b.id), factor = falling(c, m);
    return factor == 0 ? zeros_like(a) : factor * pow(a, c - m);
  }
  if (is_constant(g, a.id) && m == 0) {
    const double c = constant_value(g, a.id);
    if (c > 0 && std::isfinite(c)) return pow(a, b) * std::pow(std::log(c), n);
  }
  return {};
}

}  // namespace

Value value_of(Function f, Value a, Value b, int m, int n) {
  Graph& g = *a.graph;
  const bool one = f == Function::Root || f == Function::Complement || f == Function::Bell ||
                   f == Function::Slant;
  if (one) b = {};
  if (f == Function::Power)
    if (const Value plain = plain_power(a, b, m, n)) return plain;
  const NodeId inputs[] = {unmarked(f, a, b, m, n).id, a.id, b.id};
  const Dims attributes = encode(ValueOfAttributes{static_cast<int64_t>(f), m, n});
  return wrap(g, make(g, Op::ValueOf, {{inputs, b ? size_t{3} : size_t{2}}, attributes}));
}

Value scale(Value x, Value y) {
  const bool wide = x.dtype() == DType::Float64;
  const Value size = maximum(abs(x), abs(y));
  const double big = wide ? 0x1p500 : 0x1p60, small = wide ? 0x1p-450 : 0x1p-50;
  const Value down = full_like(size, wide ? 0x1p-600 : 0x1p-70);
  const Value up = full_like(size, wide ? 0x1p650 : 0x1p90);
  return where(size > big, down, where(size < small, up, ones_like(size)));
}

}  // namespace symbolic

namespace {

class ValueOf : public Spec {
 public:
  explicit ValueOf(Op op) : Spec(op, Form::Marker, kAttributes<ValueOfAttributes>, {}) {}
  size_t input_count() const override { return kMany; }
  Type infer(const Graph& g, const Draft& d) const override {
    return {g.dtype(d.inputs[0]), g.dims(d.inputs[0])};
  }
  bool computes_with(int k) const override { return k > 0; }  // the first is how it is computed
  NodeId adjoint(Graph& g, NodeId id, int k, NodeId dy) const override {
    using symbolic::Value;
    const auto a = gradcell::attributes<ValueOfAttributes>(g, id);
    const bool two = g[id].input_count > 2;
    const Value x = symbolic::wrap(g, g.input(id, 1));
    const Value y = two ? symbolic::wrap(g, g.input(id, 2)) : Value{};
    return (symbolic::wrap(g, dy) * symbolic::slope(static_cast<Function>(a.function), x, y,
                                                    narrow<int>(a.m), narrow<int>(a.n), k == 2))
        .id;
  }
  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    NodeId sum = kNoNode;
    for (size_t k = 1; k < dx.size(); ++k)
      if (dx[k] != kNoNode) sum = accumulate(g, sum, adjoint(g, id, narrow<int>(k), dx[k]));
    return sum;
  }
  Law law() const override { return Law::Smooth; }
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    std::vector<NodeId> in;
    for (size_t k = 0; k < b.inputs.size(); ++k) in.push_back(over_batch(g, b, k));
    return make(g, op, {in, g.attrs(id)});
  }
};

}  // namespace

SPEC(ValueOf, ValueOf)

Function function_of(const Graph& g, NodeId id) {
  if (g[id].op != Op::ValueOf) return Function::Count;
  return static_cast<Function>(attributes<ValueOfAttributes>(g, id).function);
}

}  // namespace gradcell

#include "ops/complex.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "ops/families.h"
#include "ops/identity.h"
#include "ops/moving/movement.h"
#include "ops/value_of.h"

namespace gradcell {

namespace {

constexpr Parameter kViewed[] = {kX};

Dims with_pair(Dims dims) {
  dims.push_back(2);
  return dims;
}

class AsReal : public Linear {
 public:
  explicit AsReal(Op op) : Linear(op, Form::Marker, {}, kViewed) {}
  const char* not_in_onnx() const override { return kNoComplexNumbers; }
  Type infer(const Graph& g, const Draft& d) const override {
    const NodeId z = d.inputs[0];
    require(is_complex(g.dtype(z)), ErrorKind::Type, name(), ": needs a complex dtype, got ",
            gradcell::name(g.dtype(z)));
    return {part_dtype(g.dtype(z)), with_pair(g.dims(z))};
  }
  NodeId simplify(Graph& g, Draft& d, const Type&) const override {
    const NodeId z = d.inputs[0];
    return g[z].op == Op::ViewAsComplex ? g.input(z, 0) : kNoNode;
  }
  NodeId adjoint(Graph& g, NodeId, int, NodeId dy) const override { return view_as_complex(g, dy); }
  NodeId batch(Graph& g, NodeId, const Batch& b) const override {
    return view_as_real(g, b.inputs[0]);
  }
};

class AsComplex : public Linear {
 public:
  explicit AsComplex(Op op) : Linear(op, Form::Marker, {}, kViewed) {}
  const char* not_in_onnx() const override { return kNoComplexNumbers; }
  Type infer(const Graph& g, const Draft& d) const override {
    const NodeId x = d.inputs[0];
    const Dims& from = g.dims(x);
    const DType t = g.dtype(x);
    require(t == DType::Float32 || t == DType::Float64, ErrorKind::Type, name(),
            ": needs float32 or float64, got ", gradcell::name(t));
    require(!from.empty() && from.back() == 2, ErrorKind::Value, name(),
            ": the last dimension must be 2, got shape ", listed(from));
    return {t == DType::Float32 ? DType::Complex64 : DType::Complex128,
            Dims(from.begin(), from.end() - 1)};
  }
  NodeId simplify(Graph& g, Draft& d, const Type&) const override {
    const NodeId x = d.inputs[0];
    return g[x].op == Op::ViewAsReal ? g.input(x, 0) : kNoNode;
  }
  NodeId adjoint(Graph& g, NodeId, int, NodeId dy) const override { return view_as_real(g, dy); }
  NodeId batch(Graph& g, NodeId, const Batch& b) const override {
    return view_as_complex(g, b.inputs[0]);
  }
};

/// A part of pairs: 0 or 1.
NodeId part(Graph& g, NodeId pairs, int64_t which) {
  const Dims all = g.dims(pairs), whole(all.begin(), all.end() - 1);
  SliceSpec s{Dims(all.size(), 0), all, Dims(all.size(), 1)};
  s.start.back() = which, s.size.back() = 1;
  return reshape(g, slice(g, pairs, s), whole);
}

}  // namespace

SPEC(ViewAsReal, AsReal)
SPEC(ViewAsComplex, AsComplex)

NodeId view_as_real(Graph& g, NodeId z) { return make(g, Op::ViewAsReal, {{&z, 1}, {}}); }
NodeId view_as_complex(Graph& g, NodeId x) { return make(g, Op::ViewAsComplex, {{&x, 1}, {}}); }

Parts parts(Graph& g, NodeId x) {
  if (!is_complex(g.dtype(x))) return {x, constant(g, g.dtype(x), Dims(g.dims(x)), 0)};
  const NodeId pairs = view_as_real(g, x);
  return {part(g, pairs, 0), part(g, pairs, 1)};
}

NodeId complex_of(Graph& g, Parts p) {
  Dims column = g.dims(p.re);
  column.push_back(1);
  const NodeId both[] = {reshape(g, p.re, column), reshape(g, p.im, column)};
  return view_as_complex(g, concat(g, both, narrow<int>(column.size()) - 1));
}

// Functions ---------------------------------------------------------------------------------------

namespace symbolic {

namespace {

/// A complex number of two graph values.
struct Z {
  Value re, im;
};

/// Whether it is known to be zero.
bool none(Value v) { return is_constant(*v.graph, v.id) && constant_value(*v.graph, v.id) == 0; }

Z operator-(Z a) { return {-a.re, -a.im}; }
Z operator+(Z a, Z b) { return {a.re + b.re, a.im + b.im}; }
Z operator-(Z a, Z b) { return {a.re - b.re, a.im - b.im}; }
Z operator+(Z a, double b) { return {a.re + b, a.im}; }
Z operator-(double a, Z b) { return {a - b.re, -b.im}; }
Z operator*(Z a, Value b) { return {a.re * b, none(a.im) ? a.im : a.im * b}; }
Z operator*(Z a, double b) { return a * full_like(a.re, b); }
/// By a real number if one of them is: an infinity times its zero would be NaN.
Z operator*(Z a, Z b) {
  if (none(b.im)) return a * b.re;
  if (none(a.im)) return b * a.re;
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
Z conj(Z z) { return {z.re, -z.im}; }
Z times_i(Z z) { return {-z.im, z.re}; }
Z times_minus_i(Z z) { return {z.im, -z.re}; }
Z where(Value c, Z a, Z b) { return {where(c, a.re, b.re), where(c, a.im, b.im)}; }

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Whether a part is infinite, whatever the other is.
Value endless(Z z) { return logical_or(isinf(z.re), isinf(z.im)); }

/// |z|; its derivative at zero is zero, as the absolute value's of a real number is.
Value modulus(Z z) { return none(z.im) ? abs(z.re) : hypot(z.re, z.im); }

/// 1 / z over k, the power of two that brings z near one.
Z scaled_reciprocal(Z z, Value k) {
  const Z near = z * k;
  const Value square = near.re * near.re + near.im * near.im;
  return {near.re / square, -(near.im / square)};
}
Z reciprocal(Z z) {
  const Value k = scale(z.re, z.im);
  return scaled_reciprocal(z, k) * k;
}

Z operator/(Z a, Z b) {
  if (none(b.im)) return {a.re / b.re, none(a.im) ? a.im : a.im / b.re};
  const Value k = scale(b.re, b.im);
  return a * k * scaled_reciprocal(b, k);
}

// Exponentials grow beyond what a dtype holds before their products with a sine do, and infinity
// times a sine that is 0 is no number. So these are multiplied by roots that are always finite.

/// Half of x, or what is as good: from there on squares of its exponential are infinite.
Value half_exponent(Value x) {
  const double far = x.dtype() == DType::Float64 ? 705 : 88;
  return minimum(maximum(x * 0.5, full_like(x, -far)), full_like(x, far));
}

// At infinities and NaN functions are as C99 has them (annex G.6): zero times what is no number is
// zero, and a size that is known to be infinite or zero stays so where its angle is no number.

/// The angle y beside an exponent x: 0 for one that is no number where x is infinite.
Value angle_beside(Value x, Value y) {
  return where(logical_and(isinf(x), logical_not(isfinite(y))), zeros_like(y), y);
}
/// A product, or its factor that is zero where the other is no number.
Value kept_zero(Value product, Value factor) {
  return where(logical_and(isnan(product), factor == 0.0), factor, product);
}

/// root^2 (cos(y) + i sin(y)), of a root that is an exponential of half of x.
Z turned(Value root, Value x, Value y) {
  const Value angle = angle_beside(x, y);
  const Value sine = sin(where(x < 0.0, angle, y));
  return {root * cos(angle) * root, kept_zero(root * sine * root, sine)};
}

Z exp(Z z) { return turned(exp(half_exponent(z.re)), z.re, z.im); }
Z exp2(Z z) { return turned(exp2(half_exponent(z.re)), z.re, z.im * 0.69314718055994530942); }

/// a cosh(y) and a sinh(y).
Value times_cosh(Value a, Value y) {
  const Value root = sinh(half_exponent(y));
  return kept_zero(a + 2.0 * (a * root * root), a);
}
Value times_sinh(Value a, Value y) {
  const Value half = half_exponent(y);
  return kept_zero(kept_zero(2.0 * (a * sinh(half) * cosh(half)), a), y);
}

/// log |z|: of the larger part m and the smaller one n, log |m| and half of log(1 + (n / m)^2).
/// Near one, half of log(1 + (m^2 - 1 + n^2)).
Z log(Z z) {
  const Value first = logical_or(abs(z.re) >= abs(z.im), isinf(z.re));
  const Value m = where(first, z.re, z.im), n = where(first, z.im, z.re), one = ones_like(m);
  const Value size = abs(m), near = logical_and(size > 0.5, size < 2.0);
  const Value ratio = where(isinf(m), one, n / where(m == 0.0, one, m));
  const Value more = where(near, (m - 1.0) * (m + 1.0) + n * n, ratio * ratio);
  return {log(where(near, one, size)) + 0.5 * log1p(more), atan2(z.im, z.re)};
}

/// On the cut, the negative reals, by the sign of the imaginary zero.
Z sqrt(Z z) {
  const Value left = z.re < 0.0;
  const Value below = logical_or(z.im < 0.0, 1.0 / z.im < 0.0);
  const Value one = ones_like(z.re), sign = where(below, -one, one);
  const double most = z.re.dtype() == DType::Float64 ? 0x1p1000 : 0x1p120;
  const Value far = maximum(abs(z.re), abs(z.im)) > most;
  const Value by = where(far, full_like(one, 0.0625), one), root = where(far, 4.0 * one, one);
  const Value left_by = where(left, -z.re, z.re) * by;
  const Value long_part = root * sqrt(modulus(z * by) * 0.5 + left_by * 0.5);
  const Value zero = long_part == 0.0;
  const Value short_part = where(zero, z.im, z.im / (2.0 * where(zero, one, long_part)));
  const Z found{where(left, sign * short_part, long_part),
                where(left, sign * long_part, short_part)};
  return where(isinf(z.im), Z{abs(z.im), z.im}, found);
}

Z sin(Z z) {
  return {times_cosh(sin(z.re), z.im), times_sinh(cos(angle_beside(z.im, z.re)), z.im)};
}
Z cos(Z z) {
  return {times_cosh(cos(angle_beside(z.im, z.re)), z.im), -times_sinh(sin(z.re), z.im)};
}
Z sinh(Z z) { return times_minus_i(sin(times_i(z))); }
Z cosh(Z z) { return cos(times_i(z)); }

/// (T + i t) / (1 + i T t) of T = tanh x and t = tan y.
Z tanh(Z z) {
  const Value a = tanh(z.re), b = tan(angle_beside(z.re, z.im)), c = 1.0 / cosh(z.re);
  const Value below = 1.0 + a * a * b * b;
  return {a * (1.0 + b * b) / below, kept_zero(b * (c * c) / below, b)};
}
Z tan(Z z) { return times_minus_i(tanh(times_i(z))); }

// Inverse functions: W. Kahan, Branch cuts for complex elementary functions (1987). At infinity
// they are logarithms of the size, with the angle.

/// Where z is on the imaginary axis, but nobody knows where.
Value lost_on_axis(Z z) { return logical_and(z.re == 0.0, isnan(z.im)); }
/// Infinity with the sign of x, that of -0 too.
Value infinity_like(Value x) {
  const Value most = full_like(x, kInfinity);
  return where(logical_or(x < 0.0, 1.0 / x < 0.0), -most, most);
}
Value quarter_turn(Value x) { return full_like(x, 0.5 * std::numbers::pi); }

Z acos(Z z) {
  const Z minus = sqrt(1.0 - z), plus = sqrt(z + 1.0);
  const Value end = endless(z), two = full_like(z.re, 2);
  const Value turn = atan2(where(end, abs(z.im), minus.re), where(end, z.re, plus.re));
  const Value size = asinh((conj(plus) * minus).im);
  return {where(lost_on_axis(z), quarter_turn(z.re), where(end, ones_like(two), two) * turn),
          where(end, -infinity_like(z.im), size)};
}
Z asin(Z z) {
  const Z minus = sqrt(1.0 - z), plus = sqrt(z + 1.0);
  const Value end = endless(z), turn = atan2(z.re, where(end, abs(z.im), (minus * plus).re));
  const Value size = asinh((conj(minus) * plus).im);
  return {where(lost_on_axis(z), z.re, turn), where(end, infinity_like(z.im), size)};
}
Z acosh(Z z) {
  const Z minus = sqrt(z + -1.0), plus = sqrt(z + 1.0);
  const Value end = endless(z), two = full_like(z.re, 2);
  const Value turn = atan2(where(end, z.im, minus.im), where(end, z.re, plus.re));
  const Value size = asinh((conj(minus) * plus).re);
  return {where(end, full_like(size, kInfinity), size),
          where(lost_on_axis(z), quarter_turn(z.re), where(end, ones_like(two), two) * turn)};
}
Z asinh(Z z) { return times_minus_i(asin(times_i(z))); }
Z atanh(Z from) {  // an odd function: of the right half
  const Value left = from.re < 0.0;
  const Z z = where(left, -from, from);
  const Value one = ones_like(z.re), from_one = 1.0 - z.re;
  const Value distance = modulus(Z{from_one, z.im}), close = distance < 0x1p-60;
  const Value inside = where(isinf(distance), zeros_like(one), z.re);
  const Value x = where(close, one, inside), d = where(close, one, distance);
  const Value logs = 2.0 * log(where(close, 2.0 / distance, one));  // 4 / d^2 + 1 is 4 / d^2
  const Value sides = from_one * (1.0 + z.re) - z.im * z.im;
  const Value real = 0.25 * where(close, logs, log1p(x / d * (4.0 / d)));
  const Value quarter = quarter_turn(z.im), end = where(z.im < 0.0, -quarter, quarter);
  const Value turn = where(isinf(z.im), end, 0.5 * atan2(z.im, 0.5 * sides));
  const Z found{where(lost_on_axis(z), z.re, real), turn};
  return where(left, -found, found);
}
Z atan(Z z) { return times_minus_i(atanh(times_i(z))); }

Z expm1(Z z) {
  const Value far = z.re > 40.0;
  const Value angle = angle_beside(z.re, z.im), half = sin(angle * 0.5);
  const Value near = expm1(where(far, zeros_like(z.re), z.re)) * cos(angle) - 2.0 * (half * half);
  const Z all = exp(z);
  return {where(far, all.re, near), all.im};
}
Z log1p(Z z) {
  const Value near = maximum(abs(z.re), abs(z.im)) < 0.5;
  const Value x = where(near, z.re, zeros_like(z.re)), y = where(near, z.im, zeros_like(z.im));
  const Z far = log(z + 1.0);
  return {where(near, 0.5 * log1p(x * (2.0 + x) + y * y), far.re), far.im};
}

/// Of the exponential that does not overflow.
Z sigmoid(Z z) {
  const Value left = z.re < 0.0;
  const Z e = exp(where(left, z, -z));
  return where(left, e, Z{ones_like(z.re), zeros_like(z.re)}) / (e + 1.0);
}

Z sign(Z z) { return {direction(z.re, z.im), direction(z.im, z.re)}; }

Z square(Z z) {
  if (none(z.im)) return {z.re * z.re, z.im};
  return {(z.re - z.im) * (z.re + z.im), 2.0 * (z.re * z.im)};
}

Z whole_power(Z z, int n) {
  if (n < 0) return whole_power(reciprocal(z), -n);
  if (n == 0) return {ones_like(z.re), zeros_like(z.re)};
  if (n == 1) return z;
  const Z half = whole_power(z, n / 2);
  return n % 2 ? square(half) * z : square(half);
}

/// exp(b log a); small whole exponents by products, which are exact at zero too.
Z pow(Z a, Z b) {
  if (is_constant(*b.re.graph, b.re.id) && none(b.im)) {
    const double n = constant_value(*b.re.graph, b.re.id);
    if (n == std::trunc(n) && std::fabs(n) <= 64) return whole_power(a, narrow<int>(n));
  }
  const Value zero = logical_and(a.re == 0.0, a.im == 0.0), turns = b.im != 0.0;
  const Value nothing = logical_and(turns, b.re == 0.0);  // |a^b| is 1, and its angle anything
  const Z one{ones_like(a.re), zeros_like(a.re)}, least = where(zero, a, one);
  const Value undefined_there = full_like(a.re, std::numeric_limits<double>::quiet_NaN());
  Z at_zero{where(nothing, undefined_there, pow(least.re, b.re)), zeros_like(a.re)};
  // By products, which have the right derivatives, where that makes a difference.
  for (int n = 1; n <= 4; ++n) {
    const Value is_n = logical_and(logical_not(turns), b.re == static_cast<double>(n));
    at_zero = where(is_n, whole_power(least, n), at_zero);
  }
  return where(zero, at_zero, exp(b * log(where(zero, one, a))));
}

/// The error function, for Re z >= 0, beside the function that is 1 minus it.
struct Errors {
  Z erf, erfc;
};

/// Close to 0 the series of erf (Abramowitz and Stegun, 7.1.5); else exp(-z^2) w(iz), w by the
/// trapezoidal rule with the residue of the pole beside it (Al Azah, Chandler-Wilde 2021, SIAM J.
/// Numer. Anal. 59, section 1.2).
Errors errors(Z z) {
  const Value one = ones_like(z.re), zero = zeros_like(z.re);
  const Value near = logical_and(z.re < 0.8, logical_and(z.im<1.0, z.im> - 1.0));
  const Z least = where(near, z, Z{zero, zero}), minus_square = -square(least);
  constexpr int kTerms = 20;
  Z series{zero, zero};
  double factorial = std::tgamma(static_cast<double>(kTerms));
  for (int n = kTerms - 1; n >= 0; --n) {
    series = series * minus_square + 1.0 / (factorial * (2 * n + 1));
    if (n > 0) factorial /= n;
  }
  const Z small = least * series * 1.1283791670955125739;
  // w(iz) of the quarter plane Re >= 0, Im >= 0: of (|Im z|, Re z), and its conjugate's mirror.
  constexpr int kNodes = 12;
  const double step = std::sqrt(std::numbers::pi / (kNodes + 1));
  const Z far = where(near, Z{one, zero}, Z{where(z.re > 1e15, one * 40.0, z.re), z.im});
  const Value below = far.im < 0.0;
  const Value x = where(below, -far.im, far.im), y = far.re;
  const Z at{x, y}, at_square = square(at);
  const Value place = x / step - floor(x / step);
  const Value high = logical_or(y > x, y == x);
  const Value deep = logical_and(high, y > std::numbers::pi / step);
  const Value middle = logical_or(high, logical_or(place < 0.25, place > 0.75));
  Z sum{zero, zero};
  for (int k = 0; k <= kNodes; ++k) {
    const double half = (k + 0.5) * step, whole = k * step;
    const Value t = where(middle, full_like(x, half * half), full_like(x, whole * whole));
    const double end = k == 0 ? 0.5 : 1.0;
    const Value weight = where(middle, full_like(x, std::exp(-half * half)),
                               full_like(x, end * std::exp(-whole * whole)));
    sum = sum + reciprocal(Z{at_square.re - t, at_square.im}) * weight;
  }
  Z w = times_i(at * sum) * (2 * step / std::numbers::pi);
  // 2 exp(-at^2) / (1 +- exp(-2 pi i at / step)), next to nothing where deep.
  const Z inside = where(deep, Z{zero, one}, at);
  const Z turn = exp(times_i(inside) * (2 * std::numbers::pi / step));
  const Z pole = exp(-square(inside)) * 2.0 * turn / (turn + Z{where(middle, one, -one), zero});
  w = where(deep, w, w + pole);
  const Z mirrored = where(below, w, conj(w));
  const Z rest = exp(-square(far)) * mirrored;
  const Z erfc_near = 1.0 - small, erf_far = 1.0 - rest;
  return {where(near, small, erf_far), where(near, erfc_near, rest)};
}

/// erf is odd, erfc(-z) = 2 - erfc(z).
Z erf(Z z) {
  const Value left = z.re < 0.0;
  const Z found = errors(where(left, -z, z)).erf;
  return where(left, -found, found);
}
Z erfc(Z z) {
  const Value left = z.re < 0.0;
  const Z found = errors(where(left, -z, z)).erfc;
  return where(left, 2.0 - found, found);
}

Z wrapped(Graph& g, NodeId x) {
  const Parts p = parts(g, x);
  return {wrap(g, p.re), wrap(g, p.im)};
}

NodeId node(Z z) { return complex_of(*z.re.graph, {z.re.id, z.im.id}); }

[[noreturn]] void undefined(const Graph& g, Op op, NodeId x) {
  fail(ErrorKind::Type, info(op).name, ": not defined for ", name(g.dtype(x)));
}

}  // namespace

}  // namespace symbolic

NodeId complex_unary(Graph& g, Op op, NodeId x) {
  using namespace symbolic;  // NOLINT: the functions above
  const Z z = wrapped(g, x);
  switch (op) {
    case Op::Neg:
      return node(-z);
    case Op::Abs:  // complex, as MindSpore's is
      return node({modulus(z), zeros_like(z.re)});
    case Op::Sign:
      return node(sign(z));
    case Op::Square:
      return node(square(z));
    case Op::Sqrt:
      return node(sqrt(z));
    case Op::Rsqrt:
      return node(reciprocal(sqrt(z)));
    case Op::Reciprocal:
      return node(reciprocal(z));
    case Op::Exp:
      return node(exp(z));
    case Op::Exp2:
      return node(exp2(z));
    case Op::Expm1:
      return node(expm1(z));
    case Op::Log:
      return node(log(z));
    case Op::Log1p:
      return node(log1p(z));
    case Op::Log2:
      return node(log(z) * 1.4426950408889634074);
    case Op::Log10:
      return node(log(z) * 0.43429448190325182765);
    case Op::Sin:
      return node(sin(z));
    case Op::Cos:
      return node(cos(z));
    case Op::Tan:
      return node(tan(z));
    case Op::Asin:
      return node(asin(z));
    case Op::Acos:
      return node(acos(z));
    case Op::Atan:
      return node(atan(z));
    case Op::Sinh:
      return node(sinh(z));
    case Op::Cosh:
      return node(cosh(z));
    case Op::Tanh:
      return node(tanh(z));
    case Op::Asinh:
      return node(asinh(z));
    case Op::Acosh:
      return node(acosh(z));
    case Op::Atanh:
      return node(atanh(z));
    case Op::Sigmoid:
      return node(sigmoid(z));
    case Op::Erf:
      return node(erf(z));
    case Op::Erfc:
      return node(erfc(z));
    case Op::IsNan:
    case Op::IsInf:
      return binary(g, Op::LogicalOr, unary(g, op, z.re.id), unary(g, op, z.im.id));
    case Op::IsFinite:
      return binary(g, Op::LogicalAnd, unary(g, op, z.re.id), unary(g, op, z.im.id));
    default:
      undefined(g, op, x);
  }
}

NodeId complex_binary(Graph& g, Op op, NodeId x, NodeId y) {
  using namespace symbolic;  // NOLINT: the functions above
  const Z a = wrapped(g, x), b = wrapped(g, y);
  switch (op) {
    case Op::Add:
      return node(a + b);
    case Op::Sub:
      return node(a - b);
    case Op::Mul:
      return node(a * b);
    case Op::Div:
      return node(a / b);
    case Op::Pow:
      return node(pow(a, b));
    case Op::Equal:
      return logical_and(a.re == b.re, a.im == b.im).id;
    case Op::NotEqual:
      return logical_or(a.re != b.re, a.im != b.im).id;
    default:
      undefined(g, op, x);
  }
}

NodeId complex_select(Graph& g, NodeId c, NodeId x, NodeId y) {
  using namespace symbolic;  // NOLINT: the functions above
  return node(where(wrap(g, c), wrapped(g, x), wrapped(g, y)));
}

// Structured ops ----------------------------------------------------------------------------------

namespace {

NodeId complex_cast(Graph& g, NodeId x, DType to) {
  const Parts p = parts(g, x);
  if (is_complex(to)) {
    const NodeId re = cast(g, p.re, part_dtype(to)), im = cast(g, p.im, part_dtype(to));
    return complex_of(g, {re, im});
  }
  if (to != DType::Bool) return cast(g, p.re, to);
  return binary(g, Op::LogicalOr, cast(g, p.re, to), cast(g, p.im, to));
}

/// Whether what the op does to a complex number it does to its parts.
bool takes_parts(const Spec& s) {
  const PartsRule rule = info(s.form).parts;
  return rule == PartsRule::Each || (rule == PartsRule::Sums && s.combine == Combine::Sum);
}

}  // namespace

NodeId make_of_parts(Graph& g, const Spec& s, const Draft& d) {
  if (info(s.form).parts == PartsRule::Converted)
    return complex_cast(g, d.inputs[0], d.asked.dtype);
  auto with = [&](std::span<const NodeId> in) {
    return make(g, s.op, {in, d.attributes, {part_dtype(d.asked.dtype), d.asked.dims}});
  };
  std::vector<NodeId> re(d.inputs.begin(), d.inputs.end());
  DType complex = DType::Bool;  // of what the op computes with
  for (size_t k = 0; k < re.size(); ++k) {
    if (!is_complex(g.dtype(re[k]))) continue;
    if (s.computes_with(narrow<int>(k)))
      complex = g.dtype(re[k]);
    else
      re[k] = view_as_real(g, re[k]);
  }
  if (complex == DType::Bool) return with(re);
  std::vector<NodeId> im = re;
  for (size_t k = 0; k < re.size(); ++k) {
    if (!s.computes_with(narrow<int>(k)) || !is_floating(g.dtype(re[k]))) continue;
    const Parts p = parts(g, re[k]);
    re[k] = p.re, im[k] = p.im;
  }
  if (takes_parts(s)) return complex_of(g, {with(re), with(im)});
  if (info(s.form).parts != PartsRule::Multiplied)
    fail(ErrorKind::Type, info(s.op).name, ": not defined for ", name(complex));
  auto product = [&](NodeId a, NodeId b) {
    std::vector<NodeId> in = re;
    in.front() = a, in.back() = b;
    return with(in);
  };
  return complex_of(g, {binary(g, Op::Sub, product(re[0], re.back()), product(im[0], im.back())),
                        binary(g, Op::Add, product(re[0], im.back()), product(im[0], re.back()))});
}

}  // namespace gradcell

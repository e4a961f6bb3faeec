// The rows of the op table on single numbers, written out with <cmath> in long double, and how a
// dtype holds a number: for the interpreter of tests, which shares no function with csrc.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "base/types.h"
#include "ir/op_info.h"

namespace gradcell::testing {

using Real = long double;

inline Real inverse_erf(Real y) {
  if (std::fabs(y) >= 1) return std::fabs(y) > 1 ? NAN : y * INFINITY;
  Real low = -7, high = 7;  // erf is monotonic: halving, then Newton
  for (int i = 0; i < 60; ++i) (std::erf((low + high) / 2) < y ? low : high) = (low + high) / 2;
  Real x = (low + high) / 2;
  for (int i = 0; i < 4; ++i)
    x -= (std::erf(x) - y) * std::exp(x * x) / 2 * std::sqrt(std::numbers::pi_v<Real>);
  return y == 0 ? y : x;
}

inline Real python_mod(Real a, Real b) {
  const Real r = std::fmod(a, b);
  if (r == 0) return std::copysign(Real(0), b);
  return (r < 0) != (b < 0) ? r + b : r;
}
inline Real python_floor_div(Real a, Real b) {
  if (b == 0 || a == 0 || std::isnan(a) || std::isnan(b)) return a / b;
  if (std::isinf(b) && !std::isinf(a)) return (a < 0) != (b < 0) ? -1 : 0;
  const Real n = std::rint((a - python_mod(a, b)) / b);
  return n == 0 ? std::copysign(Real(0), a / b) : n;
}

/// The larger (smaller) one; NaN if one is.
inline Real better(Real a, Real b, bool larger) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  return (larger ? a < b : b < a) ? b : a;
}

/// An elementwise op on floating numbers; comparisons and predicates give 0 or 1.
inline Real reference(Op op, Real a, Real b) {
  // What a double rounds once is not rounded before.
  const auto x = static_cast<double>(a), y = static_cast<double>(b);
  const auto clip = [](Real v) { return std::fmin(std::fmax((v + 3) / 6, Real(0)), Real(1)); };
  switch (op) {
      // clang-format off
    case Op::Neg: return -a;
    case Op::Abs: return std::fabs(a);
    case Op::Sign: return std::isnan(a) ? a : a == 0 ? Real(0) : std::copysign(Real(1), a);
    case Op::Square: return x * x;
    case Op::Sqrt: return std::sqrt(x);
    case Op::Rsqrt: return 1 / std::sqrt(a);
    case Op::Reciprocal: return 1 / x;
    case Op::Exp: return std::exp(a);
    case Op::Exp2: return std::exp2(a);
    case Op::Expm1: return std::expm1(a);
    case Op::Log: return std::log(a);
    case Op::Log1p: return std::log1p(a);
    case Op::Log2: return std::log2(a);
    case Op::Log10: return std::log10(a);
    case Op::Sin: return std::sin(a);
    case Op::Cos: return std::cos(a);
    case Op::Tan: return std::tan(a);
    case Op::Asin: return std::asin(a);
    case Op::Acos: return std::acos(a);
    case Op::Atan: return std::atan(a);
    case Op::Sinh: return std::sinh(a);
    case Op::Cosh: return std::cosh(a);
    case Op::Tanh: return std::tanh(a);
    case Op::Asinh: return std::asinh(a);
    case Op::Acosh: return std::acosh(a);
    case Op::Atanh: return std::atanh(a);
    case Op::Sigmoid: return 1 / (1 + std::exp(-a));
    case Op::Erf: return std::erf(a);
    case Op::Erfc: return std::erfc(a);
    case Op::Erfinv: return inverse_erf(a);
    case Op::Ndtr: return std::erfc(-a / std::numbers::sqrt2_v<Real>) / 2;
    case Op::Logit: return std::log(a) - std::log1p(-a);
    case Op::Floor: return std::floor(a);
    case Op::Ceil: return std::ceil(a);
    case Op::Round: return std::rint(a);
    case Op::Trunc: return std::trunc(a);
    case Op::ReLU: return std::isnan(a) || a > 0 ? a : 0;
    case Op::HSigmoid: return std::isnan(a) ? a : clip(a);
    case Op::HSwish: return std::isnan(a) || a > 3 ? a : a < -3 ? 0 : a * clip(a);
    case Op::Add: return x + y;
    case Op::Sub: return x - y;
    case Op::Mul: return x * y;
    case Op::Div: return x / y;
    case Op::Pow: return std::pow(a, b);
    case Op::Maximum: return better(a, b, true);
    case Op::Minimum: return better(a, b, false);
    case Op::Atan2: return std::atan2(a, b);
    case Op::CopySign: return std::copysign(a, b);
    case Op::Ldexp: return a * std::exp2(b);
    case Op::Mod: return python_mod(a, b);
    case Op::Fmod: return std::fmod(a, b);
    case Op::FloorDiv: return python_floor_div(a, b);
    case Op::Equal: return a == b;
    case Op::NotEqual: return a != b;
    case Op::Less: return a < b;
    case Op::LessEqual: return a <= b;
    case Op::Greater: return a > b;
    case Op::GreaterEqual: return a >= b;
    case Op::LogicalNot: return a == 0;
    case Op::LogicalAnd: return a != 0 && b != 0;
    case Op::LogicalOr: return a != 0 || b != 0;
    case Op::LogicalXor: return (a != 0) != (b != 0);
    case Op::IsNan: return std::isnan(a);
    case Op::IsInf: return std::isinf(a);
    case Op::IsFinite: return std::isfinite(a);
    case Op::IsNegInf: return std::isinf(a) && a < 0;
    default: fail(ErrorKind::NotImplemented, info(op).name, " has no reference on numbers");
      // clang-format on
  }
}

/// The same on integers, which wrap: before they are held in their dtype. A divisor of 0 gives 0.
inline int64_t reference(Op op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  const auto wrapped = [](uint64_t v) { return static_cast<int64_t>(v); };
  const bool alone = b == 0 || b == -1;  // the remainder is 0, and the least number has no opposite
  const int64_t rest = alone ? 0 : a % b;
  const bool off = rest != 0 && (rest < 0) != (b < 0);
  switch (op) {
      // clang-format off
    case Op::Neg: return wrapped(0 - x);
    case Op::Abs: return a < 0 ? wrapped(0 - x) : a;
    case Op::Sign: return (a > 0) - (a < 0);
    case Op::Square: return wrapped(x * x);
    case Op::Floor: case Op::Ceil: case Op::Round: case Op::Trunc: return a;
    case Op::ReLU: return a > 0 ? a : 0;
    case Op::Add: return wrapped(x + y);
    case Op::Sub: return wrapped(x - y);
    case Op::Mul: return wrapped(x * y);
    case Op::Maximum: return a < b ? b : a;
    case Op::Minimum: return b < a ? b : a;
    case Op::Mod: return off ? rest + b : rest;
    case Op::Fmod: return rest;
    case Op::FloorDiv: return b == 0 ? 0 : b == -1 ? wrapped(0 - x) : a / b - (off ? 1 : 0);
    case Op::Pow: {
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
      uint64_t power = 1, base = x;
      for (uint64_t n = y; n; n /= 2, base *= base) power *= n % 2 ? base : 1;
      return wrapped(power);
    }
    default: return static_cast<int64_t>(reference(op, Real(a), Real(b)));  // what gives a bool
      // clang-format on
  }
}

/// A number as one of few bits in its mantissa and a least exponent: to nearest, ties to even.
inline double rounded_to(double v, int bits, int least, double largest) {
  if (v == 0 || !std::isfinite(v)) return v;
  const int unit = std::max(std::ilogb(v), least) - bits;
  const double near = std::ldexp(std::rint(std::ldexp(v, -unit)), unit);
  return std::fabs(near) > largest ? std::copysign(INFINITY, v) : near;
}

/// What a floating dtype makes of a number: half types by way of float, in which engines compute.
inline double held(DType t, Real v) {
  if (t == DType::Float64) return static_cast<double>(v);
  const auto f = static_cast<float>(static_cast<double>(v));
  if (t == DType::Float16) return rounded_to(f, 10, -14, 65504);
  if (t == DType::BFloat16) return rounded_to(f, 7, -126, 0x1.fep127);
  return f;
}
/// What an integer's dtype does.
inline int64_t held(DType t, int64_t v) {
  switch (t) {
      // clang-format off
    case DType::Bool: return v != 0;
    case DType::UInt8: return static_cast<uint8_t>(v);
    case DType::Int8: return static_cast<int8_t>(v);
    case DType::Int16: return static_cast<int16_t>(v);
    case DType::UInt16: return static_cast<uint16_t>(v);
    case DType::Int32: return static_cast<int32_t>(v);
    case DType::UInt32: return static_cast<uint32_t>(v);
    default: return v;
      // clang-format on
  }
}

/// Elements' bits: those of a double, or of an int64.
inline uint64_t bits_of(DType t, Real v) {
  if (is_floating(t)) return std::bit_cast<uint64_t>(held(t, v));
  if (t == DType::Bool) return v != 0 && !std::isnan(v);
  constexpr Real kEnd = 9223372036854775808.0L;
  const int64_t whole = std::isnan(v) ? 0
                        : v >= kEnd   ? std::numeric_limits<int64_t>::max()
                        : v < -kEnd   ? std::numeric_limits<int64_t>::min()
                                      : static_cast<int64_t>(v);
  return static_cast<uint64_t>(held(t, whole));
}
inline uint64_t bits_of(DType t, int64_t v) {
  if (is_floating(t)) return std::bit_cast<uint64_t>(held(t, static_cast<Real>(v)));
  return static_cast<uint64_t>(held(t, v));
}

}  // namespace gradcell::testing

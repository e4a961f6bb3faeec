// What the vector math is measured against: the C library in double (for float results) and in long
// double (for double results), and the error in units in the last place.
#pragma once

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

namespace gradcell::testing {

using Wide = long double;

struct UnaryReference {
  const char* name;
  double (*in_double)(double);
  Wide (*in_wide)(Wide);
};
struct BinaryReference {
  const char* name;
  double (*in_double)(double, double);
  Wide (*in_wide)(Wide, Wide);
};

template <class T>
T sigmoid_reference(T x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
/// The remainder with the divisor's sign.
template <class T>
T mod_reference(T a, T b) {
  const T r = std::fmod(a, b);
  if (r == 0) return std::copysign(T(0), b);
  return (r < 0) != (b < 0) ? r + b : r;
}
template <class T>
T rsqrt_reference(T x) {
  return 1 / std::sqrt(x);
}
/// The root of erfc(y) = 1 - x (near 0 of erf(y) = x): by bisection, and Newton's steps.
template <class T>
T erfinv_reference(T x) {
  if (!(std::abs(x) < 1)) return std::abs(x) == 1 ? std::copysign(T(INFINITY), x) : T(NAN);
  const T slope = T(0.886226925452758013649083741670572591L), a = std::abs(x);
  if (a < T(1e-10)) return x * slope;
  T low = 0, high = 7;
  for (int i = 0; i < 12; ++i) {
    const T middle = (low + high) / 2;
    (std::erfc(middle) > 1 - a ? low : high) = middle;
  }
  T y = low;  // where the function is convex: steps from here do not leave the interval
  for (int i = 0; i < 5; ++i)
    y += (a < T(0.5) ? a - std::erf(y) : std::erfc(y) - (1 - a)) * slope * std::exp(y * y);
  return std::copysign(y, x);
}
template <class T>
T sign_reference(T x) {
  return x > 0 ? 1 : x < 0 ? -1 : x + T(0);
}

#define GRADCELL_STD(f) {#f, [](double x) { return std::f(x); }, [](Wide x) { return std::f(x); }}
#define GRADCELL_OWN(f) {#f, f##_reference<double>, f##_reference<Wide>}
inline constexpr UnaryReference kUnaryReferences[] = {
    GRADCELL_STD(exp),
    GRADCELL_STD(exp2),
    GRADCELL_STD(expm1),
    GRADCELL_STD(log),
    GRADCELL_STD(log1p),
    GRADCELL_STD(log2),
    GRADCELL_STD(log10),
    GRADCELL_STD(sin),
    GRADCELL_STD(cos),
    GRADCELL_STD(tan),
    GRADCELL_STD(asin),
    GRADCELL_STD(acos),
    GRADCELL_STD(atan),
    GRADCELL_STD(sinh),
    GRADCELL_STD(cosh),
    GRADCELL_STD(tanh),
    GRADCELL_STD(asinh),
    GRADCELL_STD(acosh),
    GRADCELL_STD(atanh),
    GRADCELL_STD(erf),
    GRADCELL_STD(erfc),
    GRADCELL_OWN(erfinv),
    GRADCELL_STD(sqrt),
    GRADCELL_STD(floor),
    GRADCELL_STD(ceil),
    GRADCELL_STD(trunc),
    GRADCELL_OWN(sigmoid),
    GRADCELL_OWN(rsqrt),
    GRADCELL_OWN(sign),
    GRADCELL_STD(abs),
    {"round", [](double x) { return std::nearbyint(x); },
     [](Wide x) { return std::nearbyint(x); }}};
#undef GRADCELL_STD
#undef GRADCELL_OWN
inline constexpr BinaryReference kBinaryReferences[] = {
    {"pow", [](double a, double b) { return std::pow(a, b); },
     [](Wide a, Wide b) { return std::pow(a, b); }},
    {"atan2", [](double a, double b) { return std::atan2(a, b); },
     [](Wide a, Wide b) { return std::atan2(a, b); }},
    {"copysign", [](double a, double b) { return std::copysign(a, b); },
     [](Wide a, Wide b) { return std::copysign(a, b); }},
    {"fmod", [](double a, double b) { return std::fmod(a, b); },
     [](Wide a, Wide b) { return std::fmod(a, b); }},
    {"mod", mod_reference<double>, mod_reference<Wide>}};

template <class Reference, size_t N>
const Reference& find_reference(const Reference (&table)[N], std::string_view name) {
  for (const auto& r : table) {
    if (name == r.name) return r;
  }
  std::abort();  // a function without a reference
}

/// |y - truth| in ULPs of the binade of the truth (2^-149 or 2^-1074 for denormals). A result of
/// infinity counts as the power of two after the largest number. Infinite where a NaN, an infinity
/// or the sign of a zero is wrong.
template <class T, class R>
double ulp_error(T y, R truth) {
  constexpr int kDigits = std::numeric_limits<T>::digits;
  constexpr int kMaxExponent = std::numeric_limits<T>::max_exponent;
  constexpr int kMinExponent = std::numeric_limits<T>::min_exponent - 1;
  const double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(truth) || std::isnan(y)) return std::isnan(truth) && std::isnan(y) ? 0 : wrong;
  if (std::signbit(y) != std::signbit(truth)) return wrong;
  if (truth == 0) return y == 0 ? 0 : wrong;
  const R top = std::ldexp(R(1), kMaxExponent);
  const R value = std::isinf(y) ? std::copysign(top, R(y)) : R(y);
  if (std::isinf(truth) || std::abs(truth) > top) {
    if (std::isinf(y)) return 0;
    truth = std::copysign(top, truth);
  }
  int e = std::ilogb(truth);
  if (e < kMinExponent) e = kMinExponent;
  if (e > kMaxExponent - 1) e = kMaxExponent - 1;
  return static_cast<double>(std::ldexp(std::abs(value - truth), kDigits - 1 - e));
}

}  // namespace gradcell::testing

// Functions that are one or a few instructions: sqrt rsqrt floor ceil round sign abs; and the
// scalar ones that integers have too: maximum minimum mod floor_div ipow.
#pragma once

#include "math/vecmath_lanes.h"

namespace gradcell::GRADCELL_ISA {

/// A tag with kNativeFloat computes floats in float lanes, one without it in double lanes.
struct SqrtFn {
  static constexpr bool kNativeFloat = true;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    return square_root(x);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    return square_root(x);
  }
};
struct RsqrtFn {
  static constexpr bool kNativeFloat = kHasFma;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    return refined(x, all<V>(0x1p-900), all<V>(0x1p200), all<V>(0x1p100));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    if constexpr (sizeof(ElementOf<V>) == 8) return all<V>(1) / square_root(x);
    return refined(x, all<V>(0x1p-60), all<V>(0x1p100), all<V>(0x1p50));
  }

 private:
  /// 1 / sqrt(x) by instructions, both of which round, and one Newton step that takes the errors of
  /// both off; small x is scaled up for the errors not to underflow.
  template <class V>
  GRADCELL_INLINE static V refined(V x, V small, V factor, V root_of_factor) {
    const auto scaled = x < small;
    const V a = select(scaled, x * factor, x);
    const V s = square_root(a);
    // 1 / (s + d) with d = (a - s^2) / 2s is y + y (1 - s y - y d) for y = 1 / s.
    const V y = all<V>(1) / s;
    const V d = residual(s, s, a) * (all<V>(0.5) * y);
    const V better = mad(y, residual(s, y, all<V>(1)) - y * d, y);
    const V regular = select(scaled, better * root_of_factor, better);
    // y itself where it is exact: at 0, infinity, NaN and below 0.
    return select(both(a > all<V>(0), a < all<V>(kInf)), regular, y);
  }
};
struct FloorFn {
  static constexpr bool kNativeFloat = true;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    return round_down(x);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    return round_down(x);
  }
};
struct CeilFn {
  static constexpr bool kNativeFloat = true;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    return round_up(x);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    return round_up(x);
  }
};
struct RoundFn {
  static constexpr bool kNativeFloat = true;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    return round_even(x);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    return round_even(x);
  }
};
struct SignFn {  // NaN and both zeros are their own sign
  static constexpr bool kNativeFloat = true;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    return select(x > all<V>(0), all<V>(1), select(x < all<V>(0), all<V>(-1), x));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    return f64(x);
  }
};
struct AbsFn {
  static constexpr bool kNativeFloat = true;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    return abs_value(x);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    return abs_value(x);
  }
};

namespace scalar {

/// The larger and the smaller of two; NaN if either is.
template <class T>
GRADCELL_INLINE T maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a != a ? a : (a < b || b != b ? b : a);
  return a < b ? b : a;
}
template <class T>
GRADCELL_INLINE T minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a != a ? a : (b < a || b != b ? b : a);
  return b < a ? b : a;
}

/// The magnitude and the sign of integers; that of the most negative number wraps.
template <class T>
GRADCELL_INLINE T abs(T x)
  requires std::is_integral_v<T>
{
  using U = std::make_unsigned_t<T>;
  return x < 0 ? static_cast<T>(U(0) - static_cast<U>(x)) : x;
}
template <class T>
GRADCELL_INLINE T sign(T x)
  requires std::is_integral_v<T>
{
  return static_cast<T>((x > 0) - (x < 0));
}

/// a - floor(a / b) b: the remainder with the sign of b, as in Python. Integers: 0 for b = 0.
template <class T>
GRADCELL_INLINE T mod(T a, T b)
  requires std::is_integral_v<T>
{
  // A divisor of 0 or -1 gives 0 either way, and dividing by it may trap.
  const T d = b == 0 || b == T(-1) ? T(1) : b;
  const T r = static_cast<T>(a % d);
  return static_cast<T>(r != 0 && (r < 0) != (d < 0) ? r + d : r);
}
template <class T>
inline T mod(T a, T b)
  requires std::is_floating_point_v<T>
{
  const double x = a, y = b, q = x / y;
  double r;
  // n has so few bits that x - n y is exact (by a residual where y is a full double).
  if (abs_value(q) < (sizeof(T) == 4 ? 0x1p28 : 0x1p51) && abs_value(y) < kInf) {
    r = residual(round_down(q), y, x);
  } else {
    r = __builtin_fmod(x, y);
  }
  if (r == 0) return static_cast<T>(copy_sign(0.0, y));
  if ((r < 0) != (y < 0)) r += y;
  return static_cast<T>(r);
}

/// floor(a / b), as in Python. Integers: 0 for b = 0; the most negative number over -1 wraps.
template <class T>
GRADCELL_INLINE T floor_div(T a, T b)
  requires std::is_integral_v<T>
{
  using U = std::make_unsigned_t<T>;
  if (b == 0) return 0;
  if (b == T(-1)) return static_cast<T>(U(0) - static_cast<U>(a));
  const T q = static_cast<T>(a / b), r = static_cast<T>(a % b);
  return static_cast<T>(r != 0 && (r < 0) != (b < 0) ? q - 1 : q);
}
template <class T>
inline T floor_div(T a, T b)
  requires std::is_floating_point_v<T>
{
  if (b == 0 || a == 0 || a != a || b != b) return a / b;
  if (abs_value(b) == T(kInf) && abs_value(a) < T(kInf)) return (a < 0) != (b < 0) ? T(-1) : T(0);
  const T r = mod(a, b);
  // Nearly an integer: the remainder has been taken off, so rounding can only repair the quotient.
  const T n = round_even((a - r) / b);
  return n == 0 ? copy_sign(T(0), a / b) : n;
}

/// a^n for integers, modulo 2^bits. A negative n gives the integer part of the true value (0^n: 0).
template <class T>
GRADCELL_INLINE T ipow(T a, T n)
  requires std::is_integral_v<T>
{
  using U = std::make_unsigned_t<T>;
  if (n < 0) return a == 1 ? T(1) : a == T(-1) ? (n & 1 ? T(-1) : T(1)) : T(0);
  U result = 1, base = static_cast<U>(a);
  for (U e = static_cast<U>(n); e != 0; e >>= 1) {
    if (e & 1) result *= base;
    base *= base;
  }
  return static_cast<T>(result);
}

}  // namespace scalar

}  // namespace gradcell::GRADCELL_ISA

// Functions that are one or a few instructions: sqrt rsqrt floor ceil round trunc sign abs copysign
// mod; and those
// that integers have too: maximum minimum abs sign mod floor_div ipow.
#pragma once

#include "math/vecmath_lanes.h"

namespace gradcell::GRADCELL_ISA {

/// A tag with kNativeFloat computes floats in float lanes, one without it in double lanes.
#define GRADCELL_SAME_IN_BOTH(Name, expression) \
  struct Name##Fn {                             \
    static constexpr bool kNativeFloat = true;  \
    template <class V>                          \
    GRADCELL_INLINE static V f64(V x) {         \
      return expression;                        \
    }                                           \
    template <class V>                          \
    GRADCELL_INLINE static V f32(V x) {         \
      return f64(x);                            \
    }                                           \
  };
GRADCELL_SAME_IN_BOTH(Sqrt, square_root(x))
GRADCELL_SAME_IN_BOTH(Floor, round_down(x))
GRADCELL_SAME_IN_BOTH(Ceil, round_up(x))
GRADCELL_SAME_IN_BOTH(Round, round_even(x))
GRADCELL_SAME_IN_BOTH(Trunc, copy_sign(round_down(abs_value(x)), x))
GRADCELL_SAME_IN_BOTH(Abs, abs_value(x))
// NaN is its own sign, and that of both zeros is 0.
GRADCELL_SAME_IN_BOTH(Sign, select(x > all<V>(0), all<V>(1),
                                   select(x < all<V>(0), all<V>(-1), x + all<V>(0))))
#undef GRADCELL_SAME_IN_BOTH

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

/// The size of a with the sign of b.
struct CopySignFn {
  static constexpr bool kNativeFloat = true;
  template <class V>
  GRADCELL_INLINE static V f64(V a, V b) {
    return copy_sign(a, b);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V a, V b) {
    return copy_sign(a, b);
  }
};

/// a - floor(a / b) b: the remainder with the sign of b, as in Python.
struct ModFn {
  /// The quotient has so few bits that the difference is exact.
  template <class T, class V>
  GRADCELL_INLINE static MaskOf<V> within(V a, V b) {
    return both(abs_value(a / b) < all<V>(sizeof(T) == 4 ? 0x1p28 : 0x1p51),
                abs_value(b) < all<V>(kInf));
  }
  template <class T>
  static double beyond(double a, double b) {
    return finish(__builtin_fmod(a, b), b);
  }
  template <class V>
  GRADCELL_INLINE static V f64(V a, V b) {
    return finish(residual(round_down(a / b), b, a), b);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V a, V b) {
    return f64(a, b);
  }

 private:
  template <class V>
  GRADCELL_INLINE static V finish(V r, V b) {
    const V zero = all<V>(0), turned = select((r < zero) != (b < zero), r + b, r);
    return select(r == zero, copy_sign(zero, b), turned);
  }
};

/// a - trunc(a / b) b: the remainder with the sign of a, as in C.
struct FmodFn {
  template <class T, class V>
  GRADCELL_INLINE static MaskOf<V> within(V a, V b) {
    return ModFn::within<T>(a, b);
  }
  template <class T>
  static double beyond(double a, double b) {
    return __builtin_fmod(a, b);
  }
  /// A quotient that was rounded up to the next integer leaves a remainder of the other sign.
  template <class V>
  GRADCELL_INLINE static V f64(V a, V b) {
    const V zero = all<V>(0), r = residual(copy_sign(round_down(abs_value(a / b)), a / b), b, a);
    const V turned = select((r < zero) != (a < zero), r + copy_sign(b, a), r);
    return select(r == zero, copy_sign(zero, a), turned);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V a, V b) {
    return f64(a, b);
  }
};

namespace scalar {

/// The larger and the smaller of two; NaN if either is.
template <class T>
GRADCELL_INLINE T maximum(T a, T b) {
  if constexpr (LaneValue<T>) return select(either(a >= b, a != a), a, b);
  return a < b ? b : a;
}
template <class T>
GRADCELL_INLINE T minimum(T a, T b) {
  if constexpr (LaneValue<T>) return select(either(a <= b, a != a), a, b);
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

/// floor(a / b), as in Python; 0 for b = 0, and the most negative number over -1 wraps. Of 32 bits
/// the quotient in double, rounded down, is exact (it is at least 2^-31 of itself away from the
/// next integer); loops over it run in vectors, which have no integer division.
template <class T>
GRADCELL_INLINE T floor_div(T a, T b)
  requires std::is_integral_v<T>
{
  if constexpr (sizeof(T) <= 4) {
    constexpr double kEnd = 2147483648.0;
    const double d = b == 0 ? 1.0 : static_cast<double>(b);
    const double q = __builtin_floor(static_cast<double>(a) / d);
    const auto whole = static_cast<T>(known<int32_t>(q < kEnd ? q : -kEnd));
    return b == 0 ? T(0) : whole;
  } else {
    using U = std::make_unsigned_t<T>;
    if (b == 0) return 0;
    if (b == T(-1)) return static_cast<T>(U(0) - static_cast<U>(a));
    const T q = static_cast<T>(a / b), r = static_cast<T>(a % b);
    return static_cast<T>(r != 0 && (r < 0) != (b < 0) ? q - 1 : q);
  }
}
/// As ModFn; 0 for b = 0.
template <class T>
GRADCELL_INLINE T mod(T a, T b)
  requires std::is_integral_v<T>
{
  using U = std::make_unsigned_t<T>;
  if constexpr (sizeof(T) <= 4) {
    const U whole = static_cast<U>(floor_div(a, b)) * static_cast<U>(b);
    return b == 0 ? T(0) : static_cast<T>(static_cast<U>(a) - whole);
  } else {
    // A divisor of 0 or -1 gives 0 either way, and dividing by it may trap.
    const T d = b == 0 || b == T(-1) ? T(1) : b;
    const T r = static_cast<T>(a % d);
    return static_cast<T>(r != 0 && (r < 0) != (d < 0) ? r + d : r);
  }
}
/// As FmodFn; 0 for b = 0.
template <class T>
GRADCELL_INLINE T fmod(T a, T b)
  requires std::is_integral_v<T>
{
  if constexpr (sizeof(T) <= 4) {
    constexpr double kEnd = 2147483648.0;
    using U = std::make_unsigned_t<T>;
    const double d = b == 0 ? 1.0 : static_cast<double>(b);
    const double q = static_cast<double>(a) / d;
    const auto whole = static_cast<U>(known<int32_t>(q < kEnd ? q : -kEnd));
    return b == 0 ? T(0)
                  : static_cast<T>(static_cast<U>(a) - static_cast<U>(whole * static_cast<U>(b)));
  } else {
    return b == 0 || b == T(-1) ? T(0) : static_cast<T>(a % b);
  }
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

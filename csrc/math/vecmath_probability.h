// Probabilities: ndtr, the normal distribution function, and logit, log(x / (1 - x)). Composed of
// what the other headers have; docs/accuracy.md says how exact they are.
#pragma once

#include "math/vecmath_erf.h"
#include "math/vecmath_log.h"

namespace gradcell::GRADCELL_ISA {

inline constexpr double kRootHalf = 0x1.6a09e667f3bcdp-1;
inline constexpr float kNdtrCentre = 2;
inline constexpr float kNdtrNear = 4;

/// x^2 / 2, exactly.
template <class V>
GRADCELL_INLINE Pair<V> half_square(V x) {
  const auto s = two_product(x, x);
  return {all<V>(0.5) * s.hi, all<V>(0.5) * s.lo};
}

/// ndtr(-a) in float lanes for 0 <= a <= 4: exp(-a^2/2) times a polynomial. (What the square rounds
/// would be multiplied by up to 8 in the exponential.)
template <class V>
GRADCELL_INLINE V ndtr_near(V a) {
  const auto square = half_square(a);
  const V z = -square.hi;
  const V k = mad(z, all<V>(kLog2e), all<V>(kRounder<V>)) - all<V>(kRounder<V>);
  const V head = mad(k, all<V>(-kLn2FloatHi), z);
  const V r = head + mad(k, all<V>(-kLn2FloatLo), -square.lo);
  const V p = mad(r * r, poly(r, kExpFloat), r);
  const V q = poly(a - all<V>(kNdtrCentre), kNdtrFloat);
  return scale(mad(q, p, q), k);
}
/// The same for 4 <= a <= 14.28, by erfc.
template <class V>
GRADCELL_INLINE V ndtr_far(V a) {
  return erfc_float(a * all<V>(kRootHalf), half_square(a), -1);
}

struct NdtrFn {
  static constexpr bool kNativeFloat = kHasFma;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const V a = at_most(abs_value(x), all<V>(39.5)), z = a * all<V>(kRootHalf);
    const auto small = z < all<V>(0.5);
    const auto e = erf_pair(copy_sign(select(small, z, all<V>(0)), x));
    const auto s = fast_two_sum(all<V>(1), e.hi);
    const V near = all<V>(0.5) * (s.hi + (s.lo + e.lo));
    const V y = erfc64(at_least(z, all<V>(0.5)), half_square(a), -1);
    return select(small, near, select(x > all<V>(0), all<V>(1) - y, y));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    if constexpr (sizeof(ElementOf<V>) == 8) {
      return all<V>(0.5) * ErfcFn::f32(-x * all<V>(kRootHalf));
    } else {
      const V a = abs_value(x);
      const auto within = a <= all<V>(kNdtrNear);
      V y = ndtr_near(at_most(a, all<V>(kNdtrNear)));
      if (!every(within)) {
        const V outer = at_most(at_least(a, all<V>(kNdtrNear)), all<V>(14.28));
        y = select(within, y, ndtr_far(outer));
      }
      return select(x > all<V>(0), all<V>(1) - y, y);
    }
  }
};

/// Floats by one logarithm of a quotient in double lanes. Doubles by that of the quotient, too, but
/// around 1/2, where it would be that of a rounded number close to 1, by 2 atanh(2x - 1).
struct LogitFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const V from_half = x - all<V>(0.5);
    const auto middle = abs_value(from_half) < all<V>(0.25);
    const V near = AtanhFn::f64(select(middle, from_half + from_half, all<V>(0)));
    return select(middle, near + near, LogFn::f64(x / (all<V>(1) - x)));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    return LogFn::f32(x / (all<V>(1) - x));
  }
};

}  // namespace gradcell::GRADCELL_ISA

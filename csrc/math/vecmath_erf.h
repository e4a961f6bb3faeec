// The error function and its complement.
//
// Near 0, erf(x) / x is a polynomial in x^2. Further out,
//   erfc(x) = exp(-x^2) / (1 + 2x) * C(t),  t = (x - K) / (x + K),  K = 3.75,
// where C is smooth on the whole half line (M. Shepherd and J. Laframboise, Math. Comp. 36, 1981).
#pragma once

#include "math/vecmath_exp.h"

namespace gradcell::GRADCELL_ISA {

inline constexpr double kTwoOverRootPi = 0x1.20dd750429b6dp+0;
inline constexpr double kTwoOverRootPiLow = 0x1.1ae3a914fed8p-56;
inline constexpr double kErfcCentre = 3.75;
inline constexpr double kErfcFloatCentre = 2;
inline constexpr float kErfNear = 0.93f;

/// (The polynomial without its constant term) / t.
template <class V, class C, size_t N>
GRADCELL_INLINE V poly_above_constant(V t, const C (&c)[N]) {
  return poly<V, C, N, 1>(t, c);
}

/// erf(x), |x| <= 1.
template <class V>
GRADCELL_INLINE Pair<V> erf_pair(V x) {
  const V z = x * x;
  const auto head = two_product(x, all<V>(kTwoOverRootPi));
  const V tail = mad(x * z, poly(z, kErf64), mad(x, all<V>(kTwoOverRootPiLow), head.lo));
  return fast_two_sum(head.hi, tail);
}
/// 2^shift erfc(x), 0.5 <= x <= 28, given x^2.
template <class V>
GRADCELL_INLINE V erfc64(V x, Pair<V> square, int shift = 0) {
  const auto t = divide(two_sum(x, all<V>(-kErfcCentre)), two_sum(x, all<V>(kErfcCentre)));
  const V q = poly_above_constant(t.hi, kErfc64);
  const auto product = two_product(t.hi, q);
  const auto c = fast_two_sum(all<V>(kErfc64[0]), product.hi);
  const Pair<V> series{c.hi, c.lo + (product.lo + mad(t.lo, q, all<V>(kErfc64Low)))};
  const auto e = exp_parts(-square.hi, -square.lo);
  const auto m = fast_two_sum(all<V>(1), e.p.hi);
  const auto n = multiply(Pair<V>{m.hi, m.lo + e.p.lo}, series);
  const auto quotient = divide(n, two_sum(all<V>(1), x + x));
  return scale(rounded(quotient), e.k + all<V>(shift));
}
template <class V>
GRADCELL_INLINE V erfc64(V x) {
  return erfc64(x, two_product(x, x));
}
template <class V>
GRADCELL_INLINE V erfc32(V x) {
  // One division for both quotients.
  const V p = x + all<V>(kErfcCentre), q = all<V>(1) + x + x, inverse = all<V>(1) / (p * q);
  const V t = (x - all<V>(kErfcCentre)) * q * inverse;
  return exp32(-(x * x)) * poly(t, kErfc32) * (p * inverse);
}

/// In float lanes: the squares' and the quotients' errors go into the product that rounds them.
template <class V>
GRADCELL_INLINE V erfc_float(V x, Pair<V> square, int shift = 0) {
  const V t = (x - all<V>(kErfcFloatCentre)) / (x + all<V>(kErfcFloatCentre));
  const auto e = exp_float(-square.hi);
  const auto m = exp_mantissa(e);
  const V m_low = mad(-square.lo, m.hi, m.lo);
  const auto c = fast_two_sum(all<V>(kErfcFloat[0]), t * poly_above_constant(t, kErfcFloat));
  const V c_low = c.lo + all<V>(kErfcFloatLow);
  const auto product = two_product(m.hi, c.hi);
  const auto divisor = fast_two_sum(x + x, all<V>(1));  // x >= 1/2
  const V inverse = all<V>(1) / divisor.hi;
  const V rest = mad(-inverse, divisor.lo, mad(-inverse, divisor.hi, all<V>(1)));
  const V low = mad(product.hi, rest, mad(m.hi, c_low, mad(m_low, c.hi, product.lo)));
  return scale(mad(product.hi, inverse, low * inverse), e.k + all<V>(shift));
}
template <class V>
GRADCELL_INLINE V erfc_float(V x) {
  return erfc_float(x, two_product(x, x));
}

/// 2 x / sqrt(pi) as a pair in float lanes.
template <class V>
GRADCELL_INLINE Pair<V> erf_head(V x) {
  constexpr float kSlope = static_cast<float>(kTwoOverRootPi);
  const auto head = two_product(x, all<V>(kSlope));
  return {head.hi, mad(x, all<V>(kTwoOverRootPi - kSlope), head.lo)};
}
/// erf(x) in float lanes, |x| <= kErfNear.
template <class V>
GRADCELL_INLINE V erf_near_float(V x, V z) {
  const auto head = erf_head(x);
  const V cube = x * z;
  const V rest = mad(cube * z, poly_above_constant(z, kErfNearFloat), head.lo);
  return head.hi + mad(cube, all<V>(kErfNearFloat[0]), mad(cube, all<V>(kErfNearFloatLow), rest));
}
/// The same, kErfNear <= x <= 3.95: 1 - exp(-x^2) times a polynomial, rounded once.
template <class V>
GRADCELL_INLINE V erf_far_float(V x) {
  const auto e = exp_float(-(x * x));
  const V power = scale(exp_mantissa(e).hi, e.k);
  return mad(-power, poly(x - all<V>(kErfcFloatCentre), kErfRestFloat), all<V>(1));
}

struct ErfFn {
  static constexpr bool kNativeFloat = kHasFma;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const V a = abs_value(x);
    const auto small = a < all<V>(0.75);
    const V near = rounded(erf_pair(select(small, a, all<V>(0))));
    const V far = all<V>(1) - erfc64(at_most(at_least(a, all<V>(0.75)), all<V>(28)));
    return copy_sign(select(small, near, far), x);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const V a = abs_value(x), z = a * a;
    if constexpr (sizeof(ElementOf<V>) == 8) {
      const V near = a * mad(z, poly(z, kErf32), all<V>(kTwoOverRootPi));
      const V far = all<V>(1) - erfc32(at_most(at_least(a, all<V>(0.5)), all<V>(10.4)));
      return copy_sign(select(a < all<V>(1), near, far), x);
    } else {
      const V far = erf_far_float(at_most(at_least(a, all<V>(kErfNear)), all<V>(3.95f)));
      return copy_sign(select(a < all<V>(kErfNear), erf_near_float(a, z), far), x);
    }
  }
};
struct ErfcFn {
  static constexpr bool kNativeFloat = kHasFma;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const V a = abs_value(x);
    const auto small = a < all<V>(0.5);
    const auto e = erf_pair(select(small, x, all<V>(0)));
    const auto s = fast_two_sum(all<V>(1), -e.hi);
    const V y = erfc64(at_most(at_least(a, all<V>(0.5)), all<V>(28)));
    const V far = select(x < all<V>(0), all<V>(2) - y, y);
    return select(small, s.hi + (s.lo - e.lo), far);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const V a = abs_value(x), z = x * x;
    if constexpr (sizeof(ElementOf<V>) == 8) {
      const V near = all<V>(1) - x * mad(z, poly(z, kErf32), all<V>(kTwoOverRootPi));
      const V y = erfc32(at_most(at_least(a, all<V>(0.5)), all<V>(10.4)));
      return select(a < all<V>(0.5), near, select(x < all<V>(0), all<V>(2) - y, y));
    } else {
      // Near 0 what is taken off 1 is a pair, too.
      const auto head = erf_head(x);
      const V tail = mad(x * z, poly(z, kErfFloat), head.lo);
      const auto s = fast_two_sum(all<V>(1), -head.hi);
      const V y = erfc_float(at_most(at_least(a, all<V>(0.5)), all<V>(10.1)));
      const V far = select(x < all<V>(0), all<V>(2) - y, y);
      return select(a < all<V>(0.5), s.hi + (s.lo - tail), far);
    }
  }
};

}  // namespace gradcell::GRADCELL_ISA

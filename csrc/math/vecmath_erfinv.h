// The inverse of the error function.
//
// erfinv(x) / x is smooth in w = -log(1 - x^2), and far from 0 in sqrt(w) (M. Giles, "Approximating
// the erfinv function", GPU Computing Gems, 2011).
#pragma once

#include "math/vecmath_erf.h"
#include "math/vecmath_log.h"

namespace gradcell::GRADCELL_ISA {

inline constexpr double kErfinvNear = 5, kErfinvMiddle = 16;  ///< the ends of w's intervals

struct ErfinvFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const auto inside = abs_value(x) < all<V>(1);
    const V a = select(inside, x, all<V>(0));
    const V w = -LogFn::f64((all<V>(1) - a) * (all<V>(1) + a));
    auto slope = pair(w - all<V>(1), kErfinv64, kErfinv64Low);
    if (const auto near = w <= all<V>(kErfinvNear); !every(near)) {
      const auto s = square_root(exact_w(abs_value(a)));
      const V middle = poly(s.hi - all<V>(3.125), kErfinvMiddle64);
      const V far = poly(s.hi - all<V>(5), kErfinvFar64);
      const auto other = fast_two_sum(s.hi, select(w <= all<V>(kErfinvMiddle), middle, far));
      slope.hi = select(near, slope.hi, other.hi);
      slope.lo = select(near, slope.lo, other.lo + s.lo);
    }
    const auto y = two_product(a, slope.hi);
    const V exact = y.hi + mad(a, slope.lo, y.lo);  // of tiny x the errors are lost anyway
    return finish(x, inside, select(abs_value(a) < all<V>(0x1p-900), y.hi, exact));
  }
  /// In double lanes.
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const auto inside = abs_value(x) < all<V>(1);
    const V a = select(inside, x, all<V>(0));
    const auto l = log_parts32((all<V>(1) - a) * (all<V>(1) + a));
    const V w = mad(l.k, all<V>(-kLn2), -l.mantissa);
    V slope = poly(w - all<V>(1), kErfinv32);
    if (const auto near = w <= all<V>(kErfinvNear); !every(near)) {
      const V s = square_root(w);
      slope = select(near, slope, s + poly(s - all<V>(3.125), kErfinvMiddle32));
    }
    return finish(x, inside, a * slope);
  }

 private:
  /// A polynomial whose constant term has a low word.
  template <class V, size_t N>
  GRADCELL_INLINE static Pair<V> pair(V t, const double (&c)[N], double low) {
    const auto product = two_product(t, poly_above_constant(t, c));
    const auto s = fast_two_sum(all<V>(c[0]), product.hi);
    return {s.hi, s.lo + (product.lo + all<V>(low))};
  }
  /// -log(1 - a^2), 0.5 <= a < 1: beyond w = 5 its last bits count.
  template <class V>
  GRADCELL_INLINE static Pair<V> exact_w(V a) {
    const auto above = fast_two_sum(all<V>(1), a);
    const V below = all<V>(1) - a;
    const auto product = two_product(below, above.hi);
    const auto l = log_parts(product.hi);
    const auto log = add_exponent(l.mantissa, l.k);
    const V low = mad(below, above.lo, product.lo) / product.hi;
    return {-log.hi, -(log.lo + low)};
  }
  /// Infinite at 1 and -1, NaN beyond.
  template <class V>
  GRADCELL_INLINE static V finish(V x, MaskOf<V> inside, V y) {
    const V end = copy_sign(all<V>(kInf), x);
    return select(inside, y, select(abs_value(x) == all<V>(1), end, all<V>(kNaN)));
  }
};

}  // namespace gradcell::GRADCELL_ISA

// The logarithm family: log log2 log10 log1p asinh acosh atanh, and pow.
//
// An argument 1 + u is 2^k (1 + g) with 1 + g in [sqrt(1/2), sqrt(2)); in double,
// log(1 + g) = 2 atanh(f) with f = g / (2 + g), the first two terms of whose series are kept as
// pairs, so that the sum has about 64 good bits. For float results a polynomial in g is enough.
#pragma once

#include "math/vecmath_exp.h"

namespace gradcell::GRADCELL_ISA {

inline constexpr double kLog2eLow = 0x1.777d0ffda0d24p-56;  ///< log2(e) - kLog2e
inline constexpr double kLog10e = 0x1.bcb7b1526e50ep-2;
inline constexpr double kLog10eLow = 0x1.95355baaafad3p-57;
inline constexpr double kLog10Of2 = 0x1.34413509f79ffp-2;
inline constexpr double kLog10Of2Low = -0x1.9dc1da994fd21p-59;

/// x = 2^k m with m in [sqrt(1/2), sqrt(2)), and 2^-k; x positive and normal (2^-k: below 2^1023).
template <class V>
struct Exponent {
  V k, m, inverse_power;
};
template <class V>
GRADCELL_INLINE Exponent<V> exponent_of(V x) {
  // Adding the distance from sqrt(1/2) to 1 carries into the exponent exactly for m >= sqrt(2).
  const auto moved = bits(x) + (uint64_t(0x3ff0000000000000) - uint64_t(0x3fe6a09e667f3bcd));
  const auto biased = moved >> 52;
  // An integer below 2^52 put under the exponent of 2^52 is the double 2^52 + integer.
  const V k = from_bits<V>(biased | uint64_t(0x4330000000000000)) - all<V>(0x1p52 + 1023);
  return {k, from_bits<V>(bits(x) - ((biased - 1023) << 52)),
          from_bits<V>((uint64_t(2046) - biased) << 52)};
}

/// log(1 + g) of a pair g, 1 + g in [sqrt(1/2), sqrt(2)).
template <class V>
GRADCELL_INLINE Pair<V> log_pair(Pair<V> g) {
  auto denominator = fast_two_sum(all<V>(2), g.hi);
  denominator.lo = denominator.lo + g.lo;
  const auto f = divide(g, denominator);
  const auto z = multiply(f, f);
  const auto cube = multiply(z, f);
  // 2f + (2/3) f^3 + f^5 P(f^2)
  const auto third =
      multiply(cube, Pair<V>{all<V>(0x1.5555555555555p-1), all<V>(0x1.5555555555555p-55)});
  const V tail = z.hi * cube.hi * poly(z.hi, kAtanh64);
  const auto sum = fast_two_sum(f.hi + f.hi, third.hi);
  return fast_two_sum(sum.hi, sum.lo + (f.lo + f.lo + (third.lo + tail)));
}
/// k log(2) + l.
template <class V>
GRADCELL_INLINE Pair<V> add_exponent(Pair<V> l, V k) {
  const auto s = two_sum(k * all<V>(kLn2Hi), l.hi);
  return fast_two_sum(s.hi, s.lo + mad(k, all<V>(kLn2Lo), l.lo));
}

/// x scaled by a power of two, and the k that makes up for it.
template <class V>
struct Normalised {
  V x, k;
};
template <class V>
GRADCELL_INLINE Normalised<V> normalise(V x) {
  const auto tiny = x < all<V>(0x1p-1022);
  return {select(tiny, x * all<V>(0x1p54), x), select(tiny, all<V>(-54), all<V>(0))};
}

/// x over 2^100 where it is so large that 1 + x, even then, is x.
template <class V>
GRADCELL_INLINE Normalised<V> huge_scaled(V x) {
  const auto huge = x > all<V>(0x1p200);
  return {select(huge, x * all<V>(0x1p-100), x), select(huge, all<V>(100), all<V>(0))};
}

/// log(x)'s mantissa part and exponent, for finite positive x.
template <class V>
struct LogParts {
  Pair<V> mantissa;
  V k;
};
template <class V>
GRADCELL_INLINE LogParts<V> log_parts(V x) {
  const auto n = normalise(x);
  const auto e = exponent_of(n.x);
  const V g = e.m - all<V>(1);
  return {log_pair(Pair<V>{g, all<V>(0)}), e.k + n.k};
}

/// log(1 + u) + k log(2) of a pair u > -1, u < 2^1000.
template <class V>
GRADCELL_INLINE Pair<V> log1p_pair(Pair<V> u, V k) {
  const auto one = two_sum(all<V>(1), u.hi);
  const auto e = exponent_of(one.hi);
  // g = (1 + u) 2^-k - 1; where k = 0 it is u itself.
  const auto g = two_sum(e.m - all<V>(1), (one.lo + u.lo) * e.inverse_power);
  const auto zero = e.k == all<V>(0);
  const auto l = log_pair(Pair<V>{select(zero, u.hi, g.hi), select(zero, u.lo, g.lo)});
  return add_exponent(l, e.k + k);
}

/// The values of log at 0, below 0, at infinity and at NaN put over y.
template <class V>
GRADCELL_INLINE V log_specials(V x, V y) {
  y = select(x < all<V>(kInf), y, x + x);  // infinity and NaN
  y = select(x == all<V>(0), all<V>(-kInf), y);
  return select(x < all<V>(0), all<V>(kNaN), y);
}

/// log(1 + u) for float arguments widened, u > -1.
template <class V>
GRADCELL_INLINE V log1p_32(V u) {
  const V s = all<V>(1) + u;
  const auto e = exponent_of(s);
  const V g = select(e.k == all<V>(0), u, e.m - all<V>(1));
  return mad(e.k, all<V>(kLn2), mad(g * g, poly(g, kLog32), g));
}
/// log(m) and k of a positive float widened (never denormal as a double).
template <class V>
struct ShortLog {
  V mantissa, k;
};
template <class V>
GRADCELL_INLINE ShortLog<V> log_parts32(V x) {
  const auto e = exponent_of(x);
  const V g = e.m - all<V>(1);
  return {mad(g * g, poly(g, kLog32), g), e.k};
}

struct LogFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    // From f = g / (2 + g) follows 2f = g - h + f h with h = g^2 / 2, so that the large terms are
    // exact or short: log(1 + g) = g - (h - f (h + R)), where f R = 2 atanh(f) - 2f.
    const auto n = normalise(x);
    const auto e = exponent_of(n.x);
    const V k = e.k + n.k, g = e.m - all<V>(1), h = all<V>(0.5) * g * g;
    const V f = g / (all<V>(2) + g), z = f * f;
    const V r = z * mad(z, poly(z, kAtanh64), all<V>(0x1.5555555555555p-1));
    const V low = mad(f, h + r, k * all<V>(kLn2Lo));
    const V y = mad(k, all<V>(kLn2Hi), g - (h - low));
    return log_specials(x, y);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const auto l = log_parts32(x);
    return log_specials(x, mad(l.k, all<V>(kLn2), l.mantissa));
  }
};
struct Log2Fn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const auto l = log_parts(x);
    const auto m = multiply(l.mantissa, Pair<V>{all<V>(kLog2e), all<V>(kLog2eLow)});
    const auto s = two_sum(l.k, m.hi);
    return log_specials(x, s.hi + (s.lo + m.lo));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const auto l = log_parts32(x);
    return log_specials(x, mad(l.mantissa, all<V>(kLog2e), l.k));
  }
};
struct Log10Fn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const auto l = log_parts(x);
    const auto m = multiply(l.mantissa, Pair<V>{all<V>(kLog10e), all<V>(kLog10eLow)});
    const auto e = multiply(Pair<V>{all<V>(kLog10Of2), all<V>(kLog10Of2Low)}, l.k);
    return log_specials(x, rounded(add(e, m)));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const auto l = log_parts32(x);
    return log_specials(x, mad(l.k, all<V>(kLog10Of2), l.mantissa * all<V>(kLog10e)));
  }
};
struct Log1pFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const auto u = huge_scaled(x);
    const V y = rounded(log1p_pair(Pair<V>{u.x, all<V>(0)}, u.k));
    const V special = log_specials(all<V>(1) + x, y);
    return select(abs_value(x) < all<V>(0x1p-54), x, special);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    return select(x == all<V>(0), x, log_specials(all<V>(1) + x, log1p_32(x)));
  }
};
struct AsinhFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    // log1p(a + a^2 / (1 + sqrt(1 + a^2))), a = |x|; of huge a log(2 a).
    const V a = abs_value(x);
    const auto n = huge_scaled(a);
    const auto huge = n.k > all<V>(0);
    const V b = select(huge, all<V>(1), a);
    const auto square = two_product(b, b);
    const auto root = square_root(add(square, all<V>(1)));
    const auto u = add(divide(square, add(root, all<V>(1))), b);
    const V y = rounded(log1p_pair(Pair<V>{select(huge, n.x, u.hi), select(huge, all<V>(0), u.lo)},
                                   select(huge, n.k + all<V>(1), all<V>(0))));
    const V tiny = select(a < all<V>(0x1p-28), x, copy_sign(y, x));
    return select(a < all<V>(kInf), tiny, x + x);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const V a = abs_value(x), square = a * a;
    const V y = log1p_32(a + square / (all<V>(1) + square_root(all<V>(1) + square)));
    return select(a < all<V>(kInf), copy_sign(y, x), x + x);
  }
};
struct AcoshFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    // log1p(t + sqrt(t (t + 2))), t = x - 1; of huge x log(2 x).
    const auto n = huge_scaled(x);
    const auto huge = n.k > all<V>(0);
    const auto t = two_sum(select(huge, all<V>(2), x), all<V>(-1));
    const auto u = add(t, square_root(multiply(t, add(t, all<V>(2)))));
    const V y = rounded(log1p_pair(Pair<V>{select(huge, n.x, u.hi), select(huge, all<V>(0), u.lo)},
                                   select(huge, n.k + all<V>(1), all<V>(0))));
    return select(x < all<V>(1), all<V>(kNaN), select(x < all<V>(kInf), y, x + x));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const V t = x - all<V>(1);
    const V y = log1p_32(t + square_root(t * (t + all<V>(2))));
    return select(x < all<V>(1), all<V>(kNaN), select(x < all<V>(kInf), y, x + x));
  }
};
struct AtanhFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    // log1p(2a / (1 - a)) / 2, a = |x|.
    const V a = abs_value(x);
    const auto u = divide(Pair<V>{a + a, all<V>(0)}, two_sum(all<V>(1), -a));
    const V y = all<V>(0.5) * rounded(log1p_pair(u, all<V>(0)));
    const V inside = select(a < all<V>(0x1p-28), x, copy_sign(y, x));
    const V outside = select(a == all<V>(1), copy_sign(all<V>(kInf), x), all<V>(kNaN));
    return select(a < all<V>(1), inside, outside);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const V a = abs_value(x);
    const V y = copy_sign(all<V>(0.5) * log1p_32((a + a) / (all<V>(1) - a)), x);
    const V outside = select(a == all<V>(1), copy_sign(all<V>(kInf), x), all<V>(kNaN));
    return select(a < all<V>(1), y, outside);
  }
};

/// x^y with the special cases of C (annex F.10.4.4).
struct PowFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x, V y) {
    const V a = abs_value(x);
    const auto regular = both(a > all<V>(0), a < all<V>(kInf));
    const auto l = log_parts(select(regular, a, all<V>(1)));
    const auto log_x = add_exponent(l.mantissa, l.k);
    // |y| beyond 2^65 sends every a != 1 out of range anyway; the bound keeps the product finite.
    const V bounded = at_most(at_least(y, all<V>(-0x1p65)), all<V>(0x1p65));
    const auto product = multiply(log_x, bounded);
    const V t = at_most(at_least(product.hi, all<V>(-746)), all<V>(710));
    const auto e = exp_parts(t, select(t == product.hi, product.lo, all<V>(0)));
    const V power = scale(all<V>(1) + (e.p.hi + e.p.lo), e.k);
    return finish(x, y, power);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x, V y) {
    const V a = abs_value(x);
    const auto regular = both(a > all<V>(0), a < all<V>(kInf));
    const auto l = log_parts32(select(regular, a, all<V>(1)));
    const V product = mad(l.k, all<V>(kLn2), l.mantissa) * y;
    return finish(x, y, exp32(at_most(at_least(product, all<V>(-110)), all<V>(100))));
  }

 private:
  /// |x|^y given as `power` for regular arguments; signs, zeros, infinities and NaN put in.
  template <class V>
  GRADCELL_INLINE static V finish(V x, V y, V power) {
    const V one = all<V>(1), zero = all<V>(0), inf = all<V>(kInf);
    const V a = abs_value(x), b = abs_value(y);
    if (every(both(both(x > zero, x < inf), b < inf))) return power;  // nothing to put in
    const auto edge = either(either(a == zero, a == inf), b == inf);
    const V grows = select(a < one, -y, y);  // its sign: that of y log a
    power = select(edge, select(grows > zero, inf, zero), power);
    power = select(both(a == one, b == inf), one, power);
    const V half = y * all<V>(0.5);
    const auto odd = both(both(round_even(y) == y, round_even(half) != half), b < inf);
    power = select(odd, copy_sign(power, x), power);
    power = select(both(both(x < zero, a < inf), round_even(y) != y), all<V>(kNaN), power);
    power = select(either(x != x, y != y), x + y, power);
    return select(either(x == one, y == zero), one, power);
  }
};

}  // namespace gradcell::GRADCELL_ISA

// The exponential family: exp exp2 expm1 sinh cosh tanh sigmoid.
//
// All start from x = k log 2 + r with k an integer and |r| <= log(2)/2 (Cody and Waite, 1980: log 2
// in two words, the first short enough for k times it to be exact), and a polynomial in r.
// Each function is a tag with two formulas: f64, for results in double, and f32, for arguments and
// results that are floats. f32 computes in double lanes, but in float lanes (twice as many) where a
// tag says kNativeFloat.
#pragma once

#include "math/vecmath_coefficients.h"
#include "math/vecmath_lanes.h"

namespace gradcell::GRADCELL_ISA {

using namespace coefficients;

inline constexpr double kLog2e = 0x1.71547652b82fep+0;
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;
inline constexpr double kLn2Low = 0x1.abc9e3b39803fp-56;  ///< log(2) - kLn2
inline constexpr double kLn2Hi = 0x1.62e42fefa3p-1;       ///< 41 bits
inline constexpr double kLn2Lo = 0x1.3de6af278ece6p-42;   ///< log(2) - kLn2Hi

inline constexpr double kLn2FloatHi = 0x1.62e43p-1;    ///< 24 bits
inline constexpr double kLn2FloatLo = -0x1.05c61p-29;  ///< the next 24

/// 2^k (1 + p.hi + p.lo): the exponential of a pair; p keeps its relative precision near 0.
template <class V>
struct Exponential {
  V k;
  Pair<V> p;
};
/// exp(r) 2^k for a pair r, |r| <= log(2)/2.
template <class V>
GRADCELL_INLINE Exponential<V> exp_reduced(Pair<V> r, V k) {
  const V tail = mad(r.hi * r.hi, poly(r.hi, kExp64), mad(r.lo, r.hi, r.lo));
  return {k, fast_two_sum(r.hi, tail)};
}
template <class V>
GRADCELL_INLINE Exponential<V> exp_parts(V x, V x_low) {
  const V k = to_integer(x * all<V>(kLog2e)).value;
  const V exact = x - k * all<V>(kLn2Hi);
  return exp_reduced(fast_two_sum(exact, x_low - k * all<V>(kLn2Lo)), k);
}

/// r and 2^k of float arguments widened: |x| < 700, 32 bits are enough.
template <class V>
struct ShortReduction {
  V r, power;
};
template <class V>
GRADCELL_INLINE ShortReduction<V> exp_reduce32(V x) {
  const auto [k, power] = to_power(x, kLog2e);
  return {mad(k, all<V>(-kLn2), x), power};
}
template <class V>
GRADCELL_INLINE V exp32(V x) {
  const auto [r, power] = exp_reduce32(x);
  return mad(mad(r * r, poly(r, kExp32), r), power, power);
}
template <class V>
GRADCELL_INLINE V expm1_32(V x) {
  const auto [r, power] = exp_reduce32(x);
  return mad(mad(r * r, poly(r, kExp32), r), power, power - all<V>(1));
}

/// exp(x) = 2^k (1 + head + tail) in float lanes, tail at most a fifth of head. x - k log 2 is
/// exact in its first product thanks to the fma, and its second joins the tail.
template <class V>
struct FloatExponential {
  V head, tail, k;
};
template <class V>
GRADCELL_INLINE FloatExponential<V> exp_float(V x) {
  const V k = mad(x, all<V>(kLog2e), all<V>(kRounder<V>)) - all<V>(kRounder<V>);
  const V head = mad(k, all<V>(-kLn2FloatHi), x), low = k * all<V>(-kLn2FloatLo);
  const V r = head + low;
  return {head, mad(r * r, poly(r, kExpFloat), low), k};
}
/// 1 + head + tail.
template <class V>
GRADCELL_INLINE Pair<V> exp_mantissa(const FloatExponential<V>& e) {
  const auto s = fast_two_sum(all<V>(1), e.head);
  return fast_two_sum(s.hi, s.lo + e.tail);
}

struct ExpFn {
  static constexpr bool kNativeFloat = kHasFma;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    x = at_most(at_least(x, all<V>(-746)), all<V>(710));
    const auto e = exp_parts(x, all<V>(0));
    return scale(all<V>(1) + (e.p.hi + e.p.lo), e.k);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const V bounded = at_most(at_least(x, all<V>(-110)), all<V>(100));
    if constexpr (sizeof(ElementOf<V>) == 8) return exp32(bounded);
    const auto e = exp_float(bounded);
    const auto s = fast_two_sum(all<V>(1), e.head);
    return scale(s.hi + (s.lo + e.tail), e.k);
  }
};

/// x = k + f with k an integer, both exact, and 2^f = exp(f log 2).
struct Exp2Fn {
  static constexpr bool kNativeFloat = kHasFma;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    x = at_most(at_least(x, all<V>(-1080)), all<V>(1030));
    const V k = to_integer(x).value, f = x - k;
    const auto r = two_product(f, all<V>(kLn2));
    const auto e = exp_reduced(Pair<V>{r.hi, mad(f, all<V>(kLn2Low), r.lo)}, k);
    return scale(all<V>(1) + (e.p.hi + e.p.lo), e.k);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const V bounded = at_most(at_least(x, all<V>(-160)), all<V>(130));
    if constexpr (sizeof(ElementOf<V>) == 8) {
      const auto [k, power] = to_power(bounded, 1);
      const V r = (bounded - k) * all<V>(kLn2);
      return mad(mad(r * r, poly(r, kExp32), r), power, power);
    } else {
      const V k = to_integer(bounded).value, f = bounded - k;
      const V head = f * all<V>(kLn2FloatHi);
      const V low = mad(f, all<V>(kLn2FloatLo), mad(f, all<V>(kLn2FloatHi), -head));
      const V r = head + low;
      const auto s = fast_two_sum(all<V>(1), head);
      return scale(s.hi + (s.lo + mad(r * r, poly(r, kExpFloat), low)), k);
    }
  }
};

struct Expm1Fn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const V clamped = at_most(at_least(x, all<V>(-40)), all<V>(710));
    const auto e = exp_parts(clamped, all<V>(0));
    // 2^(k-1) and a doubling at the end: k may be 1024.
    const V half = power_of_two<V>(to_integer(e.k - all<V>(1)).low_bits);
    const auto s = two_sum(half - all<V>(0.5), half * e.p.hi);
    const V y = rounded(Pair<V>{s.hi, mad(half, e.p.lo, s.lo)});
    // Below 2^-54 the function is x; halving would lose bits of a denormal.
    return select(abs_value(x) < all<V>(0x1p-54), x, copy_sign(y + y, x));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    return copy_sign(expm1_32(at_most(at_least(x, all<V>(-40)), all<V>(100))), x);
  }
};

struct SinhFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    // (t + t / (t + 1)) / 2 with t = expm1|x|; half of that is summed, for t may be near overflow.
    const V a = at_most(abs_value(x), all<V>(710.5));
    const auto e = exp_parts(a, all<V>(0));
    const V power = power_of_two<V>(to_integer(e.k - all<V>(2)).low_bits);
    const auto s = two_sum(power - all<V>(0.25), power * e.p.hi);
    const auto quarter = fast_two_sum(s.hi, mad(power, e.p.lo, s.lo));  // t / 4
    const auto q = divide(quarter, add(quarter, all<V>(0.25)));         // t / (t + 1)
    const auto sum = add(quarter, Pair<V>{q.hi * all<V>(0.25), q.lo * all<V>(0.25)});
    const V y = rounded(sum);
    return select(abs_value(x) < all<V>(0x1p-28), x, copy_sign(y + y, x));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const V t = expm1_32(at_most(abs_value(x), all<V>(100)));
    return copy_sign(all<V>(0.5) * (t + t / (t + all<V>(1))), x);
  }
};

struct CoshFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    // (e + 1/e) / 2 with e = exp|x|, all of it over 4 and doubled at the end.
    const V a = at_most(abs_value(x), all<V>(710.5));
    const auto e = exp_parts(a, all<V>(0));
    const auto s = fast_two_sum(all<V>(1), e.p.hi);
    const V quarter = power_of_two<V>(to_integer(e.k - all<V>(2)).low_bits);
    const V hi = s.hi * quarter, lo = (s.lo + e.p.lo) * quarter;
    const V inverse = all<V>(0.0625) / hi;
    const auto sum = fast_two_sum(hi, inverse);
    const V y = sum.hi + (sum.lo + lo * (all<V>(1) - inverse / hi));
    return y + y;
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const V e = exp32(at_most(abs_value(x), all<V>(100)));
    return all<V>(0.5) * (e + all<V>(1) / e);
  }
};

/// x + x^3 P(x^2) near 0, then 1 - 2 / (exp(2|x|) + 1), where exp(2|x|) + 1 is 2^k p + (2^k + 1)
/// and so rounded only once. The farther from 0, the less the errors of the quotient count.
struct TanhFn {
  static constexpr bool kNativeFloat = kHasFma;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const V a = at_most(abs_value(x), all<V>(20)), z = a * a;
    const V near = mad(a * z, poly(z, kTanh64), a);
    const auto [k, power] = to_power(a, 2 * kLog2e);
    const V r = mad(k, all<V>(-kLn2Lo), mad(k, all<V>(-kLn2Hi), a + a));
    const V p = mad(r * r, poly(r, kExp64), r);
    return with_sign(select(a < all<V>(0.625), near, quotient(p, power)), x);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    if constexpr (sizeof(ElementOf<V>) == 8) {
      const V a = at_most(abs_value(x), all<V>(20));
      const V t = expm1_32(a + a);
      return copy_sign(t / (t + all<V>(2)), x);
    } else {
      const V a = at_most(abs_value(x), all<V>(10)), z = a * a;
      const V near = mad(a * z, poly(z, kTanhFloat), a);
      const auto [k, power] = to_power(a, 2 * kLog2e);
      const V r = mad(k, all<V>(-kLn2FloatLo), mad(k, all<V>(-kLn2FloatHi), a + a));
      const V p = mad(r * r, poly(r, kExpFloat), r);
      return with_sign(select(a < all<V>(0.9), near, quotient(p, power)), x);
    }
  }

 private:
  template <class V>
  GRADCELL_INLINE static V quotient(V p, V power) {
    return all<V>(1) - all<V>(2) / mad(power, p, power + all<V>(1));
  }
};

struct SigmoidFn {
  static constexpr bool kNativeFloat = kHasFma;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    // 1 / (1 + t) or t / (1 + t) with t = exp(-|x|); t is scaled last, so that it is rounded once.
    const V a = at_most(abs_value(x), all<V>(746));
    const auto e = exp_parts(-a, all<V>(0));
    const auto s = fast_two_sum(all<V>(1), e.p.hi);
    const Pair<V> m{s.hi, s.lo + e.p.lo};  // t = m 2^k
    const V k = at_least(e.k, all<V>(-1000));
    const V power = power_of_two<V>(to_integer(k).low_bits);
    const Pair<V> t{m.hi * power, m.lo * power};
    const auto one = fast_two_sum(all<V>(1), t.hi);
    const Pair<V> denominator{one.hi, one.lo + t.lo};
    const auto negative = x < all<V>(0);
    const Pair<V> numerator{select(negative, m.hi, all<V>(1)), select(negative, m.lo, all<V>(0))};
    const V q = rounded(divide(numerator, denominator));
    return scale(q, select(negative, e.k, all<V>(0)));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    if constexpr (sizeof(ElementOf<V>) == 8) {
      const V e = exp32(at_most(at_least(-x, all<V>(-40)), all<V>(110)));
      return all<V>(1) / (all<V>(1) + e);
    } else {
      // exp(-x) = 2^k (1 + p): 2^-k / (2^-k + 1 + p), and one Newton step for what the sum and the
      // quotient round. (Beyond these ends 2^-k does not count, or all but 2^-k does not.)
      const V z = at_most(at_least(-x, all<V>(-21)), all<V>(110));
      const V shifted = mad(z, all<V>(kLog2e), all<V>(kRounder<V>));
      const V k = shifted - all<V>(kRounder<V>);
      const V r = mad(k, all<V>(-kLn2FloatLo), mad(k, all<V>(-kLn2FloatHi), z));
      const V p = mad(r * r, poly(r, kExpFloat), r);
      const V power = from_bits<V>((127 - bits(at_most(shifted, all<V>(kRounder<V> + 126)))) << 23);
      const auto high = two_sum(all<V>(1), power);
      const V sum = high.hi + p, low = p - (sum - high.hi) + high.lo;
      const V y = all<V>(1) / sum;
      return scale(mad(y, mad(-y, low, mad(-y, sum, all<V>(1))), y), -k);
    }
  }
};

}  // namespace gradcell::GRADCELL_ISA

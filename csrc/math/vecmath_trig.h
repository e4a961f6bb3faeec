// The circular functions and their inverses: sin cos tan asin acos atan, and atan2.
//
// x = n pi/2 + r with |r| <= pi/4. Up to the `limit` of each precision n has few enough bits for
// its products with the leading words of pi/2 to be exact (Cody and Waite); beyond, reduce_huge
// multiplies by as many bits of 2/pi as matter (M. Payne and R. Hanek, 1983), one number at a time.
#pragma once

#include "math/vecmath_log.h"

namespace gradcell::GRADCELL_ISA {

inline constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
inline constexpr double kHalfPi = 0x1.921fb54442d18p+0;
inline constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;
inline constexpr double kHalfPi1 = 0x1.921fb544p+0;  ///< words of 33 bits
inline constexpr double kHalfPi2 = 0x1.0b4611a6p-34;
inline constexpr double kHalfPi3 = 0x1.3198a2ep-69;
inline constexpr double kHalfPi4 = 0x1.b839a252049c1p-104;  ///< the rest
inline constexpr double kTrigLimit64 = 0x1p20;
inline constexpr double kTrigLimit32 = kHasFma ? 0x1p38 : 0x1p20;
inline constexpr float kHalfPiFloat1 = 0x1.921fb6p+0f;  ///< words of pi/2 as floats
inline constexpr float kHalfPiFloat2 = -0x1.777a5cp-25f;
inline constexpr float kHalfPiFloat3 = -0x1.ee59dap-50f;
inline constexpr float kTrigLimitFloat = 0x1p17f;

template <class V>
struct Angle {
  Pair<V> r;
  UnsignedOf<V> quadrant;  ///< its two low bits
};

template <class V>
GRADCELL_INLINE Angle<V> reduce64(V x) {
  const auto n = to_integer(x * all<V>(kTwoOverPi));
  const V exact = x - n.value * all<V>(kHalfPi1);
  const auto a = two_sum(exact, -(n.value * all<V>(kHalfPi2)));
  const auto b = two_sum(a.hi, -(n.value * all<V>(kHalfPi3)));
  return {fast_two_sum(b.hi, a.lo + (b.lo - n.value * all<V>(kHalfPi4))), n.low_bits};
}
template <class V>
GRADCELL_INLINE Angle<V> reduce32(V x) {
  const auto n = to_integer(x * all<V>(kTwoOverPi));
  V r;
  if constexpr (kHasFma) {
    r = mad(n.value, all<V>(-kHalfPiLow), mad(n.value, all<V>(-kHalfPi), x));
  } else {
    r = (x - n.value * all<V>(kHalfPi1)) - n.value * all<V>(kHalfPi2);
    r = r - n.value * all<V>(kHalfPi3);
  }
  return {{r, all<V>(0)}, n.low_bits};
}

/// In float lanes, with fma: the first difference is exact (both terms are multiples of the last
/// place of the smaller, and they nearly cancel), and so are the product by the second word, as a
/// pair, and its subtraction.
template <class V>
GRADCELL_INLINE Angle<V> reduce_float(V x) {
  const auto n = to_integer(x * all<V>(static_cast<float>(kTwoOverPi)));
  const V exact = mad(n.value, all<V>(-kHalfPiFloat1), x);
  const V product = n.value * all<V>(kHalfPiFloat2);
  const V error = mad(n.value, all<V>(kHalfPiFloat2), -product);
  const auto s = two_sum(exact, -product);
  return {{s.hi, mad(n.value, all<V>(-kHalfPiFloat3), s.lo - error)}, n.low_bits};
}

/// The bits of 2/pi after the point.
inline constexpr uint64_t kTwoOverPiBits[20] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};

/// The reduction of any finite |x| >= 2^20, by integer arithmetic.
inline Angle<double> reduce_huge(double x) {
  using U128 = unsigned __int128;
  const uint64_t word = bits(x);
  const uint64_t m = (word & 0xfffffffffffff) | 0x10000000000000;  // |x| = m 2^e
  const int e = low_bits<int>(word >> 52 & 2047) - 1075;
  // Bits of 2/pi whose product with m 2^e is a multiple of 4 are skipped; the next 192 are used.
  const int start = e > 2 ? e - 2 : 0;
  uint64_t w[3];
  for (int i = 0; i < 3; ++i) {
    const uint64_t* p = kTwoOverPiBits + start / 64 + i;
    const int s = start % 64;
    w[i] = s ? p[0] << s | p[1] >> (64 - s) : p[0];
  }
  // The product, 256 bits of which the point is 192 - min(e, 2) from the right, moved so that two
  // bits stand before the point; of the fraction the upper 128 bits are kept.
  const U128 low = U128(m) * w[2], middle = U128(m) * w[1] + uint64_t(low >> 64);
  const U128 high = U128(m) * w[0] + uint64_t(middle >> 64);
  const U128 upper = high, lower = U128(uint64_t(middle)) << 64 | uint64_t(low);
  const int shift = 62 + (e > 2 ? 2 : e);  // 30..64
  const U128 top = upper << shift | lower >> (128 - shift), next = lower << shift;
  const U128 fraction = top << 2 | next >> 126;
  // Rounded to the nearest quadrant: a fraction of one half or more is a negative remainder.
  const auto rest = static_cast<__int128>(fraction);
  const uint64_t n = uint64_t(top >> 126) + (rest < 0);
  const double hi = static_cast<double>(rest);
  // hi may be 2^127, which no __int128 holds: the difference is taken modulo 2^128.
  const double lo =
      static_cast<double>(static_cast<__int128>(U128(rest) - (hi < 0 ? -U128(-hi) : U128(hi))));
  const auto r =
      multiply(Pair<double>{hi * 0x1p-128, lo * 0x1p-128}, Pair<double>{kHalfPi, kHalfPiLow});
  if (x < 0) return {{-r.hi, -r.lo}, uint64_t(-n)};
  return {r, n};
}

/// sin(r) and cos(r), |r| <= pi/4, as pairs.
template <class V>
GRADCELL_INLINE Pair<V> sin_pair(Pair<V> r) {
  const V z = r.hi * r.hi;
  const V tail = mad(z * r.hi, poly(z, kSin64), r.lo * mad(z, all<V>(-0.5), all<V>(1)));
  return fast_two_sum(r.hi, tail);
}
template <class V>
GRADCELL_INLINE Pair<V> cos_pair(Pair<V> r) {
  const V z = r.hi * r.hi;
  const auto head = fast_two_sum(all<V>(1), all<V>(-0.5) * z);
  const auto square_error = residual(r.hi, r.hi, z);  // z - r^2
  const V tail = mad(z * z, poly(z, kCos64), all<V>(0.5) * square_error - r.hi * r.lo);
  return fast_two_sum(head.hi, head.lo + tail);
}
template <class V>
GRADCELL_INLINE V negate_if_bit1(V y, UnsignedOf<V> quadrant) {
  return from_bits<V>(bits(y) ^ ((quadrant & 2) << (sizeof(ElementOf<V>) == 8 ? 62 : 30)));
}
/// sin of the angle turned by `turns` quadrants: 0 is sin, 1 is cos.
template <class V>
GRADCELL_INLINE V sin64(const Angle<V>& a, unsigned turns) {
  const auto n = a.quadrant + turns;
  const auto s = sin_pair(a.r), c = cos_pair(a.r);
  return negate_if_bit1(select((n & 1) != 0, rounded(c), rounded(s)), n);
}
template <class V>
GRADCELL_INLINE V tan64(const Angle<V>& a) {
  const auto s = sin_pair(a.r), c = cos_pair(a.r);
  const auto odd = (a.quadrant & 1) != 0;
  const auto q = divide(Pair<V>{select(odd, c.hi, s.hi), select(odd, c.lo, s.lo)},
                        Pair<V>{select(odd, -s.hi, c.hi), select(odd, -s.lo, c.lo)});
  return rounded(q);
}
template <class V>
GRADCELL_INLINE V sin_short(V r, V z) {
  return mad(z * r, poly(z, kSin32), r);
}
template <class V>
GRADCELL_INLINE V cos_short(V z) {
  return mad(z * z, poly(z, kCos32), mad(z, all<V>(-0.5), all<V>(1)));
}
template <class V>
GRADCELL_INLINE V sin32(const Angle<V>& a, unsigned turns) {
  const auto n = a.quadrant + turns;
  const V z = a.r.hi * a.r.hi;
  return negate_if_bit1(select((n & 1) != 0, cos_short(z), sin_short(a.r.hi, z)), n);
}

/// The same in float lanes.
template <class V>
GRADCELL_INLINE V sin_float(const Angle<V>& a, unsigned turns) {
  const auto n = a.quadrant + turns;
  const V hi = a.r.hi, lo = a.r.lo, z = hi * hi;
  const V sine = hi + mad(z * hi, poly(z, kSinFloat), lo);
  const V head = mad(z, all<V>(-0.5f), all<V>(1));
  const V error = mad(z, all<V>(-0.5f), all<V>(1) - head);  // exact
  const V cosine = head + mad(z * z, poly(z, kCosFloat), mad(-hi, lo, error));
  return negate_if_bit1(select((n & 1) != 0, cosine, sine), n);
}

/// The angles that the quick reductions are good for, in lanes of floats or of doubles.
template <bool float_lanes>
struct WithinAngle {
  template <class T, class V>
  GRADCELL_INLINE static MaskOf<V> within(V x) {
    constexpr double kShort = float_lanes ? kTrigLimitFloat : kTrigLimit32;
    return abs_value(x) <= all<V>(sizeof(T) == 4 ? kShort : kTrigLimit64);
  }
};

struct SinFn : WithinAngle<kHasFma> {
  static constexpr bool kNativeFloat = kHasFma;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    return select(abs_value(x) < all<V>(0x1p-27), x, sin64(reduce64(x), 0));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const auto zero = x == all<V>(0);  // whose sign is kept
    if constexpr (sizeof(ElementOf<V>) == 8)
      return select(zero, x, sin32(reduce32(x), 0));
    else
      return select(zero, x, sin_float(reduce_float(x), 0));
  }
  template <class T>
  static double beyond(double x) {
    if (sizeof(T) == 4 && abs_value(x) <= kTrigLimit32) return f32<double>(x);
    return x - x == 0 ? sin64(reduce_huge(x), 0) : x - x;
  }
};
struct CosFn : WithinAngle<kHasFma> {
  static constexpr bool kNativeFloat = kHasFma;
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    return sin64(reduce64(x), 1);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    if constexpr (sizeof(ElementOf<V>) == 8)
      return sin32(reduce32(x), 1);
    else
      return sin_float(reduce_float(x), 1);
  }
  template <class T>
  static double beyond(double x) {
    if (sizeof(T) == 4 && abs_value(x) <= kTrigLimit32) return f32<double>(x);
    return x - x == 0 ? sin64(reduce_huge(x), 1) : x - x;
  }
};
struct TanFn : WithinAngle<false> {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    return select(abs_value(x) < all<V>(0x1p-27), x, tan64(reduce64(x)));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const auto a = reduce32(x);
    const V z = a.r.hi * a.r.hi, s = sin_short(a.r.hi, z), c = cos_short(z);
    const auto odd = (a.quadrant & 1) != 0;
    return select(x == all<V>(0), x, select(odd, -c, s) / select(odd, s, c));
  }
  template <class T>
  static double beyond(double x) {
    return x - x == 0 ? tan64(reduce_huge(x)) : x - x;
  }
};

// ---- inverses -----------------------------------------------------------------------------------

inline constexpr double kTanPi8 = 0x1.a827999fcef32p-2;   ///< sqrt(2) - 1
inline constexpr double kTan3Pi8 = 0x1.3504f333f9de6p+1;  ///< sqrt(2) + 1

/// atan(y / x) for 0 <= x, y < inf, not both 0: the quotient turned by 0, pi/4 or pi/2 to be at
/// most tan(pi/8), by the subtraction theorem.
template <class V>
GRADCELL_INLINE Pair<V> atan_pair(V y, V x) {
  const auto steep = y > x * all<V>(kTan3Pi8), flat = y <= x * all<V>(kTanPi8);
  const auto difference = two_sum(y, -x), sum = two_sum(y, x);
  const V zero = all<V>(0);
  const Pair<V> n{select(steep, -x, select(flat, y, difference.hi)),
                  select(steep, zero, select(flat, zero, difference.lo))};
  const Pair<V> d{select(steep, y, select(flat, x, sum.hi)),
                  select(steep, zero, select(flat, zero, sum.lo))};
  const V turn = select(steep, all<V>(kHalfPi), select(flat, zero, all<V>(kHalfPi / 2)));
  const V turn_low = select(steep, all<V>(kHalfPiLow), select(flat, zero, all<V>(kHalfPiLow / 2)));
  const auto t = divide(n, d);
  const V z = t.hi * t.hi;
  const auto s = fast_two_sum(turn, t.hi);
  return fast_two_sum(s.hi, s.lo + (turn_low + mad(z * t.hi, poly(z, kAtan64), t.lo)));
}
template <class V>
GRADCELL_INLINE V atan32(V y, V x) {
  const auto steep = y > x * all<V>(kTan3Pi8), flat = y <= x * all<V>(kTanPi8);
  const V n = select(steep, -x, select(flat, y, y - x));
  const V d = select(steep, y, select(flat, x, y + x));
  const V turn = select(steep, all<V>(kHalfPi), select(flat, all<V>(0), all<V>(kHalfPi / 2)));
  const V t = n / d, z = t * t;
  return turn + mad(z * t, poly(z, kAtan32), t);
}

struct AtanFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const V y = rounded(atan_pair(at_most(abs_value(x), all<V>(0x1p100)), all<V>(1)));
    return select(abs_value(x) < all<V>(0x1p-27), x, copy_sign(y, x));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    return copy_sign(atan32(at_most(abs_value(x), all<V>(0x1p100)), all<V>(1)), x);
  }
};

/// The parts common to both precisions: infinities become finite numbers of the same angle, and
/// 0/0 becomes 0/1.
template <class V>
struct Direction {
  V y, x;
};
template <class V>
GRADCELL_INLINE Direction<V> direction(V y, V x) {
  const V a = abs_value(y), b = abs_value(x), zero = all<V>(0), one = all<V>(1);
  const auto steep = a == all<V>(kInf), flat = b == all<V>(kInf);
  return {select(steep, one, select(flat, zero, a)),
          select(flat, one, select(steep, zero, select(both(a == zero, b == zero), one, b)))};
}
struct Atan2Fn {
  template <class V>
  GRADCELL_INLINE static V f64(V y, V x) {
    auto d = direction(y, x);
    const V larger = select(d.y > d.x, d.y, d.x);
    // So that neither sums overflow nor the residual of the quotient underflows.
    const V factor = select(larger < all<V>(0x1p400), all<V>(0x1p600),
                            select(larger > all<V>(0x1p900), all<V>(0x1p-100), all<V>(1)));
    const auto angle = atan_pair(d.y * factor, d.x * factor);
    const auto s = fast_two_sum(all<V>(2 * kHalfPi), -angle.hi);
    const V left = s.hi + (s.lo + (all<V>(2 * kHalfPiLow) - angle.lo));
    return finish(y, x, select(copy_sign(all<V>(1), x) < all<V>(0), left, rounded(angle)));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V y, V x) {
    const auto d = direction(y, x);
    const V angle = atan32(d.y, d.x);
    return finish(y, x,
                  select(copy_sign(all<V>(1), x) < all<V>(0), all<V>(2 * kHalfPi) - angle, angle));
  }

 private:
  template <class V>
  GRADCELL_INLINE static V finish(V y, V x, V angle) {
    return select(either(x != x, y != y), x + y, copy_sign(angle, y));
  }
};

/// What asin and acos share: s + p = asin(s) with s = a or sqrt((1 - a) / 2), a = |x|.
template <class V>
struct HalfAngle {
  MaskOf<V> small;
  Pair<V> s;
  V p;
};
template <class V>
GRADCELL_INLINE HalfAngle<V> half_angle64(V a) {
  const auto small = a <= all<V>(0.5);
  const V half = all<V>(0.5) * (all<V>(1) - a);
  const auto root = square_root(Pair<V>{half, all<V>(0)});
  const V z = select(small, a * a, half);
  const Pair<V> s{select(small, a, root.hi), select(small, all<V>(0), root.lo)};
  return {small, s, mad(z * s.hi, poly(z, kAsin64), s.lo)};
}
template <class V>
GRADCELL_INLINE HalfAngle<V> half_angle32(V a) {
  const auto small = a <= all<V>(0.5);
  const V z = select(small, a * a, all<V>(0.5) * (all<V>(1) - a));
  const V s = select(small, a, square_root(z));
  return {small, {s, all<V>(0)}, z * s * poly(z, kAsin32)};
}
struct AsinFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const auto h = half_angle64(abs_value(x));
    const auto d = fast_two_sum(all<V>(kHalfPi), all<V>(-2) * h.s.hi);
    const V large = d.hi + (d.lo + mad(all<V>(-2), h.p, all<V>(kHalfPiLow)));
    return copy_sign(select(h.small, h.s.hi + h.p, large), x);
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const auto h = half_angle32(abs_value(x));
    const V y = h.s.hi + h.p;
    return copy_sign(select(h.small, y, mad(all<V>(-2), y, all<V>(kHalfPi))), x);
  }
};
struct AcosFn {
  template <class V>
  GRADCELL_INLINE static V f64(V x) {
    const auto h = half_angle64(abs_value(x));
    const auto positive = x > all<V>(0);
    const auto d = fast_two_sum(all<V>(kHalfPi), -flip_sign(h.s.hi, x));
    const V middle = d.hi + (d.lo + (all<V>(kHalfPiLow) - flip_sign(h.p, x)));
    const V right = all<V>(2) * (h.s.hi + h.p);
    const auto e = fast_two_sum(all<V>(2 * kHalfPi), all<V>(-2) * h.s.hi);
    const V left = e.hi + (e.lo + mad(all<V>(-2), h.p, all<V>(2 * kHalfPiLow)));
    return select(h.small, middle, select(positive, right, left));
  }
  template <class V>
  GRADCELL_INLINE static V f32(V x) {
    const auto h = half_angle32(abs_value(x));
    const V y = h.s.hi + h.p;
    const V large = select(x > all<V>(0), y + y, mad(all<V>(-2), y, all<V>(2 * kHalfPi)));
    return select(h.small, all<V>(kHalfPi) - flip_sign(y, x), large);
  }
};

}  // namespace gradcell::GRADCELL_ISA

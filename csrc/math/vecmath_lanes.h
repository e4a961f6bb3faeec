// Lanes: what the vector math is written in. A "lane value" V is either one double or float, or a
// GCC/Clang vector of them as wide as the instruction set's registers; every formula is a template
// over V, so the scalar functions and the array functions are the same arithmetic.
//
// This file is compiled once for each instruction-set level into one binary. All of it lives in
// namespace gradcell::GRADCELL_ISA, so that the linker never merges code of different levels.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC's own _mm512_undefined_pd and kin
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "base/narrow.h"

#ifndef GRADCELL_ISA
#define GRADCELL_ISA base
#endif

#define GRADCELL_INLINE inline __attribute__((always_inline))

namespace gradcell::GRADCELL_ISA {

#if defined(__AVX512F__) && defined(__AVX512DQ__)
inline constexpr size_t kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr size_t kVectorBytes = 32;
#else
inline constexpr size_t kVectorBytes = 16;
#endif

#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool kHasFma = true;
#else
inline constexpr bool kHasFma = false;
#endif

using VecF = float __attribute__((vector_size(kVectorBytes)));
using VecD = double __attribute__((vector_size(kVectorBytes)));

/// The integers as wide as a lane value's elements (signed: also what a comparison gives; unsigned
/// for shifts, since 64-bit arithmetic shifts are missing before AVX-512).
template <class V>
struct LaneTraits;
template <>
struct LaneTraits<float> {
  using Element = float;
  using Unsigned = uint32_t;
};
template <>
struct LaneTraits<double> {
  using Element = double;
  using Unsigned = uint64_t;
};
template <>
struct LaneTraits<VecF> {
  using Element = float;
  using Unsigned = uint32_t __attribute__((vector_size(kVectorBytes)));
};
template <>
struct LaneTraits<VecD> {
  using Element = double;
  using Unsigned = uint64_t __attribute__((vector_size(kVectorBytes)));
};

/// float, double, VecF, VecD.
template <class V>
concept LaneValue = requires { typename LaneTraits<V>::Element; };
template <class V>
using ElementOf = typename LaneTraits<V>::Element;
template <class V>
using UnsignedOf = typename LaneTraits<V>::Unsigned;
template <class V>
using MaskOf = decltype(V{} < V{});

/// As many int32_t as a register has doubles.
using HalfI = int32_t __attribute__((vector_size(kVectorBytes / 2)));

template <class V>
inline constexpr size_t kLanes = sizeof(V) / sizeof(ElementOf<V>);

// ---- bits, constants, selection -----------------------------------------------------------------

template <class V>
GRADCELL_INLINE UnsignedOf<V> bits(V x) {
  return __builtin_bit_cast(UnsignedOf<V>, x);
}
template <class V>
GRADCELL_INLINE V from_bits(UnsignedOf<V> x) {
  return __builtin_bit_cast(V, x);
}

/// A constant in every lane.
template <class V>
GRADCELL_INLINE V all(double c) {
  using E = ElementOf<V>;
  if constexpr (std::is_same_v<V, E>) {
    return static_cast<E>(c);
  } else {
    // Not V{} + c, which would lose the sign of -0.
    V v;
    for (size_t i = 0; i < kLanes<V>; ++i) v[i] = static_cast<E>(c);
    return v;
  }
}

template <class V>
GRADCELL_INLINE V select(MaskOf<V> m, V a, V b) {
  return m ? a : b;
}
/// Masks of numbers are bool, those of registers integers: these serve both.
template <class M>
GRADCELL_INLINE M both(M a, M b) {
  if constexpr (std::is_same_v<M, bool>) {
    return a && b;
  } else {
    return a & b;
  }
}
template <class M>
GRADCELL_INLINE M either(M a, M b) {
  if constexpr (std::is_same_v<M, bool>) {
    return a || b;
  } else {
    return a | b;
  }
}

template <class V>
inline constexpr UnsignedOf<ElementOf<V>> kSignBit =
    UnsignedOf<ElementOf<V>>(1) << (sizeof(ElementOf<V>) * 8 - 1);

template <class V>
GRADCELL_INLINE V abs_value(V x) {
  return from_bits<V>(bits(x) & ~kSignBit<V>);
}
template <class V>
GRADCELL_INLINE V copy_sign(V magnitude, V sign) {
  return from_bits<V>((bits(magnitude) & ~kSignBit<V>) | (bits(sign) & kSignBit<V>));
}
/// A number that is not negative, given a sign.
template <class V>
GRADCELL_INLINE V with_sign(V magnitude, V sign) {
  return from_bits<V>(bits(magnitude) | (bits(sign) & kSignBit<V>));
}
/// x with its sign flipped where that of s is set.
template <class V>
GRADCELL_INLINE V flip_sign(V x, V s) {
  return from_bits<V>(bits(x) ^ (bits(s) & kSignBit<V>));
}

inline constexpr double kInf = __builtin_inf();
inline constexpr double kNaN = __builtin_nan("");

// ---- instructions that have no operator ---------------------------------------------------------
// Overloads for one element and for a register; nothing outside this section is machine-specific.

GRADCELL_INLINE float square_root(float x) { return __builtin_sqrtf(x); }
GRADCELL_INLINE double square_root(double x) { return __builtin_sqrt(x); }
/// Half to even (the default rounding mode).
GRADCELL_INLINE float round_even(float x) { return __builtin_rintf(x); }
GRADCELL_INLINE double round_even(double x) { return __builtin_rint(x); }
GRADCELL_INLINE float round_down(float x) { return __builtin_floorf(x); }
GRADCELL_INLINE double round_down(double x) { return __builtin_floor(x); }
GRADCELL_INLINE float round_up(float x) { return __builtin_ceilf(x); }
GRADCELL_INLINE double round_up(double x) { return __builtin_ceil(x); }
/// a * b + c, rounded once where the machine can, twice where not.
GRADCELL_INLINE float mad(float a, float b, float c) {
  return kHasFma ? __builtin_fmaf(a, b, c) : a * b + c;
}
GRADCELL_INLINE double mad(double a, double b, double c) {
  return kHasFma ? __builtin_fma(a, b, c) : a * b + c;
}
/// max(x, low) and min(x, high) that let a NaN in x through.
GRADCELL_INLINE float at_least(float x, float low) { return low > x ? low : x; }
GRADCELL_INLINE double at_least(double x, double low) { return low > x ? low : x; }
GRADCELL_INLINE float at_most(float x, float high) { return high < x ? high : x; }
GRADCELL_INLINE double at_most(double x, double high) { return high < x ? high : x; }
/// Whether a mask is set in every lane.
GRADCELL_INLINE bool every(bool m) { return m; }

#ifdef __SSE4_1__
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define GRADCELL_X86(instruction) _mm512_##instruction
#define GRADCELL_ROUND(x, type, how) _mm512_roundscale_##type(x, how)
/// The first and the second half of floats as doubles; and both back, rounded.
GRADCELL_INLINE VecD widen_first(VecF x) { return _mm512_cvtps_pd(_mm512_castps512_ps256(x)); }
GRADCELL_INLINE VecD widen_second(VecF x) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)); }
GRADCELL_INLINE VecF narrow(VecD a, VecD b) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a)), _mm512_cvtpd_ps(b), 1);
}
GRADCELL_INLINE MaskOf<VecD> widen(HalfI m) {
  return (MaskOf<VecD>)_mm512_cvtepi32_epi64((__m256i)m);
}
GRADCELL_INLINE HalfI narrow(MaskOf<VecD> m) { return (HalfI)_mm512_cvtepi64_epi32((__m512i)m); }
GRADCELL_INLINE bool every(MaskOf<VecF> m) { return _mm512_movepi32_mask((__m512i)m) == 0xffff; }
GRADCELL_INLINE bool every(MaskOf<VecD> m) { return _mm512_movepi64_mask((__m512i)m) == 0xff; }
#elif defined(__AVX2__)
#define GRADCELL_X86(instruction) _mm256_##instruction
#define GRADCELL_ROUND(x, type, how) _mm256_round_##type(x, how)
/// By memcpy, for then the compiler loads no more than a half of what comes from memory.
GRADCELL_INLINE VecD widen_half(VecF x, size_t offset) {
  __m128 half;
  std::memcpy(&half, reinterpret_cast<const char*>(&x) + offset, sizeof half);
  return _mm256_cvtps_pd(half);
}
GRADCELL_INLINE VecD widen_first(VecF x) { return widen_half(x, 0); }
GRADCELL_INLINE VecD widen_second(VecF x) { return widen_half(x, 16); }
GRADCELL_INLINE VecF narrow(VecD a, VecD b) {
  return _mm256_set_m128(_mm256_cvtpd_ps(b), _mm256_cvtpd_ps(a));
}
GRADCELL_INLINE MaskOf<VecD> widen(HalfI m) {
  return (MaskOf<VecD>)_mm256_cvtepi32_epi64((__m128i)m);
}
GRADCELL_INLINE HalfI narrow(MaskOf<VecD> m) {
  const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
  return (HalfI)_mm256_castsi256_si128(_mm256_permutevar8x32_epi32((__m256i)m, even));
}
GRADCELL_INLINE bool every(MaskOf<VecF> m) { return _mm256_movemask_ps((__m256)m) == 0xff; }
GRADCELL_INLINE bool every(MaskOf<VecD> m) { return _mm256_movemask_pd((__m256d)m) == 0xf; }
#else
#define GRADCELL_X86(instruction) _mm_##instruction
#define GRADCELL_ROUND(x, type, how) _mm_round_##type(x, how)
GRADCELL_INLINE VecD widen_first(VecF x) { return _mm_cvtps_pd(x); }
GRADCELL_INLINE VecD widen_second(VecF x) { return _mm_cvtps_pd(_mm_movehl_ps(x, x)); }
GRADCELL_INLINE VecF narrow(VecD a, VecD b) {
  return _mm_movelh_ps(_mm_cvtpd_ps(a), _mm_cvtpd_ps(b));
}
GRADCELL_INLINE MaskOf<VecD> widen(HalfI m) {
  return (MaskOf<VecD>)_mm_cvtepi32_epi64(_mm_cvtsi64_si128(__builtin_bit_cast(int64_t, m)));
}
GRADCELL_INLINE HalfI narrow(MaskOf<VecD> m) {
  return __builtin_bit_cast(HalfI, _mm_cvtsi128_si64(_mm_shuffle_epi32((__m128i)m, 0x88)));
}
GRADCELL_INLINE bool every(MaskOf<VecF> m) { return _mm_movemask_ps((__m128)m) == 0xf; }
GRADCELL_INLINE bool every(MaskOf<VecD> m) { return _mm_movemask_pd((__m128d)m) == 0x3; }
#endif
#define GRADCELL_INSTRUCTIONS(V, type)                                                \
  GRADCELL_INLINE V square_root(V x) { return GRADCELL_X86(sqrt_##type)(x); }         \
  GRADCELL_INLINE V round_even(V x) { return GRADCELL_ROUND(x, type, 0x8); }          \
  GRADCELL_INLINE V round_down(V x) { return GRADCELL_ROUND(x, type, 0x9); }          \
  GRADCELL_INLINE V round_up(V x) { return GRADCELL_ROUND(x, type, 0xa); }            \
  GRADCELL_INLINE V at_least(V x, V low) { return GRADCELL_X86(max_##type)(low, x); } \
  GRADCELL_INLINE V at_most(V x, V high) { return GRADCELL_X86(min_##type)(high, x); }
GRADCELL_INSTRUCTIONS(VecF, ps)
GRADCELL_INSTRUCTIONS(VecD, pd)
#ifdef __FMA__
GRADCELL_INLINE VecF mad(VecF a, VecF b, VecF c) { return GRADCELL_X86(fmadd_ps)(a, b, c); }
GRADCELL_INLINE VecD mad(VecD a, VecD b, VecD c) { return GRADCELL_X86(fmadd_pd)(a, b, c); }
#else
GRADCELL_INLINE VecF mad(VecF a, VecF b, VecF c) { return a * b + c; }
GRADCELL_INLINE VecD mad(VecD a, VecD b, VecD c) { return a * b + c; }
#endif
#undef GRADCELL_INSTRUCTIONS
#undef GRADCELL_ROUND
#undef GRADCELL_X86
#elif defined(__aarch64__)
GRADCELL_INLINE VecF square_root(VecF x) { return (VecF)vsqrtq_f32((float32x4_t)x); }
GRADCELL_INLINE VecD square_root(VecD x) { return (VecD)vsqrtq_f64((float64x2_t)x); }
GRADCELL_INLINE VecF round_even(VecF x) { return (VecF)vrndnq_f32((float32x4_t)x); }
GRADCELL_INLINE VecD round_even(VecD x) { return (VecD)vrndnq_f64((float64x2_t)x); }
GRADCELL_INLINE VecF round_down(VecF x) { return (VecF)vrndmq_f32((float32x4_t)x); }
GRADCELL_INLINE VecD round_down(VecD x) { return (VecD)vrndmq_f64((float64x2_t)x); }
GRADCELL_INLINE VecF round_up(VecF x) { return (VecF)vrndpq_f32((float32x4_t)x); }
GRADCELL_INLINE VecD round_up(VecD x) { return (VecD)vrndpq_f64((float64x2_t)x); }
GRADCELL_INLINE VecF mad(VecF a, VecF b, VecF c) {
  return (VecF)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
GRADCELL_INLINE VecD mad(VecD a, VecD b, VecD c) {
  return (VecD)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
// fmax and fmin of NEON give NaN when either is NaN, which is what is wanted here.
GRADCELL_INLINE VecF at_least(VecF x, VecF low) {
  return (VecF)vmaxq_f32((float32x4_t)low, (float32x4_t)x);
}
GRADCELL_INLINE VecD at_least(VecD x, VecD low) {
  return (VecD)vmaxq_f64((float64x2_t)low, (float64x2_t)x);
}
GRADCELL_INLINE VecF at_most(VecF x, VecF high) {
  return (VecF)vminq_f32((float32x4_t)high, (float32x4_t)x);
}
GRADCELL_INLINE VecD at_most(VecD x, VecD high) {
  return (VecD)vminq_f64((float64x2_t)high, (float64x2_t)x);
}
GRADCELL_INLINE VecD widen_first(VecF x) {
  return (VecD)vcvt_f64_f32(vget_low_f32((float32x4_t)x));
}
GRADCELL_INLINE VecD widen_second(VecF x) { return (VecD)vcvt_high_f64_f32((float32x4_t)x); }
GRADCELL_INLINE VecF narrow(VecD a, VecD b) {
  return (VecF)vcvt_high_f32_f64(vcvt_f32_f64((float64x2_t)a), (float64x2_t)b);
}
GRADCELL_INLINE MaskOf<VecD> widen(HalfI m) { return __builtin_convertvector(m, MaskOf<VecD>); }
GRADCELL_INLINE HalfI narrow(MaskOf<VecD> m) { return __builtin_convertvector(m, HalfI); }
GRADCELL_INLINE bool every(MaskOf<VecF> m) { return vminvq_u32((uint32x4_t)m) != 0; }
GRADCELL_INLINE bool every(MaskOf<VecD> m) { return vminvq_u32((uint32x4_t)m) != 0; }
#else  // any other machine (x86-64 before SSE4.1 too): element by element
#define GRADCELL_EACH(V, function, expression)                \
  GRADCELL_INLINE V function {                                \
    V r;                                                      \
    for (size_t i = 0; i < kLanes<V>; ++i) r[i] = expression; \
    return r;                                                 \
  }
#define GRADCELL_INSTRUCTIONS(V)                                 \
  GRADCELL_EACH(V, square_root(V x), square_root(x[i]))          \
  GRADCELL_EACH(V, round_even(V x), round_even(x[i]))            \
  GRADCELL_EACH(V, round_down(V x), round_down(x[i]))            \
  GRADCELL_EACH(V, round_up(V x), round_up(x[i]))                \
  GRADCELL_EACH(V, mad(V a, V b, V c), mad(a[i], b[i], c[i]))    \
  GRADCELL_EACH(V, at_least(V x, V low), at_least(x[i], low[i])) \
  GRADCELL_EACH(V, at_most(V x, V high), at_most(x[i], high[i])) \
  GRADCELL_INLINE bool every(MaskOf<V> m) {                      \
    bool all_set = true;                                         \
    for (size_t i = 0; i < kLanes<V>; ++i) all_set &= m[i] != 0; \
    return all_set;                                              \
  }
GRADCELL_INSTRUCTIONS(VecF)
GRADCELL_INSTRUCTIONS(VecD)
GRADCELL_EACH(VecD, widen_first(VecF x), x[i])
GRADCELL_EACH(VecD, widen_second(VecF x), x[i + kLanes<VecD>])
/// (Never inlined: GCC 12 drops a vector's conversion to float and back, and with it the rounding.)
__attribute__((noinline)) inline VecF narrow(VecD a, VecD b) {
  VecF r;
  for (size_t i = 0; i < kLanes<VecF>; ++i)
    r[i] = static_cast<float>(i < kLanes<VecD> ? a[i] : b[i - kLanes<VecD>]);
  return r;
}
#undef GRADCELL_INSTRUCTIONS
GRADCELL_INLINE MaskOf<VecD> widen(HalfI m) { return __builtin_convertvector(m, MaskOf<VecD>); }
GRADCELL_INLINE HalfI narrow(MaskOf<VecD> m) { return __builtin_convertvector(m, HalfI); }
#undef GRADCELL_EACH
#endif

template <class V>
GRADCELL_INLINE V load(const ElementOf<V>* p) {
  V v;
  std::memcpy(&v, p, sizeof(V));
  return v;
}
template <class V>
GRADCELL_INLINE void store(ElementOf<V>* p, V v) {
  std::memcpy(p, &v, sizeof(V));
}

// ---- polynomials --------------------------------------------------------------------------------

/// c[0] + c[1] x + ..., Horner's rule from the highest term down.
template <class V, class C, size_t N, size_t I = 0>
GRADCELL_INLINE V poly(V x, const C (&c)[N]) {
  if constexpr (I + 1 == N) {
    return all<V>(c[I]);
  } else {
    return mad(poly<V, C, N, I + 1>(x, c), x, all<V>(c[I]));
  }
}

// ---- powers of two ------------------------------------------------------------------------------

/// Adding and subtracting 1.5 * 2^52 (floats: 2^23) rounds a number of magnitude below 2^51 (2^22)
/// to an integer, and leaves that integer in the low bits of the sum.
template <class V>
inline constexpr double kRounder = sizeof(ElementOf<V>) == 4 ? 0x1.8p23 : 0x1.8p52;

/// x rounded to an integer, as a number and (in the low 9 or 12 bits at least) as an integer.
template <class V>
struct Integer {
  V value;
  UnsignedOf<V> low_bits;
};
template <class V>
GRADCELL_INLINE Integer<V> to_integer(V x) {
  const V shifted = x + all<V>(kRounder<V>);
  return {shifted - all<V>(kRounder<V>), bits(shifted)};
}

/// 2^k for an integer k given by its low bits, in [-1022, 1023] (floats: [-126, 127]).
template <class V>
GRADCELL_INLINE V power_of_two(UnsignedOf<V> k) {
  if constexpr (sizeof(ElementOf<V>) == 4) {
    return from_bits<V>((k + 127) << 23);
  } else {
    return from_bits<V>((k + 1023) << 52);
  }
}

/// x c rounded to an integer k, and 2^k, k within the range above: the exponent's bias is part of
/// the rounder, so that a shift alone makes the power.
template <class V>
struct Power {
  V k, power;
};
template <class V>
GRADCELL_INLINE Power<V> to_power(V x, double c) {
  constexpr bool kFloat = sizeof(ElementOf<V>) == 4;
  const V rounder = all<V>(kRounder<V> + (kFloat ? 127 : 1023));
  const V shifted = mad(x, all<V>(c), rounder);
  return {shifted - rounder, from_bits<V>(bits(shifted) << (kFloat ? 23 : 52))};
}

/// y * 2^k for |k| < 2044 (252), rounded once: in two factors, so that neither is out of range.
template <class V>
GRADCELL_INLINE V scale(V y, V k) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  if constexpr (std::is_same_v<V, VecD>) return _mm512_scalef_pd(y, k);
  if constexpr (std::is_same_v<V, VecF>) return _mm512_scalef_ps(y, k);
#endif
  const auto first = to_integer(k * all<V>(0.5));
  const auto second = to_integer(k - first.value);
  return y * power_of_two<V>(first.low_bits) * power_of_two<V>(second.low_bits);
}

// ---- pairs: numbers of twice the precision ------------------------------------------------------

/// hi + lo, lo at most half an ULP of hi.
template <class V>
struct Pair {
  V hi, lo;
};

/// a + b exactly, given |a| >= |b| or a = 0 (T. J. Dekker, 1971).
template <class V>
GRADCELL_INLINE Pair<V> fast_two_sum(V a, V b) {
  const V s = a + b;
  return {s, b - (s - a)};
}
/// a + b exactly (D. E. Knuth, TAOCP 2, 4.2.2, theorem B).
template <class V>
GRADCELL_INLINE Pair<V> two_sum(V a, V b) {
  const V s = a + b;
  const V t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
/// The upper 26 bits of a double, so that products of such halves are exact.
template <class V>
GRADCELL_INLINE V upper_half(V x) {
  return from_bits<V>(bits(x) & ~((uint64_t(1) << 27) - 1));
}
/// a * b exactly (doubles; floats need an fma): by one fma, or else by Dekker's four partial
/// products (of halves cut by mask).
template <class V>
GRADCELL_INLINE Pair<V> two_product(V a, V b) {
  const V p = a * b;
  if constexpr (kHasFma) {
    return {p, mad(a, b, -p)};
  } else {
    const V ah = upper_half(a), al = a - ah, bh = upper_half(b), bl = b - bh;
    return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
  }
}
/// c - a * b with a small relative error although the difference cancels.
template <class V>
GRADCELL_INLINE V residual(V a, V b, V c) {
  if constexpr (kHasFma) {
    return mad(-a, b, c);
  } else {
    const auto p = two_product(a, b);
    return (c - p.hi) - p.lo;
  }
}
template <class V>
GRADCELL_INLINE Pair<V> add(Pair<V> a, V b) {
  const auto s = two_sum(a.hi, b);
  return fast_two_sum(s.hi, s.lo + a.lo);
}
template <class V>
GRADCELL_INLINE Pair<V> add(Pair<V> a, Pair<V> b) {
  const auto s = two_sum(a.hi, b.hi);
  return fast_two_sum(s.hi, s.lo + (a.lo + b.lo));
}
template <class V>
GRADCELL_INLINE Pair<V> multiply(Pair<V> a, Pair<V> b) {
  const auto p = two_product(a.hi, b.hi);
  return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}
template <class V>
GRADCELL_INLINE Pair<V> multiply(Pair<V> a, V b) {
  const auto p = two_product(a.hi, b);
  return fast_two_sum(p.hi, mad(a.lo, b, p.lo));
}
/// The quotient, its low word from the residual of the high one.
template <class V>
GRADCELL_INLINE Pair<V> divide(Pair<V> a, Pair<V> b) {
  const V q = a.hi / b.hi;
  return {q, (residual(q, b.hi, a.hi) + (a.lo - q * b.lo)) / b.hi};
}
/// The square root, its low word from the residual of the high one (Newton's step).
template <class V>
GRADCELL_INLINE Pair<V> square_root(Pair<V> a) {
  const V s = square_root(a.hi);
  const V low = (residual(s, s, a.hi) + a.lo) / (s + s);
  return {s, select(a.hi > all<V>(0), low, all<V>(0))};
}
template <class V>
GRADCELL_INLINE V rounded(Pair<V> a) {
  return a.hi + a.lo;
}

}  // namespace gradcell::GRADCELL_ISA

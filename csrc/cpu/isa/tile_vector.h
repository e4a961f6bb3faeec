// One SIMD register of the level being compiled, as a GCC/Clang vector type. Everything is in the
// level's namespace and has internal linkage: code of one level must never be linked into another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "math/vecmath_lanes.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

namespace math = gradcell::GRADCELL_ISA;

constexpr int kVectorBytes = math::kVectorBytes;
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kVectorRegisters = 32;
#else
constexpr int kVectorRegisters = 16;
#endif

template <class T, int Bytes>
struct VectorType;
template <int Bytes>
struct VectorType<float, Bytes> {
  typedef float type __attribute__((vector_size(Bytes), may_alias));
};
template <int Bytes>
struct VectorType<double, Bytes> {
  typedef double type __attribute__((vector_size(Bytes), may_alias));
};
template <int Bytes>
struct VectorType<uint32_t, Bytes> {
  typedef uint32_t type __attribute__((vector_size(Bytes), may_alias));
};

template <class T, int Bytes = kVectorBytes>
using Vec = typename VectorType<T, Bytes>::type;
template <class T>
constexpr int kLanes = kVectorBytes / narrow<int>(sizeof(T));

template <class V, class T>
GRADCELL_INLINE V load_as(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof(V));
  return v;
}
template <class T>
GRADCELL_INLINE Vec<T> load(const T* p) {
  return load_as<Vec<T>>(p);
}
template <class V, class T>
GRADCELL_INLINE void store(T* p, V v) {
  std::memcpy(p, &v, sizeof(V));
}

GRADCELL_INLINE Vec<float> broadcast(float s) {
#if defined(__AVX512F__)
  return (Vec<float>)_mm512_set1_ps(s);
#elif defined(__AVX__)
  return (Vec<float>)_mm256_set1_ps(s);
#else
  return Vec<float>{s, s, s, s};
#endif
}
GRADCELL_INLINE Vec<double> broadcast(double s) {
#if defined(__AVX512F__)
  return (Vec<double>)_mm512_set1_pd(s);
#elif defined(__AVX__)
  return (Vec<double>)_mm256_set1_pd(s);
#else
  return Vec<double>{s, s};
#endif
}

/// a * b + c, in one rounding where the level has such an instruction.
GRADCELL_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return (Vec<float>)math::mad((math::VecF)a, (math::VecF)b, (math::VecF)c);
}
GRADCELL_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return (Vec<double>)math::mad((math::VecD)a, (math::VecD)b, (math::VecD)c);
}

#if defined(__AVX512BF16__)
// A uint32_t is a pair of bfloat16 numbers, see cpu/kernels/pair_kernels.h.
GRADCELL_INLINE Vec<uint32_t> broadcast(uint32_t s) {
  return (Vec<uint32_t>)_mm512_set1_epi32(low_bits<int>(s));
}
/// The sum of both products of a pair, + c.
GRADCELL_INLINE Vec<float> fma(Vec<uint32_t> a, Vec<uint32_t> b, Vec<float> c) {
  return (Vec<float>)_mm512_dpbf16_ps((__m512)c, (__m512bh)a, (__m512bh)b);
}
#endif

/// 16 bytes at p, again and again.
template <class T>
GRADCELL_INLINE Vec<T> broadcast_quad(const T* p) {
#if defined(__AVX512F__)  // (the unmasked forms, here and below, make GCC 12 warn)
  return (Vec<T>)_mm512_maskz_broadcast_f32x4(0xffff, load_as<__m128>(p));
#elif defined(__AVX__)
  return (Vec<T>)_mm256_broadcast_ps((const __m128*)p);
#else
  return load(p);
#endif
}

/// Of as many vectors as one has 16-byte quarters: to[i]'s quarter j is from[j]'s quarter i.
template <class V>
GRADCELL_INLINE void transpose_quads(V* v) {
#if defined(__AVX512F__)
  const __m512 a = (__m512)v[0], b = (__m512)v[1], c = (__m512)v[2], d = (__m512)v[3];
  const __m512 ab01 = _mm512_maskz_shuffle_f32x4(0xffff, a, b, 0x44);
  const __m512 ab23 = _mm512_maskz_shuffle_f32x4(0xffff, a, b, 0xee);
  const __m512 cd01 = _mm512_maskz_shuffle_f32x4(0xffff, c, d, 0x44);
  const __m512 cd23 = _mm512_maskz_shuffle_f32x4(0xffff, c, d, 0xee);
  v[0] = (V)_mm512_maskz_shuffle_f32x4(0xffff, ab01, cd01, 0x88);
  v[1] = (V)_mm512_maskz_shuffle_f32x4(0xffff, ab01, cd01, 0xdd);
  v[2] = (V)_mm512_maskz_shuffle_f32x4(0xffff, ab23, cd23, 0x88);
  v[3] = (V)_mm512_maskz_shuffle_f32x4(0xffff, ab23, cd23, 0xdd);
#elif defined(__AVX__)
  const __m256 a = (__m256)v[0], b = (__m256)v[1];
  v[0] = (V)_mm256_permute2f128_ps(a, b, 0x20);
  v[1] = (V)_mm256_permute2f128_ps(a, b, 0x31);
#else
  (void)v;
#endif
}

template <int N>
struct Int {
  static constexpr int value = N;
};

constexpr int min(int a, int b) { return a < b ? a : b; }
constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

/// Transposes of square blocks of N vectors of N, by halves: at step S the S-wide blocks off the
/// diagonal of every 2S-wide block change places.
template <class T, int N>
struct Square {
  using V = Vec<T, N * sizeof(T)>;
  static GRADCELL_INLINE void transpose(V (&a)[N]) { exchange<1>(a, Lanes()); }

 private:
  using Lanes = std::make_integer_sequence<int, N>;
  template <int S, int... lane>
  static GRADCELL_INLINE void exchange(V (&a)[N], std::integer_sequence<int, lane...> lanes) {
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      if (i & S) continue;
      const V x = a[i], y = a[i + S];
      a[i] = __builtin_shufflevector(x, y, (lane & S ? N + lane - S : lane)...);
      a[i + S] = __builtin_shufflevector(x, y, (lane & S ? N + lane : lane + S)...);
    }
    if constexpr (2 * S < N) exchange<2 * S>(a, lanes);
  }
};

/// to[j][i] = from[i][j] for i, j < N.
template <class T, int N>
GRADCELL_INLINE void transpose_square(const T* from, ptrdiff_t from_ld, T* to, ptrdiff_t to_ld) {
  using V = typename Square<T, N>::V;
  V a[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) a[i] = load_as<V>(from + i * from_ld);
  Square<T, N>::transpose(a);
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) store(to + i * to_ld, a[i]);
}

}  // namespace
}  // namespace gradcell::cpu::GRADCELL_ISA

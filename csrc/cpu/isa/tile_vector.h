// One SIMD register of the level being compiled, as a GCC/Clang vector type. Everything is in the
// level's namespace and has internal linkage: code of one level must never be linked into another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define GRADCELL_INLINE __attribute__((always_inline)) inline

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kVectorRegisters = 32;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32, kVectorRegisters = 16;
#elif defined(__aarch64__)
constexpr int kVectorBytes = 16, kVectorRegisters = 32;
#else
constexpr int kVectorBytes = 16, kVectorRegisters = 16;
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

template <class T, int Bytes = kVectorBytes>
using Vec = typename VectorType<T, Bytes>::type;
template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

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
#if defined(__AVX512F__)
  return (Vec<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Vec<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
  return (Vec<float>)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}
GRADCELL_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
#if defined(__AVX512F__)
  return (Vec<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
  return (Vec<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__)
  return (Vec<double>)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
  return a * b + c;
#endif
}

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

// Transposes of square blocks of N = Lanes vectors of N, by halves: at step S the S-wide blocks off
// the diagonal of every 2S-wide block change places.
template <class T, int N>
struct Square;
#define GRADCELL_SHUFFLE __builtin_shufflevector

template <class T>
struct Square<T, 2> {
  using V = Vec<T, 2 * sizeof(T)>;
  static GRADCELL_INLINE void transpose(V (&a)[2]) {
    const V lo = GRADCELL_SHUFFLE(a[0], a[1], 0, 2), hi = GRADCELL_SHUFFLE(a[0], a[1], 1, 3);
    a[0] = lo, a[1] = hi;
  }
};

template <class T>
struct Square<T, 4> {
  using V = Vec<T, 4 * sizeof(T)>;
  static GRADCELL_INLINE void transpose(V (&a)[4]) {
    V b[4];
    for (int i = 0; i < 4; i += 2) {
      b[i] = GRADCELL_SHUFFLE(a[i], a[i + 1], 0, 4, 2, 6);
      b[i + 1] = GRADCELL_SHUFFLE(a[i], a[i + 1], 1, 5, 3, 7);
    }
    for (int i = 0; i < 2; ++i) {
      a[i] = GRADCELL_SHUFFLE(b[i], b[i + 2], 0, 1, 4, 5);
      a[i + 2] = GRADCELL_SHUFFLE(b[i], b[i + 2], 2, 3, 6, 7);
    }
  }
};

template <class T>
struct Square<T, 8> {
  using V = Vec<T, 8 * sizeof(T)>;
  static GRADCELL_INLINE void transpose(V (&a)[8]) {
    V b[8];
    for (int i = 0; i < 8; i += 2) {
      b[i] = GRADCELL_SHUFFLE(a[i], a[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
      b[i + 1] = GRADCELL_SHUFFLE(a[i], a[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int g = 0; g < 8; g += 4) {
      for (int i = g; i < g + 2; ++i) {
        a[i] = GRADCELL_SHUFFLE(b[i], b[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        a[i + 2] = GRADCELL_SHUFFLE(b[i], b[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      }
    }
    for (int i = 0; i < 4; ++i) {
      b[i] = GRADCELL_SHUFFLE(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
      b[i + 4] = GRADCELL_SHUFFLE(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int i = 0; i < 8; ++i) a[i] = b[i];
  }
};

template <class T>
struct Square<T, 16> {
  using V = Vec<T, 16 * sizeof(T)>;
  static GRADCELL_INLINE void transpose(V (&a)[16]) {
    V b[16];
    for (int i = 0; i < 16; i += 2) {
      b[i] = GRADCELL_SHUFFLE(a[i], a[i + 1], 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14,
                              30);
      b[i + 1] = GRADCELL_SHUFFLE(a[i], a[i + 1], 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29,
                                  15, 31);
    }
    for (int g = 0; g < 16; g += 4) {
      for (int i = g; i < g + 2; ++i) {
        a[i] = GRADCELL_SHUFFLE(b[i], b[i + 2], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13,
                                28, 29);
        a[i + 2] = GRADCELL_SHUFFLE(b[i], b[i + 2], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14,
                                    15, 30, 31);
      }
    }
    for (int g = 0; g < 16; g += 8) {
      for (int i = g; i < g + 4; ++i) {
        b[i] = GRADCELL_SHUFFLE(a[i], a[i + 4], 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25,
                                26, 27);
        b[i + 4] = GRADCELL_SHUFFLE(a[i], a[i + 4], 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28,
                                    29, 30, 31);
      }
    }
    for (int i = 0; i < 8; ++i) {
      a[i] =
          GRADCELL_SHUFFLE(b[i], b[i + 8], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
      a[i + 8] = GRADCELL_SHUFFLE(b[i], b[i + 8], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28,
                                  29, 30, 31);
    }
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

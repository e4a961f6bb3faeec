// Lets a C++ compiler build generated CUDA kernels. What the kernels need of CUDA, and no more: no
// heavy header, since every file of kernels includes this. cuda_shim.cpp runs them as a GPU may,
// and says what a GPU would not have forgiven; with SHIM_SINGLE there is one block of one thread.
#pragma once

#define __CUDACC_RTC__
#define GRADCELL_SHIM

#include <cmath>
#include <cstring>

#define __device__
#define __global__ __attribute__((noinline))
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(threads, blocks)
#define __grid_constant__
#define __shared__ static

struct ShimIndex {
  unsigned x, y, z;
};

#ifdef SHIM_SINGLE
alignas(16) static unsigned char gc_tile[256 << 10];
static const ShimIndex threadIdx{0, 0, 0}, blockIdx{0, 0, 0}, blockDim{1, 1, 1}, gridDim{1, 1, 1};
inline void __syncthreads() {}
/// Of a kernel whose text is for whole warps.
extern "C" int printf(const char*, ...);
extern "C" void abort();
inline void shim_needs_warps() {
  printf("a kernel for whole warps was given one thread\n");
  abort();
}
#else
/// A thread has one place, so that to read it is no access to memory.
#ifndef SHIM_RUNNER
extern const ShimIndex threadIdx, blockIdx, blockDim, gridDim;
#endif
alignas(16) extern unsigned char gc_tile[256 << 10];
/// Barriers of a block and of a warp. Each has a number in the text that tests compile (0: none),
/// so that one can be left out.
void shim_barrier(int number);
void shim_warp_barrier(int number);
/// The `size` bytes of another lane, whose number differs in the bits of `distance`. All lanes that
/// there are call it together, with the mask that names them.
void shim_exchange(unsigned mask, const void* mine, unsigned size, unsigned distance, void* found);
int shim_all(unsigned mask, int mine);
inline void __syncthreads() { shim_barrier(0); }
inline void __syncwarp() { shim_warp_barrier(0); }
#endif

using std::isinf;
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline void sincospi(double x, double* s, double* c) {
  *s = std::sin(M_PI * x), *c = std::cos(M_PI * x);
}
inline void sincospif(float x, float* s, float* c) {
  double sine, cosine;
  sincospi(x, &sine, &cosine);
  *s = static_cast<float>(sine), *c = static_cast<float>(cosine);
}
/// By bisection and Newton's steps.
inline double erfinv(double x) {
  if (!(std::fabs(x) < 1)) return std::fabs(x) == 1 ? std::copysign(INFINITY, x) : NAN;
  const double a = std::fabs(x);
  double low = 0, high = 6;
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle) > 1 - a ? low : high) = middle;
  }
  double y = a < 1e-6 ? a * 0.88622692545275801365 : high;
  for (int i = 0; i < 2 && a >= 1e-6; ++i)
    y += (a < 0.5 ? a - std::erf(y) : std::erfc(y) - (1 - a)) * 0.88622692545275801365 *
         std::exp(y * y);
  return std::copysign(y, x);
}
inline double normcdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }
inline float normcdff(float x) { return static_cast<float>(normcdf(static_cast<double>(x))); }
inline float erfinvf(float x) { return static_cast<float>(erfinv(static_cast<double>(x))); }

inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}

namespace gradcell {
namespace scalar {

inline unsigned long long gc_double_bits(double f) {
  unsigned long long u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}
inline unsigned gc_float_bits(float f) {
  unsigned u;
  std::memcpy(&u, &f, 4);
  return u;
}
inline float gc_bits_float(unsigned u) {
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
inline float gc_half_to_float(unsigned short h) {
  const unsigned sign = (h & 0x8000u) << 16, magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u) return gc_bits_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  const float f = gc_bits_float(magnitude << 13) * 0x1p112f;
  return gc_bits_float(sign | gc_float_bits(f));
}
inline unsigned short gc_float_to_half(float f) {
  unsigned u = gc_float_bits(f);
  const unsigned short sign = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  if (u > 0x7f800000u) return sign | 0x7fffu;
  if (u >= 0x477ff000u) return sign | 0x7c00u;
  if (u < 0x38800000u) {
    const float d = gc_bits_float(u) + 0.5f;
    return sign | (unsigned short)(gc_float_bits(d) - 0x3f000000u);
  }
  return sign | (unsigned short)((u - 0x38000000u + 0xfffu + ((u >> 13) & 1u)) >> 13);
}

#ifdef SHIM_SINGLE
template <class T>
T __shfl_xor_sync(unsigned, T v, int) {
  return v;
}
inline int __all_sync(unsigned, int v) { return v != 0; }
#else
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int distance) {
  T found;
  shim_exchange(mask, &v, sizeof v, static_cast<unsigned>(distance), &found);
  return found;
}
inline int __all_sync(unsigned mask, int v) { return shim_all(mask, v); }
#endif
#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize("thread")))  // it is atomic on a GPU
#endif
inline void gc_flag(int* status, int what = 1) {
  *status = what;
}

// Tensor cores.
#define GRADCELL_TENSOR_CORES 800

inline unsigned gc_to_tf32(float x) {  // to nearest, ties away from 0
  const unsigned u = gc_float_bits(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
  return (u + 0x1000u) & 0xffffe000u;
}

inline float gc_most(float a, float b) { return a != a || a > b ? a : b; }
inline unsigned short gc_float_to_bfloat(float f);  // prelude.cuh
inline unsigned gc_bfloat_pair(float low, float high) {
  return gc_float_to_bfloat(low) | static_cast<unsigned>(gc_float_to_bfloat(high)) << 16;
}
inline unsigned gc_half_pair(float low, float high) {
  return gc_float_to_half(low) | static_cast<unsigned>(gc_float_to_half(high)) << 16;
}
inline float gc_power_of_two(float x) { return x < -126 ? 0 : std::exp2(x); }
inline void gc_send_sixteen(void* to, const void* from, bool there) {
  for (int i = 0; i < 4; ++i)
    static_cast<unsigned*>(to)[i] = there ? static_cast<const unsigned*>(from)[i] : 0;
}
template <bool transposed, int r0, int r1, int c0, int c1, int pitch>
void gc_matrices(unsigned (&to)[4], const unsigned short* first, int lane) {
  const int q = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) {
    const unsigned short* const at =
        first + 8 * (i % 2 * r0 + i / 2 * r1) * pitch + 8 * (i % 2 * c0 + i / 2 * c1);
    to[i] = 0;
    for (int e = 0; e < 2; ++e) {
      const int row = transposed ? 2 * t + e : q, column = transposed ? q : 2 * t + e;
      to[i] |= static_cast<unsigned>(at[row * pitch + column]) << 16 * e;
    }
  }
}

#ifdef SHIM_SINGLE
inline void gc_mma_tf32(float (&)[4], const unsigned (&)[4], const unsigned (&)[2]) {}
inline void gc_mma_bfloat(float (&)[4], const unsigned (&)[4], const unsigned (&)[2]) {}
inline void gc_mma_half(float (&)[4], const unsigned (&)[4], const unsigned (&)[2]) {}
#else
void gc_mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]);
void gc_mma_half(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]);
void gc_mma_bfloat(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]);
#endif

}  // namespace scalar
}  // namespace gradcell

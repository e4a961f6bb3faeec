// Lets a C++ compiler build generated CUDA kernels. What the kernels need of CUDA, and no more: no
// heavy header, since every file of kernels includes this. cuda_shim.cpp runs them, a block's
// threads in turns; with SHIM_SINGLE there is one block of one thread.
#pragma once

#define __CUDACC_RTC__
#define GRADCELL_SHIM

#include <cmath>
#include <cstring>

#define __device__
#define __global__
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
#else
extern ShimIndex threadIdx, blockIdx, blockDim, gridDim;
extern unsigned char shim_lanes[1024][16];
alignas(16) extern unsigned char gc_tile[256 << 10];
void __syncthreads();
#endif

using std::isinf;
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
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
inline float erfinvf(float x) { return static_cast<float>(erfinv(static_cast<double>(x))); }

namespace gradcell {
namespace scalar {

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

/// All threads of a block shuffle together.
template <class T>
T gc_shuffle(T v, int distance) {
#ifdef SHIM_SINGLE
  return v;
#else
  static_assert(sizeof(T) <= 16, "");
  const unsigned lane = threadIdx.y * blockDim.x + threadIdx.x;
  std::memcpy(shim_lanes[lane], &v, sizeof v);
  __syncthreads();
  std::memcpy(&v, shim_lanes[lane ^ (unsigned)distance], sizeof v);
  __syncthreads();
  return v;
#endif
}
inline void gc_flag(int* status) { *status = 1; }

}  // namespace scalar
}  // namespace gradcell

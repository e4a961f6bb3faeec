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
extern ShimIndex threadIdx, blockIdx, blockDim, gridDim;
alignas(16) extern unsigned char gc_tile[256 << 10];
/// Barriers of a block and of a warp. Each has a number in the text that tests compile (0: none),
/// so that one can be left out.
void shim_barrier(int number);
void shim_warp_barrier(int number);
/// What `size` bytes of each lane of the warp are: lane l's from of + l * size on. All lanes that
/// there are call it together, with the mask that names them.
void shim_gather(unsigned mask, const void* mine, unsigned size, void* of);
inline void __syncthreads() { shim_barrier(0); }
inline void __syncwarp() { shim_warp_barrier(0); }
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
inline unsigned shim_lane() { return (threadIdx.y * blockDim.x + threadIdx.x) % 32; }
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int distance) {
  T of[32];
  shim_gather(mask, &v, sizeof v, of);
  return of[shim_lane() ^ (unsigned)distance];
}
inline int __all_sync(unsigned mask, int v) {
  int of[32], all = 1;
  shim_gather(mask, &v, sizeof v, of);
  for (int l = 0; l < 32; ++l) all &= !(mask >> l & 1) || of[l] != 0;
  return all;
}
#endif
#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize("thread")))  // it is atomic on a GPU
#endif
inline void gc_flag(int* status) {
  *status = 1;
}

// Tensor cores: a warp's matrices are put together from the registers of its threads as the PTX ISA
// has it, "Matrix Fragments for mma.m16n8k8" and "mma.m16n8k16". Nothing says how sums are rounded.
// Here addends lose what is below 24 bits of the largest, and the sum is truncated: no device that
// has been looked at does worse (Fasi, Higham, Mikaitis, Pranesh, PeerJ Comp. Sci. 7, 2021).
#define GRADCELL_TENSOR_CORES 800

inline unsigned gc_to_tf32(float x) {  // to nearest, ties away from 0
  const unsigned u = gc_float_bits(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
  return (u + 0x1000u) & 0xffffe000u;
}
inline float shim_truncated(double x) {
  const float f = static_cast<float>(x);
  return std::isfinite(f) && std::fabs(double(f)) > std::fabs(x) ? std::nextafter(f, 0.0f) : f;
}
inline float shim_sum(const double* addends, int n) {
  double largest = 0, sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += addends[i];
    largest = std::fmax(largest, std::fabs(addends[i]));
  }
  if (!std::isfinite(sum) || largest == 0) return static_cast<float>(sum);
  const double unit = std::ldexp(1.0, std::ilogb(largest) - 23);
  sum = 0;
  for (int i = 0; i < n; ++i) sum += std::trunc(addends[i] / unit) * unit;
  return shim_truncated(sum);
}

#ifdef SHIM_SINGLE
inline void gc_mma_tf32(float (&)[4], const unsigned (&)[4], const unsigned (&)[2]) {}
inline void gc_mma_bfloat(float (&)[4], const unsigned (&)[4], const unsigned (&)[2]) {}
inline void gc_mma_half(float (&)[4], const unsigned (&)[4], const unsigned (&)[2]) {}
#else
/// The registers that the threads of a warp have.
template <int n>
struct ShimWarp {
  unsigned of[32][n];
  explicit ShimWarp(const unsigned (&mine)[n]) { shim_gather(0xffffffffu, mine, sizeof mine, of); }
};
template <int terms>
void shim_mma(float (&d)[4], const double (&a)[16][terms], const double (&b)[terms][8]) {
  const unsigned lane = shim_lane();
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + (i < 2 ? 0 : 8), column = lane % 4 * 2 + (i & 1);
    double addends[terms + 1] = {d[i]};
    for (int k = 0; k < terms; ++k) addends[k + 1] = a[row][k] * b[k][column];
    d[i] = shim_sum(addends, terms + 1);
  }
}
inline void gc_mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  const ShimWarp<4> left(a);
  const ShimWarp<2> right(b);
  double x[16][8], y[8][8];
  auto number = [](unsigned bits) { return double(gc_bits_float(bits & 0xffffe000u)); };
  for (unsigned l = 0; l < 32; ++l) {
    const unsigned group = l / 4, in_group = l % 4;
    for (unsigned i = 0; i < 4; ++i)
      x[i == 0 || i == 2 ? group : group + 8][i < 2 ? in_group : in_group + 4] =
          number(left.of[l][i]);
    for (unsigned i = 0; i < 2; ++i)
      y[i == 0 ? in_group : in_group + 4][group] = number(right.of[l][i]);
  }
  shim_mma<8>(d, x, y);
}
template <class Number>
void shim_mma_halves(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Number number) {
  const ShimWarp<4> left(a);
  const ShimWarp<2> right(b);
  double x[16][16], y[16][8];
  auto half = [&](const unsigned* registers, unsigned i) {
    return double(number(static_cast<unsigned short>(registers[i / 2] >> (i % 2 * 16))));
  };
  for (unsigned l = 0; l < 32; ++l) {
    const unsigned group = l / 4, in_group = l % 4;
    for (unsigned i = 0; i < 8; ++i)
      x[i < 2 || (4 <= i && i < 6) ? group : group + 8][in_group * 2 + (i & 1) + (i < 4 ? 0 : 8)] =
          half(left.of[l], i);
    for (unsigned i = 0; i < 4; ++i)
      y[in_group * 2 + (i & 1) + (i < 2 ? 0 : 8)][group] = half(right.of[l], i);
  }
  shim_mma<16>(d, x, y);
}
inline void gc_mma_half(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  shim_mma_halves(d, a, b, [](unsigned short h) { return gc_half_to_float(h); });
}
inline void gc_mma_bfloat(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  shim_mma_halves(d, a, b, [](unsigned short h) { return gc_bits_float(unsigned(h) << 16); });
}
#endif

}  // namespace scalar
}  // namespace gradcell

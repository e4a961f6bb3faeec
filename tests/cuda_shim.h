// Lets a C++ compiler build generated CUDA kernels and run them: a block's threads are threads of
// the machine, blocks run one after another. What the kernels need of CUDA, and no more.
#pragma once

#define __CUDACC_RTC__
#define GRADCELL_SHIM

#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static

struct ShimIndex {
  unsigned x = 0, y = 0, z = 0;
};
inline thread_local ShimIndex threadIdx, blockIdx;
inline ShimIndex blockDim, gridDim;

inline std::unique_ptr<std::barrier<>> shim_barrier;
inline void __syncthreads() { shim_barrier->arrive_and_wait(); }
inline unsigned char shim_lanes[1024][16];

using std::isinf;
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }

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
  static_assert(sizeof(T) <= 16);
  const unsigned lane = threadIdx.y * blockDim.x + threadIdx.x;
  std::memcpy(shim_lanes[lane], &v, sizeof v);
  __syncthreads();
  std::memcpy(&v, shim_lanes[lane ^ (unsigned)distance], sizeof v);
  __syncthreads();
  return v;
}
inline void gc_flag(int* status) { *status = 1; }

}  // namespace scalar
}  // namespace gradcell

template <class F>
void shim_launch(unsigned grid, unsigned block_x, unsigned block_y, F kernel) {
  gridDim = {grid, 1, 1};
  blockDim = {block_x, block_y, 1};
  const unsigned threads = block_x * block_y;
  for (unsigned b = 0; b < grid; ++b) {
    auto run = [&, b](unsigned t) {
      blockIdx = {b, 0, 0};
      threadIdx = {t % block_x, t / block_x, 0};
      kernel();
    };
    if (threads == 1) {
      run(0);
      continue;
    }
    shim_barrier = std::make_unique<std::barrier<>>(threads);
    std::vector<std::jthread> pool;
    for (unsigned t = 0; t < threads; ++t) pool.emplace_back([&, t] { run(t); });
  }
}

#include "machine.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "base/thread_pool.h"

namespace gradcell::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

#ifdef __x86_64__
/// 12 chains are enough to fill two units of latency 4 to 5. v2 has no fused multiply-add: its loop
/// multiplies in half of the chains and adds in the others, twice each.
#define GRADCELL_PEAK(NAME, TARGET, BYTES, STEP)                      \
  __attribute__((target(TARGET), noinline)) double NAME(long loops) { \
    typedef float V __attribute__((vector_size(BYTES)));              \
    V a[12] = {}, b = V{} + 0.999f, c = V{} + 0.001f;                 \
    asm volatile("" : "+x"(b), "+x"(c));                              \
    for (long i = 0; i < loops; ++i) {                                \
      _Pragma("GCC unroll 12") for (V& x : a) { STEP; }               \
    }                                                                 \
    for (V& x : a) asm volatile("" : "+x"(x));                        \
    return 2.0 * 12 * (BYTES / 4) * loops;                            \
  }
GRADCELL_PEAK(flops_v2, "sse4.2", 16,
              if (&x - a < 6) asm volatile("mulps %1, %0\n\tmulps %1, %0" : "+x"(x) : "x"(b));
              else asm volatile("addps %1, %0\n\taddps %1, %0" : "+x"(x) : "x"(c)))
GRADCELL_PEAK(flops_v3, "avx2,fma", 32,
              asm volatile("vfmadd213ps %2, %1, %0" : "+x"(x) : "x"(b), "x"(c)))
GRADCELL_PEAK(flops_v4, "avx512f", 64,
              asm volatile("vfmadd213ps %2, %1, %0" : "+v"(x) : "v"(b), "v"(c)))
#endif

double triad(std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c) {
  const int parts = max_threads();
  const size_t each = a.size() / static_cast<size_t>(parts);
  parallel_for(parts, [&](int part, int) {
    const size_t begin = each * static_cast<size_t>(part);
    for (size_t i = begin; i < begin + each; ++i) a[i] = b[i] + 3.0f * c[i];
  });
  return 3.0 * sizeof(float) * static_cast<double>(each) * parts;
}

}  // namespace

double multiply_add_peak(IsaLevel level) {
#ifdef __x86_64__
  static std::map<IsaLevel, double> best;
  double& p = best[level];
  if (p > 0) return p;
  auto flops = level >= IsaLevel::V4 ? flops_v4 : level == IsaLevel::V3 ? flops_v3 : flops_v2;
  for (int i = 0; i < 20; ++i) {
    const auto start = Clock::now();
    const double n = flops(400000);
    p = std::max(p, n / seconds_since(start));
  }
  return p;
#else
  (void)level;
  return 0;
#endif
}

double memory_bandwidth() {
  static double best[kMaxThreads + 1] = {};
  double& rate = best[max_threads()];
  if (rate > 0) return rate;
  std::vector<float> a(1 << 25), b(1 << 25, 1.0f), c(1 << 25, 2.0f);
  triad(a, b, c);
  for (int i = 0; i < 10; ++i) {
    const auto start = Clock::now();
    const double bytes = triad(a, b, c);
    rate = std::max(rate, bytes / seconds_since(start));
  }
  return rate;
}

}  // namespace gradcell::cpu

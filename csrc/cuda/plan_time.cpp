#include "cuda/plan_time.h"

#include <algorithm>

#include "cuda/costs.h"
#include "plan/costs.h"

namespace gradcell::cuda {

namespace {

/// Multiply-adds of a product, with those by which its sides are rounded up.
double multiply_adds(const Gemm& p) {
  const auto [less, more] = std::minmax(p.m, p.n);
  return static_cast<double>(p.batch) * static_cast<double>(p.k) *
         static_cast<double>(std::max(less, kProductRates.shorter)) *
         static_cast<double>(std::max(more, kProductRates.longer));
}

/// A cycle and multiprocessor.
double rate_of(const Gemm& p) {
  return p.dtype == DType::Float64   ? kProductRates.float64
         : p.dtype != DType::Float32 ? kProductRates.half
         : p.tf32                    ? kProductRates.tf32
                                     : kProductRates.float32;
}

}  // namespace

double cycles_of(const CudaPlan& plan, const Target& target) {
  const double many = target.multiprocessors;
  double sum = 0;
  for (const Step& s : plan.steps) {
    if (s.loop >= 0) {
      const Loop& loop = plan.loops[static_cast<size_t>(s.loop)];
      sum += static_cast<double>(loop.steps) * cycles_of(loop.body, target);
      continue;
    }
    const double bytes = static_cast<double>(s.bytes_read + s.bytes_written) +
                         static_cast<double>(s.instructions) / weights().instructions;
    double cycles = bytes / (kBytesPerCycle * many);
    if (s.is_product())
      cycles = std::max(cycles, multiply_adds(s.product) / (rate_of(s.product) * many));
    sum += kLaunchCycles + std::max(cycles, s.tile_cycles);
  }
  return sum;
}

}  // namespace gradcell::cuda

#include "cuda/plan_time.h"

#include <algorithm>
#include <optional>

#include "cuda/float_types.h"
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
  switch (float_type(p.dtype).unit) {
    case ProductUnit::Fma:
      return kProductRates.float64;
    case ProductUnit::Tf32x3:
    case ProductUnit::Tf32:
      return p.tf32 ? kProductRates.tf32 : kProductRates.float32;
    case ProductUnit::BFloat:
    case ProductUnit::Half:
      return kProductRates.half;
  }
  return 0;
}

/// A cycle of a block of ours.
double own_rate_of(const Gemm& p, const Target& target) {
  const FloatType& type = float_type(p.dtype);
  if (target.capability < type.first_with_cores) return kOwnProductRates.exact;
  switch (type.unit) {
    case ProductUnit::Fma:
      return kOwnProductRates.exact;
    case ProductUnit::Tf32x3:
    case ProductUnit::Tf32:
      return p.tf32 ? kOwnProductRates.tf32 : kOwnProductRates.float32;
    case ProductUnit::BFloat:
    case ProductUnit::Half:
      return kOwnProductRates.half;
  }
  return 0;
}

int64_t divided(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

double cycles_of(const Step& s, const Target& target) {
  const double many = target.multiprocessors;
  const double moved = static_cast<double>(s.bytes_read + s.bytes_written);
  const double bytes = (s.is_product() ? kProductRates.bytes : 1) * moved +
                       static_cast<double>(s.instructions) / target.weights.instructions;
  double cycles = bytes / (kBytesPerCycle * many);
  if (s.is_product())
    cycles = std::max(cycles, multiply_adds(s.product) / (rate_of(s.product) * many));
  return kLaunchCycles + std::max(cycles, s.tile_cycles);
}

double cycles_of(const CudaPlan& plan, const Target& target) {
  double sum = 0;
  for (const Step& s : plan.steps) {
    if (s.loop < 0) {
      sum += cycles_of(s, target);
      continue;
    }
    const Loop& loop = plan.loops[static_cast<size_t>(s.loop)];
    sum += static_cast<double>(loop.steps) * cycles_of(loop.body, target);
  }
  return sum;
}

int64_t blocks_of_product(const Gemm& p) {
  return p.batch * divided(p.m, kGroupTile.side) * divided(p.n, kGroupTile.side);
}

GroupTime quickest_group(const Gemm& p, int64_t count, const Target& target) {
  const int64_t steps = divided(p.k, kGroupTile.terms), results = count * p.batch * p.m * p.n;
  const double step = static_cast<double>(kGroupTile.side * kGroupTile.side * kGroupTile.terms) /
                      own_rate_of(p, target);
  const int64_t matrices = p.m * p.k + p.k * p.n + (p.adds ? 2 : 1) * p.m * p.n;
  const double moved =
      static_cast<double>(count * p.batch * matrices) * static_cast<double>(item_size(p.dtype));
  const double speed = kBytesPerCycle * target.multiprocessors;
  std::optional<GroupTime> best;
  for (int64_t parts = 1; parts <= steps; parts *= 2) {
    const int64_t rounds = divided(count * parts * blocks_of_product(p), target.multiprocessors);
    GroupTime t{parts, 0, static_cast<double>(rounds * divided(steps, parts)) * step, 0};
    if (parts > 1)
      t.partial_bytes = static_cast<size_t>(parts * results * (p.dtype == DType::Float64 ? 8 : 4));
    const double partial = static_cast<double>(t.partial_bytes) / speed;
    t.cycles = kLaunchCycles + std::max(t.work, moved / speed + partial);
    if (parts > 1) t.cycles += kLaunchCycles + partial;
    if (!best || t.cycles < best->cycles) best = t;
  }
  return *best;
}

}  // namespace gradcell::cuda

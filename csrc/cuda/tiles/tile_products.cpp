#include "cuda/tiles/tile_products.h"

#include "base/error.h"

namespace gradcell::cuda {

namespace {

/// Issue slots of a quarter of a multiprocessor: it shares what loads and stores with three others,
/// and is busy so long with an mma of 16 x 8 (sm_80, and sm_90 by the same instructions).
constexpr double kLoad = 4, kMma = 8;
constexpr int32_t kMmaRows = 16, kMmaColumns = 8;

constexpr int32_t parts_of(int32_t n, int32_t part) { return (n + part - 1) / part; }

/// Terms of an instruction.
int32_t terms(ProductUnit unit) {
  return unit == ProductUnit::BFloat || unit == ProductUnit::Half ? 16 : 8;
}

/// Taking a lane's share of 16 rows or 8 columns into registers. `packed`: halves, as stored.
double factor_cost(ProductUnit unit, int32_t lines, bool packed = false) {
  const double elements = lines * terms(unit) / 32.0;
  const double ready = unit == ProductUnit::Tf32x3            ? 3
                       : unit == ProductUnit::Half && !packed ? 1.5
                                                              : 1;
  return elements * (kLoad + ready);
}

/// Multiplying 16 rows by 8 columns.
double mma_cost(ProductUnit unit) { return unit == ProductUnit::Tf32x3 ? 3 * kMma + 4 : kMma; }

}  // namespace

std::string unit_name(ProductUnit unit, DType dtype) {
  switch (unit) {
    case ProductUnit::Tf32x3:
      return "gc_tf32x3";
    case ProductUnit::Tf32:
      return "gc_tf32";
    case ProductUnit::BFloat:
      return "gc_bfloat";
    case ProductUnit::Half:
      return "gc_half";
    case ProductUnit::Fma:
      break;
  }
  return is_narrow_float(dtype) ? str("gc_as_", narrow_float(dtype).word) : "gc_as_stored";
}

ProductUnit unit_for(DType dtype, bool tf32) {
  const FloatType* const type = find_float_type(dtype);
  if (!type) return ProductUnit::Fma;
  return tf32 && type->unit == ProductUnit::Tf32x3 ? ProductUnit::Tf32 : type->unit;
}

double product_cost(ProductUnit unit, int32_t k, int32_t chunk, bool staged) {
  if (unit == ProductUnit::Fma)
    return k * (chunk + kLoad * (1 + (staged ? parts_of(chunk, 4) : chunk)));
  const double left = 2 * factor_cost(unit, kMmaRows);
  const double right = factor_cost(unit, kMmaColumns, !staged);
  const double swaps = 8 * (kLoad + 2);  // so that each thread has its own row
  const int32_t columns = parts_of(chunk, kMmaColumns);
  return parts_of(k, terms(unit)) * (left + columns * (right + 2 * mma_cost(unit))) +
         columns * (swaps + kMmaColumns);
}

int32_t product_steps(ProductUnit unit, int32_t k) { return parts_of(k, terms(unit)); }

OuterJobs outer_jobs(ProductUnit unit, int32_t k, int32_t m, int32_t warps) {
  const int32_t down = parts_of(k, kMmaRows), across = parts_of(m, kMmaColumns);
  int32_t wide = 4;  // no warp without work
  while (wide > 1 && (across < wide || down * parts_of(across, wide) < warps)) wide /= 2;
  const double job =
      factor_cost(unit, kMmaRows) + wide * (factor_cost(unit, kMmaColumns) + mma_cost(unit));
  return {parts_of(down * parts_of(across, wide), warps), (32.0 / terms(unit)) * job};
}

double outer_cost(ProductUnit unit, int32_t k, int32_t m, int32_t groups) {
  if (unit == ProductUnit::Fma)  // 4 x 4 elements: 8 loads a row
    return parts_of(k, 4) * parts_of(m, 4) * (16 + 8 * kLoad) / groups;
  const OuterJobs jobs = outer_jobs(unit, k, m, groups);
  return jobs.turns * jobs.slots;
}

int32_t weights_step(ProductUnit unit, int32_t groups, int32_t pack) {
  int32_t step = groups * pack;
  if (unit == ProductUnit::Fma) return step;
  while (step % 32 != 8 && step % 32 != 24) step += 4;  // four rows at once: different banks
  return step;
}

}  // namespace gradcell::cuda

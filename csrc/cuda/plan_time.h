// How long a plan is thought to take on some GPU, to choose between plans: launches, bytes and
// instructions, multiply-adds of products, tiles of narrow networks. The numbers are those of
// plan/costs.h.
#pragma once

#include "cuda/cuda_plan.h"

namespace gradcell::cuda {

/// In cycles of the target.
double cycles_of(const CudaPlan& plan, const Target& target);
/// Of a step that is no loop.
double cycles_of(const Step& step, const Target& target);

/// Blocks of a product in tiles of 64 x 64.
int64_t blocks_of_product(const Gemm& p);

/// Of products of equal sizes in one kernel of ours (join/product_groups.h).
struct GroupTime {
  int64_t parts;         ///< shares of the terms; more than 1: a second kernel adds up their sums
  size_t partial_bytes;  ///< of those sums
  double work;           ///< of the blocks that multiply
  double cycles;         ///< of both kernels, with launches and bytes
};
/// With as many parts as are quickest.
GroupTime quickest_group(const Gemm& p, int64_t count, const Target& target);

}  // namespace gradcell::cuda

// Small products that have nothing but their sizes in common, as the gradients of a network's
// equal layers, heads that are computed one by one, or experts: one launch of a kernel of ours
// (products.cuh) computes them all, where calls of the library would take longer (plan_time.h).
//
// In: a plan's steps, some of them products, before its temporaries have places. Out: groups of
// equal products none of which needs another, and for each group kernels that do the same.
#pragma once

#include "cuda/write/kernel_writers.h"

namespace gradcell::cuda {

struct ProductGroup {
  std::vector<size_t> steps;  ///< of the plan, ascending: all run in the place of the last one
  int64_t parts = 1;          ///< the terms fall into shares, whose sums a second kernel adds up
  size_t partial_bytes = 0;   ///< of those sums
  double work = 0;            ///< cycles of the blocks that multiply, as plan_time.h has them
};

/// Blocks of the kernel that multiplies, and what each has of shared memory.
int64_t blocks_of_group(const Gemm& p, const ProductGroup& group);
size_t group_shared_bytes(DType dtype);

/// Disjoint groups.
std::vector<ProductGroup> product_groups(const CudaPlan& plan, const Target& target);

/// The kernels of a group. `partial`: a buffer of partial_bytes, if there are some.
std::vector<Written> write_product_group(const WriterInputs& in, const CudaPlan& plan,
                                         const ProductGroup& group, BufferId partial);

}  // namespace gradcell::cuda

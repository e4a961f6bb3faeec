// How the products of a tile of rows are computed: by fused multiply-adds, or by tensor cores (see
// tensor_cores.cuh). By counts of instructions, of what each thread issues; where a GPU has no
// instruction for a type, the same text is compiled to fused multiply-adds.
#pragma once

#include "cuda/float_types.h"
#include "plan/plan.h"

namespace gradcell::cuda {

/// The type of the prelude that says how factors are taken and stored. Fma: of stored weights.
std::string unit_name(ProductUnit unit, DType dtype);

/// Tensor cores' way for a dtype; Fma: they have none for it.
ProductUnit unit_for(DType dtype, bool tf32);

/// Instructions of a thread, for 32 rows: a value of k features by a group's `chunk` columns, which
/// are in shared memory or where they are stored.
double product_cost(ProductUnit unit, int32_t k, int32_t chunk, bool staged);

/// Instructions by tensor cores after each other for so many terms.
int32_t product_steps(ProductUnit unit, int32_t k);

/// How warps share the gradient of a matrix of k x m by tensor cores, as gc_add_outer_warps has it.
struct OuterJobs {
  int32_t turns;  ///< of each warp
  double slots;   ///< issue slots of one turn, for 32 rows
};
OuterJobs outer_jobs(ProductUnit unit, int32_t k, int32_t m, int32_t warps);

/// The same for the gradient of a matrix of k x m, which all groups share.
double outer_cost(ProductUnit unit, int32_t k, int32_t m, int32_t groups);

/// Shared memory between a row of such weights and the next, in elements.
int32_t weights_step(ProductUnit unit, int32_t groups, int32_t pack);

}  // namespace gradcell::cuda

// How long a plan is thought to take on some GPU, to choose between plans: launches, bytes and
// instructions, multiply-adds of products, tiles of narrow networks. The numbers are those of
// plan/costs.h.
#pragma once

#include "cuda/cuda_plan.h"

namespace gradcell::cuda {

/// In cycles of the target.
double cycles_of(const CudaPlan& plan, const Target& target);

}  // namespace gradcell::cuda

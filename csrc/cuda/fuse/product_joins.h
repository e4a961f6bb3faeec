// Fewer, larger products: those of one stage that share their right factor become one over all
// their rows, and those that add up to a gradient of weights one over all the rows that they
// contract. What they read, and what they write, then lies side by side in the arena.
//
// Only small ones are joined: there a launch costs more than keeping an operand a little longer.
#pragma once

#include "cuda/cuda_plan.h"

namespace gradcell::cuda {

/// All operands of a joined product together, at most.
inline constexpr size_t kMostJoinedBytes = 16 << 20;

/// Matrices that are not at the beginning of a buffer are aligned to 16 bytes.
constexpr bool can_be_neighbour(size_t bytes) { return bytes > 0 && bytes % 16 == 0; }

/// Temporary buffers that lie behind each other without gaps.
using Neighbours = std::vector<BufferId>;

/// Returns disjoint groups of neighbours.
std::vector<Neighbours> join_products(CudaPlan& plan);

}  // namespace gradcell::cuda

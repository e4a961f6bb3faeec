// What kernels store for each other: values that a later kernel can compute from what it reads
// anyway are not stored for it, and others are stored by the last kernel that still may.
//
// Starts from a fusion that stores each value as early as it can, and takes every change that makes
// the plan cheaper: bytes moved, operations that are done again, launches.
#pragma once

#include "cuda/fuse/fusion.h"

namespace gradcell::cuda {

/// `fixed`: nodes whose buffers stay as they are. Returns what the kernels cost, in bytes moved, as
/// the weights have it.
double store_late(const Graph& g, std::span<const NodeId> fixed, const Weights& weights,
                  Fusion& fusion);

}  // namespace gradcell::cuda

// Which reductions are one launch: sums of buffers that have the same shape and are summed up along
// the same axes, as gradients of biases are. What is ready early waits for the others.
#pragma once

#include "cuda/fuse/fusion.h"

namespace gradcell::cuda {

/// Disjoint groups of two or more, each in one stage: that of some nodes of `fusion` is moved.
std::vector<std::vector<NodeId>> join_reductions(const Graph& g, Fusion& fusion);

}  // namespace gradcell::cuda

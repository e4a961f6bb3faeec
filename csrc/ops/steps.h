// A tensor's steps along its first axis, as nodes that are not simplified: for passes that may make
// no constants. (Defined where slices are.)
#pragma once

#include "ir/graph.h"

namespace gradcell {

/// x[t].
NodeId step_of(Graph& g, NodeId x, int64_t t);
/// Tensors of one shape, at least one, as the steps of another.
NodeId from_steps(Graph& g, std::span<const NodeId> steps);

}  // namespace gradcell

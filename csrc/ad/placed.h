// Sums of slices' adjoints, in one piece.
#pragma once

#include <span>

#include "ir/graph.h"

namespace gradcell::ad {

/// Whether a node is a slice_scatter, or repeats one along axes that its box fills.
bool is_placed(const Graph& g, NodeId id);

/// The sum of such nodes of one shape. Where they do not overlap nothing is added: what
/// they place is joined, with zeros between, in time proportional to the shape; where they do,
/// there is a sum for each layer of those that do not.
NodeId sum_of_placed(Graph& g, std::span<const NodeId> placed);

}  // namespace gradcell::ad

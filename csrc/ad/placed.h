// Sums of slices' adjoints, in one piece.
#pragma once

#include <span>

#include "ir/graph.h"

namespace gradcell::ad {

/// The sum of slice_scatters of one shape. Where they do not overlap nothing is added: what
/// they place is joined, with zeros between, in time proportional to the shape; where they do,
/// there is a sum for each layer of those that do not.
NodeId sum_of_placed(Graph& g, std::span<const NodeId> placed);

}  // namespace gradcell::ad

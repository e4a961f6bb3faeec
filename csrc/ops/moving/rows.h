// Movements along the first axis as planners make them, who do not look at values: nothing is
// simplified.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace gradcell {

/// One element, everywhere.
NodeId spread(Graph& g, NodeId one, std::span<const int64_t> dims);
/// Some of the slices along the first axis.
NodeId rows(Graph& g, NodeId x, int64_t begin, int64_t count);
/// Tensors of equally wide rows, one below the other.
NodeId joined_rows(Graph& g, std::span<const NodeId> xs);
/// From which place of the first axis a slice takes all up to its end; of other nodes nothing.
std::optional<int64_t> first_row(const Graph& g, NodeId id);

}  // namespace gradcell

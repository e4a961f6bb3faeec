// Whether a recorded function treats the rows of its input one by one.
#pragma once

#include <span>

#include "ir/graph.h"

namespace gradcell::ad {

/// Rows are what x[0], x[1], ... are for each x of `wrt` (all of equally many, at least one). The
/// first node on the way to the outputs of which some element needs more than one row, or another
/// than the one that its place says; kNoNode if there is none, and derivatives with respect to all
/// rows can be had at once.
NodeId first_mixing_rows(const Graph& g, std::span<const NodeId> outputs,
                         std::span<const NodeId> wrt);

}  // namespace gradcell::ad

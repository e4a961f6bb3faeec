// Whether a recorded function, and what its derivatives are made of, treats the rows of its input
// one by one. A proof: what is not known to keep rows apart mixes them.
#pragma once

#include <span>

#include "ir/graph.h"

namespace gradcell::ad {

/// Rows are what x[0], x[1], ... are for each x of `wrt` (all of equally many, at least one). The
/// first node on the way to the outputs of which some element, or some derivative up to `order` as
/// calls' own rules give it, may need more than one row; kNoNode if there is none, and derivatives
/// with respect to all rows can be had at once. `in_place`: the outputs' rows must be their slices
/// along the first axis, too.
NodeId first_mixing_rows(Graph& g, std::span<const NodeId> outputs, std::span<const NodeId> wrt,
                         int order, bool in_place);

}  // namespace gradcell::ad

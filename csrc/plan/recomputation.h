// Values that regions compute again from what they load anyway, instead of one that stores them and
// others that load them.
#pragma once

#include "plan/labels.h"

namespace gradcell {

/// Takes the mark `materialised` from such nodes, notes in Labels::reread what is read for them
/// instead and until when, and marks those that their own stage needs no more as `elsewhere`.
/// Values do not change: the same operations on the same numbers.
void recompute_cheap(const Graph& g, Labels& l, std::span<const NodeId> roots);

}  // namespace gradcell

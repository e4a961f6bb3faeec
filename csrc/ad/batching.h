// Batching, graph to graph: what was recorded on one example, over a batch of them. Each node that
// depends on the example is made once more with a leading axis, by its spec's rule; all others are
// the same for every example and stay as they are.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace gradcell::ad {

/// The outputs over the batch, [N, ...] where an output of one example is [...]; kNoNode for an
/// output that does not depend on the examples. examples: the nodes that stand for one example's
/// inputs; batches: what they are for all N, [N, ...], in the same order.
std::vector<NodeId> batch(Graph& g, std::span<const NodeId> outputs,
                          std::span<const NodeId> examples, std::span<const NodeId> batches);

/// Which of the graph's nodes depend on one of these.
std::vector<uint8_t> dependents(const Graph& g, std::span<const NodeId> of);

}  // namespace gradcell::ad

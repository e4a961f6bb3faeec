// Where a rewrite has taken a graph's nodes: what matters in the new graph.
#pragma once

#include "plan/rewrite/rewrite.h"

namespace gradcell {

/// Into `out`, whose graph was made of that of `from`: the nodes that matter there. `to`: by node
/// of the old graph, the new one.
inline void take_over(PlanGraph& out, const PlanGraph& from, std::span<const NodeId> to) {
  for (NodeId id : from.roots) out.roots.push_back(to[id]);
  for (NodeId id : from.inputs) out.inputs.push_back(to[id]);
  for (NodeId id : from.constants) out.constants.push_back(to[id]);
  for (const auto& [id, number] : from.reshaped) out.reshaped.emplace_back(to[id], number);
}

}  // namespace gradcell

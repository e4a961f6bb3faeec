// Turns the nodes of one stage that share a row count into a Region's tile program.
#pragma once

#include "plan/labels.h"
#include "plan/planner.h"

namespace gradcell {

struct RegionInputs {
  const Graph& graph;
  const Labels& labels;
  const std::vector<BufferId>& buffer_of;  ///< by node; valid where materialised, and for leaves
  const std::vector<int>& constant_of;     ///< by node; index into the plan's constants
  /// Leaves that are the same in many runs: if there is but one row, they are uniform.
  NodeSet fixed = {};
};

/// `nodes`: ascending, all labelled with this row count and stage. `joined`: instructions that one
/// loop can run are one.
Region build_region(const RegionInputs& in, std::span<const NodeId> nodes, bool joined = true);

}  // namespace gradcell

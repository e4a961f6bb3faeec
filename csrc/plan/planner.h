// graph -> Plan. The leaves and constants of the graph's live part, in ascending order, are the
// plan's inputs and constants; `roots` are its outputs.
#pragma once

#include "plan/plan.h"
#include "plan/rewrite.h"

namespace gradcell {

/// 128 bits over structure, shapes and dtypes of the live part (not over constants' values).
struct PlanKey {
  uint64_t a = 0, b = 0;
  bool operator==(const PlanKey&) const = default;
};

PlanKey structural_hash(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
                        std::span<const NodeId> cuts);

/// `cuts`: nodes whose value is known; they are inputs of the plan too, and what only they need is
/// not computed.
std::vector<NodeId> live_until(const Graph& g, std::span<const NodeId> roots,
                               std::span<const NodeId> cuts);

/// The graph that is planned: the live part without aliases and gradient stops, hash-consed again,
/// known values as leaves, sums of products merged.
PlanGraph plan_graph(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
                     std::span<const NodeId> cuts);

Plan make_plan(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
               std::span<const NodeId> cuts);

}  // namespace gradcell

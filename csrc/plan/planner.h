// graph -> Plan. The leaves and constants of the graph's live part, in ascending order, are the
// plan's inputs and constants; `roots` are its outputs.
#pragma once

#include "plan/plan.h"
#include "plan/rewrite/rewrite.h"

namespace gradcell {

/// 128 bits over structure, shapes and dtypes of the live part (and not over constants' values, but
/// for those that are part of attention as it was written), and the graph's settings.
struct PlanKey {
  uint64_t a = 0, b = 0;
  const Settings* settings = nullptr;
  bool operator==(const PlanKey&) const = default;
};

PlanKey structural_hash(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
                        std::span<const NodeId> cuts);

/// `cuts`: nodes whose value is known; they are inputs of the plan too, and what only they need is
/// not computed.
std::vector<NodeId> live_until(const Graph& g, std::span<const NodeId> roots,
                               std::span<const NodeId> cuts);

/// The graph that is planned: the live part without aliases and gradient stops, hash-consed again,
/// known values as leaves, sums of products merged. apart: loops of one step are none, and samples
/// (ops/moving/sampling.h) are what they are made of.
PlanGraph plan_graph(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
                     std::span<const NodeId> cuts, bool apart = false);

TensorDesc describe(const Graph& g, NodeId id);
BufferId add_buffer(PlanFrame& plan, const Buffer& buffer);
/// Gives a plan its inputs, constants and outputs, and buffers for those that no other stands for.
/// `storage`: by node, the node whose elements it has. Returns each node's buffer, UINT32_MAX:
/// none.
std::vector<BufferId> frame(const PlanGraph& graph, std::span<const NodeId> storage,
                            PlanFrame& plan);
/// By node, its place among the plan's constants; -1: it is none.
std::vector<int> constant_numbers(const PlanGraph& graph);

Plan make_plan(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
               std::span<const NodeId> cuts);

}  // namespace gradcell

// graph -> Plan. The leaves and constants of the graph's live part, in ascending order, are the
// plan's inputs and constants; `roots` are its outputs.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/plan.h"
#include "plan/rewrite/rewrite.h"

namespace gradcell {

/// Nodes of a graph, a bit each.
class NodeSet {
 public:
  NodeSet() = default;
  NodeSet(std::span<const NodeId> nodes) {
    for (NodeId id : nodes) add(id);
  }
  NodeSet(const std::vector<NodeId>& nodes) : NodeSet(std::span(nodes)) {}

  bool has(NodeId id) const {
    return word(id) < words_.size() && (words_[word(id)] & bit(id)) != 0;
  }
  void add(NodeId id) {
    if (word(id) >= words_.size()) words_.resize(std::max(word(id) + 1, words_.size() * 2), 0);
    words_[word(id)] |= bit(id);
  }
  void remove(NodeId id) {
    if (word(id) < words_.size()) words_[word(id)] &= ~bit(id);
  }
  void clear() { words_.clear(); }

 private:
  static size_t word(NodeId id) { return id / 64; }
  static uint64_t bit(NodeId id) { return uint64_t{1} << id % 64; }
  std::vector<uint64_t> words_;
};

/// 128 bits over structure, shapes and dtypes of the live part (and not over constants' values, but
/// for those that are part of attention as it was written), and the graph's settings.
struct PlanKey {
  uint64_t a = 0, b = 0;
  const Settings* settings = nullptr;
  bool operator==(const PlanKey&) const = default;
};

/// `cuts`: as below, ascending.
PlanKey structural_hash(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
                        std::span<const NodeId> cuts);

/// The inputs that a node's value needs: of a mark the first, the others are for differentiation.
std::span<const NodeId> planned_inputs(const Graph& g, NodeId id);

/// `cuts`: nodes whose value is known; they are inputs of the plan too, and what only they need is
/// not computed.
std::vector<NodeId> live_until(const Graph& g, std::span<const NodeId> roots, const NodeSet& cuts);

/// The graph that is planned: the live part without aliases and gradient stops, hash-consed again,
/// known values as leaves, sums of products merged. apart: loops of one step are none, and what has
/// no kernel is what it is made of (Spec::apart).
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

/// A loop's body with no longer tensors than this is one row of each (see Labels::whole) if it has
/// fewer steps so: threads that meet after every step take longer than the arithmetic.
inline constexpr int64_t kWholeRow = 2048;
/// The plan of a loop's body, whose constants are its inputs. fixed: by input, whether it is the
/// same in all steps.
Plan make_body_plan(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
                    std::span<const uint8_t> fixed);

}  // namespace gradcell

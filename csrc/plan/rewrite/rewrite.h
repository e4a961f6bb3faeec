// Rewrites of a whole graph before it is planned, where the number of a node's uses matters (the
// builder, which sees one node at a time, cannot know it).
#pragma once

#include <compare>
#include <optional>

#include "ir/graph.h"

namespace gradcell {

/// A graph to plan and the nodes that matter in it.
struct PlanGraph {
  explicit PlanGraph(const Settings& settings = kFirstSettings) : graph(settings) {}

  Graph graph;
  std::vector<NodeId> roots;
  std::vector<NodeId> inputs;     ///< leaves, in the plan's order
  std::vector<NodeId> constants;  ///< likewise
  /// Constants of other shapes, with the number of the one whose value they have.
  std::vector<std::pair<NodeId, int>> reshaped;
};

/// Rows that only parts of a program need. Where slices take some rows of what products have
/// computed of all, each part of the rows becomes a tensor of its own, and what no later node needs
/// of a part is not computed. Rows that a slice's adjoint fills with zeros are structural zeros:
/// what they would be multiplied by is not computed either.
PlanGraph split_rows(PlanGraph from);

/// Sums over axes of products of two tensors, each of which is spread over axes of its own, as
/// (x[:, None] * y).sum(-1), become products of matrices.
PlanGraph contract_sums(PlanGraph from);

/// Sums of products. In a sum of single-use terms, products that share a factor become one product
/// (x'a + x'b = x'(a + b)), sums over the same axes one sum, and the products that are left one
/// product with several pairs of inputs, a1 b1 + a2 b2 + ...: one accumulation, no temporaries. The
/// sum of what is negated is the negation of a sum.
/// Gradients of weights that are used several times, as in nested derivatives, are such sums.
PlanGraph merge_sums(const PlanGraph& from);

/// What sums that one call can make together have in common: known normalisers, or none, as
/// attention and its normalisers do.
struct SameScores {
  Dims attributes;
  std::vector<NodeId> inputs;
  auto operator<=>(const SameScores&) const = default;
};

/// Of a node of another family nothing. `storage`: by node, which one has its elements.
std::optional<SameScores> scores_of(const Graph& g, std::span<const NodeId> storage, NodeId id);

/// Sums of attention's family over the same scores (ops/combining/attention.h) run as one call,
/// which finds out once what the scores' exponentials are: here they wait for all that one of them
/// needs.
PlanGraph join_sums(PlanGraph from);

}  // namespace gradcell

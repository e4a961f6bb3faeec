// Rewrites of a whole graph before it is planned, where the number of a node's uses matters (the
// builder, which sees one node at a time, cannot know it).
#pragma once

#include "ir/graph.h"

namespace gradcell {

/// A graph to plan and the nodes that matter in it.
struct PlanGraph {
  Graph graph;
  std::vector<NodeId> roots;
  std::vector<NodeId> inputs;     ///< leaves, in the plan's order
  std::vector<NodeId> constants;  ///< likewise
};

/// Sums of products. In a sum of single-use terms, products that share a factor become one product
/// (x'a + x'b = x'(a + b)), sums over the same axes one sum, and the products that are left one
/// product with several pairs of inputs, a1 b1 + a2 b2 + ...: one accumulation, no temporaries.
/// Gradients of weights that are used several times, as in nested derivatives, are such sums.
PlanGraph merge_sums(const PlanGraph& from);

}  // namespace gradcell

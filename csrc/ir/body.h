// A graph as numbers, which is how a loop's node holds its body: what is equal is one node, goes
// from graph to graph and into a plan's key as any other attribute does.
//
// Holds: nodes are numbered from 0, inputs (leaves) first, each behind those that it is made of; a
// body has no constants, which are inputs like others, no marks but gradient stops, and no effects.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace gradcell {

/// A node as its numbers say.
struct BodyNode {
  Op op;
  DType dtype;
  std::span<const int64_t> dims, inputs, attributes;
};

/// The numbers of a body, read: they must outlive it.
struct BodyView {
  std::vector<BodyNode> nodes;
  size_t inputs;                  ///< how many of the nodes are inputs
  std::span<const int64_t> next;  ///< what the first inputs are in the next step
};
/// Throws Runtime where the numbers are no body.
BodyView view_body(std::span<const int64_t> numbers);

/// The same as a graph, in which a node's number is its id.
struct Body {
  Graph graph;
  std::vector<NodeId> inputs, next;
};
Body read_body(std::span<const int64_t> numbers, const Settings& settings = kFirstSettings);

/// The numbers of what `next` and `kept` need, and in `number`, by id, what each node is called
/// there (kNoNode: it is not needed).
Dims write_body(const Graph& g, std::span<const NodeId> inputs, std::span<const NodeId> next,
                std::span<const NodeId> kept, std::vector<NodeId>& number);

}  // namespace gradcell

// Differentiation, graph to graph: the derivative is more nodes of the same graph, so it can be
// differentiated again. `adjoint` is reverse mode, `tangent` forward mode.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace gradcell::ad {

/// Vector-Jacobian product: for each node of `wrt`, sum over outputs of cotangent^T d output/d wrt.
/// A cotangent has its output's shape and dtype; kNoNode stands for zero. kNoNode comes back where
/// no output depends on that node (a structural zero). Walks stop at the nodes of `wrt`.
std::vector<NodeId> adjoint(Graph& g, std::span<const NodeId> outputs,
                            std::span<const NodeId> cotangents, std::span<const NodeId> wrt);

/// Jacobian-vector product: for each output, sum over inputs of d output/d wrt tangent.
std::vector<NodeId> tangent(Graph& g, std::span<const NodeId> outputs, std::span<const NodeId> wrt,
                            std::span<const NodeId> tangents);

/// Whether a derivative passes from input k to a node. Integers carry those by integer inputs
/// alone: what has been rounded to an integer has none.
bool passes(const Graph& g, NodeId id, int k);
/// Throws Type if the outputs depend on integers `wrt` through a loop or a call, whose derivatives
/// are by floats alone.
void require_rules_for_integers(const Graph& g, std::span<const NodeId> outputs,
                                std::span<const NodeId> wrt);
/// The nodes from `first` on that the roots need, ascending: a walk in a small part of a large
/// graph takes as long as that part.
std::vector<NodeId> live_from(const Graph& g, std::span<const NodeId> roots, NodeId first);

/// One above the highest order among the live nodes that derivatives by `wrt` pass through.
uint8_t next_order(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> wrt);

}  // namespace gradcell::ad

// Graphs as text, one line a node:
//
//   %3 = Mul(%1, %2) : float32[2, 3]  # net.py:12, order 1
//
// Order n: the node was made by the n-th differentiation; forward nodes do not say so.
#pragma once

#include <functional>
#include <string>

#include "ir/graph.h"

namespace gradcell {

/// What stands behind a node's # (a file and line, a leaf's name); an empty text leaves it out.
using Remark = std::function<std::string(NodeId)>;

/// The line of one node, without its location. Inputs go by their ids.
std::string to_text(const Graph& g, NodeId id);

/// What the roots need, numbered from %0 in the order of their ids, and a last line
/// "return %5, %7". Loops' bodies stand below, under their numbers: "@0".
std::string to_text(const Graph& g, std::span<const NodeId> roots, const Remark& remark = nullptr);

/// The same as a drawing for Graphviz: boxes are leaves (with their remarks), doubled boxes roots;
/// a deeper blue is a higher order of differentiation.
std::string to_dot(const Graph& g, std::span<const NodeId> roots, const Remark& remark = nullptr);

}  // namespace gradcell

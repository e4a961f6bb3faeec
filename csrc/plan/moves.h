// Movements of what movements made, in one pass: a concatenation of slices, a transpose of what has
// been turned round, zeros around zeros.
#pragma once

#include <map>

#include "plan/labels.h"

namespace gradcell {

/// A call's movement, with the nodes that its pieces are of.
struct JoinedMove {
  Movement movement;
  std::vector<NodeId> inputs;
};

/// The movements that take others in, by node. Those taken in are no calls any more: `absorbed`,
/// by node, says which node reads what they read.
struct JoinedMoves {
  std::map<NodeId, JoinedMove> by_node;
  std::vector<NodeId> absorbed;  ///< kNoNode: it is none
};

JoinedMoves join_moves(const Graph& g, const Labels& labels, std::span<const NodeId> roots);

/// The movement of a call, with what it has taken in.
JoinedMove move_of(const Graph& g, const Labels& labels, const JoinedMoves& moves, NodeId id);

/// The pieces of a result of which `outer` is a piece of what `inner` makes, in dims; none: it
/// takes more than strides to say where they are.
std::optional<std::vector<Piece>> composed(const Piece& outer, const Movement& inner,
                                           const Dims& dims);

}  // namespace gradcell

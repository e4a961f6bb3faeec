// Results that are pieced together of others, as concatenations are: a part that lies in them in
// one piece is made where the whole will stand, and is not copied.
#pragma once

#include "plan/moves.h"

namespace gradcell {

struct MadeWithin {
  std::vector<NodeId> whole;  ///< by node: what it is made within, or kNoNode
  std::vector<size_t> at;     ///< by node: how many bytes of the whole come before it
};

/// free: by node, whether the planner chooses where a result lies. A whole may be a part itself.
MadeWithin find_parts(const Graph& g, const Labels& labels, const JoinedMoves& moves,
                      std::span<const uint8_t> free);

}  // namespace gradcell

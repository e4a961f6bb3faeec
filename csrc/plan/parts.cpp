#include "plan/parts.h"

namespace gradcell {

namespace {

bool is_dense(const View& v) { return v.dims.size() == 1 && v.strides[0] == 1; }

/// Where in a result of `dims` a piece begins that is all `count` elements of its input, in order;
/// nothing, if it is not.
std::optional<int64_t> beginning(const Piece& p, int64_t count, const Dims& dims) {
  if (count == 0 || element_count(p.from.dims) != count) return std::nullopt;
  const View from = merged(p.from), to = merged(placed(p, dims));
  const bool whole = count == 1 || (is_dense(from) && is_dense(to));
  return whole && from.offset == 0 ? std::optional(to.offset) : std::nullopt;
}

}  // namespace

MadeWithin find_parts(const Graph& g, const Labels& labels, const JoinedMoves& moves,
                      std::span<const uint8_t> free) {
  MadeWithin parts{std::vector<NodeId>(g.size(), kNoNode), std::vector<size_t>(g.size(), 0)};
  for (NodeId id = narrow<NodeId>(g.size()); id-- > 0;) {
    if (!free[id] || form(g, id) != Form::Move || labels.node[id].in_region) continue;
    const JoinedMove move = move_of(g, labels, moves, id);
    if (move.movement.zeros) continue;  // which would be written over the parts
    for (const Piece& p : move.movement.pieces) {
      const NodeId part = move.inputs[static_cast<size_t>(p.input)];
      if (!free[part] || parts.whole[part] != kNoNode) continue;
      const auto at = beginning(p, g.count(part), g.dims(id));
      if (!at) continue;
      parts.whole[part] = id;
      parts.at[part] = static_cast<size_t>(*at) * item_size(g.dtype(id));
    }
  }
  return parts;
}

}  // namespace gradcell

#include "plan/moves.h"

#include <algorithm>
#include <unordered_map>

namespace gradcell {

namespace {

/// Where the elements of `v`, a view of a dense tensor of `dims`, are if that tensor is itself a
/// view: each dimension of v has to go along one of dims.
std::optional<View> through(const View& v, const View& inner) {
  if (v.offset == 0 && v.strides == row_major(v.dims) &&
      element_count(v.dims) == element_count(inner.dims))
    return reshaped(inner, v.dims);
  const Dims lies = row_major(inner.dims);
  Dims low(inner.dims.size(), 0);
  int64_t rest = v.offset;
  for (size_t a = 0; a < low.size(); ++a) low[a] = rest / lies[a], rest %= lies[a];
  Dims high = low;
  View out{v.dims, Dims(v.dims.size(), 0), inner.offset};
  for (size_t a = 0; a < low.size(); ++a) out.offset += low[a] * inner.strides[a];
  for (size_t k = 0; k < v.dims.size(); ++k) {
    if (v.dims[k] == 1 || v.strides[k] == 0) continue;
    size_t a = 0;  // the outermost axis that the step is a whole number of
    while (a < lies.size() && (inner.dims[a] == 1 || v.strides[k] % lies[a] != 0)) ++a;
    if (a == lies.size()) return std::nullopt;
    const int64_t step = v.strides[k] / lies[a];
    (step < 0 ? low : high)[a] += step * (v.dims[k] - 1);
    out.strides[k] = step * inner.strides[a];
  }
  for (size_t a = 0; a < low.size(); ++a)
    if (low[a] < 0 || high[a] >= inner.dims[a]) return std::nullopt;
  return out;
}

class Joiner {
 public:
  Joiner(const Graph& g, const Labels& labels, std::span<const NodeId> roots)
      : g_(g), labels_(labels), readers_(g.size(), 0) {
    joined_.absorbed.assign(g.size(), kNoNode);
    for (NodeId id = 0; id < g.size(); ++id)
      if (labels.storage[id] == id)
        for (NodeId i : g.inputs(id)) ++readers_[labels.storage[i]];
    for (NodeId r : roots) readers_[labels.storage[r]] += 2;
    for (const Labels::Reread& r : labels.reread) readers_[r.id] += 2;
  }

  JoinedMoves run() {
    for (NodeId id = 0; id < g_.size(); ++id)
      if (is_call(id)) join(id);
    return std::move(joined_);
  }

 private:
  bool is_call(NodeId id) const {
    const NodeLabel& l = labels_.node[id];
    return form(g_, id) == Form::Move && labels_.storage[id] == id && l.materialised &&
           !l.in_region && !l.elsewhere && g_.count(id) > 0;
  }

  JoinedMove move_of(NodeId id) const { return gradcell::move_of(g_, labels_, joined_, id); }

  void join(NodeId id) {
    JoinedMove mine = move_of(id), result{{{}, mine.movement.zeros}, {}};
    std::vector<NodeId> taken;
    std::unordered_map<NodeId, int> number;
    auto add = [&](Piece p, NodeId from) {
      const auto [it, fresh] = number.try_emplace(from, narrow<int>(result.inputs.size()));
      p.input = it->second;
      if (fresh) result.inputs.push_back(from);
      result.movement.pieces.push_back(std::move(p));
    };
    for (const Piece& p : mine.movement.pieces) {
      const NodeId from = mine.inputs[static_cast<size_t>(p.input)];
      if (is_call(from) && readers_[from] == 1 && element_count(p.from.dims) > 0) {
        const JoinedMove inner = move_of(from);
        if (auto pieces = composed(p, inner.movement, g_.dims(from))) {
          for (Piece& q : *pieces) {
            const NodeId source = inner.inputs[static_cast<size_t>(q.input)];
            add(std::move(q), source);
          }
          result.movement.zeros |= inner.movement.zeros;
          taken.push_back(from);
          continue;
        }
      }
      add(p, from);
    }
    if (taken.empty()) return;
    for (NodeId t : taken) {
      joined_.absorbed[t] = id;
      joined_.by_node.erase(t);
    }
    joined_.by_node[id] = std::move(result);
  }

  const Graph& g_;
  const Labels& labels_;
  std::vector<int32_t> readers_;
  JoinedMoves joined_;
};

}  // namespace

std::optional<std::vector<Piece>> composed(const Piece& outer, const Movement& inner,
                                           const Dims& dims) {
  if (is_view(inner)) {
    const auto from = through(outer.from, inner.pieces[0].from);
    if (!from) return std::nullopt;
    return std::vector<Piece>{{inner.pieces[0].input, *from, outer.start, outer.step}};
  }
  // Pieces, and zeros: of them the outer one has to be all, as it lies.
  if (outer.from.offset != 0 || outer.from.dims != dims || outer.from.strides != row_major(dims))
    return std::nullopt;
  std::vector<Piece> pieces = inner.pieces;
  for (Piece& p : pieces)
    for (size_t k = 0; k < dims.size(); ++k) {
      p.start[k] = outer.start[k] + outer.step[k] * p.start[k];
      p.step[k] *= outer.step[k];
    }
  return pieces;
}

JoinedMove move_of(const Graph& g, const Labels& labels, const JoinedMoves& moves, NodeId id) {
  if (const auto it = moves.by_node.find(id); it != moves.by_node.end()) return it->second;
  JoinedMove m{spec(g, id).movement(g, id), {}};
  for (NodeId i : g.inputs(id)) m.inputs.push_back(labels.storage[i]);
  return m;
}

JoinedMoves join_moves(const Graph& g, const Labels& labels, std::span<const NodeId> roots) {
  return Joiner(g, labels, roots).run();
}

}  // namespace gradcell

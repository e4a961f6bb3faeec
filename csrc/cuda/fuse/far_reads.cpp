#include "cuda/fuse/far_reads.h"

#include <algorithm>
#include <cstdlib>

#include "ops/ops.h"

namespace gradcell::cuda {

namespace {

constexpr double kSector = 32;
/// Shorter sides leave a sector half empty anyway.
constexpr int64_t kShortest = 16;

struct Axis {
  int64_t size = 1, stride = 0;
};

/// The innermost axis of dimensions `begin` to `end` that has more than one element.
Axis innermost(const View& v, size_t begin, size_t end) {
  for (size_t k = end; k-- > begin;)
    if (v.dims[k] > 1) return {v.dims[k], v.strides[k]};
  return {};
}

std::optional<View> view_of(const Graph& g, NodeId id) {
  if (form(g, id) != Form::Move || g.count(id) == 0) return {};
  const Movement m = spec(g, id).movement(g, id);
  if (!is_view(m)) return {};
  return m.pieces[0].from;
}

/// Neighbours lie apart along `fast`, and what lies side by side is not next to each other.
bool apart(const Axis& fast) { return fast.size >= kShortest && std::abs(fast.stride) > 1; }

}  // namespace

bool reads_across(const Graph& g, NodeId id, int64_t rows) {
  const auto v = view_of(g, id);
  if (!v) return false;
  size_t lead = 0;
  int64_t before = 1;
  while (lead < v->dims.size() && before < rows) before *= v->dims[lead++];
  if (before != rows) return false;
  const Axis row = innermost(*v, 0, lead);
  return apart(innermost(*v, lead, v->dims.size())) && row.size >= kShortest && row.stride == 1;
}

double sectors_read(const Graph& g, NodeId id, int64_t rows) {
  if (rows >= kEnoughRows) return 1;
  bool across = rows > 0 && reads_across(g, id, rows);
  if (rows == 0)
    if (const auto v = view_of(g, id); v && apart(innermost(*v, 0, v->dims.size())))
      for (size_t k = 0; k < v->dims.size(); ++k)
        across |= v->strides[k] == 1 && v->dims[k] >= kShortest;
  return across ? kSector / static_cast<double>(item_size(g.dtype(id))) : 1;
}

std::vector<uint8_t> transposed_before(const Graph& g, const Fusion& f, const Weights& weights) {
  std::vector<uint8_t> found;
  std::vector<NodeId> open;
  std::vector<NodeId> seen(g.size(), kNoNode);  // by node: from which kernel's result
  for (NodeId id = 0; id < g.size(); ++id) {
    const Fused& me = f.node[id];
    const bool reduces = me.role == Role::Alone && folds(form(g, id));
    if (!me.stored || f.storage[id] != id || (!reduces && !me.by_rows)) continue;
    const int64_t rows = reduces ? 0 : me.rows;
    open = {id};
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      const Fused& n = f.node[at];
      const bool there = n.role == Role::Source || (n.stored && n.stage < me.stage);
      if (seen[at] == id || there || (at != id && n.role == Role::Alone)) continue;
      seen[at] = id;
      // Written and read once more, and a launch, against what lies between in the sectors.
      const double saved = (sectors_read(g, at, rows) - 3) * static_cast<double>(g.count(at)) *
                           static_cast<double>(item_size(g.dtype(at)));
      if (n.role == Role::Map && saved > weights.launch) {
        found.resize(g.size(), 0);
        found[at] = 1;
      }
      for (NodeId input : g.inputs(at)) open.push_back(f.storage[input]);
    }
  }
  return found;
}

}  // namespace gradcell::cuda

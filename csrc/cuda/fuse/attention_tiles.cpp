#include "cuda/fuse/attention_tiles.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "cuda/cuda_plan.h"
#include "ops/combining/attention.h"
#include "ops/ops.h"
#include "plan/rewrite/rewrite.h"

namespace gradcell::cuda {

namespace {

constexpr int64_t kSide = 64;
/// Of a block's shared memory, what a kernel may have by itself.
constexpr size_t kOwn = 1024;
/// A thread has 255 registers; beside its sums it needs scores, factors and places.
constexpr int kMostSums = 128;
constexpr int64_t kWidest = 512;

/// As gc_pitch of attention.cuh.
int64_t pitch(int64_t width, DType t) {
  const auto item = static_cast<int64_t>(item_size(t));
  const int64_t four = item == 4 ? 8 : 16;
  return (width + four - 1) / four * four + 16 / item;
}

/// Whether dropout keeps the same scores of all that have it.
bool same_dropout(const Graph& g, std::span<const NodeId> storage, std::span<const NodeId> sums) {
  using Dropout = std::tuple<NodeId, int64_t, int64_t>;
  std::set<Dropout> found;
  for (NodeId id : sums) {
    const auto a = attributes<AttentionAttributes>(g, id);
    const AttentionInputs at = attention_inputs(g[id].op, a);
    if (at.state >= 0) found.insert({storage[g.input(id, at.state)], a.keep, a.period});
  }
  return found.size() < 2;
}

}  // namespace

const AttentionTile& AttentionTiles::of(NodeId storage, bool by_keys) const {
  for (const AttentionTile& t : all)
    if (t.storage == storage && t.by_keys == by_keys) return t;
  fail(ErrorKind::Runtime, "planning: an operand of attention has no tile");
}

AttentionTiles attention_tiles(const Graph& g, std::span<const NodeId> storage,
                               std::span<const NodeId> sums) {
  AttentionTiles found;
  auto add = [&](NodeId node, bool by_keys) {
    const NodeId from = storage[node];
    if (std::ranges::any_of(found.all, [&](const AttentionTile& t) {
          return t.storage == from && t.by_keys == by_keys;
        }))
      return;
    const int64_t width = g.dims(node).back();
    found.all.push_back({from, node, by_keys, width, found.bytes});
    found.bytes +=
        static_cast<size_t>(kSide * pitch(width, g.dtype(node))) * item_size(g.dtype(node));
  };
  int halves = 0;  // what the second half of the warps gives the first
  for (NodeId id : sums) {
    const auto a = attributes<AttentionAttributes>(g, id);
    const AttentionInputs at = attention_inputs(g[id].op, a);
    add(g.input(id, 0), false), add(g.input(id, 1), true);
    for (int k = at.factors; k < g[id].input_count; ++k)
      add(g.input(id, k), (k - at.factors) % 2 == 1);
    if (at.log_sum < 0) halves = 4;
    if (at.c < 0) continue;
    add(g.input(id, at.c), !attention_by_keys(g[id].op));
    found.registers += narrow<int>((g.dims(id).back() + 7) / 8 * 4);
  }
  found.bytes = std::max(found.bytes, static_cast<size_t>(found.registers + halves) * 512);
  return found;
}

bool fits_tensor_cores(const Graph& g, std::span<const NodeId> storage,
                       std::span<const NodeId> sums, const Target& target) {
  if (compute_type(g.dtype(sums[0])) == Compute::F64 || target.capability < 80) return false;
  if (std::ranges::any_of(
          sums, [&](NodeId id) { return attributes<AttentionAttributes>(g, id).written; }))
    return false;
  const AttentionTiles tiles = attention_tiles(g, storage, sums);
  return tiles.bytes + kOwn <= target.shared_bytes && tiles.registers <= kMostSums &&
         std::ranges::all_of(
             tiles.all, [](const AttentionTile& t) { return t.width > 0 && t.width <= kWidest; });
}

std::vector<std::vector<NodeId>> sums_to_join(const Graph& g, std::span<const NodeId> storage,
                                              const Target& target) {
  // None of a level needs another one of it, and groups of one level each wait in no circle.
  std::vector<int> level(g.size(), 0);
  std::map<std::tuple<int, SameScores, bool>, std::vector<std::vector<NodeId>>> found;
  for (NodeId id = 0; id < g.size(); ++id) {
    for (NodeId i : g.inputs(id)) level[id] = std::max(level[id], level[i]);
    const auto scores = scores_of(g, storage, id);
    if (!scores) continue;
    auto& groups = found[{++level[id], *scores, attention_by_keys(g[id].op)}];
    if (!fits_tensor_cores(g, storage, std::array{id}, target)) continue;
    if (!groups.empty()) {
      std::vector<NodeId> more = groups.back();
      more.push_back(id);
      if (same_dropout(g, storage, more) && fits_tensor_cores(g, storage, more, target)) {
        groups.back() = std::move(more);
        continue;
      }
    }
    groups.push_back({id});
  }
  std::vector<std::vector<NodeId>> all;
  for (auto& [what, groups] : found)
    for (auto& group : groups) all.push_back(std::move(group));
  return all;
}

}  // namespace gradcell::cuda

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

constexpr int64_t kOthers = 64;
/// Of a block's shared memory, what a kernel may have by itself.
constexpr size_t kOwn = 1024;
/// A thread has 255 registers; beside its sums it needs scores, factors and places.
constexpr int kMostSums = 128;
constexpr int64_t kWidest = 512;
/// Of halves: registers for sums, scores and kept rows, beside which places and factors need
/// theirs, on sm_100 more of them.
constexpr int64_t kMostHeld = 176, kMostHeldLater = 152;
/// What random numbers take.
constexpr int64_t kOfDropout = 24;
/// Registers for sums where a warp has all others: of more, compilers load so far ahead that they
/// spill.
constexpr int kMostAlone = 64;
/// The quickest first: each factor of others that is read serves two pieces; rows are read once.
constexpr AttentionWay kWays[] = {
    {2, 8, true}, {2, 8, false}, {1, 8, true}, {1, 8, false}, {1, 4, false}};

/// As gc_pitch of attention.cuh.
int64_t pitch(int64_t width, DType t) {
  const auto item = static_cast<int64_t>(item_size(t));
  const int64_t four = item == 4 ? 8 : 16;
  return (width + four - 1) / four * four + 16 / item;
}

size_t bytes_of(const Graph& g, const AttentionTile& t, int64_t rows) {
  const DType type = g.dtype(t.node);
  return static_cast<size_t>(rows * pitch(t.width, type)) * item_size(type);
}

/// The tiles' places: own rows, and others' in one stage or two.
void place(const Graph& g, AttentionTiles& x, bool by_keys) {
  size_t own = 0, others = 0;
  for (AttentionTile& t : x.all) {
    size_t& end = t.by_keys == by_keys ? own : others;
    t.offset = end;
    end += bytes_of(g, t, t.by_keys == by_keys ? x.way.rows() : kOthers);
  }
  for (AttentionTile& t : x.numbers) t.offset = others, others += kOthers * sizeof(float);
  x.mask = others;
  if (x.masked > 1) x.masked = by_keys ? kOthers : x.way.rows();
  others += static_cast<size_t>(x.masked * (x.way.keys(by_keys) + 16));
  // Own rows that are kept lie where the second stage will, or the only one.
  const size_t behind = others * static_cast<size_t>(x.stages - (x.way.keeps ? 1 : 0));
  for (AttentionTile& t : x.all)
    if (t.by_keys == by_keys) t.offset += behind;
  x.stage = others;
  x.bytes = behind + (x.way.keeps ? std::max(own, others) : own);
}

/// Registers of a thread that live as long as a tile does, where operands are halves.
int64_t registers(const Graph& g, std::span<const NodeId> storage, std::span<const NodeId> sums,
                  const AttentionTiles& x, bool by_keys) {
  std::set<std::pair<NodeId, NodeId>> factors;
  bool weighs = false, added = false, drops = false;
  for (NodeId id : sums) {
    const auto a = attributes<AttentionAttributes>(g, id);
    const AttentionInputs at = attention_inputs(g[id].op, a);
    for (int k = at.factors; k < g[id].input_count; k += 2)
      factors.insert({storage[g.input(id, k)], storage[g.input(id, k + 1)]});
    weighs |= at.shift >= 0 || a.dropped;
    drops |= a.dropped;
    added |= at.mask >= 0 && g.dtype(g.input(id, at.mask)) != DType::Bool;
  }
  int64_t kept = 0;
  for (const AttentionTile& t : x.all)
    if (x.way.keeps && t.by_keys == by_keys) kept += (t.width + 15) / 16 * 4;
  const auto scores = static_cast<int64_t>(
      1 + std::max(factors.size(), static_cast<size_t>(weighs)) + static_cast<size_t>(added));
  return x.way.pieces * (kept + x.sums + 4 * x.way.parts * scores) + (drops ? kOfDropout : 0);
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
                               std::span<const NodeId> sums, const Target& target) {
  AttentionTiles found;
  auto add = [&](std::vector<AttentionTile>& to, NodeId node, bool by_keys) {
    const NodeId from = storage[node];
    if (std::ranges::none_of(
            to, [&](const AttentionTile& t) { return t.storage == from && t.by_keys == by_keys; }))
      to.push_back({from, node, by_keys, g.dims(node).back()});
  };
  const bool by_keys = attention_by_keys(g[sums[0]].op);
  const bool halves = item_size(g.dtype(g.input(sums[0], 0))) == 2;
  int totals = 0;  // what one warp gives another
  for (NodeId id : sums) {
    const auto a = attributes<AttentionAttributes>(g, id);
    const AttentionInputs at = attention_inputs(g[id].op, a);
    add(found.all, g.input(id, 0), false), add(found.all, g.input(id, 1), true);
    for (int k = at.factors; k < g[id].input_count; ++k)
      add(found.all, g.input(id, k), (k - at.factors) % 2 == 1);
    for (int k : {at.log_sum, at.shift})
      if (halves && by_keys && k >= 0 && g.dtype(g.input(id, k)) == DType::Float32)
        add(found.numbers, g.input(id, k), false);
    if (halves && at.mask >= 0 && g.dtype(g.input(id, at.mask)) == DType::Bool) {
      const Dims& mask = g.dims(g.input(id, at.mask));
      found.masked = mask[mask.size() - 2] == 1 ? 1 : kOthers;
    }
    if (at.log_sum < 0) totals = 4;
    if (at.c < 0) continue;
    add(found.all, g.input(id, at.c), !by_keys);
    found.sums += narrow<int>((g.dims(id).back() + 7) / 8 * 4);
  }
  const auto a = attributes<AttentionAttributes>(g, sums[0]);
  const Dims outside = heads_outside(g.dims(g.input(sums[0], by_keys ? 1 : 0)), a.inside);
  const int64_t rows = outside[outside.size() - 2];
  const int64_t heads = element_count(Dims(outside.begin(), outside.end() - 2));
  const int64_t most = target.capability < 100 ? kMostHeld : kMostHeldLater;
  for (const AttentionWay& way : kWays) {
    found.way = way, found.stages = 1;
    const int64_t blocks = heads * ((rows + way.rows() - 1) / way.rows());
    const bool last = &way == std::end(kWays) - 1;
    if (!last && (!halves || way.pieces * found.sums > kMostAlone ||
                  registers(g, storage, sums, found, by_keys) > most ||
                  (way.pieces > 1 && 2 * blocks < 3 * target.multiprocessors)))
      continue;
    place(g, found, by_keys);
    if (last || found.bytes + kOwn <= target.shared_bytes) break;
  }
  if (halves) {
    found.stages = 2;
    place(g, found, by_keys);
    if (found.bytes + kOwn > target.shared_bytes) found.stages = 1, place(g, found, by_keys);
  }
  if (found.way.parts < 8) found.given = static_cast<size_t>(found.sums + totals) * 512;
  found.bytes = std::max(found.bytes, found.given);
  return found;
}

bool fits_tensor_cores(const Graph& g, std::span<const NodeId> storage,
                       std::span<const NodeId> sums, const Target& target) {
  if (compute_type(g.dtype(sums[0])) == Compute::F64 || target.capability < 80) return false;
  if (std::ranges::any_of(
          sums, [&](NodeId id) { return attributes<AttentionAttributes>(g, id).written; }))
    return false;
  const AttentionTiles tiles = attention_tiles(g, storage, sums, target);
  return tiles.bytes + kOwn <= target.shared_bytes && tiles.sums <= kMostSums &&
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

#include "cuda/fuse/fusion.h"

#include <algorithm>
#include <map>

#include "base/union_find.h"
#include "cuda/fuse/attention_tiles.h"
#include "cuda/fuse/far_reads.h"
#include "cuda/fuse/product_stages.h"
#include "ops/ops.h"
#include "plan/costs.h"
#include "plan/labels.h"

namespace gradcell::cuda {

namespace {

/// A node up to this cost is computed again by each kernel that needs it, rather than stored; in
/// additions.
constexpr int kInlineCost = 12;
constexpr int kInlineScalarCost = 30;
constexpr int kLoadCost = 2;
constexpr int kTooMuch = 1 << 20;
/// A product with more terms an element is the library's.
constexpr int64_t kFewTerms = 4;
/// A value that is so many ops away from memory is put there: texts are written by recursion, of
/// which each level takes up to 1.5 KB of a thread's stack.
constexpr int kDeepest = 128;
/// A row longer than this is reduced by several blocks, so by kernels of its own.
constexpr int64_t kMaxRow = 1 << 16;

using RowSet = std::vector<int64_t>;  // row counts that something can run with, ascending

/// The element counts of the leading dimensions.
RowSet prefixes(const Dims& dims) {
  RowSet set;
  int64_t p = 1;
  for (int64_t n : dims) {
    p *= n;
    if (set.empty() || set.back() != p) set.push_back(p);
  }
  if (dims.empty()) set.push_back(1);
  return set;
}

int own_cost(const Graph& g, NodeId id) {
  return is_product(g, id) ? narrow<int>(2 * few_terms(g, id)) : element_cost(g, id).gpu_additions;
}

/// Library calls and scatters read whole buffers, and so do products with few terms, which would
/// compute each operand several times; other kernels compute their inputs where they can.
bool reads_whole(const Graph& g, NodeId id) {
  const KernelForm k = info(form(g, id)).kernel;
  return k == KernelForm::Whole || k == KernelForm::Terms;
}

Role role_of(const Graph& g, NodeId id) {
  switch (info(form(g, id)).kernel) {
    case KernelForm::Source:
      return Role::Source;
    case KernelForm::View:
      return Role::View;
    case KernelForm::Element:
    case KernelForm::Elsewhere:
      return Role::Map;
    case KernelForm::Rows: {
      const int64_t rows = g.count(id), k = trailing_reduction(g, id);
      const bool fits = k > 0 && rows > 1 && k <= kMaxRow && (rows >= 64 || k <= 2048);
      return fits ? Role::RowReduce : Role::Alone;
    }
    case KernelForm::Fold:
    case KernelForm::Whole:
      return Role::Alone;
    case KernelForm::Terms:
      return few_terms(g, id) > 0 ? Role::Map : Role::Alone;
    case KernelForm::Absent:
      break;
  }
  fail(ErrorKind::Runtime, info(g[id].op).name, " in a cleaned graph");
}

/// The row counts under which row r of a node that moves elements needs nothing of an input but row
/// r, by input.
std::vector<RowSet> moved_rows(const Graph& g, NodeId id) {
  const Dims& to = g.dims(id);
  std::vector<RowSet> sets(g.inputs(id).size());
  const Movement m = spec(g, id).movement(g, id);
  for (const Piece& p : m.pieces) {
    RowSet& set = sets[static_cast<size_t>(p.input)];
    int64_t rows = 1;
    for (size_t lead = 1; lead <= to.size(); ++lead) {
      rows *= to[lead - 1];
      const bool fresh = set.empty() || set.back() != rows;
      if (rows > 0 && fresh &&
          rows_of(p, to, lead, rows, g.count(g.input(id, p.input))) == RowsOf::Same)
        set.push_back(rows);
    }
  }
  return sets;
}

/// The same for any node.
std::vector<RowSet> kept_rows(const Graph& g, NodeId id) {
  const size_t inputs = g.inputs(id).size();
  switch (info(form(g, id)).kernel) {
    case KernelForm::Elsewhere:
      if (form(g, id) == Form::Move) return moved_rows(g, id);
      return std::vector<RowSet>(inputs);
    case KernelForm::Rows:
      return std::vector(inputs, RowSet{g.count(id)});
    case KernelForm::Terms:
      return std::vector<RowSet>(inputs);
    case KernelForm::Source:
    case KernelForm::View:
    case KernelForm::Element:
    case KernelForm::Fold:
    case KernelForm::Whole:
    case KernelForm::Absent:
      break;
  }
  return std::vector(inputs, prefixes(g.dims(id)));
}

class Fuser {
 public:
  Fuser(const Graph& g, std::span<const NodeId> roots, const TileRegions& tiles,
        const Target& target, std::vector<uint8_t> cut)
      : g_(g),
        n_(g.size()),
        roots_(roots),
        tiles_(tiles),
        target_(target),
        cut_(std::move(cut)),
        uses_(n_, 0),
        sets_(n_),
        rows_(n_),
        full_(n_, 0),
        shared_(n_, 0),
        ready_(n_, 0),
        least_(n_, 0),
        edges_(n_, 0),
        open_(n_, 0),
        anchored_(n_, 0) {
    f_.node.resize(n_);
    f_.storage.resize(n_);
  }

  Fusion run() {
    for (NodeId id = 0; id < n_; ++id) {
      f_.node[id].role = tiles_.of[id] >= 0 ? Role::Tile : role_of(g_, id);
      f_.storage[id] = f_.node[id].role == Role::View ? f_.storage[g_.input(id, 0)] : id;
    }
    for (const TileRegion& t : tiles_.all) {
      for (NodeId id : t.reads) ++uses_[id], anchored_[id] = 1;
      for (NodeId id : t.writes) anchored_[id] = 1;
    }
    for (NodeId id = 0; id < n_; ++id)
      if (real(id))
        for (int k = 0; k < g_[id].input_count; ++k) {
          ++uses_[source(id, k)];
          if (reads_whole(g_, id)) anchored_[source(id, k)] = 1;
        }
    for (NodeId r : roots_) anchored_[f_.storage[r]] = 1;
    cut_deep();
    for (NodeId id = 0; id < n_; ++id) anchor_scalar(id);
    for (NodeId id : tiles_.order)
      if (real(id)) place(id);
    find_stages();
    wait_for_each_other();
    for (NodeId id = 0; id < n_; ++id)
      if (anchored_[id]) f_.node[id].stored = f_.node[id].anchored = true;
    for (NodeId id = 0; id < n_; ++id)
      if (real(id)) store_inputs(id);
    finish();
    return std::move(f_);
  }

 private:
  /// True for nodes that compute something, each for itself.
  bool real(NodeId id) const {
    const Role role = f_.node[id].role;
    return role != Role::View && role != Role::Source && role != Role::Tile;
  }

  /// The first stage in which all that a region reads is there.
  int32_t stage_of_tile(const TileRegion& tile) const {
    int32_t stage = 0;
    for (NodeId id : tile.reads)
      if (!is_leaf(g_, id)) stage = std::max(stage, f_.node[id].stage + 1);
    return stage;
  }
  NodeId source(NodeId id, int k) const { return f_.storage[g_.input(id, k)]; }

  /// Whether no kernel but its own computes it.
  bool cut(NodeId id) const { return !cut_.empty() && cut_[id]; }

  void cut_deep() {
    std::vector<int> depth(n_, 0);
    for (NodeId id = 0; id < n_; ++id) {
      const Role role = f_.node[id].role;
      if (role != Role::Map && role != Role::RowReduce) continue;
      for (int k = 0; k < g_[id].input_count; ++k)
        depth[id] = std::max(depth[id], depth[source(id, k)] + 1);
      if (depth[id] < kDeepest || role != Role::Map) continue;
      cut_.resize(n_, 0);
      cut_[id] = 1, depth[id] = 0;
    }
  }

  /// The row counts under which a row of a node needs nothing of its k-th input but that row.
  const RowSet& kept(NodeId id, int k) {
    if (std::exchange(kept_for_, id) != id) kept_ = kept_rows(g_, id);
    return kept_[static_cast<size_t>(k)];
  }

  NodeId find(NodeId x) { return narrow<NodeId>(sets_.find(x)); }

  /// Nodes whose elements only one consumer reads cost nothing when that consumer computes them.
  void costs(NodeId id) {
    full_[id] = own_cost(g_, id);
    shared_[id] = 0;
    for (int k = 0; k < g_[id].input_count; ++k) {
      NodeId p = source(id, k);
      bool computed = again(p);
      int load = g_.count(p) >= g_.count(id) && !is_constant(g_, p) ? kLoadCost : 0;
      full_[id] = std::min(kTooMuch, full_[id] + (computed ? full_[p] : load));
      shared_[id] = std::min(kTooMuch, shared_[id] + (computed ? shared_[p] : 0));
    }
    if (uses_[id] > 1) shared_[id] = full_[id];
  }

  /// A number that is dear to compute and spread over a tensor has a buffer: who reads the tensor
  /// reads the number.
  void anchor_scalar(NodeId id) {
    if (f_.node[id].role != Role::Map) return;
    if (is_broadcast(g_, id)) {
      NodeId p = source(id, 0);
      bool number = f_.node[p].role == Role::Map && g_.count(p) == 1;
      if (number && full_[p] > kInlineScalarCost) anchored_[p] = 1;
    }
    costs(id);
  }

  /// Whether a kernel outside p's group computes p again.
  bool inlines(NodeId id, NodeId p) const {
    if (!again(p) || reads_whole(g_, id)) return false;
    const bool repeats = is_broadcast(g_, id) || form(g_, id) == Form::Take;
    return (repeats ? full_[p] : shared_[p]) <=
           (g_.count(p) == 1 ? kInlineScalarCost : kInlineCost);
  }

  /// Whether an expression that is computed again goes through p, rather than reading its buffer.
  bool again(NodeId p) const { return f_.node[p].role == Role::Map && !anchored_[p] && !cut(p); }

  /// True if p's rows flow to id inside one kernel: joins their components.
  bool join(NodeId id, NodeId p, int k) {
    Role a = f_.node[id].role, b = f_.node[p].role;
    if (a == Role::Alone || (b != Role::Map && b != Role::RowReduce) || cut(p)) return false;
    NodeId x = find(p), y = find(id);
    RowSet both = intersect(intersect(rows_[x], rows_[y]), kept(id, k));
    if (both.empty()) return false;
    // A row kernel only where there is a reduction to be had inside it.
    bool flat = both.back() == g_.count(id) && both.back() == g_.count(p);
    if (!flat && !open_[x] && !open_[y]) return false;
    sets_.join(x, y);
    rows_[y] = std::move(both);
    open_[y] = open_[x] | open_[y];
    return true;
  }

  /// Component and cost of a node, and how it comes by its inputs.
  void place(NodeId id) {
    const Fused& me = f_.node[id];
    if (me.role == Role::Map) costs(id);
    if (me.role == Role::RowReduce) rows_[id] = {g_.count(id)}, open_[id] = 1;
    if (me.role == Role::Map) rows_[id] = prefixes(g_.dims(id));
    edges_[id] = edge_.size();
    for (int k = 0; k < g_[id].input_count; ++k) {
      NodeId p = source(id, k);
      Edge e = Edge::Load;
      if (f_.node[p].role == Role::Source)
        e = is_constant(g_, p) && reads_whole(g_, id) ? Edge::Filled : Edge::There;
      else if (join(id, p, k))
        e = Edge::Flow;
      else if (inlines(id, p))
        e = Edge::Inline;
      edge_.push_back(e);
    }
  }

  /// The first stage in which each node can be computed, none before `least_`.
  void find_stages() {
    int32_t passage = 0;  // of the collectives so far: they stay in their order
    for (NodeId id : tiles_.order) {
      Fused& me = f_.node[id];
      if (me.role == Role::Tile) {
        me.stage = stage_of_tile(tiles_.all[static_cast<size_t>(tiles_.of[id])]);
        continue;
      }
      if (!real(id)) continue;
      const bool passes = form(g_, id) == Form::Collective;
      me.stage = std::max(least_[id], passes ? passage : 0);
      ready_[id] = 0;
      for (int k = 0; k < g_[id].input_count; ++k) {
        const NodeId p = source(id, k);
        const int32_t from = f_.node[p].stage;
        const Edge e = edge_[edges_[id] + static_cast<size_t>(k)];
        if (e == Edge::Filled) me.stage = std::max(me.stage, 1);
        if (e == Edge::Filled || e == Edge::There) continue;
        me.stage = std::max(me.stage, e == Edge::Flow     ? from
                                      : e == Edge::Inline ? ready_[p]
                                                          : from + 1);
        ready_[id] = std::max(ready_[id], again(p) ? ready_[p] : from + 1);
      }
      if (passes) passage = me.stage;
    }
  }

  /// Products that can be one wait for the last of them, and sums over the same scores: where both
  /// would wait in a circle, these alone.
  void wait_for_each_other() {
    if (!tiles_.all.empty() || !g_.effects().empty()) return;
    const auto products = products_to_join(g_, roots_, f_);
    auto all = sums_to_join(g_, f_.storage, target_);
    const size_t sums = all.size();
    all.insert(all.end(), products.begin(), products.end());
    if (wait(all)) return;
    require(sums > 0, ErrorKind::Runtime, "planning: products wait in a circle");
    std::ranges::fill(least_, 0);
    all.resize(sums);
    require(wait(all), ErrorKind::Runtime, "planning: sums of attention wait in a circle");
  }

  /// False: in a circle.
  bool wait(std::span<const std::vector<NodeId>> groups) {
    find_stages();
    for (size_t round = 0;; ++round) {
      bool waits = false;
      for (const std::vector<NodeId>& group : groups) {
        int32_t last = 0;
        for (NodeId id : group) last = std::max(last, f_.node[id].stage);
        for (NodeId id : group)
          if (f_.node[id].stage < last) least_[id] = last, waits = true;
      }
      if (!waits) return true;
      if (round > groups.size()) return false;
      find_stages();
    }
  }

  bool together(NodeId id, NodeId p, int k) {
    const Fused &me = f_.node[id], &from = f_.node[p];
    if (me.role == Role::Alone || (from.role != Role::Map && from.role != Role::RowReduce))
      return false;
    if (find(id) != find(p) || me.stage != from.stage) return false;
    return std::ranges::binary_search(kept(id, k), rows_[find(id)].back());
  }

  /// Gives buffers to what `id` reads from another kernel.
  void store_inputs(NodeId id) {
    for (int k = 0; k < g_[id].input_count; ++k) {
      NodeId p = source(id, k);
      if (f_.node[p].role == Role::Source || together(id, p, k)) continue;
      if (inlines(id, p))
        store_leaves_of(p);
      else
        f_.node[p].stored = true;
    }
  }

  /// An expression that is computed again needs its inputs in buffers.
  void store_leaves_of(NodeId p) {
    for (int k = 0; k < g_[p].input_count; ++k) {
      NodeId q = source(p, k);
      if (f_.node[q].role == Role::Source) continue;
      if (again(q))
        store_leaves_of(q);
      else
        f_.node[q].stored = true;
    }
  }

  void finish() {
    for (NodeId id = 0; id < n_; ++id) {
      Fused& me = f_.node[id];
      if (me.role == Role::Alone) me.stored = true;
      me.cut = cut(id);
      f_.stage_count = std::max(f_.stage_count, me.stage + 1);
      if (me.role != Role::Map && me.role != Role::RowReduce) continue;
      me.component = narrow<int32_t>(find(id));
      me.rows = rows_[find(id)].back();
    }
    // A component's kernel of one stage is flat, with accesses of four elements, where all that it
    // computes has as many elements: a reduction in another stage is none of its business.
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (NodeId id = 0; id < n_; ++id) {
      const Fused& me = f_.node[id];
      if (me.component < 0) continue;
      const int64_t count = me.role == Role::RowReduce ? kMixed : g_.count(id);
      auto [entry, fresh] = counts.try_emplace({me.component, me.stage}, count);
      if (!fresh && entry->second != count) entry->second = kMixed;
    }
    for (NodeId id = 0; id < n_; ++id) {
      Fused& me = f_.node[id];
      if (me.component < 0) continue;
      me.by_rows = counts[{me.component, me.stage}] == kMixed;
      if (!me.by_rows) me.rows = g_.count(id);
    }
  }

  static constexpr int64_t kMixed = -1;

  /// How a node comes by an input.
  enum class Edge : uint8_t {
    There,   ///< it is in memory before all kernels
    Filled,  ///< a constant that has to be in memory: a kernel of stage 0 puts it there
    Flow,    ///< the same kernel may compute it
    Inline,  ///< computed again
    Load,
  };

  const Graph& g_;
  size_t n_;
  std::span<const NodeId> roots_;
  const TileRegions& tiles_;
  const Target& target_;
  std::vector<uint8_t> cut_;
  Fusion f_;
  std::vector<int> uses_;
  UnionFind sets_;
  std::vector<RowSet> rows_;
  std::vector<RowSet> kept_;  ///< of the inputs of `kept_for_`
  NodeId kept_for_ = kNoNode;
  std::vector<int> full_;          ///< what computing it again costs, from the nearest buffers
  std::vector<int> shared_;        ///< the same, without what nobody else computes
  std::vector<int32_t> ready_;     ///< the first stage in which it can be computed again
  std::vector<int32_t> least_;     ///< no earlier stage
  std::vector<Edge> edge_;         ///< of every input of every node
  std::vector<size_t> edges_;      ///< where a node's begin
  std::vector<uint8_t> open_;      ///< by component: holds a row reduction
  std::vector<uint8_t> anchored_;  ///< has a buffer whatever else is decided
};

}  // namespace

int64_t few_terms(const Graph& g, NodeId id) {
  if (!is_product(g, id) || !is_floating(g.dtype(id))) return 0;
  int64_t terms = 0;
  for (int k = 0; k < g[id].input_count; k += 2)
    terms += sizes_of(g.dims(g.input(id, k)), g.dims(id), attributes<ProductAttributes>(g, id)).k;
  return terms <= kFewTerms ? terms : 0;
}

NodeId row_factor(const Graph& g, NodeId id, int64_t rows) {
  if (!is_product(g, id) || g[id].input_count != 2) return kNoNode;
  const auto p = attributes<ProductAttributes>(g, id);
  const NodeId a = g.input(id, 0);
  const ProductSizes s = sizes_of(g.dims(a), g.dims(id), p);
  return !p.transpose_a && s.m == rows && g.count(id) == s.m * s.n ? a : kNoNode;
}

int64_t trailing_reduction(const Graph& g, NodeId id) {
  const Dims& dims = g.dims(g.input(id, 0));
  auto axes = g.attrs(id);
  size_t first = dims.size() - axes.size();
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int64_t>(first + i)) return 0;
  int64_t k = 1;
  for (size_t i = first; i < dims.size(); ++i) k *= dims[i];
  return k;
}

Fusion fuse(const Graph& g, std::span<const NodeId> roots, const TileRegions& tiles,
            const Target& target) {
  Fusion all = Fuser(g, roots, tiles, target, {}).run();
  const std::vector<uint8_t> before = transposed_before(g, all, target.weights);
  return before.empty() ? std::move(all) : Fuser(g, roots, tiles, target, before).run();
}

}  // namespace gradcell::cuda

#include "plan/labels.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/union_find.h"
#include "ops/ops.h"

namespace gradcell {

namespace {

/// A number of rows and how they lie, see Region.
struct RowSplit {
  int64_t rows, block = 1;
  bool operator==(const RowSplit&) const = default;
  bool operator<(const RowSplit& o) const {
    return rows != o.rows ? rows < o.rows : block > o.block;
  }
};

using RowSet = std::vector<RowSplit>;  // ascending: the splits a node can run with

/// Weights beyond this do not stay in the cache beside a tile: such products run whole.
constexpr int64_t kMaxWeightBytes = 512 << 10;
/// Nor do larger gradients of weights, of which each thread collects its own.
constexpr int64_t kMaxGradElements = 1 << 16;

RowSet prefixes(const Dims& dims, int64_t count, size_t limit) {
  RowSet set;
  if (count == 1) return {{1}};
  int64_t p = 1;
  for (size_t k = 0; k < std::min(limit, dims.size()); ++k) {
    p *= dims[k];
    if (p > 1 && count / p <= kMaxFeatures && (set.empty() || set.back().rows != p))
      set.push_back({p});
  }
  return set;
}

/// The positions of images [images, channels, ...] as rows, channels as features.
std::optional<RowSplit> positions(const Dims& dims) {
  if (dims.size() < 3 || dims[1] == 1 || dims[1] > kMaxFeatures) return {};
  const int64_t block = product(dims, 2, dims.size());
  if (block == 1) return {};
  return RowSplit{dims[0] * block, block};
}

RowSet with_positions(RowSet set, const Dims& dims) {
  if (const auto p = positions(dims)) set.insert(std::lower_bound(set.begin(), set.end(), *p), *p);
  return set;
}

/// The splits of a tensor's elements.
RowSet splits(const Dims& dims, int64_t count) {
  return with_positions(prefixes(dims, count, dims.size()), dims);
}

/// Whether a tensor has rows that lie so. (One feature lies alike in all blocks.)
bool has_rows(const Dims& dims, int64_t count, const RowSplit& split) {
  if (count == split.rows) return true;
  const RowSet set = splits(dims, count);
  return std::binary_search(set.begin(), set.end(), split);
}

/// Whether a piece gives every row of a result the same elements, judged by its first real axis.
bool is_uniform(const Piece& p) {
  for (size_t k = 0; k < p.from.dims.size(); ++k)
    if (p.from.dims[k] > 1) return p.from.strides[k] == 0;
  return false;
}

/// Whether a view reads long runs of elements that lie near each other.
bool in_runs(const View& v) {
  constexpr int64_t kRun = 32, kStep = 16;
  size_t k = v.dims.size();
  while (k > 0 && v.dims[k - 1] == 1) --k;
  if (k == 0) return false;
  int64_t run = v.dims[k - 1];
  const int64_t step = v.strides[k - 1];
  for (--k; k > 0 && v.strides[k - 1] == step * run; --k) run *= v.dims[k - 1];
  return run >= kRun && std::abs(step) <= kStep;
}

/// Whether a node's elements are in memory before any region begins that reads them as a piece
/// does.
bool is_stored(const Graph& g, const Labels& l, NodeId id, const Piece& p) {
  const NodeLabel& from = l.node[id];
  if (is_constant(g, id)) return false;
  return is_leaf(g, id) || !from.in_region || from.reducing || is_uniform(p);
}

/// Whether the elements of a view's row lie side by side, as its features.
bool is_row_together(const View& v, size_t lead) {
  int64_t stride = 1;
  for (size_t k = v.dims.size(); k-- > lead; stride *= v.dims[k])
    if (v.dims[k] > 1 && v.strides[k] != stride) return false;
  return true;
}

/// With which row counts above `most`, of more features than one, each row of a view of what is
/// stored lies somewhere in it: a broadcast along any axis, a part of an axis. (What scales images'
/// channels goes by positions, as sums over them do.)
void add_rows_elsewhere(const Graph& g, NodeId id, const Piece& p, int64_t most, RowSet& set) {
  const Dims& dims = g.dims(id);
  const int64_t count = g.count(id), all = g.count(g.input(id, 0));
  const bool images = dims.size() > 3 && positions(dims);
  for (const RowSplit& s : prefixes(dims, count, dims.size())) {
    if (s.rows <= most || s.rows == count) continue;
    const RowAxes axes = row_axes(dims, s.rows, 1);
    const bool together =
        is_row_one_element(p.from, axes.lead) ? !images : is_row_together(p.from, axes.lead);
    if (together && rows_of(p, dims, axes, s.rows, 1, all) == RowsOf::Any)
      set.insert(std::lower_bound(set.begin(), set.end(), s), s);
  }
}

/// The row counts with which row r of every piece needs only row r of its input, or none. A view of
/// what is stored can also be read row by row or element by element where it lies. What else would
/// run by positions alone is read so by more rows than its input has elements, which thus is
/// stored.
RowSet move_rows(const Graph& g, const Labels& l, NodeId id) {
  const Dims& dims = g.dims(id);
  const Movement m = spec(g, id).movement(g, id);
  RowSet set = splits(dims, g.count(id));
  for (const Piece& p : m.pieces) {
    const NodeId x = g.input(id, p.input);
    const RowsOf wanted = is_uniform(p) ? RowsOf::None : RowsOf::Same;
    std::erase_if(set, [&](const RowSplit& s) {
      if (wanted == RowsOf::Same && !has_rows(g.dims(x), g.count(x), s)) return true;
      const RowAxes axes = row_axes(dims, s.rows, s.block);
      return s.rows > 1 && rows_of(p, dims, axes, s.rows, s.block, g.count(x)) != wanted;
    });
  }
  if (!is_view(m) || (!set.empty() && set.back().rows == g.count(id))) return set;
  auto by_positions = [](const RowSplit& s) { return s.block > 1; };
  const bool blocks = std::ranges::any_of(set, by_positions);
  const Piece& p = m.pieces[0];
  const NodeId x = l.storage[g.input(id, 0)];
  const bool stored = is_stored(g, l, x, p);
  if (!stored && (is_constant(g, x) || !std::ranges::all_of(set, by_positions))) return set;
  add_rows_elsewhere(g, id, p, stored ? 1 : g.count(x), set);
  if (stored && !blocks && in_runs(p.from)) set.push_back({g.count(id)});
  return set;
}

/// True if every row is reduced (the result has no row axis left), judged by the first real axis.
bool reduces_rows(const Dims& dims, std::span<const int64_t> axes) {
  for (size_t k = 0; k < dims.size(); ++k)
    if (dims[k] > 1) return contains(axes, k);
  return false;
}

size_t reduce_prefix(const Dims& dims, std::span<const int64_t> axes, bool reducing) {
  size_t k = 0;
  for (; k < dims.size(); ++k) {
    if (dims[k] > 1 && contains(axes, k) != reducing) break;
  }
  return k;
}

bool is_row_reducing(const Graph& g, NodeId id) {
  if (form(g, id) == Form::Reduce) return reduces_rows(g.dims(g.input(id, 0)), g.attrs(id));
  return is_weight_gradient(g, id);
}

RowSet product_rows(const Graph& g, NodeId id) {
  if (!is_floating(g.dtype(id)) || g.dims(id).size() != 2) return {};
  const auto [ta, tb] = attributes<ProductAttributes>(g, id);
  int64_t outer = g.dims(id)[1], rows = g.dims(g.input(id, 0))[0];
  auto item = static_cast<int64_t>(compute_size(compute_type(g.dtype(id))));
  for (int k = 0; k < g[id].input_count; k += 2) {
    const Dims& a = g.dims(g.input(id, k));
    int64_t inner = a[1];
    if (ta) {  // the weight gradient: contracts the rows of both
      if (tb || inner * outer > kMaxGradElements) return {};
    } else if (inner * outer * item > kMaxWeightBytes) {
      return {};
    }
    if (a[0] != rows || a[0] <= 1 || inner > kMaxFeatures || outer > kMaxFeatures) return {};
  }
  return {{rows}};
}

/// Whether a reduction is no call's own: those multiply in double.
bool combines_in_tiles(const Graph& g, NodeId id) {
  return !(g.dtype(id) == DType::Bool && is_sum(g, id)) && spec(g, id).combine != Combine::Product;
}

RowSet reduce_rows(const Graph& g, NodeId id) {
  NodeId x = g.input(id, 0);
  const Dims& dims = g.dims(x);
  const auto axes = g.attrs(id);
  bool reducing = reduces_rows(dims, axes);
  RowSet set = prefixes(dims, g.count(x), reduce_prefix(dims, axes, reducing));
  if (set.size() == 1 && set[0].rows == 1) return {};
  bool alike = true;  // all axes that count positions vanish, or none of them does
  for (size_t k = 0; k < dims.size(); ++k)
    if (k != 1 && dims[k] > 1) alike &= contains(axes, k) == reducing;
  const bool keeps_channels = reducing && dims.size() > 1 && !contains(axes, 1);
  return alike && (keeps_channels || !reducing) ? with_positions(std::move(set), dims) : set;
}

/// Whether a product takes a vector and a matrix of long rows that stands in memory: a call reads
/// it as it lies, where a tile would transpose it first.
bool reads_matrix_once(const Graph& g, const Labels& l, NodeId id) {
  constexpr int64_t kLong = 256, kMany = 1 << 16;
  const Dims& dims = g.dims(id);
  const NodeId a = g.input(id, 0), stored = l.storage[a];
  return g[id].input_count == 2 && dims.size() == 2 && dims[1] == 1 && g.dims(a).back() >= kLong &&
         g.count(a) >= kMany && (g.dtype(id) == DType::Float32 || g.dtype(id) == DType::Float64) &&
         (is_leaf(g, stored) || !l.node[stored].in_region);
}

/// Whether a product takes one row, of features that a region can have, and a matrix.
bool takes_one_row(const Graph& g, NodeId id) {
  if (!is_floating(g.dtype(id)) || g.dims(id).size() != 2 || g.dims(id)[0] != 1) return false;
  if (attributes<ProductAttributes>(g, id).transpose_a) return false;
  for (int k = 0; k < g[id].input_count; k += 2)
    if (g.count(g.input(id, k)) > kMaxFeatures) return false;
  return g.count(id) <= kMaxFeatures;
}

/// The row counts with which a region can run this node; empty: a call runs it.
RowSet row_set(const Graph& g, const Labels& l, NodeId id) {
  const Dims& dims = g.dims(id);
  int64_t count = g.count(id);
  if (count == 0) return {};
  int64_t longest = count;
  for (NodeId i : g.inputs(id)) {
    if (g.count(i) == 0) return {};
    longest = std::max(longest, g.count(i));
  }
  const TileForm tile = info(form(g, id)).tile;
  if (l.whole && l.rows == 1 && tile == TileForm::Product)
    return takes_one_row(g, id) ? RowSet{{1}} : RowSet{};
  if (l.whole) {
    const bool fits = longest <= kMaxFeatures && tile != TileForm::Product &&
                      tile != TileForm::Call &&
                      (tile != TileForm::Reduce || combines_in_tiles(g, id));
    return fits ? RowSet{{1}} : RowSet{};
  }
  switch (tile) {
    case TileForm::Element:
    case TileForm::Convert:
      return splits(dims, count);
    case TileForm::Move:
      return move_rows(g, l, id);
    case TileForm::Reduce:
      return combines_in_tiles(g, id) ? reduce_rows(g, id) : RowSet{};
    case TileForm::Product:
      return reads_matrix_once(g, l, id) ? RowSet{} : product_rows(g, id);
    case TileForm::Call:
      return {};
  }
  return {};
}

/// Whether a reduction reads long lines, or many columns, that stand in memory: what a call goes
/// over in order. (Of few features a row, rows are the better lanes.)
bool reads_long_lines(const Graph& g, const Labels& l, NodeId id) {
  constexpr int64_t kLine = 32;
  const NodeId x = g.input(id, 0);
  const Dims& dims = g.dims(x);
  if (form(g, id) != Form::Reduce || !is_leaf(g, l.storage[x])) return false;
  int64_t line = 1;
  size_t k = dims.size();
  while (k > 0 && dims[k - 1] == 1) --k;
  for (size_t last = k; k > 0 && contains(g.attrs(id), k - 1) == contains(g.attrs(id), last - 1);
       --k)
    line *= dims[k - 1];
  return line >= kLine;
}

/// Whether all that a node does is to copy long runs of elements near each other, which stand in
/// memory where nothing else is in its component.
bool copies_runs(const Graph& g, const Labels& l, NodeId id) {
  constexpr int64_t kRun = 64, kStep = 4;
  if (form(g, id) != Form::Move) return false;
  for (NodeId x : g.inputs(id))
    if (is_constant(g, l.storage[x])) return false;
  const Movement m = spec(g, id).movement(g, id);
  return std::ranges::all_of(m.pieces, [](const Piece& p) {
    const Dims &dims = p.from.dims, &strides = p.from.strides;
    size_t k = dims.size();
    while (k > 0 && dims[k - 1] == 1) --k;
    return k > 0 && dims[k - 1] >= kRun && std::abs(strides[k - 1]) <= kStep;
  });
}

/// Whether a node only converts, or combines bools, that stand in memory: a call does so without
/// widening them.
bool works_on_stored(const Graph& g, const Labels& l, NodeId id) {
  for (NodeId x : g.inputs(id))
    if (!is_leaf(g, l.storage[x])) return false;
  return form(g, id) == Form::Convert || info(g[id].op).cls == OpClass::Bool;
}

/// Whether a call runs a node by itself, with which nothing is joined.
bool is_lone(const Graph& g, const Labels& l, NodeId id, uint32_t in_component) {
  return in_component == 1 && (copies_runs(g, l, id) || works_on_stored(g, l, id));
}

/// Which reductions of long lines have nothing in a region that reads their tensor in the same
/// pass: all that reads it waits for the reduction, whose result exists when all rows are done.
class ReadsAlone {
 public:
  ReadsAlone(const Graph& g, const Labels& l, std::span<const uint32_t> in_component)
      : g_(g), l_(l), alone_(g.size(), 0) {
    std::vector<NodeId> lines;
    for (NodeId id = 0; id < g.size(); ++id)
      if (l.node[id].in_region && reads_long_lines(g, l, id)) lines.push_back(id);
    if (lines.empty()) return;
    others_.resize(g.size());
    std::vector<NodeId> stays(g.size(), kNoNode);  // by tensor, the first that stays in a region
    for (NodeId id = 0; id < g.size(); ++id) {
      if (!l.node[id].in_region || reads_long_lines(g, l, id)) continue;  // those are calls, too
      const bool lone = is_lone(g, l, id, in_component[id]);
      for (NodeId i : g.inputs(id)) {
        others_[l.storage[i]].push_back(id);
        if (!lone) stays[l.storage[i]] = std::min(stays[l.storage[i]], id);
      }
    }
    std::vector<NodeId> open;
    for (NodeId id : lines) {
      const NodeId x = tensor(id);
      if (stays[x] < id) continue;  // cannot wait for it
      const bool last = others_[x].empty() || others_[x].back() < id;
      alone_[id] = last;
      if (!last && l.node[id].reducing) open.push_back(id);
    }
    for (size_t k = 0; k < open.size(); k += 64)
      wait_for(std::span(open).subspan(k, std::min<size_t>(64, open.size() - k)));
  }

  bool operator[](NodeId id) const { return alone_[id]; }

 private:
  NodeId tensor(NodeId reduction) const { return l_.storage[g_.input(reduction, 0)]; }

  /// Of up to 64 reductions, a bit each: whether all that reads their tensor comes behind them.
  void wait_for(std::span<const NodeId> reductions) {
    const NodeId first = reductions[0];
    NodeId end = 0;
    for (NodeId id : reductions) end = std::max(end, others_[tensor(id)].back() + 1);
    std::vector<uint64_t> behind(end - first, 0);
    for (size_t k = 0; k < reductions.size(); ++k) behind[reductions[k] - first] = uint64_t{1} << k;
    for (NodeId id = first; id < end; ++id)
      for (NodeId i : g_.inputs(id))
        if (i >= first) behind[id - first] |= behind[i - first];
    std::unordered_map<NodeId, uint64_t> alone;  // by tensor
    for (size_t k = 0; k < reductions.size(); ++k) {
      const auto [all, fresh] = alone.try_emplace(tensor(reductions[k]), ~uint64_t{0});
      if (fresh)
        for (NodeId r : others_[all->first]) {
          if (r < first) continue;
          uint64_t later = 0;  // those that it cannot come behind
          for (size_t j = reductions.size(); j-- > 0 && reductions[j] > r;)
            later |= uint64_t{1} << j;
          all->second &= behind[r - first] | later;
        }
      alone_[reductions[k]] = all->second >> k & 1;
    }
  }

  const Graph& g_;
  const Labels& l_;
  std::vector<std::vector<NodeId>> others_;  ///< by tensor: what reads it in a region, if no lines
  std::vector<uint8_t> alone_;
};

/// Takes reductions out of regions where nothing else reads their tensor, and copies and
/// conversions that nothing is joined with: calls run them. in_component: how many nodes are in a
/// node's component.
void lone_nodes_to_calls(const Graph& g, Labels& l, std::span<const uint32_t> in_component) {
  const ReadsAlone alone(g, l, in_component);
  for (NodeId id = 0; id < g.size(); ++id) {
    NodeLabel& me = l.node[id];
    if (me.in_region && (alone[id] || is_lone(g, l, id, in_component[id])))
      me.in_region = me.reducing = false;
  }
}

class Components {
 public:
  explicit Components(size_t n) : sets_(n), rows_(n) {}
  NodeId find(NodeId x) { return narrow<NodeId>(sets_.find(x)); }
  RowSet& rows(NodeId x) { return rows_[find(x)]; }
  /// Joins two components if some row count suits both. count: elements of what flows between them.
  void join(NodeId a, NodeId b, int64_t count) {
    a = find(a), b = find(b);
    if (a == b) return;
    RowSet both = intersect(rows_[a], rows_[b]);
    if (both.empty()) return;
    const RowSplit& most = both.back();
    const bool large = count / most.rows > kFewFeatures;
    if (most.block == 1 && large && (in_blocks(a) || in_blocks(b))) return;
    sets_.join(a, b);
    rows_[b] = std::move(both);
  }

 private:
  static constexpr int64_t kFewFeatures = 256;
  /// Positions of images are what it runs by: whole large images would not stay in the cache.
  bool in_blocks(NodeId x) const { return rows_[x].back().block > 1; }

  UnionFind sets_;
  std::vector<RowSet> rows_;
};

/// Whether a constant k-th input needs no buffer: a region holds it as a number, but weights that
/// rows are multiplied with are packed from memory.
bool is_immediate(const Graph& g, const Labels& l, NodeId id, int k) {
  return l.node[id].in_region && access(g, l, id, k) == Access::Rows;
}

/// Work that needs nothing but what is stored anyway can wait for the stage that uses it, so that
/// it is not stored itself.
void sink(const Graph& g, Labels& l) {
  size_t n = g.size();
  std::vector<uint8_t> floating(n, 0);
  for (NodeId id = 0; id < n; ++id) {
    const NodeLabel& me = l.node[id];
    if (!me.in_region || me.reducing) continue;
    bool free = true;
    for (int k = 0; k < g[id].input_count && free; ++k) {
      NodeId p = l.storage[g.input(id, k)];
      free = is_source(g, p) || floating[p] || !flows_in_tile(g, l, p, id, k);
    }
    floating[id] = free;
  }
  std::vector<int32_t> latest(n, INT32_MAX);
  for (NodeId id = narrow<NodeId>(n); id-- > 0;) {
    NodeLabel& me = l.node[id];
    if (!is_made(g, l, id)) continue;
    if (floating[id] && latest[id] != INT32_MAX) me.stage = std::max(me.stage, latest[id]);
    for (int k = 0; k < g[id].input_count; ++k) {
      NodeId p = l.storage[g.input(id, k)];
      if (is_source(g, p)) continue;
      bool same = l.node[p].in_region && me.in_region && l.node[p].component == me.component &&
                  !l.node[p].reducing && access(g, l, id, k) == Access::Rows;
      latest[p] = std::min(latest[p], same ? me.stage : me.stage - 1);
    }
  }
}

bool is_collective(const Graph& g, NodeId id) { return form(g, id) == Form::Collective; }

/// How many collectives one after the other a node comes behind. What needs a collective's result
/// waits until all that needs fewer of them is done, so that it is exchanged meanwhile: a node has
/// the highest level that those who use it leave it. Collectives start as early as they can, in
/// their order. Empty: there are none.
std::vector<int32_t> levels(const Graph& g) {
  if (g.effects().empty()) return {};
  std::vector<int32_t> first(g.size(), 0);  // the lowest that is possible
  int32_t last = 0;                         // of the collectives so far
  for (NodeId id = 0; id < g.size(); ++id) {
    for (NodeId i : g.inputs(id)) first[id] = std::max(first[id], first[i] + is_collective(g, i));
    if (is_collective(g, id)) last = first[id] = std::max(first[id], last);
  }
  const int32_t top = *std::max_element(first.begin(), first.end());
  std::vector<int32_t> level(g.size(), top);
  for (NodeId id = narrow<NodeId>(g.size()); id-- > 0;) {
    if (first[id] == 0 || is_collective(g, id)) level[id] = first[id];
    for (NodeId i : g.inputs(id)) level[i] = std::min(level[i], level[id]);
  }
  return level;
}

/// The stage before which nothing is computed with a node that has another one's elements: of those
/// that share storage, the latest of their tokens.
int32_t tokens_stage(const Graph& g, const Labels& l, std::span<const int32_t> tokens, NodeId id) {
  int32_t stage = tokens[g.input(id, 0)];
  for (NodeId token : g.inputs(id).subspan(1))
    stage = std::max(stage, l.node[l.storage[token]].stage);
  return stage;
}

/// The first stage in which all that a node reads is there. tokens: by node, its tokens_stage.
int32_t ready(const Graph& g, const Labels& l, std::span<const int32_t> tokens, NodeId id) {
  const NodeLabel& me = l.node[id];
  int32_t stage = 0;
  for (int k = 0; k < g[id].input_count; ++k) {
    NodeId p = l.storage[g.input(id, k)];
    const NodeLabel& from = l.node[p];
    bool fill = is_constant(g, p) && !is_immediate(g, l, id, k);
    bool in_tile = from.in_region && me.in_region && !from.reducing &&
                   from.component == me.component && access(g, l, id, k) == Access::Rows;
    int32_t there = is_source(g, p) ? (fill ? 1 : 0) : in_tile ? from.stage : from.stage + 1;
    stage = std::max({stage, there, tokens[g.input(id, k)]});
  }
  return stage;
}

/// Gives every node its stage.
void place(const Graph& g, Labels& l) {
  const std::vector<int32_t> level = levels(g);
  std::vector<NodeId> order(g.size());
  std::iota(order.begin(), order.end(), NodeId{0});
  if (!level.empty()) std::ranges::stable_sort(order, {}, [&](NodeId id) { return level[id]; });
  std::vector<int32_t> tokens(g.size(), 0);
  int32_t now = 0, begin = 0, end = 0, last = 0;
  for (NodeId id : order) {
    if (l.storage[id] != id) tokens[id] = tokens_stage(g, l, tokens, id);
    if (!is_made(g, l, id)) continue;
    if (!level.empty() && level[id] != now) now = level[id], begin = end;
    int32_t& stage = l.node[id].stage;
    stage = std::max(begin, ready(g, l, tokens, id));
    if (is_collective(g, id)) last = stage = std::max(stage, last);
    end = std::max(end, stage + 1);
  }
}

/// A collective has to have ended where its value is first read, or in the end.
void find_waits(const Graph& g, Labels& l) {
  for (const Graph::Effect& e : g.effects()) {
    l.node[e.id].materialised = true;
    l.node[e.id].wait = l.stage_count;
  }
  if (g.effects().empty()) return;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!is_made(g, l, id)) continue;
    for (NodeId i : g.inputs(id)) {
      NodeLabel& p = l.node[l.storage[i]];
      if (p.wait >= 0) p.wait = std::min(p.wait, l.node[id].stage);
    }
  }
}

}  // namespace

Access access(const Graph& g, const Labels& l, NodeId id, int k) {
  if (is_product(g, id))
    return k % 2 == 1 && !is_weight_gradient(g, id) ? Access::Uniform : Access::Rows;
  if (l.whole || !is_broadcast(g, id)) return Access::Rows;
  return is_uniform(spec(g, id).movement(g, id).pieces[0]) ? Access::Uniform : Access::Rows;
}

namespace {

/// Whether a move of so many rows, which are no blocks, reads each of them where it lies.
bool reads_rows_elsewhere(const Graph& g, NodeId id, int64_t rows) {
  if (form(g, id) != Form::Move || rows == 1) return false;
  const Movement m = spec(g, id).movement(g, id);
  return is_view(m) && rows_of(m.pieces[0], g.dims(id), row_axes(g.dims(id), rows, 1), rows, 1,
                               g.count(g.input(id, 0))) == RowsOf::Any;
}

}  // namespace

bool loads_view(const Graph& g, const Labels& l, NodeId id) {
  const NodeLabel& me = l.node[id];
  return me.in_region && me.block == 1 && reads_rows_elsewhere(g, id, me.rows);
}

bool is_made(const Graph& g, const Labels& l, NodeId id) {
  return l.storage[id] == id && !is_source(g, id);
}

bool flows_in_tile(const Graph& g, const Labels& l, NodeId producer, NodeId consumer, int k) {
  const NodeLabel &p = l.node[producer], &c = l.node[consumer];
  return p.in_region && c.in_region && !p.reducing && p.component == c.component &&
         p.stage == c.stage && access(g, l, consumer, k) == Access::Rows;
}

namespace {

/// Views of inputs that rows read uniformly alone: they are read where they lie, so that nothing
/// has to be ready before. (Not of longer ones than places in a region are counted for.)
void see_through_views(const Graph& g, Labels& l, std::span<const NodeId> roots) {
  std::vector<uint8_t> other(g.size(), 0);  // read in another way
  for (NodeId r : roots) other[l.storage[r]] = 1;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (form(g, id) == Form::Same) continue;
    const bool moves = l.node[id].in_region && form(g, id) == Form::Move && !loads_view(g, l, id);
    for (int k = 0; k < g[id].input_count; ++k)
      if (!moves || access(g, l, id, k) != Access::Uniform) other[l.storage[g.input(id, k)]] = 1;
  }
  for (NodeId id = 0; id < g.size(); ++id) {
    const bool view = form(g, id) == Form::Move && !other[id] && g.count(id) <= kMaxFeatures &&
                      is_view(spec(g, id).movement(g, id));
    if (form(g, id) == Form::Same)
      l.storage[id] = l.storage[g.input(id, 0)];
    else if (view && is_leaf(g, l.storage[g.input(id, 0)]) && g.count(g.input(id, 0)) <= INT32_MAX)
      l.storage[id] = l.storage[g.input(id, 0)], l.node[id].in_region = false;
  }
}

}  // namespace

Labels label(const Graph& g, std::span<const NodeId> roots, bool whole, int64_t rows) {
  size_t n = g.size();
  Labels l;
  l.whole = whole, l.rows = rows;
  l.node.resize(n);
  l.storage.resize(n);
  Components components(n);
  std::vector<uint8_t> by_views(n, 0);

  for (NodeId id = 0; id < n; ++id) {
    l.storage[id] = form(g, id) == Form::Same ? l.storage[g.input(id, 0)] : id;
    if (!is_made(g, l, id)) continue;
    NodeLabel& me = l.node[id];
    components.rows(id) = row_set(g, l, id);
    if (rows > 0)
      std::erase_if(components.rows(id),
                    [&](const RowSplit& s) { return s.rows != rows || s.block != 1; });
    me.in_region = !components.rows(id).empty();
    me.reducing = me.in_region && !whole && is_row_reducing(g, id);
    by_views[id] = me.in_region && components.rows(id).front().block == 1 &&
                   reads_rows_elsewhere(g, id, components.rows(id).front().rows);
  }
  // Views that are read where they lie come last: they would have all that is near them run so.
  for (const bool views : {false, true})
    for (NodeId id = 0; id < n; ++id) {
      if (!is_made(g, l, id) || !l.node[id].in_region) continue;
      for (int k = 0; k < g[id].input_count; ++k) {
        const NodeId p = l.storage[g.input(id, k)];
        const NodeLabel& from = l.node[p];
        if (from.in_region && !from.reducing && access(g, l, id, k) == Access::Rows &&
            (by_views[p] || by_views[id]) == views)
          components.join(p, id, std::max(g.count(p), g.count(id)));
      }
    }
  std::vector<uint32_t> in_component(n, 0);
  for (NodeId id = 0; id < n; ++id)
    if (l.node[id].in_region) ++in_component[components.find(id)];
  for (NodeId id = 0; id < n; ++id) in_component[id] = in_component[components.find(id)];
  if (!whole && rows == 0) lone_nodes_to_calls(g, l, in_component);
  for (NodeId id = 0; id < n; ++id) {
    NodeLabel& me = l.node[id];
    if (!is_made(g, l, id) || !me.in_region) continue;
    me.component = narrow<int32_t>(components.find(id));
    const RowSplit split = components.rows(id).back();
    me.rows = split.rows, me.block = split.block;
  }
  see_through_views(g, l, roots);
  place(g, l);
  sink(g, l);

  for (NodeId r : roots) l.node[l.storage[r]].materialised = true;
  for (NodeId id = 0; id < n; ++id) {
    if (!is_made(g, l, id)) continue;
    l.stage_count = std::max(l.stage_count, l.node[id].stage + 1);
    for (int k = 0; k < g[id].input_count; ++k) {
      NodeId p = l.storage[g.input(id, k)];
      bool immediate = is_constant(g, p) && is_immediate(g, l, id, k);
      if (!immediate && !flows_in_tile(g, l, p, id, k)) l.node[p].materialised = true;
    }
  }
  for (NodeId r : roots)
    if (is_constant(g, l.storage[r])) l.stage_count = std::max(l.stage_count, 1);
  find_waits(g, l);
  return l;
}

}  // namespace gradcell

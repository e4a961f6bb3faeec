#include "plan/labels.h"

#include <algorithm>

#include "base/union_find.h"
#include "ops/ops.h"

namespace gradcell {

namespace {

using RowSet = std::vector<int64_t>;  // ascending: the row counts a node can run with

/// Weights beyond this do not stay in the cache beside a tile: such products run whole.
constexpr int64_t kMaxWeightBytes = 512 << 10;
constexpr int64_t kMaxGradElements = 1 << 16;

RowSet prefixes(const Dims& dims, int64_t count, size_t limit) {
  RowSet set;
  if (count == 1) return {1};
  int64_t p = 1;
  for (size_t k = 0; k < std::min(limit, dims.size()); ++k) {
    p *= dims[k];
    if (p > 1 && count / p <= kMaxFeatures && (set.empty() || set.back() != p)) set.push_back(p);
  }
  return set;
}

RowSet intersect(const RowSet& a, const RowSet& b) {
  RowSet out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

/// Whether a piece gives every row of a result the same elements, judged by its first real axis.
bool is_uniform(const Piece& p) {
  for (size_t k = 0; k < p.from.dims.size(); ++k)
    if (p.from.dims[k] > 1) return p.from.strides[k] == 0;
  return false;
}

/// The row counts with which row r of every piece needs only row r of its input, or none.
RowSet move_rows(const Graph& g, NodeId id) {
  const Dims& dims = g.dims(id);
  const Movement m = spec(g, id).movement(g, id);
  RowSet set = prefixes(dims, g.count(id), dims.size());
  for (const Piece& p : m.pieces) {
    const NodeId x = g.input(id, p.input);
    const RowsOf wanted = is_uniform(p) ? RowsOf::None : RowsOf::Same;
    if (wanted == RowsOf::Same) set = intersect(set, prefixes(g.dims(x), g.count(x), SIZE_MAX));
    std::erase_if(set, [&](int64_t rows) {
      size_t lead = 0;
      for (int64_t n = 1; n < rows;) n *= dims[lead++];
      return rows > 1 && rows_of(p, dims, lead, rows, g.count(x)) != wanted;
    });
  }
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
  return {rows};
}

RowSet reduce_rows(const Graph& g, NodeId id) {
  NodeId x = g.input(id, 0);
  const Dims& dims = g.dims(x);
  if (g.dtype(id) == DType::Bool && is_sum(g, id)) return {};
  bool reducing = reduces_rows(dims, g.attrs(id));
  RowSet set = prefixes(dims, g.count(x), reduce_prefix(dims, g.attrs(id), reducing));
  if (set.size() == 1 && set[0] == 1) return {};
  return set;
}

/// The row counts with which a region can run this node; empty: a call runs it.
RowSet row_set(const Graph& g, NodeId id) {
  const Dims& dims = g.dims(id);
  int64_t count = g.count(id);
  if (count == 0) return {};
  for (NodeId i : g.inputs(id))
    if (g.count(i) == 0) return {};
  switch (form(g, id)) {
    case Form::Elementwise:
    case Form::Convert:
      return prefixes(dims, count, dims.size());
    case Form::Move:
      return move_rows(g, id);
    case Form::Reduce:
      return reduce_rows(g, id);
    case Form::Product:
      return product_rows(g, id);
    case Form::Input:
    case Form::Constant:
    case Form::Range:
    case Form::Random:
    case Form::Marker:
    case Form::Same:
    case Form::Extremum:
    case Form::Scan:
    case Form::Take:
    case Form::Scatter:
    case Form::LastIndex:
      return {};
  }
  return {};
}

class Components {
 public:
  explicit Components(size_t n) : sets_(n), rows_(n) {}
  NodeId find(NodeId x) { return static_cast<NodeId>(sets_.find(x)); }
  RowSet& rows(NodeId x) { return rows_[find(x)]; }
  /// Joins two components if some row count suits both.
  void join(NodeId a, NodeId b) {
    a = find(a), b = find(b);
    if (a == b) return;
    RowSet both = intersect(rows_[a], rows_[b]);
    if (both.empty()) return;
    sets_.join(a, b);
    rows_[b] = std::move(both);
  }

 private:
  UnionFind sets_;
  std::vector<RowSet> rows_;
};

/// Whether a constant k-th input needs no buffer: a region holds it as a number, but weights that
/// rows are multiplied with are packed from memory.
bool is_immediate(const Graph& g, NodeId id, int k, bool in_region) {
  return in_region && access(g, id, k) == Access::Rows;
}

/// The stage before which nothing is computed with a node that shares its first input's storage.
int32_t tokens_stage(const Graph& g, const Labels& l, const std::vector<int32_t>& not_before,
                     NodeId id) {
  int32_t stage = not_before[g.input(id, 0)];
  for (NodeId token : g.inputs(id).subspan(1))
    stage = std::max(stage, l.node[l.storage[token]].stage);
  return stage;
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
  for (NodeId id = static_cast<NodeId>(n); id-- > 0;) {
    NodeLabel& me = l.node[id];
    if (l.storage[id] != id || is_source(g, id)) continue;
    if (floating[id] && latest[id] != INT32_MAX) me.stage = std::max(me.stage, latest[id]);
    for (int k = 0; k < g[id].input_count; ++k) {
      NodeId p = l.storage[g.input(id, k)];
      if (is_source(g, p)) continue;
      bool same = l.node[p].in_region && me.in_region && l.node[p].component == me.component &&
                  !l.node[p].reducing && access(g, id, k) == Access::Rows;
      latest[p] = std::min(latest[p], same ? me.stage : me.stage - 1);
    }
  }
}

}  // namespace

Access access(const Graph& g, NodeId id, int k) {
  if (is_product(g, id))
    return k % 2 == 1 && !is_weight_gradient(g, id) ? Access::Uniform : Access::Rows;
  if (!is_broadcast(g, id)) return Access::Rows;
  return is_uniform(spec(g, id).movement(g, id).pieces[0]) ? Access::Uniform : Access::Rows;
}

bool flows_in_tile(const Graph& g, const Labels& l, NodeId producer, NodeId consumer, int k) {
  const NodeLabel &p = l.node[producer], &c = l.node[consumer];
  return p.in_region && c.in_region && !p.reducing && p.component == c.component &&
         p.stage == c.stage && access(g, consumer, k) == Access::Rows;
}

Labels label(const Graph& g, std::span<const NodeId> roots) {
  size_t n = g.size();
  Labels l;
  l.node.resize(n);
  l.storage.resize(n);
  Components components(n);

  for (NodeId id = 0; id < n; ++id) {
    l.storage[id] = form(g, id) == Form::Same ? l.storage[g.input(id, 0)] : id;
    if (l.storage[id] != id || is_source(g, id)) continue;
    NodeLabel& me = l.node[id];
    components.rows(id) = row_set(g, id);
    me.in_region = !components.rows(id).empty();
    me.reducing = me.in_region && is_row_reducing(g, id);
    if (!me.in_region) continue;
    for (int k = 0; k < g[id].input_count; ++k) {
      NodeId p = l.storage[g.input(id, k)];
      const NodeLabel& from = l.node[p];
      if (from.in_region && !from.reducing && access(g, id, k) == Access::Rows)
        components.join(p, id);
    }
  }

  std::vector<int32_t> not_before(n, 0);  // of nodes that share storage: their tokens' stages
  for (NodeId id = 0; id < n; ++id) {
    NodeLabel& me = l.node[id];
    if (l.storage[id] != id) not_before[id] = tokens_stage(g, l, not_before, id);
    if (l.storage[id] != id || is_source(g, id)) continue;
    if (me.in_region) {
      me.component = static_cast<int32_t>(components.find(id));
      me.rows = components.rows(id).back();
    }
    for (int k = 0; k < g[id].input_count; ++k) {
      NodeId p = l.storage[g.input(id, k)];
      const NodeLabel& from = l.node[p];
      bool fill = is_constant(g, p) && !is_immediate(g, id, k, me.in_region);
      bool in_tile = from.in_region && me.in_region && !from.reducing &&
                     from.component == me.component && access(g, id, k) == Access::Rows;
      int32_t ready = is_source(g, p) ? (fill ? 1 : 0) : in_tile ? from.stage : from.stage + 1;
      me.stage = std::max({me.stage, ready, not_before[g.input(id, k)]});
    }
  }
  sink(g, l);

  for (NodeId r : roots) l.node[l.storage[r]].materialised = true;
  for (NodeId id = 0; id < n; ++id) {
    if (l.storage[id] != id || is_source(g, id)) continue;
    l.stage_count = std::max(l.stage_count, l.node[id].stage + 1);
    for (int k = 0; k < g[id].input_count; ++k) {
      NodeId p = l.storage[g.input(id, k)];
      bool immediate = is_constant(g, p) && is_immediate(g, id, k, l.node[id].in_region);
      if (!immediate && !flows_in_tile(g, l, p, id, k)) l.node[p].materialised = true;
    }
  }
  for (NodeId r : roots)
    if (is_constant(g, l.storage[r])) l.stage_count = std::max(l.stage_count, 1);
  return l;
}

}  // namespace gradcell

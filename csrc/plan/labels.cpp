#include "plan/labels.h"

#include <algorithm>
#include <numeric>

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

/// The leading dimensions over which a broadcast's source equals its result (rows) or is 1
/// (uniform).
size_t broadcast_prefix(const Dims& from, const Dims& to, Access mode) {
  size_t missing = to.size() - from.size(), k = 0;
  for (; k < to.size(); ++k) {
    int64_t d = k < missing ? 1 : from[k - missing];
    if (mode == Access::Rows ? d != to[k] : d != 1) break;
  }
  return k;
}

Access broadcast_access(const Dims& from, const Dims& to) {
  size_t missing = to.size() - from.size();
  for (size_t k = 0; k < to.size(); ++k)
    if (to[k] > 1)
      return (k < missing ? 1 : from[k - missing]) == to[k] ? Access::Rows : Access::Uniform;
  return Access::Rows;
}

/// True if every row is reduced (the result has no row axis left), judged by the first real axis.
bool reduces_rows(const Dims& dims, std::span<const int64_t> axes) {
  for (size_t k = 0; k < dims.size(); ++k)
    if (dims[k] > 1)
      return std::find(axes.begin(), axes.end(), static_cast<int64_t>(k)) != axes.end();
  return false;
}

size_t reduce_prefix(const Dims& dims, std::span<const int64_t> axes, bool reducing) {
  size_t k = 0;
  for (; k < dims.size(); ++k) {
    bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(k)) != axes.end();
    if (dims[k] > 1 && reduced != reducing) break;
  }
  return k;
}

bool is_row_reducing(const Graph& g, NodeId id) {
  switch (g[id].op) {
    case Op::ReduceSum:
    case Op::ReduceMax:
    case Op::ReduceMin:
      return reduces_rows(g.dims(g.input(id, 0)), g.attrs(id));
    case Op::MatMul:
      return g.attrs(id)[0] != 0;
    default:
      return false;
  }
}

RowSet matmul_rows(const Graph& g, NodeId id) {
  if (!is_floating(g.dtype(id)) || g.dims(id).size() != 2) return {};
  bool ta = g.attrs(id)[0], tb = g.attrs(id)[1];
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
  if (g.dtype(id) == DType::Bool && g[id].op == Op::ReduceSum) return {};
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
  Op op = g[id].op;
  if (is_elementwise(op) || op == Op::Cast) return prefixes(dims, count, dims.size());
  switch (op) {
    case Op::BroadcastTo: {
      const Dims& from = g.dims(g.input(id, 0));
      return prefixes(dims, count, broadcast_prefix(from, dims, broadcast_access(from, dims)));
    }
    case Op::Transpose: {
      auto perm = g.attrs(id);
      size_t k = 0;
      while (k < perm.size() && perm[k] == static_cast<int64_t>(k)) ++k;
      return prefixes(dims, count, k);
    }
    case Op::Slice:
    case Op::SliceScatter: {
      const Dims& from = g.dims(g.input(id, 0));
      auto attrs = g.attrs(id);
      size_t k = 0;
      while (k < dims.size() && dims[k] == from[k] && attrs[k] == 0 && attrs[dims.size() + k] == 1)
        ++k;
      RowSet set = prefixes(dims, count, k), other = prefixes(from, g.count(g.input(id, 0)), k);
      return intersect(set, other);
    }
    case Op::Concat:
      return prefixes(dims, count, static_cast<size_t>(g.attrs(id)[0]));
    case Op::ReduceSum:
    case Op::ReduceMax:
    case Op::ReduceMin:
      return reduce_rows(g, id);
    case Op::MatMul:
      return matmul_rows(g, id);
    default:
      return {};
  }
}

class Components {
 public:
  explicit Components(size_t n) : parent_(n), set_(n) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  NodeId find(NodeId x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  RowSet& set(NodeId x) { return set_[find(x)]; }
  /// Joins two components if some row count suits both.
  bool join(NodeId a, NodeId b) {
    a = find(a), b = find(b);
    if (a == b) return true;
    RowSet both = intersect(set_[a], set_[b]);
    if (both.empty()) return false;
    parent_[a] = b;
    set_[b] = std::move(both);
    return true;
  }

 private:
  std::vector<NodeId> parent_;
  std::vector<RowSet> set_;
};

bool is_source(const Graph& g, NodeId id) { return g[id].op == Op::Leaf || g[id].op == Op::Const; }

/// Whether a constant k-th input needs no buffer: a region holds it as a number, but weights that
/// rows are multiplied with are packed from memory.
bool is_immediate(const Graph& g, NodeId id, int k, bool in_region) {
  return in_region && access(g, id, k) == Access::Rows;
}

/// Work that needs nothing but what is stored anyway can wait for the stage that uses it, so that
/// it is not stored itself.
void sink(const Graph& g, Labels& l) {
  size_t n = g.size();
  std::vector<uint8_t> floating(n, 0);
  for (NodeId id = 0; id < n; ++id) {
    const NodeLabel& me = l.node[id];
    if (!me.in_region || me.reducing || g[id].op == Op::MatMul) continue;
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
  switch (g[id].op) {
    case Op::BroadcastTo:
      return broadcast_access(g.dims(g.input(id, 0)), g.dims(id));
    case Op::MatMul:
      return k % 2 == 1 && !g.attrs(id)[0] ? Access::Uniform : Access::Rows;
    default:
      return Access::Rows;
  }
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
    l.storage[id] = g[id].op == Op::Reshape ? l.storage[g.input(id, 0)] : id;
    if (l.storage[id] != id || is_source(g, id)) continue;
    NodeLabel& me = l.node[id];
    components.set(id) = row_set(g, id);
    me.in_region = !components.set(id).empty();
    me.reducing = me.in_region && is_row_reducing(g, id);
    if (!me.in_region) continue;
    for (int k = 0; k < g[id].input_count; ++k) {
      NodeId p = l.storage[g.input(id, k)];
      const NodeLabel& from = l.node[p];
      if (from.in_region && !from.reducing && access(g, id, k) == Access::Rows)
        components.join(p, id);
    }
  }

  for (NodeId id = 0; id < n; ++id) {
    NodeLabel& me = l.node[id];
    if (l.storage[id] != id || is_source(g, id)) continue;
    if (me.in_region) {
      me.component = static_cast<int32_t>(components.find(id));
      me.rows = components.set(id).back();
    }
    for (int k = 0; k < g[id].input_count; ++k) {
      NodeId p = l.storage[g.input(id, k)];
      const NodeLabel& from = l.node[p];
      bool fill = g[p].op == Op::Const && !is_immediate(g, id, k, me.in_region);
      bool in_tile = from.in_region && me.in_region && !from.reducing &&
                     from.component == me.component && access(g, id, k) == Access::Rows;
      int32_t ready = is_source(g, p) ? (fill ? 1 : 0) : in_tile ? from.stage : from.stage + 1;
      me.stage = std::max(me.stage, ready);
    }
  }
  sink(g, l);

  for (NodeId r : roots) l.node[l.storage[r]].materialised = true;
  for (NodeId id = 0; id < n; ++id) {
    if (l.storage[id] != id || is_source(g, id)) continue;
    l.stage_count = std::max(l.stage_count, l.node[id].stage + 1);
    for (int k = 0; k < g[id].input_count; ++k) {
      NodeId p = l.storage[g.input(id, k)];
      bool immediate = g[p].op == Op::Const && is_immediate(g, id, k, l.node[id].in_region);
      if (!immediate && !flows_in_tile(g, l, p, id, k)) l.node[p].materialised = true;
    }
  }
  for (NodeId r : roots)
    if (g[l.storage[r]].op == Op::Const) l.stage_count = std::max(l.stage_count, 1);
  return l;
}

}  // namespace gradcell

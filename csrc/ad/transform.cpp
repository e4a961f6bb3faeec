#include "ad/transform.h"

#include <algorithm>

#include "ad/row_dots.h"
#include "ad/rules.h"
#include "ir/verify.h"

namespace gradcell::ad {

namespace {

/// Whether input k is one whose elements the op computes with, not indices or a condition.
bool is_value(const Graph& g, NodeId id, int k) {
  switch (g[id].op) {
    case Op::Gather:
      return k == 0;
    case Op::ScatterAdd:
      return k == 1;
    case Op::Select:
      return k > 0;
    default:
      return true;
  }
}

/// Whether a derivative passes from input k to a node. Integers carry those by integer inputs
/// alone: what has been rounded to an integer has none.
bool passes(const Graph& g, NodeId id, int k) {
  if (!is_value(g, id, k)) return false;
  return is_floating(g.dtype(id)) ||
         (!is_floating(g.dtype(g.input(id, k))) && info(g[id].op).differentiable);
}

/// Which of the nodes up to `end` carry derivatives of `wrt`.
std::vector<uint8_t> dependent(const Graph& g, std::span<const NodeId> wrt, NodeId end) {
  std::vector<uint8_t> active(end, 0);
  NodeId first = end;
  for (NodeId id : wrt)
    if (id < end) {
      active[id] = 1;
      first = std::min(first, id);
    }
  for (NodeId id = first; id < end; ++id) {
    if (active[id] || g[id].op == Op::StopGradient) continue;
    for (int k = 0; k < g[id].input_count; ++k)
      active[id] |= active[g.input(id, k)] && passes(g, id, k);
  }
  return active;
}

/// Nodes made while alive carry the location of the node being differentiated, and an order one
/// above the highest among the nodes that derivatives pass through.
class Provenance {
 public:
  Provenance(Graph& g, std::span<const NodeId> live, const std::vector<uint8_t>& active)
      : g_(g), location_(g.location), order_(g.order) {
    int highest = 0;
    for (NodeId id : live)
      if (active[id]) highest = std::max<int>(highest, g[id].order);
    g.order = static_cast<uint8_t>(std::min(255, highest + 1));
  }
  ~Provenance() { g_.location = location_, g_.order = order_; }
  Provenance(const Provenance&) = delete;
  Provenance& operator=(const Provenance&) = delete;
  void of(NodeId id) { g_.location = g_[id].location; }

 private:
  Graph& g_;
  Location location_;
  uint8_t order_;
};

}  // namespace

std::vector<NodeId> adjoint(Graph& g, std::span<const NodeId> outputs,
                            std::span<const NodeId> cotangents, std::span<const NodeId> wrt) {
  NodeId end = 0;
  auto made = static_cast<NodeId>(g.size());
  for (NodeId id : outputs) end = std::max(end, id + 1);
  std::vector<uint8_t> active = dependent(g, wrt, end);
  std::vector<Value> adj(end);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (cotangents[i] != kNoNode && active[outputs[i]])
      adj[outputs[i]] = accumulate(adj[outputs[i]], wrap(g, cotangents[i]));
  std::vector<uint8_t> stop(end, 0);
  for (NodeId id : wrt)
    if (id < end) stop[id] = 1;

  Provenance provenance(g, live_nodes(g, outputs), active);
  for (NodeId id = end; id-- > 0;) {
    if (!adj[id] || stop[id]) continue;
    provenance.of(id);
    for (int k = 0; k < g[id].input_count; ++k) {
      NodeId x = g.input(id, k);
      if (!active[x] || !passes(g, id, k)) continue;
      Value d = adjoint_of_input(g, id, k, adj[id]);
      if (d) adj[x] = accumulate(adj[x], d);
    }
  }
  std::vector<NodeId> result;
  for (NodeId id : wrt)
    result.push_back(id < end && adj[id] ? with_fewer_products(g, adj[id].id) : kNoNode);
  if constexpr (kVerify) verify(g, "adjoint", made);
  return result;
}

std::vector<NodeId> tangent(Graph& g, std::span<const NodeId> outputs, std::span<const NodeId> wrt,
                            std::span<const NodeId> tangents) {
  NodeId end = 0;
  auto made = static_cast<NodeId>(g.size());
  for (NodeId id : outputs) end = std::max(end, id + 1);
  std::vector<uint8_t> active = dependent(g, wrt, end);
  std::vector<NodeId> live = live_nodes(g, outputs);
  std::vector<Value> tan(end);
  std::vector<uint8_t> given(end, 0);
  for (size_t i = 0; i < wrt.size(); ++i)
    if (wrt[i] < end) {
      given[wrt[i]] = 1;
      if (tangents[i] != kNoNode) tan[wrt[i]] = wrap(g, tangents[i]);
    }
  Provenance provenance(g, live, active);
  std::vector<Value> dx;
  for (NodeId id : live) {
    if (!active[id] || given[id]) continue;
    dx.clear();
    bool any = false;
    for (NodeId i : g.inputs(id)) {
      dx.push_back(tan[i]);
      any |= bool(tan[i]);
    }
    if (!any) continue;
    provenance.of(id);
    tan[id] = tangent_of(g, id, dx);
  }
  if constexpr (kVerify) verify(g, "tangent", made);
  std::vector<NodeId> result;
  for (NodeId id : outputs) result.push_back(tan[id] ? tan[id].id : kNoNode);
  return result;
}

}  // namespace gradcell::ad

#include "ad/transform.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ad/calls.h"
#include "ad/placed.h"
#include "ad/row_dots.h"
#include "ad/traits.h"
#include "ir/verify.h"
#include "ops/ops.h"

namespace gradcell::ad {

namespace {

/// Which of the nodes up to `end` carry derivatives of `wrt`.
std::vector<uint8_t> dependent(const Graph& g, std::span<const NodeId> wrt, NodeId end) {
  std::vector<uint8_t> active(end, 0);
  NodeId first = end;
  for (NodeId id : wrt)
    if (id < end) {
      active[id] = 1;
      first = std::min(first, id);
    }
  const Traits* const by_op = traits();
  for (NodeId id = first; id < end; ++id) {
    const auto inputs = g.inputs(id);
    size_t k = 0;
    while (k < inputs.size() && !active[inputs[k]]) ++k;
    if (k == inputs.size() || active[id]) continue;
    const Traits& t = by_op[static_cast<size_t>(g[id].op)];
    bool any = false;
    for (; t.differentiable && k < inputs.size() && !any; ++k)
      any = active[inputs[k]] && t.passes(g, id, narrow<int>(k));
    active[id] = any;
  }
  return active;
}

/// The first of these nodes; `end`, if there are none before that.
NodeId first_of(std::span<const NodeId> nodes, NodeId end) {
  for (NodeId id : nodes) end = std::min(end, id);
  return end;
}

/// The active nodes, all from `first` on, among those that derivatives of the outputs pass through,
/// ascending.
std::vector<NodeId> carriers(const Graph& g, std::span<const NodeId> outputs,
                             const std::vector<uint8_t>& active, NodeId first) {
  std::vector<uint8_t> reached(active.size(), 0);
  for (NodeId id : outputs) reached[id] = active[id];
  std::vector<NodeId> found;
  for (auto id = narrow<NodeId>(active.size()); id-- > first;) {
    if (!reached[id]) continue;
    found.push_back(id);
    for (int k = 0; k < g[id].input_count; ++k)
      if (active[g.input(id, k)] && passes(g, id, k)) reached[g.input(id, k)] = 1;
  }
  std::reverse(found.begin(), found.end());
  return found;
}

/// One above the highest order among the live nodes that are active.
uint8_t order_above(const Graph& g, std::span<const NodeId> live,
                    const std::vector<uint8_t>& active) {
  int highest = 0;
  for (NodeId id : live)
    if (active[id]) highest = std::max<int>(highest, g[id].order);
  return narrow<uint8_t>(std::min(255, highest + 1));
}

/// The adjoints of nodes while they are summed up. Those of slices wait until all are there: n
/// slices of one node would else cost n sums of its size.
class Adjoints {
 public:
  Adjoints(Graph& g, NodeId end) : g_(g), sums_(end, kNoNode) {}

  void add(NodeId x, NodeId contribution) {
    if (contribution != kNoNode && is_placed(g_, contribution))
      placed_[x].push_back(contribution);
    else
      sums_[x] = accumulate(g_, sums_[x], contribution);
  }
  /// The sum; nothing is added to it afterwards.
  NodeId of(NodeId x) {
    const auto placed = placed_.find(x);
    if (placed == placed_.end()) return sums_[x];
    sums_[x] = accumulate(g_, sums_[x], sum_of_placed(g_, placed->second));
    placed_.erase(placed);
    return sums_[x];
  }
  bool has(NodeId x) const { return sums_[x] != kNoNode || placed_.contains(x); }

 private:
  Graph& g_;
  std::vector<NodeId> sums_;
  std::unordered_map<NodeId, std::vector<NodeId>> placed_;
};

/// Attention that was written of products and a softmax, which derivatives pass through as one op.
class Written {
 public:
  /// live: what the outputs need from the first active node on. Where derivatives by a mask are
  /// asked for, they have the scores' size: it stays as written.
  Written(Graph& g, std::span<const NodeId> live, std::span<const NodeId> outputs,
          const std::vector<uint8_t>& active) {
    if (std::ranges::none_of(live, [&](NodeId id) { return weighs(g, id); })) return;
    std::vector<NodeId> itself;
    std::vector<uint8_t> known(g.size(), 0);
    const std::vector<NodeId> all = live_nodes(g, outputs);
    for (NodeId id : all) known[id] = 1;
    for (WrittenAttention& w : written_attention(g, all, outputs, {})) {
      if (!active[w.result] || (w.added != kNoNode && active[w.added])) continue;
      for (NodeId i : w.between) between_.insert(i);
      for (size_t id = itself.size(); id < g.size(); ++id) itself.push_back(narrow<NodeId>(id));
      const NodeId whole = as_attention(g, g, w, itself);
      result_of_.emplace(whole, w.result);
      of_.emplace(w.result, Whole{whole, sources_of(g, whole, w.result, known)});
    }
  }
  struct Whole {
    NodeId id;
    std::vector<NodeId> sources;
  };
  /// What stands for a product with values; null for other nodes.
  const Whole* of(NodeId result) const {
    const auto w = of_.find(result);
    return w == of_.end() ? nullptr : &w->second;
  }
  /// The product that a node stands for, as a derivative before has made it.
  NodeId result_of(NodeId whole) const {
    const auto w = result_of_.find(whole);
    return w == result_of_.end() ? kNoNode : w->second;
  }
  bool between(NodeId id) const { return between_.contains(id); }

 private:
  /// Whether a node is a product with quotients, as a softmax ends in, or with some of them: of
  /// others there is no need to look at what all the outputs need.
  static bool weighs(const Graph& g, NodeId id) {
    if (!is_product(g, id)) return false;
    NodeId x = g.input(id, 0);
    while (form(g, x) == Form::Same) x = g.input(x, 0);
    return g[x].op == Op::Div || g[x].op == Op::Select;
  }

  /// What it is made of, among the nodes that a derivative goes through.
  static std::vector<NodeId> sources_of(const Graph& g, NodeId whole, NodeId result,
                                        const std::vector<uint8_t>& known) {
    std::vector<NodeId> sources, open{whole};
    std::unordered_set<NodeId> seen;
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (!seen.insert(id).second) continue;
      if (id < result && known[id])
        sources.push_back(id);
      else
        open.insert(open.end(), g.inputs(id).begin(), g.inputs(id).end());
    }
    std::ranges::sort(sources);
    return sources;
  }

  std::unordered_map<NodeId, Whole> of_;
  std::unordered_map<NodeId, NodeId> result_of_;
  std::unordered_set<NodeId> between_;
};

}  // namespace

std::vector<NodeId> live_from(const Graph& g, std::span<const NodeId> roots, NodeId first) {
  NodeId end = first;
  for (NodeId id : roots) end = std::max(end, id + 1);
  std::vector<uint8_t> live(end - first, 0);
  for (NodeId id : roots)
    if (id >= first) live[id - first] = 1;
  std::vector<NodeId> found;
  for (NodeId id = end; id-- > first;) {
    if (!live[id - first]) continue;
    found.push_back(id);
    for (NodeId i : g.inputs(id))
      if (i >= first) live[i - first] = 1;
  }
  std::ranges::reverse(found);
  return found;
}

bool passes(const Graph& g, NodeId id, int k) {
  return traits()[static_cast<size_t>(g[id].op)].passes(g, id, k);
}

void require_rules_for_integers(const Graph& g, std::span<const NodeId> outputs,
                                std::span<const NodeId> wrt) {
  NodeId end = 0;
  for (NodeId id : outputs) end = std::max(end, id + 1);
  const std::vector<uint8_t> active = dependent(g, wrt, end);
  for (NodeId id : live_from(g, outputs, first_of(wrt, end))) {
    if (!traits()[static_cast<size_t>(g[id].op)].call) continue;
    for (int k = 0; k < g[id].input_count; ++k)
      if (active[g.input(id, k)] && passes(g, id, k) && !is_floating(g.dtype(g.input(id, k)))) {
        fail(ErrorKind::Type,
             std::string("a derivative by integers is asked for through ") +
                 (is_call_output(g, id) ? "a function with its own derivative" : "a loop") +
                 ", which has derivatives by floats alone: it cannot be differentiated by; cast it "
                 "to a floating dtype before");
      }
  }
}

uint8_t next_order(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> wrt) {
  return order_above(g, live, dependent(g, wrt, live.empty() ? 0 : live.back() + 1));
}

namespace {

std::vector<NodeId> adjoint(Graph& g, std::span<const NodeId> outputs,
                            std::span<const NodeId> cotangents, std::span<const NodeId> wrt,
                            bool as_written) {
  NodeId end = 0;
  auto made = narrow<NodeId>(g.size());
  for (NodeId id : outputs) end = std::max(end, id + 1);
  std::vector<uint8_t> active = dependent(g, wrt, end);
  Adjoints adj(g, end);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (cotangents[i] != kNoNode && active[outputs[i]]) adj.add(outputs[i], cotangents[i]);
  std::vector<uint8_t> stop(end, 0);
  for (NodeId id : wrt)
    if (id < end) stop[id] = 1;

  const NodeId first = first_of(wrt, end);
  const std::vector<NodeId> live = live_from(g, outputs, first);
  const Written written(g, as_written ? std::span<const NodeId>() : std::span<const NodeId>(live),
                        outputs, active);
  Stamp stamp(g);  // nodes made here carry the location of the one that is differentiated
  stamp.order(order_above(g, live, active));
  const Calls calls(g, active);
  const Traits* const by_op = traits();
  std::unordered_map<const Call*, NodeId> first_open;
  for (NodeId id = end; id-- > first;) {
    if (const Call* call = calls.of(id)) {
      // When its first output's turn has come, the cotangents of all are known. Those of an output
      // at which the walk stops go no further.
      const auto [at, fresh] = first_open.try_emplace(call, kNoNode);
      if (fresh)
        for (NodeId y : call->outputs)
          if (y != kNoNode && !stop[y]) at->second = std::min(at->second, y);
      if (id != at->second) continue;
      std::vector<NodeId> dy;
      stamp.at(g[id].location);
      for (NodeId y : call->outputs) dy.push_back(y == kNoNode || stop[y] ? kNoNode : adj.of(y));
      const std::vector<NodeId> dx = call_adjoint(g, *call, dy, carrying(g, *call, active));
      for (size_t k = 0; k < dx.size(); ++k)
        if (dx[k] != kNoNode) adj.add(call->inputs[k], dx[k]);
      continue;
    }
    if (stop[id] || !adj.has(id)) continue;
    if (const NodeId result = written.result_of(id); result < id) {
      adj.add(result, adj.of(id));
      continue;
    }
    if (const Written::Whole* whole = written.of(id)) {
      const NodeId y[] = {whole->id}, dy[] = {adj.of(id)};
      const std::vector<NodeId> dx = adjoint(g, y, dy, whole->sources, true);
      for (size_t k = 0; k < dx.size(); ++k)
        if (dx[k] != kNoNode && active[whole->sources[k]]) adj.add(whole->sources[k], dx[k]);
      continue;
    }
    stamp.at(g[id].location);
    const Spec& s = spec(g, id);
    const Traits& t = by_op[static_cast<size_t>(g[id].op)];
    const NodeId dy = adj.of(id);
    for (int k = 0; k < g[id].input_count; ++k) {
      NodeId x = g.input(id, k);
      if (!active[x] || !t.passes(g, id, k)) continue;
      adj.add(x, s.adjoint(g, id, k, dy));
    }
  }
  std::vector<NodeId> result;
  for (NodeId id : wrt)
    result.push_back(id < end && adj.has(id) ? with_fewer_products(g, adj.of(id)) : kNoNode);
  if constexpr (kVerify) verify(g, "adjoint", made);
  return result;
}

std::vector<NodeId> tangent(Graph& g, std::span<const NodeId> outputs, std::span<const NodeId> wrt,
                            std::span<const NodeId> tangents, bool as_written) {
  NodeId end = 0;
  auto made = narrow<NodeId>(g.size());
  for (NodeId id : outputs) end = std::max(end, id + 1);
  std::vector<uint8_t> active = dependent(g, wrt, end);
  const NodeId first = first_of(wrt, end);
  std::vector<NodeId> live = carriers(g, outputs, active, first);
  std::vector<NodeId> tan(end, kNoNode);
  std::vector<uint8_t> given(end, 0);
  for (size_t i = 0; i < wrt.size(); ++i)
    if (wrt[i] < end) {
      given[wrt[i]] = 1;
      tan[wrt[i]] = tangents[i];
    }
  const std::vector<NodeId> all = as_written ? std::vector<NodeId>() : live_from(g, outputs, first);
  const Written written(g, all, outputs, active);
  Stamp stamp(g);
  stamp.order(order_above(g, live, active));
  std::vector<NodeId> dx;
  const Calls calls(g, active);
  for (NodeId id : live) {
    if (given[id]) continue;
    if (const Call* call = calls.of(id)) {
      if (tan[id] != kNoNode) continue;  // another output has brought it
      stamp.at(g[id].location);
      dx.clear();
      for (NodeId i : call->inputs) dx.push_back(tan[i]);
      const std::vector<NodeId> dy = call_tangent(g, *call, dx, carrying(g, *call, active));
      for (size_t k = 0; k < dy.size(); ++k)
        if (call->outputs[k] != kNoNode && !given[call->outputs[k]]) tan[call->outputs[k]] = dy[k];
      continue;
    }
    if (written.between(id)) continue;
    if (const NodeId result = written.result_of(id); result < id) {
      tan[id] = tan[result];
      continue;
    }
    if (const Written::Whole* whole = written.of(id)) {
      std::vector<NodeId> sources;
      dx.clear();
      for (NodeId i : whole->sources)
        if (tan[i] != kNoNode) sources.push_back(i), dx.push_back(tan[i]);
      const NodeId y[] = {whole->id};
      tan[id] = tangent(g, y, sources, dx, true)[0];
      continue;
    }
    dx.clear();
    bool any = false;
    for (NodeId i : g.inputs(id)) {
      dx.push_back(tan[i]);
      any |= tan[i] != kNoNode;
    }
    if (!any) continue;
    stamp.at(g[id].location);
    tan[id] = spec(g, id).tangent(g, id, dx);
  }
  if constexpr (kVerify) verify(g, "tangent", made);
  std::vector<NodeId> result;
  for (NodeId id : outputs) result.push_back(tan[id]);
  return result;
}

}  // namespace

std::vector<NodeId> adjoint(Graph& g, std::span<const NodeId> outputs,
                            std::span<const NodeId> cotangents, std::span<const NodeId> wrt) {
  return adjoint(g, outputs, cotangents, wrt, false);
}

std::vector<NodeId> tangent(Graph& g, std::span<const NodeId> outputs, std::span<const NodeId> wrt,
                            std::span<const NodeId> tangents) {
  return tangent(g, outputs, wrt, tangents, false);
}

}  // namespace gradcell::ad

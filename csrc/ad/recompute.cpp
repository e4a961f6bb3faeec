// Calls whose insides are not kept for the derivative but computed again: the same nodes, made of
// copies of the inputs that nothing else is made of and that wait until the cotangents are there.
#include <algorithm>
#include <unordered_map>

#include "ad/calls.h"
#include "ad/transform.h"
#include "ir/spec.h"
#include "ops/ops.h"

namespace gradcell::ad {

namespace {

/// What the outputs are made of, down to `stops` (ascending, without those).
std::vector<NodeId> inside(const Graph& g, std::span<const NodeId> outputs,
                           std::span<const NodeId> stops) {
  std::unordered_map<NodeId, bool> seen;
  for (NodeId id : stops) seen[id] = false;
  std::vector<NodeId> open, found;
  auto reach = [&](NodeId id) {
    if (seen.try_emplace(id, true).second) open.push_back(id);
  };
  for (NodeId id : outputs) reach(id);
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    found.push_back(id);
    for (NodeId i : g.inputs(id)) reach(i);
  }
  std::ranges::sort(found);
  return found;
}

class Recompute : public Rule {
 public:
  std::string name() const override { return "recompute"; }
  bool has_adjoint() const override { return true; }
  bool has_tangent() const override { return true; }

  std::vector<NodeId> adjoint(Graph& g, const Call& call, std::span<const NodeId> cotangents,
                              const std::vector<bool>& wanted) const override {
    std::vector<NodeId> values, dy, tokens;
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      if (call.outputs[k] == kNoNode) continue;
      tokens.push_back(g.input(call.outputs[k], 0));
      if (cotangents[k] == kNoNode) continue;
      values.push_back(g.input(call.outputs[k], 0));
      dy.push_back(cotangents[k]);
      if (!is_constant(g, cotangents[k])) tokens.push_back(cotangents[k]);
    }
    std::unordered_map<NodeId, NodeId> copy;
    std::vector<NodeId> again;
    for (NodeId x : call.inputs) {
      auto [it, fresh] = copy.try_emplace(x, kNoNode);
      if (fresh) it->second = after(g, x, tokens);
      again.push_back(it->second);
    }
    std::vector<NodeId> in;
    for (NodeId id : inside(g, values, call.inputs)) {
      in.clear();
      for (NodeId i : g.inputs(id)) in.push_back(copy.at(i));
      copy[id] = is_leaf(g, id) || is_constant(g, id) ? id : rebuild(g, g, id, in);
    }
    for (NodeId& id : values) id = copy.at(id);
    std::vector<NodeId> wrt;
    for (size_t k = 0; k < again.size(); ++k)
      if (wanted[k]) wrt.push_back(again[k]);
    const std::vector<NodeId> found = ad::adjoint(g, values, dy, wrt);
    std::vector<NodeId> dx;
    for (size_t k = 0, at = 0; k < again.size(); ++k)
      dx.push_back(wanted[k] ? found[at++] : kNoNode);
    return dx;
  }

  std::vector<NodeId> tangent(Graph& g, const Call& call,
                              std::span<const NodeId> tangents) const override {
    std::vector<NodeId> values, wrt, dx;
    for (NodeId id : call.outputs)
      if (id != kNoNode) values.push_back(g.input(id, 0));
    for (size_t k = 0; k < call.inputs.size(); ++k)
      if (tangents[k] != kNoNode) wrt.push_back(call.inputs[k]), dx.push_back(tangents[k]);
    const std::vector<NodeId> found = ad::tangent(g, values, wrt, dx);
    std::vector<NodeId> dy;
    size_t at = 0;
    for (NodeId id : call.outputs) dy.push_back(id == kNoNode ? kNoNode : found[at++]);
    return dy;
  }
};

}  // namespace

std::vector<NodeId> recomputed(Graph& g, NodeId begin, std::span<const NodeId> outputs) {
  auto is_new = [&](NodeId id) { return id >= begin && !is_leaf(g, id) && !is_constant(g, id); };
  std::vector<NodeId> made, inputs;
  std::ranges::copy_if(outputs, std::back_inserter(made), is_new);
  std::vector<NodeId> open(made);
  std::unordered_map<NodeId, bool> seen;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!seen.try_emplace(id, true).second || is_constant(g, id)) continue;
    if (!is_new(id)) {
      inputs.push_back(id);
      continue;
    }
    for (NodeId i : g.inputs(id)) open.push_back(i);
  }
  if (made.empty() || inputs.empty()) return {outputs.begin(), outputs.end()};
  std::ranges::sort(inputs);
  const int64_t call = g.add_rule(std::make_shared<Recompute>());
  std::vector<NodeId> result;
  int64_t number = 0;
  for (NodeId id : outputs)
    result.push_back(is_new(id) ? call_output(g, id, inputs, {call, number++}) : id);
  return result;
}

}  // namespace gradcell::ad

#include "ad/calls.h"

#include <algorithm>
#include <map>

#include "ad/loops.h"
#include "ad/traits.h"
#include "ad/transform.h"
#include "ops/ops.h"

namespace gradcell::ad {

namespace {

bool has_any(std::span<const NodeId> nodes) {
  return std::ranges::any_of(nodes, [](NodeId id) { return id != kNoNode; });
}

/// Nodes to be linear in, one like each of those that there are.
std::vector<NodeId> unknowns(Graph& g, std::span<const NodeId> like, auto wanted) {
  std::vector<NodeId> made;
  for (size_t k = 0; k < like.size(); ++k) {
    const NodeId x = like[k];
    const bool there = x != kNoNode && is_floating(g.dtype(x)) && wanted(k);
    made.push_back(there ? g.unknown(g.dtype(x), Dims(g.dims(x))) : kNoNode);
  }
  return made;
}

/// The transpose of a linear map that has been recorded from `unknown` to `mapped`, at `dy`: the
/// results are like the unknowns.
std::vector<NodeId> transposed(Graph& g, const Rule& rule, const char* mode,
                               std::span<const NodeId> unknown, std::span<const NodeId> mapped,
                               std::span<const NodeId> dy) {
  std::vector<NodeId> outputs, cotangents, wrt;
  for (size_t k = 0; k < mapped.size(); ++k)
    if (mapped[k] != kNoNode && dy[k] != kNoNode)
      outputs.push_back(mapped[k]), cotangents.push_back(dy[k]);
  for (NodeId id : unknown)
    if (id != kNoNode) wrt.push_back(id);
  const std::vector<NodeId> found = adjoint(g, outputs, cotangents, wrt);
  std::vector<NodeId> present;
  std::ranges::copy_if(found, std::back_inserter(present), [](NodeId id) { return id != kNoNode; });
  const NodeId from = wrt.empty() ? narrow<NodeId>(g.size()) : std::ranges::min(wrt);
  const std::vector<NodeId> needed = live_from(g, present, from);
  for (NodeId id : wrt)
    require(!std::ranges::binary_search(needed, id), ErrorKind::Value, rule.name(),
            ": the derivative it gives is not linear in what it is given, so ", mode,
            " mode cannot be had from it; give one for that mode too");
  std::vector<NodeId> result;
  for (size_t k = 0, at = 0; k < unknown.size(); ++k)
    result.push_back(unknown[k] == kNoNode ? kNoNode : found[at++]);
  return result;
}

}  // namespace

std::vector<bool> carrying(const Graph& g, const Call& call, const std::vector<uint8_t>& active) {
  std::vector<bool> flags;
  for (NodeId id : call.inputs) flags.push_back(active[id] && is_floating(g.dtype(id)));
  return flags;
}

Call call_of(const Graph& g, NodeId output) {
  const auto in = g.inputs(output).subspan(1);
  const auto a = attributes<CallAttributes>(g, output);
  Call call{g.rule(a.call), {in.begin(), in.end()}, {}};
  call.outputs.assign(static_cast<size_t>(a.output) + 1, kNoNode);
  call.outputs.back() = output;
  return call;
}

Calls::Calls(const Graph& g, const std::vector<uint8_t>& active) {
  const Traits* const by_op = traits();
  std::map<std::pair<Dims, std::vector<NodeId>>, size_t> known;
  const auto first = std::ranges::find(active, 1) - active.begin();
  for (auto id = narrow<NodeId>(first); id < active.size(); ++id) {
    if (!active[id] || !by_op[static_cast<size_t>(g[id].op)].call) continue;
    if (is_loop(g, id)) {
      const auto in = g.inputs(id);
      std::vector<NodeId> inputs(in.begin(), in.end());
      auto [it, fresh] = known.try_emplace({loop_identity(g, id), inputs}, calls_.size());
      if (fresh) calls_.push_back({loop_rule(), std::move(inputs), {}});
      calls_[it->second].outputs.push_back(id);
      number_[id] = it->second;
      continue;
    }
    const auto in = g.inputs(id).subspan(1);
    const auto a = attributes<CallAttributes>(g, id);
    std::vector<NodeId> inputs(in.begin(), in.end());
    auto [it, fresh] = known.try_emplace({Dims{a.call}, inputs}, calls_.size());
    if (fresh) calls_.push_back({g.rule(a.call), std::move(inputs), {}});
    Call& call = calls_[it->second];
    const auto output = static_cast<size_t>(a.output);
    if (call.outputs.size() <= output) call.outputs.resize(output + 1, kNoNode);
    call.outputs[output] = id;
    number_[id] = it->second;
  }
}

std::vector<NodeId> call_adjoint(Graph& g, const Call& call, std::span<const NodeId> dy,
                                 const std::vector<bool>& wanted) {
  if (!has_any(dy)) return {};
  const Rule::Call io{call.inputs, call.outputs};
  std::vector<NodeId> dx;
  if (call.rule->has_adjoint()) {
    dx = call.rule->adjoint(g, io, dy, wanted);
  } else {
    const auto t = unknowns(g, call.inputs, [&](size_t k) { return wanted[k]; });
    const auto moved = call.rule->tangent(g, io, t);
    dx = transposed(g, *call.rule, "reverse", t, moved, dy);
  }
  for (size_t k = 0; k < dx.size(); ++k)
    if (!wanted[k]) dx[k] = kNoNode;
  return dx;
}

std::vector<NodeId> call_tangent(Graph& g, const Call& call, std::span<const NodeId> dx,
                                 const std::vector<bool>& wanted) {
  if (!has_any(dx)) return {};
  const Rule::Call io{call.inputs, call.outputs};
  if (call.rule->has_tangent()) return call.rule->tangent(g, io, dx);
  const auto c = unknowns(g, call.outputs, [](size_t) { return true; });
  const auto pulled = call.rule->adjoint(g, io, c, wanted);
  return transposed(g, *call.rule, "forward", c, pulled, dx);
}

}  // namespace gradcell::ad

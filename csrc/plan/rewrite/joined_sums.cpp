#include "plan/rewrite/rewrite.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ops/ops.h"
#include "plan/rewrite/taken_over.h"

namespace gradcell {

namespace {

/// Sums over the same scores none of which needs another one: all at one level, which is how many
/// nodes of the family stand above each other. That no circle comes about, the levels see to, too.
std::vector<std::vector<NodeId>> groups_of(const Graph& g) {
  std::vector<NodeId> itself(g.size());
  std::iota(itself.begin(), itself.end(), NodeId{0});
  std::vector<int> level(g.size(), 0);
  std::map<std::pair<int, SameScores>, std::vector<NodeId>> found;
  for (NodeId id = 0; id < g.size(); ++id) {
    for (NodeId i : g.inputs(id)) level[id] = std::max(level[id], level[i]);
    const auto scores = scores_of(g, itself, id);
    if (scores) found[{++level[id], *scores}].push_back(id);
  }
  std::vector<std::vector<NodeId>> groups;
  for (auto& [what, nodes] : found)
    if (nodes.size() > 1) groups.push_back(std::move(nodes));
  return groups;
}

}  // namespace

std::optional<SameScores> scores_of(const Graph& g, std::span<const NodeId> storage, NodeId id) {
  if (form(g, id) != Form::Attend) return {};
  auto a = attributes<AttentionAttributes>(g, id);
  const AttentionInputs at = attention_inputs(g[id].op, a);
  SameScores s;
  for (int k : {0, 1, at.log_sum, at.mask})
    s.inputs.push_back(k < 0 ? kNoNode : storage[g.input(id, k)]);
  a.shifted = a.of_scores = false;
  if (at.log_sum < 0)
    a.dropped = false, a.keep = a.period = 0;  // of values, not of normalisers
  else if (at.state >= 0)
    s.inputs.push_back(storage[g.input(id, at.state)]);
  s.attributes = encode(a);
  return s;
}

PlanGraph join_sums(PlanGraph from) {
  const Graph& g = from.graph;
  const auto groups = groups_of(g);
  if (groups.empty()) return from;
  std::vector<int> group(g.size(), -1);
  for (size_t k = 0; k < groups.size(); ++k)
    for (NodeId id : groups[k]) group[id] = narrow<int>(k);
  // Nodes in an order in which all that a group needs comes before its first sum.
  std::vector<NodeId> order, open;
  std::vector<uint8_t> placed(g.size(), 0);
  auto needs = [&](NodeId id, auto f) {
    if (group[id] < 0)
      for (NodeId i : g.inputs(id)) f(i);
    else
      for (NodeId member : groups[static_cast<size_t>(group[id])])
        for (NodeId i : g.inputs(member)) f(i);
  };
  for (NodeId root = 0; root < g.size(); ++root) {
    open.push_back(root);
    while (!open.empty()) {
      const NodeId id = open.back();
      const size_t depth = open.size();
      if (!placed[id])
        needs(id, [&](NodeId i) {
          if (!placed[i]) open.push_back(i);
        });
      if (open.size() > depth) continue;
      open.pop_back();
      if (!placed[id]) order.push_back(id), placed[id] = 1;
    }
  }
  PlanGraph out(g.settings());
  std::vector<NodeId> to(g.size(), kNoNode), in;
  for (NodeId id : order) {
    in.clear();
    for (NodeId i : g.inputs(id)) in.push_back(to[i]);
    if (group[id] >= 0) {
      std::vector<NodeId> tokens;
      needs(id, [&](NodeId i) {
        if (std::ranges::find(in, to[i]) == in.end() &&
            std::ranges::find(tokens, to[i]) == tokens.end())
          tokens.push_back(to[i]);
      });
      if (!tokens.empty()) in[0] = after(out.graph, in[0], tokens);
    }
    to[id] = rebuild(out.graph, g, id, in);
  }
  take_over(out, from, to);
  return out;
}

}  // namespace gradcell

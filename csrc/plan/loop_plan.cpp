#include "plan/loop_plan.h"

#include <algorithm>

#include "ops/loop.h"
#include "plan/planner.h"

namespace gradcell {

LoopPlan plan_loop(const Graph& g, std::span<const NodeId> loops) {
  const auto a = attributes<LoopAttributes>(g, loops[0]);
  const Body body = read_body(a.body);
  const auto carried = static_cast<size_t>(a.carried), sliced = static_cast<size_t>(a.sliced);
  std::vector<uint8_t> needed(carried, 0);
  std::vector<NodeId> kept, roots;
  for (NodeId id : loops) {
    const auto r = attributes<LoopAttributes>(g, id);
    if (r.last)
      needed[static_cast<size_t>(r.result)] = 1;
    else
      kept.push_back(static_cast<NodeId>(r.result));
  }
  std::vector<NodeId> live;
  for (bool more = true; more;) {
    more = false;
    roots = kept;
    for (size_t k = 0; k < carried; ++k)
      if (needed[k]) roots.push_back(body.next[k]);
    live = live_until(body.graph, roots, {});
    for (size_t k = 0; k < carried; ++k)
      if (!needed[k] && std::ranges::binary_search(live, body.inputs[k])) needed[k] = more = true;
  }

  LoopPlan plan;
  plan.steps = a.steps, plan.reverse = a.reverse;
  std::vector<size_t> place(carried, 0);
  for (size_t k = 0; k < carried; ++k) {
    if (!needed[k]) continue;
    place[k] = plan.carried.size();
    plan.carried.push_back({k, kept.size() + plan.carried.size()});
  }
  size_t at = 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    const auto r = attributes<LoopAttributes>(g, loops[i]);
    if (r.last)
      plan.carried[place[static_cast<size_t>(r.result)]].result = static_cast<int>(i);
    else
      plan.kept.push_back({at++, i});
  }
  for (NodeId id : live) {
    if (id >= body.inputs.size()) break;  // inputs are the first nodes
    using Kind = LoopPlan::Input::Kind;
    const size_t k = id;
    if (k < carried)
      plan.inputs.push_back({Kind::Carried, place[k]});
    else
      plan.inputs.push_back({k < carried + sliced ? Kind::Sliced : Kind::Same, k});
  }
  plan.body = make_plan(body.graph, live, roots, {});
  return plan;
}

}  // namespace gradcell

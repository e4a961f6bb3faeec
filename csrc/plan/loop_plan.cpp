#include "plan/loop_plan.h"

#include <algorithm>

#include "ops/loop.h"
#include "plan/planner.h"

namespace gradcell {

FramedLoop frame_loop(const Graph& g, std::span<const NodeId> loops) {
  const auto a = attributes<LoopAttributes>(g, loops[0]);
  Body body = read_body(a.body, g.settings());
  const auto carried = static_cast<size_t>(a.carried), sliced = static_cast<size_t>(a.sliced);
  FramedLoop loop;
  std::vector<uint8_t> needed(carried, 0);
  std::vector<NodeId> kept;
  for (NodeId id : loops) {
    const auto r = attributes<LoopAttributes>(g, id);
    if (r.last)
      needed[static_cast<size_t>(r.result)] = 1;
    else
      kept.push_back(narrow<NodeId>(r.result));
  }
  for (bool more = true; more;) {
    more = false;
    loop.roots = kept;
    for (size_t k = 0; k < carried; ++k)
      if (needed[k]) loop.roots.push_back(body.next[k]);
    loop.live = live_until(body.graph, loop.roots, {});
    for (size_t k = 0; k < carried; ++k) {
      const bool stays = body.next[k] == body.inputs[k];  // the same in all steps
      if (!needed[k] && !stays && std::ranges::binary_search(loop.live, body.inputs[k]))
        needed[k] = more = true;
    }
  }

  LoopFrame& f = loop.frame;
  f.steps = a.steps, f.reverse = a.reverse;
  std::vector<size_t> place(carried, 0);
  for (size_t k = 0; k < carried; ++k) {
    if (!needed[k]) continue;
    place[k] = f.carried.size();
    f.carried.push_back({k, kept.size() + f.carried.size()});
  }
  size_t at = 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    const auto r = attributes<LoopAttributes>(g, loops[i]);
    if (r.last)
      f.carried[place[static_cast<size_t>(r.result)]].result = narrow<int>(i);
    else
      f.kept.push_back({at++, i});
  }
  for (NodeId id : loop.live) {
    if (id >= body.inputs.size()) break;  // inputs are the first nodes
    using Kind = LoopFrame::Input::Kind;
    const size_t k = id;
    if (k < carried && needed[k])
      f.inputs.push_back({Kind::Carried, place[k]});
    else
      f.inputs.push_back({k >= carried && k < carried + sliced ? Kind::Sliced : Kind::Same, k});
  }
  loop.body = std::move(body.graph);
  return loop;
}

LoopPlan plan_loop(const Graph& g, std::span<const NodeId> loops) {
  FramedLoop loop = frame_loop(g, loops);
  std::vector<uint8_t> fixed;
  for (const LoopFrame::Input& in : loop.frame.inputs)
    fixed.push_back(in.kind == LoopFrame::Input::Kind::Same);
  return {std::move(loop.frame), make_body_plan(loop.body, loop.live, loop.roots, fixed)};
}

}  // namespace gradcell

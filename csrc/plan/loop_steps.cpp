#include "plan/loop_steps.h"

namespace gradcell {

LoopPlaces::LoopPlaces(const LoopFrame& loop, const PlanFrame& body, bool together)
    : outputs(body.outputs.size()), follows(loop.kept.size(), 0) {
  for (size_t k = 0; k < loop.kept.size(); ++k) {
    Place& to = outputs[source_output(body, loop.kept[k].output)];
    if (to.kept < 0)
      to.kept = narrow<int>(loop.kept[k].result);
    else
      follows[k] = together;
  }
  for (size_t k = 0; k < loop.kept.size(); ++k) {
    const int input = body.outputs[loop.kept[k].output].alias_input;
    if (input < 0) continue;
    const LoopFrame::Input& of = loop.inputs[static_cast<size_t>(input)];
    if (of.kind != LoopFrame::Input::Kind::Carried) continue;
    const size_t next = loop.carried[of.index].output;
    if (body.outputs[next].alias_input >= 0) continue;
    Place& to = outputs[source_output(body, next)];
    if (to.kept >= 0)
      follows[k] = together;
    else if (to.before < 0)
      to.before = narrow<int>(loop.kept[k].result);
  }
  for (size_t k = 0; k < loop.carried.size(); ++k) {
    const size_t output = loop.carried[k].output;
    Place& to = outputs[source_output(body, output)];
    if (to.carried < 0) to.carried = narrow<int>(k);
    offsets.push_back(bytes);
    const bool elsewhere = to.kept >= 0 || to.carried != narrow<int>(k);
    if (elsewhere && body.outputs[output].alias_input < 0) continue;
    bytes += 2 * aligned(body.outputs[output].desc.bytes());
  }
  for (size_t k = 0; k < loop.kept.size(); ++k) {
    const PlanOutput& from = body.outputs[loop.kept[k].output];
    const Place& to = outputs[source_output(body, loop.kept[k].output)];
    copies |= !follows[k] && (from.alias_input >= 0 || to.kept != narrow<int>(loop.kept[k].result));
  }
  for (const LoopFrame::Carried& c : loop.carried)
    copies |= body.outputs[c.output].alias_input >= 0;
}

bool LoopPlaces::is_own(const PlanFrame& body, size_t output) const {
  if (body.outputs[output].alias_input >= 0) return false;
  const Place& at = outputs[source_output(body, output)];
  return at.kept < 0 && at.before < 0 && at.carried >= 0;
}

}  // namespace gradcell

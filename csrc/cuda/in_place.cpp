#include "cuda/in_place.h"

namespace gradcell::cuda {

UpdatesInPlace::UpdatesInPlace(const CudaPlan& plan)
    : written_(plan.outputs.size()), read_(plan.inputs.size()) {
  for (const Buffer& b : plan.buffers)
    if (b.place != Place::Temp) uses(b).bytes = b.bytes;
  int groups = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    const auto at = narrow<int>(s);
    if (step.kernel < 0) tried_ = at + 1;
    const bool has_routines =
        step.loop >= 0 && plan.loops[static_cast<size_t>(step.loop)].body.has_routines();
    if (step.routine || step.passage || has_routines) safe_ = at + 1;
    for (BufferId id : plan.used_by(step)) {
      const Buffer& b = plan.buffers[id];
      if (b.place == Place::Temp) continue;
      Uses& u = uses(b);
      if (b.place == Place::Output && u.at >= 0)
        continue;  // the first time counts, of inputs the last
      if (u.at != at) u = {u.bytes, at};
      ++u.times;
    }
    for (const ByElement& group : step.by_element) {
      for (const auto* ids : {&group.reads, &group.writes})
        for (BufferId id : *ids)
          if (const Buffer& b = plan.buffers[id]; b.place != Place::Temp)
            if (Uses& u = uses(b); u.at == at) u.group = groups;
      ++groups;
    }
  }
  for (const PlanOutput& o : plan.outputs)
    if (o.alias_input >= 0) read_[static_cast<size_t>(o.alias_input)].bytes = 0;
}

bool UpdatesInPlace::allowed(size_t output, size_t input) const {
  const Uses &w = written_[output], &r = read_[input];
  if (w.bytes != r.bytes || w.bytes == 0 || w.at < safe_) return false;
  return r.at < w.at || (r.at == w.at && r.times == 1 && r.group >= 0 && r.group == w.group);
}

}  // namespace gradcell::cuda

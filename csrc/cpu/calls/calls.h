// Structured ops on whole tensors, a file a family.
#pragma once

#include "plan/plan.h"

namespace gradcell::cpu {

/// `inputs` and `output` are dense and row-major, as the call's descriptions say. `constants`: the
/// run's. Throws Index for an index out of range.
void run_call(const Call& call, const void* const* inputs, void* output, const uint64_t* constants);

// One for each form that can be a call: what forms.def names. (Of a constant, the input is its
// bits.)
#define FORM(Name, parts, rows, tile, call, ...) \
  void call(const Call& c, const void* const* in, void* out);
#include "ir/forms.def"

/// Runs Call::joined at once: one place in `outputs` for each.
void attend_together(const Call& call, const void* const* inputs, void* const* outputs);

}  // namespace gradcell::cpu

// Structured ops on whole tensors.
#pragma once

#include "plan/plan.h"

namespace gradcell::cpu {

/// `inputs` and `output` are dense and row-major, as the call's descriptions say. `constants`: the
/// run's. Throws Index for a gather or scatter index out of range.
void run_call(const Call& call, const void* const* inputs, void* output, const uint64_t* constants);

}  // namespace gradcell::cpu

#pragma once

#include "plan/plan.h"

namespace gradcell::cpu::attention {

/// Sums over the same scores, whose normalisers are known, in one pass: those that Call::joined
/// describes. One place in `out` for each.
void sum_together(const Call& c, const void* const* in, void* const* out);

}  // namespace gradcell::cpu::attention

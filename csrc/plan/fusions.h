// Fusions: expressions of fusions.def as single instructions of a tile program.
#pragma once

#include "plan/plan.h"

namespace gradcell {

/// Replaces what a region computes by a row of fusions.def with one instruction.
void form_fusions(Region& region);

}  // namespace gradcell

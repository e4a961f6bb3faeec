// The order of a tile program: another order of the same instructions can need far less scratch.
#pragma once

#include "plan/plan.h"

namespace gradcell {

/// Depth first from what the region stores and accumulates: a value is made right before its first
/// use. `newest_first` says which operand of an instruction is made first.
std::vector<Instruction> depth_first(const Region& region, bool newest_first);

/// The same program, where what frees more scratch than it takes, and what only adds to an
/// accumulator, comes as soon as its operands are there.
std::vector<Instruction> release_early(const Region& region);

}  // namespace gradcell

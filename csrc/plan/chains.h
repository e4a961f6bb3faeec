// Joins elementwise instructions into chains, so that a tile's intermediate results stay in
// registers instead of going through its scratch.
#pragma once

#include "plan/plan.h"

namespace gradcell {

/// Rewrites the program: sums, differences and products whose result is used once become part of
/// the instruction that uses it, at most four operands to a chain, so that as few instructions as
/// possible are left. The arithmetic is the same, operation by operation.
void form_chains(Region& region);

}  // namespace gradcell

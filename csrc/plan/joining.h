// Passes that join instructions of a tile program, so that intermediate results stay in registers
// instead of going through its scratch. The arithmetic stays the same, operation by operation.
#pragma once

#include "plan/plan.h"

namespace gradcell {

/// Where a number for each feature is added to a product that nothing else uses, the product starts
/// from those numbers: one pass over the tile less.
void fold_biases(Region& region);

/// Replaces what a region computes by a row of formulas.def with one instruction.
void form_formulas(Region& region);
/// What an element of one takes, as in plan/costs.h: its dearest op, since the others hide behind
/// it.
double formula_ns(Formula f);

/// A comparison that one choice alone uses becomes part of it.
void form_choices(Region& region);

/// Sums, differences and products whose result is used once become part of the instruction that
/// uses it, at most four operands to a chain, so that as few instructions as possible are left.
void form_chains(Region& region);

}  // namespace gradcell

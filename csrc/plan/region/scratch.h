// Where the values of a tile program lie in the scratch of a tile.
#pragma once

#include "plan/plan.h"

namespace gradcell {

/// After so many rows a load's elements come again; 0: they do not. Such a value keeps its place
/// from tile to tile.
int64_t period(const RowLoad& load);

/// Whether the result of an instruction may lie where its operand k does: it is of the same size,
/// and no feature of it is read after it has been written.
bool may_replace(const Region& region, const Instruction& i, int k);

/// Sets the values' offsets, by liveness over the program, and the region's row_bytes.
void place_values(Region& region);

}  // namespace gradcell

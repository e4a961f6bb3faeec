// Copies that repeat features, or space them: loops can read what is copied where it is.
#pragma once

#include "cpu/program/program.h"

namespace gradcell::cpu {

/// Of an operand that loops read where it is; null: it lies as the instruction reads it.
inline const Spread* spread_of(const TileProgram& p, const Operand& o) {
  return o.uniform || p.spread[o.value].n == 0 ? nullptr : &p.spread[o.value];
}

/// Fills in what is read so, and leaves the copies out: of lines of the only row, or of features,
/// once the program's loops and direct values are known.
void find_spread(const Region& r, TileProgram& p);

}  // namespace gradcell::cpu

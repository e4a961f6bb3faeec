// Which regions have tiles whose rows lie as they do in memory, [rows][features], and what their
// program needs for it (run/line_runner.h runs them).
#pragma once

#include "cpu/program/program.h"

namespace gradcell::cpu {

/// Fewer elements than this are combined one by one: a kernel takes longer to begin.
inline constexpr int32_t kShortLine = 8;

/// Whether a region's tiles are better so: wide rows of row-major buffers, and no products.
bool runs_by_lines(const Plan& plan, const Region& r);

/// Whether one number of the uniforms is the operand for all of an instruction's features.
inline bool is_number(const Operand& o, int32_t features) {
  return o.uniform && (o.stride == 0 || features == 1);
}
inline bool is_line(const Operand& o, int32_t features) {
  return o.uniform && !is_number(o, features);
}
/// Whether an operand is one number of each row, and the instruction's loop takes it so (a row at a
/// time), not as a line of equal elements. alone: there is but one row, of any width.
bool is_column(const Instruction& i, int k, bool alone);

/// The distance between a map's features that are all as far apart; 0: they are not.
inline int32_t spacing(const MapRuns& map) { return map.size() == 1 ? map[0].step : 0; }

/// Fills in what a TileProgram has for lines: heights, places, loops.
void prepare_lines(const Region& r, TileProgram& p);

}  // namespace gradcell::cpu

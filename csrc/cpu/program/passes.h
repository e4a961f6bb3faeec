// Neighbouring loops of a tile program that go over a few features at a time together, so that what
// one makes is in the first-level cache when the next reads it.
#pragma once

#include "cpu/kernels/kernels.h"

namespace gradcell::cpu {

struct TileProgram;

/// Instructions [first, first + count), over `chunk` features of a full tile at a time.
struct Pass {
  uint32_t first, count;
  int32_t chunk;
};

/// The passes of a region, once its program's heights, loops and spread values are known.
std::vector<Pass> find_passes(const Region& r, const TileProgram& p);

}  // namespace gradcell::cpu

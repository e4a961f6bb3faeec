// How long a region takes as one kernel on some GPU, to be weighed against separate products.
//
// A block's tiles follow each other, and the threads of one wait for their own results most of the
// time: what counts is the longest chain of one thread, times the tiles that come after each other
// on a multiprocessor. The numbers are those of plan/costs.h.
#pragma once

#include "cuda/tiles/tile_layout.h"

namespace gradcell::cuda {

struct TileCost {
  int64_t chunks = 1;  ///< of rows: a block each, as many as run at once
  int64_t rounds = 1;  ///< tiles of a block
  double cycles = 0;   ///< of the launch
};

TileCost tile_cost(const Region& r, const TileLayout& l, const Target& target);

}  // namespace gradcell::cuda

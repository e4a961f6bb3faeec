// Writes the kernel of a region: a block takes tiles of rows through the whole program, see
// tile_layout.h. Widths of values are in the text, the number of rows is an argument.
//
// Sums over rows are added up in a fixed order: the rows of a tile in float32 for gradients of
// weights, else in float64; the tiles of a chunk, and then the chunks, in float64 (tile_sums.cpp).
#pragma once

#include "cuda/tiles/tile_regions.h"
#include "cuda/write/kernel_writers.h"

namespace gradcell::cuda {

/// Reductions over rows that are finished by one launch, from what the chunks of rows come to.
struct TileSums {
  Combine combine;
  bool floating;
  std::vector<uint32_t> accumulators;
  int64_t count = 0;  ///< elements of all of them
  BufferId partial = 0;
};
std::vector<TileSums> tile_sums(const Region& r);
/// What the chunks come to, in bytes.
size_t partial_bytes(const TileRegion& tile, const TileSums& sums);

Written write_tile(const WriterInputs& in, int32_t stage, const TileRegion& tile,
                   std::span<const TileSums> sums);
Written write_tile_sums(const WriterInputs& in, int32_t stage, const TileRegion& tile,
                        const TileSums& sums);

}  // namespace gradcell::cuda

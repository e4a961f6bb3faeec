// How a block of threads takes some rows through a region that has many more: threads x are rows,
// threads y share the features of each value, every one the same few neighbours.
#pragma once

#include "cuda/tiles/phases.h"
#include "cuda/tiles/tile_products.h"

namespace gradcell::cuda {

/// Rows of a tile, where shared memory has room for them.
inline constexpr int32_t kTileRows = 32;

struct TileLayout : Phases {
  int32_t groups = 1;        ///< threads y
  int32_t rows = kTileRows;  ///< threads x, on a GPU with the shared memory that was asked for
  /// By weights: where in shared memory they are, for each group side by side, or `as_stored`; -1:
  /// read where they are stored.
  std::vector<int64_t> weights;
  bool as_stored = false;
  size_t weight_bytes = 0;
  std::vector<ProductUnit> by;        ///< by weights
  std::vector<ProductUnit> outer_by;  ///< by accumulators; of gradients of weights
  /// Neighbouring features that a thread has of so many.
  int32_t chunk(int32_t features) const { return (features + groups - 1) / groups; }
};

/// Weights of a group of threads come in packs of this many.
int32_t packed(int32_t chunk);

/// `tf32`: whether float32 products may be computed in TF32. `shared`: bytes that a block can have.
TileLayout lay_out(const Region& r, bool tf32, size_t shared);

}  // namespace gradcell::cuda

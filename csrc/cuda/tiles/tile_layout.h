// How a block of threads takes some rows through a region: in which order and phases, and where
// each value is meanwhile.
//
// Threads x are rows; threads y share the features of each value, every one the same few
// neighbours. Holds: what an instruction reads of another thread's features has been written to
// shared memory in an earlier phase, and between phases all threads of the block wait for each
// other. A value that no other thread reads, and no later phase, is in registers alone.
#pragma once

#include "cuda/tiles/tile_products.h"

namespace gradcell::cuda {

/// Rows of a tile, where shared memory has room for them.
inline constexpr int32_t kTileRows = 32;

struct TileItem {
  enum class Kind : uint8_t { Load, Compute, Store } kind;
  uint32_t index;  ///< of the region's loads, instructions or stores
  int32_t phase = 0;
};

struct TileLayout {
  std::vector<TileItem> items;
  std::vector<uint8_t> shared;  ///< by value: is in shared memory
  std::vector<size_t> place;    ///< of shared ones, in bytes of a row
  size_t row_bytes = 0;         ///< shared memory for a row
  int32_t groups = 1;           ///< threads y
  int32_t rows = kTileRows;     ///< threads x, on a GPU with the shared memory that was asked for
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

/// Whether an instruction for so many features reads those of its own thread through an operand.
bool reads_own(const Region& r, const Operand& o, int32_t features);

/// `tf32`: whether float32 products may be computed in TF32. `shared`: bytes that a block can have.
TileLayout lay_out(const Region& r, bool tf32, size_t shared);

}  // namespace gradcell::cuda

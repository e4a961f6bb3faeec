// Which sums of attention's family one kernel by tensor cores computes
// (write/attention/attention.cuh), and what it has in shared memory: those over the same scores,
// whose results all belong to queries or all to keys, so that scores are computed once. What does
// not fit has kernels of one sum each.
#pragma once

#include "cuda/fuse/fusion.h"

namespace gradcell::cuda {

/// Rows of an operand in shared memory: a block's own, or 64 others.
struct AttentionTile {
  NodeId storage, node;
  bool by_keys;  ///< its rows are keys
  int64_t width;
  size_t offset = 0;  ///< bytes
};

/// How a block's warps share its rows and a tile's 64 others (gc_way of attention.cuh).
struct AttentionWay {
  int pieces = 1, parts = 4;
  bool keeps = false;  ///< the block's own rows are in registers, and their place is others' then
  int64_t rows() const { return 64 * pieces; }
  int64_t keys(bool by_keys) const { return by_keys ? rows() : 64; }
  int64_t threads() const { return 1024 / parts; }
};

struct AttentionTiles {
  std::vector<AttentionTile> all;
  std::vector<AttentionTile> numbers;  ///< a number for each other, in the tile
  /// Of halves: rows of a mask of bools in the tile, by queries, and where they are; 0: there are
  /// none.
  int64_t masked = 0;
  size_t mask = 0;
  AttentionWay way;
  int stages = 1;               ///< tiles of others that there is room for
  size_t stage = 0, bytes = 0;  ///< of one, of all
  size_t given = 0;             ///< what the second warp of a group gives the first, at the front
  int sums = 0;                 ///< of a thread, for a piece
  const AttentionTile& of(NodeId storage, bool by_keys) const;
};
AttentionTiles attention_tiles(const Graph& g, std::span<const NodeId> storage,
                               std::span<const NodeId> sums, const Target& target);

/// Whether tensor cores compute these sums in one kernel.
bool fits_tensor_cores(const Graph& g, std::span<const NodeId> storage,
                       std::span<const NodeId> sums, const Target& target);

/// Disjoint groups of sums that can be one kernel, but for the stages in which they are.
std::vector<std::vector<NodeId>> sums_to_join(const Graph& g, std::span<const NodeId> storage,
                                              const Target& target);

}  // namespace gradcell::cuda

// Which sums of attention's family one kernel by tensor cores computes
// (write/attention/attention.cuh), and what it has in shared memory: those over the same scores,
// whose results all belong to queries or all to keys, so that scores are computed once. What does
// not fit has kernels of one sum each.
#pragma once

#include "cuda/fuse/fusion.h"

namespace gradcell::cuda {

/// 64 rows of an operand in shared memory.
struct AttentionTile {
  NodeId storage, node;
  bool by_keys;  ///< its rows are keys
  int64_t width;
  size_t offset;  ///< bytes
};

struct AttentionTiles {
  std::vector<AttentionTile> all;
  size_t bytes = 0;
  int registers = 0;  ///< of a thread, for its sums
  const AttentionTile& of(NodeId storage, bool by_keys) const;
};
AttentionTiles attention_tiles(const Graph& g, std::span<const NodeId> storage,
                               std::span<const NodeId> sums);

/// Whether tensor cores compute these sums in one kernel.
bool fits_tensor_cores(const Graph& g, std::span<const NodeId> storage,
                       std::span<const NodeId> sums, const Target& target);

/// Disjoint groups of sums that can be one kernel, but for the stages in which they are.
std::vector<std::vector<NodeId>> sums_to_join(const Graph& g, std::span<const NodeId> storage,
                                              const Target& target);

}  // namespace gradcell::cuda

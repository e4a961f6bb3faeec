// Which nodes of a cleaned graph are computed together on a GPU: the input of the kernel writer.
//
// Every node with a buffer is computed by a kernel or library call of its own (Role::Alone), by its
// region's (Role::Tile) or by its group's kernel. All other nodes have no buffer: kernels compute
// them where they are needed, from the nearest buffers. Holds: what a group reads from buffers
// comes from lower stages.
#pragma once

#include "cuda/tiles/tile_regions.h"

namespace gradcell::cuda {

enum class Role : uint8_t {
  Source,     ///< a leaf or a constant
  View,       ///< a reshape: another node's elements
  Map,        ///< each element from single elements of the inputs
  RowReduce,  ///< reduces the trailing axes of a row inside its group's kernel
  Alone,      ///< any other reduction, a product, a scan, a scatter
  Tile,       ///< inside a region that one kernel computes
};

struct Fused {
  Role role = Role::Source;
  bool stored = false;    ///< has a buffer (leaves have one anyway)
  bool anchored = false;  ///< has to: the plan returns it, or something reads it as a whole
  bool cut = false;       ///< other kernels read it, wherever they are
  int32_t stage = 0;
  int32_t component = -1;
  int64_t rows = 0;  ///< Map, RowReduce: the rows of its group's kernel; the element count: flat
  bool by_rows = false;  ///< its kernel takes rows: it reduces them, or has other sizes inside
};

struct Fusion {
  std::vector<Fused> node;
  std::vector<NodeId> storage;  ///< the node whose elements a node has, row-major
  int32_t stage_count = 0;
};

Fusion fuse(const Graph& g, std::span<const NodeId> roots, const TileRegions& tiles,
            const Target& target);

/// How many terms an element of a product has, if they are so few that it is written out, as an
/// elementwise op of its operands' rows and columns; else 0.
int64_t few_terms(const Graph& g, NodeId id);

/// The factor of a product with few terms of which a kernel of so many rows needs, for a row of the
/// result, just that row; kNoNode: there is none.
NodeId row_factor(const Graph& g, NodeId id, int64_t rows);

/// The size of the trailing axes that a reduction removes, if it removes just those; else 0.
int64_t trailing_reduction(const Graph& g, NodeId id);

}  // namespace gradcell::cuda

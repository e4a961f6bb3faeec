// Regions that one kernel computes: where narrow products, as of a network's layers, have
// elementwise ops between them, a block takes a tile of rows through all of them, and what lies
// between never leaves the multiprocessor. Gradients of weights are sums of each block's.
//
// What goes in: a cleaned graph; what comes out: the regions that are worth it, in the CPU
// planner's form, and an order in which everything that a region reads comes before its nodes.
#pragma once

#include "cuda/fuse/tile_layout.h"
#include "plan/planner.h"

namespace gradcell::cuda {

struct TileRegion {
  Region region;  ///< its buffers are nodes
  TileLayout layout;
  std::vector<NodeId> nodes;          ///< ascending
  std::vector<NodeId> reads, writes;  ///< nodes with buffers; ascending
};

struct TileRegions {
  std::vector<TileRegion> all;
  std::vector<int32_t> of;  ///< by node: which region computes it; -1: none
  std::vector<NodeId> order;
};

TileRegions find_tile_regions(const PlanGraph& c, size_t shared);

}  // namespace gradcell::cuda

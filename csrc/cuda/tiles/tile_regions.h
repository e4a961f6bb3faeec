// Regions that one kernel computes: where narrow products, as of a network's layers, have
// elementwise ops between them, a block takes a tile of rows through all of them, and what lies
// between never leaves the multiprocessor. Gradients of weights are sums of each block's.
//
// What goes in: a cleaned graph; what comes out: the regions that there can be, in the CPU
// planner's form with what each costs, and an order in which everything that a region reads comes
// before its nodes. Which are worth it cuda/scheme.cpp finds out.
#pragma once

#include <set>

#include "cuda/tiles/tile_costs.h"
#include "plan/planner.h"

namespace gradcell::cuda {

struct TileRegion {
  Region region;  ///< its buffers are nodes
  TileLayout layout;
  TileCost cost;
  std::vector<NodeId> nodes;          ///< ascending
  std::vector<NodeId> reads, writes;  ///< nodes with buffers; ascending
};

struct TileRegions {
  std::vector<TileRegion> all;
  std::vector<int32_t> of;  ///< by node: which region computes it; -1: none
  std::vector<NodeId> order;
};

/// `others`: the numbers of rows whose regions are left to other kernels and the library.
TileRegions find_tile_regions(const PlanGraph& c, const Target& target,
                              const std::set<int64_t>& others = {});

}  // namespace gradcell::cuda

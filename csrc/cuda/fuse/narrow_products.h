// Products by one or two columns, or rows, as reductions: a dot product along each row of the wide
// factor, or sums over its rows. A reduction is fused with what makes the wide factor and with what
// uses the result, which a call of the matrix library is not; which of the two is better the plan's
// planner finds out by what both plans move.
#pragma once

#include <optional>

#include "cuda/tiles/tile_regions.h"

namespace gradcell::cuda {

/// Which products become reductions: those of rows, those over rows.
struct NarrowWays {
  bool along = false, over = false;
};

/// Which ways there are; `tiles`: products inside regions stay.
NarrowWays narrow_ways(const Graph& g, const TileRegions& tiles);
/// None: it would have other constants.
std::optional<PlanGraph> without_narrow_products(const PlanGraph& from, const TileRegions& tiles,
                                                 NarrowWays ways);

}  // namespace gradcell::cuda

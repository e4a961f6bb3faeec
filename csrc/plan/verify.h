// Checks of what the planner makes, called where kVerify holds (debug builds and tests).
#pragma once

#include "ir/verify.h"
#include "plan/region/region_builder.h"

namespace gradcell {

/// The nodes of one region: ascending, of one row count and stage, each input readable where the
/// region reads it. Throws Runtime, naming the node.
void verify_region_nodes(const RegionInputs& in, std::span<const NodeId> nodes);

/// Buffers in place and written before they are read, operands defined before their use, feature
/// ranges, maps and scratch in bounds, no two live values at one place. Throws Runtime.
void verify(const Plan& plan);

}  // namespace gradcell

// How matrices lie in memory between regions and whole products.
#pragma once

#include "plan/plan.h"

namespace gradcell {

/// Stores temporary matrices that only regions (by their rows) and whole matrix products touch as
/// tiles hold them, a feature's rows side by side: regions then copy where they would transpose,
/// and a product takes either layout. Sets Buffer::feature_major and turns the products' operands
/// round.
void choose_layouts(Plan& plan);

}  // namespace gradcell

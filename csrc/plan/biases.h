// Biases: the product of a layer starts from its bias.
#pragma once

#include "plan/plan.h"

namespace gradcell {

/// Where a number for each feature is added to a product that nothing else uses, the product starts
/// from those numbers: one pass over the tile less.
void fold_biases(Region& region);

}  // namespace gradcell

// The normal distribution function that was written by hand, by erf or erfc.
#pragma once

#include "ops/elementwise.h"

namespace gradcell {

/// a * b by the normal distribution function, where one of them is a number or has a number as a
/// factor, and a factor of the product is 1 + erf(c x) or erfc(-c x), which is 2 ndtr(sqrt(2) c x):
/// so 0.5 * x * (1 + erf(x / sqrt(2))) is x * ndtr(x), however its factors are ordered. kNoNode for
/// other products. It is the more exact way: 1 + erf loses all digits where it is small.
NodeId product_by_normal(Graph& g, NodeId a, NodeId b);

/// Likewise k + k erf(c x), and k - k erf(c x), where a, b and `op` are such a sum.
NodeId sum_by_normal(Graph& g, Op op, NodeId a, NodeId b);

}  // namespace gradcell

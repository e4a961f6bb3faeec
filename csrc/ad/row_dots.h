// Second derivatives along a direction, without the second half of the walk.
#pragma once

#include "ir/graph.h"

namespace gradcell::ad {

/// `derivative`, one number a row ([N, 1]), in a form that needs two products less or more, where
/// there is one; else itself.
///
/// A gradient's component along a direction e is the row-wise dot product <e, W' b> = <W e, b>.
/// Where W e is in the graph already, as the derivative of the same layers along e is when e'He is
/// computed, W' b need not be, nor what b was made of below: <e, W'(s * (v - V' c))> =
/// <s * W e, v> - <V (s * W e), c>, and so on down the layers. For a network with L hidden layers
/// the second derivative along an input takes 3 L products instead of 4 L, and its gradient
/// likewise.
NodeId with_fewer_products(Graph& g, NodeId derivative);

}  // namespace gradcell::ad

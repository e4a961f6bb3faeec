// Derivative rules of single nodes, for the passes of transform.h.
#pragma once

#include "ad/value.h"

namespace gradcell::ad {

/// The adjoint of input `k` of node `id`, given the node's adjoint dy (not null). Null: zero.
Value adjoint_of_input(Graph& g, NodeId id, int k, Value dy);

/// The tangent of node `id`, given its inputs' tangents (each may be null).
Value tangent_of(Graph& g, NodeId id, std::span<const Value> dx);

}  // namespace gradcell::ad

// The family of ops that give their input: marks for differentiation, and other dtypes.
#pragma once

#include "ir/spec.h"

namespace gradcell {

/// A node equal to x that is no other, to differentiate by.
NodeId alias(Graph& g, NodeId x);
NodeId stop_gradient(Graph& g, NodeId x);
NodeId cast(Graph& g, NodeId x, DType dtype);

}  // namespace gradcell

// The family of the table's rows. Inputs of an elementwise op have one shape and (but for the
// condition of a choice) one dtype here; promotion and implicit broadcasting belong to the front
// end.
#pragma once

#include "ir/op_info.h"
#include "ops/source.h"

namespace gradcell {

NodeId unary(Graph& g, Op op, NodeId x);             // unary and predicate rows
NodeId binary(Graph& g, Op op, NodeId a, NodeId b);  // binary and compare rows
NodeId select(Graph& g, NodeId c, NodeId a, NodeId b);
/// A sum of contributions, any of which may be structural zeros: kNoNode.
NodeId accumulate(Graph& g, NodeId a, NodeId b);
/// Between uint64 and floats, either way: rounded once; a number that is too large becomes the
/// largest, NaN 0.
NodeId uint64_cast(Graph& g, NodeId x, DType to);

/// The spec of a row.
const Spec& elementwise_spec(Op op);

}  // namespace gradcell

// Complex numbers. A node of a complex dtype stands for a pair of real tensors, and everything that
// is computed with it is made of real nodes as it is recorded: what is complex in a graph are
// inputs, aliases, and views of pairs [..., 2] as complex numbers and back. Cleaned graphs hold the
// pairs, so planners and engines know no complex numbers; derivatives are those by the real and the
// imaginary part, dL/dx + i dL/dy for a real L, which is MindSpore's convention.
#pragma once

#include "ir/spec.h"

namespace gradcell {

/// complex [...] as its parts [..., 2], and the other way about.
NodeId view_as_real(Graph& g, NodeId z);
NodeId view_as_complex(Graph& g, NodeId pairs);

struct Parts {
  NodeId re, im;
};
/// Of a real tensor: itself, and zeros.
Parts parts(Graph& g, NodeId x);
NodeId complex_of(Graph& g, Parts p);

// The rows of the op table on complex numbers. Throw Type for those that have no meaning there.
NodeId complex_unary(Graph& g, Op op, NodeId x);
NodeId complex_binary(Graph& g, Op op, NodeId a, NodeId b);
NodeId complex_select(Graph& g, NodeId c, NodeId a, NodeId b);

}  // namespace gradcell

// Taylor mode, graph to graph: truncated power series go through a recorded graph in one pass, all
// orders at once. Their coefficients are nodes, so they can be differentiated again.
//
// No op brings a recurrence of its own. A series y = f(x) satisfies E y = f'(x) E x, where E takes
// the coefficient of degree k times k (Euler's operator), and the right-hand side is the op's
// tangent, which the op table has. Read over series, with products as the algebra's table says, it
// gives each coefficient of y from those of x and lower ones of y. (A. Griewank, A. Walther,
// Evaluating Derivatives, 2nd ed. 2008, chapter 13, has such recurrences one by one.)
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ad/algebra.h"
#include "ir/graph.h"

namespace gradcell::ad {

/// The derivatives of the outputs that belong to the elements `wanted` of the algebra. `given` has
/// for each node of `wrt` the derivatives that belong to elements 1, 2, ...; those after the last
/// are zero. kNoNode stands for a structural zero, here and in the result (by output, then by
/// wanted element).
std::vector<std::vector<NodeId>> series(Graph& g, std::span<const NodeId> outputs,
                                        std::span<const NodeId> wrt,
                                        std::span<const std::vector<NodeId>> given,
                                        const Algebra& algebra, std::span<const int> wanted);

/// The directions that tell derivatives by the elements of x apart: ones at one element and zeros
/// elsewhere, of x's shape. With `rows` one for each element of x[0], at that place in every row.
std::vector<NodeId> unit_directions(Graph& g, NodeId x, bool rows);

}  // namespace gradcell::ad

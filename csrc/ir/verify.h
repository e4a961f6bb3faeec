// Checks that a graph is what the rest of the core takes it to be: input counts, dtypes, shapes and
// attributes of every op, inputs before their users. Each node's shape and dtype are inferred again
// from its inputs and compared with what the node says.
//
// Passes call it on what they made where kVerify holds (debug builds and tests).
#pragma once

#include "ir/graph.h"

namespace gradcell {

#ifdef GRADCELL_VERIFY
inline constexpr bool kVerify = true;
#else
inline constexpr bool kVerify = false;
#endif

enum class GraphStage : uint8_t {
  Recorded,  ///< what a trace holds and a differentiation works on
  Cleaned,   ///< the planner's: no marks, a product may have several pairs of inputs
};

/// Checks the nodes from `first` on. Throws Runtime, naming the pass and the node's line.
void verify(const Graph& g, const char* pass, NodeId first = 0,
            GraphStage stage = GraphStage::Recorded);

}  // namespace gradcell

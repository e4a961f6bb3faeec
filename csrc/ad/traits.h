// What a walk along derivatives asks at every node and the op alone answers: asked of the specs
// once, and then kept by op.
#pragma once

#include <algorithm>

#include "ir/spec.h"

namespace gradcell::ad {

struct Traits {
  static constexpr int kInputs = 16;  ///< from the last of so many inputs on, all are alike
  uint16_t computed;                  ///< bit k: the op computes with input k
  bool differentiable;
  bool call;  ///< a result of a call or a loop: a rule knows the derivative

  bool computes_with(int k) const { return computed >> std::min(k, kInputs - 1) & 1; }
  /// Whether a derivative passes from input k to the node.
  bool passes(const Graph& g, NodeId id, int k) const {
    return computes_with(k) &&
           (is_floating(g.dtype(id)) || (!is_floating(g.dtype(g.input(id, k))) && differentiable));
  }
};

/// By op.
const Traits* traits();

}  // namespace gradcell::ad

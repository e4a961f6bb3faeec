// The derivative that a call has of its own. A call is a part of a graph with inputs and outputs:
// its outputs are marked (ops/identity.h) with the number under which the graph keeps the rule.
// Plans know nothing of it: the marks go when a graph is cleaned. What differentiates asks the rule
// instead of looking inside.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

namespace gradcell {

class Rule {
 public:
  struct Call {
    std::span<const NodeId> inputs;   ///< what it is differentiated by
    std::span<const NodeId> outputs;  ///< by number; kNoNode: nothing refers to that one any more
  };
  virtual ~Rule() = default;
  /// What messages call it.
  virtual std::string name() const = 0;
  /// A rule has one of the two modes at least; the other is its transpose.
  virtual bool has_adjoint() const = 0;
  virtual bool has_tangent() const = 0;

  /// The nodes that it reads besides a call's inputs and outputs.
  virtual std::vector<NodeId> reads() const { return {}; }

  /// The inputs' cotangents, given the outputs'; kNoNode is zero. Only those wanted matter.
  virtual std::vector<NodeId> adjoint(Graph&, const Call&, std::span<const NodeId>,
                                      const std::vector<bool>&) const {
    fail(ErrorKind::Runtime, name(), " has no adjoint");
  }
  /// The outputs' tangents, given the inputs'; kNoNode is zero.
  virtual std::vector<NodeId> tangent(Graph&, const Call&, std::span<const NodeId>) const {
    fail(ErrorKind::Runtime, name(), " has no tangent");
  }
};

}  // namespace gradcell

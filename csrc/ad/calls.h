// Calls that have a derivative of their own, as the walks of transform.cpp meet them: the marked
// outputs (ops/identity.h) of one call together, and its rule asked for either mode. Loops are
// calls: their outputs are the results that there are (ops/loop.h).
#pragma once

#include <unordered_map>

#include "ir/rule.h"

namespace gradcell::ad {

struct Call {
  std::shared_ptr<const Rule> rule;
  std::vector<NodeId> inputs;
  std::vector<NodeId> outputs;  ///< by number; kNoNode: nothing refers to that one
};

/// The calls among a graph's active nodes.
class Calls {
 public:
  Calls(const Graph& g, const std::vector<uint8_t>& active);
  /// The call that a node is an output of; null for others.
  const Call* of(NodeId id) const {
    if (number_.empty()) return nullptr;
    auto it = number_.find(id);
    return it == number_.end() ? nullptr : &calls_[it->second];
  }

 private:
  std::vector<Call> calls_;
  std::unordered_map<NodeId, size_t> number_;
};

/// The cotangents of a call's inputs, given its outputs'; empty if none of those is there. wanted:
/// which inputs derivatives go to. Throws Value where a rule's transpose is needed and it is not
/// linear.
std::vector<NodeId> call_adjoint(Graph& g, const Call& call, std::span<const NodeId> dy,
                                 const std::vector<bool>& wanted);
/// The tangents of a call's outputs, given its inputs'; empty if none of those is there. wanted:
/// which inputs derivatives go to.
std::vector<NodeId> call_tangent(Graph& g, const Call& call, std::span<const NodeId> dx,
                                 const std::vector<bool>& wanted);
/// Which inputs of a call derivatives go to.
std::vector<bool> carrying(const Graph& g, const Call& call, const std::vector<uint8_t>& active);
/// The call of a node that is an output, without the others.
Call call_of(const Graph& g, NodeId output);

/// A call's rule over a batch of examples: asked for one example, and what it gives is batched.
/// examples: other nodes that stand for one example, of which batches are for all.
std::shared_ptr<const Rule> batched_rule(const Call& call, int64_t size,
                                         std::span<const uint8_t> batched,
                                         std::span<const NodeId> examples,
                                         std::span<const NodeId> batches);

/// The outputs as those of a call that computes again, when it is differentiated, what has been
/// made from node `begin` on; what comes from before is its input, and is kept. Outputs that were
/// there before stay as they are.
std::vector<NodeId> recomputed(Graph& g, NodeId begin, std::span<const NodeId> outputs);

}  // namespace gradcell::ad

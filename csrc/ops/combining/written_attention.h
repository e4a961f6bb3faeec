// Attention that was written as people write it: softmax(q k' * scale + mask) v of products, exp
// and sums. Where nobody else uses what lies between, it is a node of attention's family
// (attention.h), which needs no memory of the scores' size, nor do its derivatives.
#pragma once

#include <vector>

#include "ops/combining/attention.h"

namespace gradcell {

struct WrittenAttention {
  NodeId result;  ///< the product with the values
  NodeId q, k, v;
  bool keys_stand, values_lie;    ///< keys are [features, S]; values are [features, S]
  Dims lead;                      ///< dimensions of the scores before the last two
  std::vector<NodeId> hides;      ///< bools that are the scores' shape, or broadcast to it
  std::vector<uint8_t> inverted;  ///< of each whether it says what is seen
  NodeId added = kNoNode;         ///< likewise, a sum's term
  bool subtracted = false;
  NodeId state = kNoNode;  ///< of dropout
  double keep = 1, scale = 1, fill;
  std::vector<NodeId> between;  ///< what is not computed any more

  /// The nodes that it is computed of.
  std::vector<NodeId> sources() const;
};

/// What of `live` is such, if the settings have it. roots, cuts: nodes that are needed themselves,
/// or known.
std::vector<WrittenAttention> written_attention(const Graph& g, std::span<const NodeId> live,
                                                std::span<const NodeId> roots,
                                                std::span<const NodeId> cuts);

/// The result's value in `to`, where sources are what `at`, by node, says.
NodeId as_attention(Graph& to, const Graph& from, const WrittenAttention& w,
                    std::span<const NodeId> at);

}  // namespace gradcell

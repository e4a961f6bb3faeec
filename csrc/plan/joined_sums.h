// Sums of attention's family over the same scores (ops/combining/attention.h) run as one call: what
// the scores' exponentials are is then found out once.
#pragma once

#include <compare>
#include <optional>

#include "plan/rewrite.h"

namespace gradcell {

/// What sums that one call can make together have in common: known normalisers, or none, as
/// attention and its normalisers do.
struct SameScores {
  Dims attributes;
  std::vector<NodeId> inputs;
  auto operator<=>(const SameScores&) const = default;
};

/// Of a node of another family nothing. `storage`: by node, which one has its elements.
std::optional<SameScores> scores_of(const Graph& g, std::span<const NodeId> storage, NodeId id);

/// Has sums over the same scores wait for all that one of them needs, so that they run together.
PlanGraph join_sums(PlanGraph from);

}  // namespace gradcell

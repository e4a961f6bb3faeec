// The family of what the processes of a group bring together. Every process of the group makes the
// same nodes in the same order; a node is an effect, that takes place once whether or not its value
// is used, since the others wait for it.
//
// Derivatives are those of the sum over all processes of what each differentiates.
#pragma once

#include "ir/spec.h"

namespace gradcell {

/// Who has what of whose inputs in the end.
enum class Pattern : uint8_t {
  Reduced,       ///< all have the reduction of all inputs
  ReducedParts,  ///< each has its part of it, along the first dimension
  ReducedAtRoot,
  Gathered,  ///< all have all inputs, one after the other
  FromRoot,  ///< all have the root's input
  Swapped,   ///< process i has the i-th parts of all inputs
  Nothing,   ///< there is no data: all wait for all
};
/// Of a collective.
Pattern pattern(Op op);
constexpr bool reduces(Pattern p) { return p <= Pattern::ReducedAtRoot; }
constexpr bool has_root(Pattern p) { return p == Pattern::ReducedAtRoot || p == Pattern::FromRoot; }

struct CollectiveAttributes {
  int64_t group;      ///< the engine's number of it
  int64_t size;       ///< processes in it
  int64_t rank;       ///< this process's number in it
  int64_t reduction;  ///< a Combine
  int64_t root;
  static constexpr auto fields() {
    return std::tuple{Field{"group", AttributeKind::Size, &CollectiveAttributes::group},
                      Field{"size", AttributeKind::Size, &CollectiveAttributes::size},
                      Field{"rank", AttributeKind::Size, &CollectiveAttributes::rank},
                      Field{"reduction", AttributeKind::Size, &CollectiveAttributes::reduction},
                      Field{"root", AttributeKind::Size, &CollectiveAttributes::root}};
  }
  Combine combine() const { return static_cast<Combine>(reduction); }
};

}  // namespace gradcell

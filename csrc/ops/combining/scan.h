// The family that combines, along an axis, each element with those before it.
#pragma once

#include "ir/spec.h"

namespace gradcell {

struct ScanAttributes {
  int64_t axis;
  bool exclusive;  ///< without the element itself
  bool reverse;    ///< with those after it
  static constexpr auto fields() {
    return std::tuple{Field{"axis", AttributeKind::Axis, &ScanAttributes::axis},
                      Field{"exclusive", AttributeKind::Flag, &ScanAttributes::exclusive},
                      Field{"reverse", AttributeKind::Flag, &ScanAttributes::reverse}};
  }
};

NodeId cumsum(Graph& g, NodeId x, const ScanAttributes& a);
NodeId cumprod(Graph& g, NodeId x, const ScanAttributes& a);

}  // namespace gradcell

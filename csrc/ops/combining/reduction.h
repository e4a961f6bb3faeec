// The family that combines what lies along axes, and that finds where the extremes are.
#pragma once

#include "ir/spec.h"

namespace gradcell {

struct ReduceAttributes {
  std::span<const int64_t> axes;
  static constexpr auto fields() {
    return std::tuple{Field{"axes", AttributeKind::Axes, &ReduceAttributes::axes}};
  }
};

/// Over sorted axes, which vanish from the shape.
NodeId reduce(Graph& g, Combine combine, NodeId x, std::span<const int64_t> axes);
inline NodeId sum(Graph& g, NodeId x, std::span<const int64_t> axes) {
  return reduce(g, Combine::Sum, x, axes);
}
/// Where along the axis the first Max or Min is (of NaN: the first), int32.
NodeId arg_reduce(Graph& g, Combine extreme, NodeId x, int axis);

inline bool is_sum(const Graph& g, NodeId id) {
  return form(g, id) == Form::Reduce && spec(g, id).combine == Combine::Sum;
}
/// A reduced tensor, spread out again over the shape that was reduced.
NodeId spread(Graph& g, NodeId reduced, const Dims& full, std::span<const int64_t> axes);

}  // namespace gradcell

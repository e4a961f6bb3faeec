// The family that reads and writes slices at indices that a run brings (int32 or int64; negative
// ones count from the end; others out of range fail the run).
#pragma once

#include "ir/spec.h"

namespace gradcell {

struct ScatterAttributes {
  int64_t axis, size;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", AttributeKind::Axis, &ScatterAttributes::axis},
                      Field{"size", AttributeKind::Size, &ScatterAttributes::size}};
  }
};

/// x's slices along `axis` at `indices` (any shape, which stands in place of axis).
NodeId gather(Graph& g, NodeId x, NodeId indices, int axis);
/// Whether an op's indices are labels of classes, of which none counts from the end.
bool are_labels(Op op);
/// Zeros with `updates` added at `indices` along `axis`, which has `size` places: gather's adjoint.
NodeId scatter_add(Graph& g, NodeId indices, NodeId updates, int axis, int64_t size);
/// For each of `size` places the last of the `indices` (counted in row-major order) that names it,
/// -1 where none does; int64. Writing in order leaves what these indices write.
NodeId last_writer(Graph& g, NodeId indices, int64_t size);

}  // namespace gradcell

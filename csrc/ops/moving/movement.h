// The family that moves elements: reshape, transpose, broadcast, slice, its adjoint, concatenation.
#pragma once

#include <optional>

#include "ir/spec.h"

namespace gradcell {

NodeId reshape(Graph& g, NodeId x, std::span<const int64_t> dims);
NodeId transpose(Graph& g, NodeId x, std::span<const int64_t> perm);
/// The order of the axes that a transpose says, of other nodes nothing.
std::optional<Dims> permutation(const Graph& g, NodeId id);
/// The order that puts transposed axes back.
Dims inverse(std::span<const int64_t> perm);
/// Axis `from` comes to stand at `to`; the others keep their order.
NodeId move_axis(Graph& g, NodeId x, size_t from, size_t to);
/// Axes k and k + 1 as one.
NodeId join_axes(Graph& g, NodeId x, size_t k);
/// As NumPy broadcasts.
NodeId broadcast_to(Graph& g, NodeId x, std::span<const int64_t> dims);
bool is_broadcast(const Graph& g, NodeId id);
/// The dimension of a broadcast's source that stands at axis i of its result; 1 where it has none.
int64_t source_dim(const Dims& from, const Dims& to, size_t i);

/// y[i] = x[start + i * step] in each dimension; a step may be negative.
struct SliceSpec {
  Dims start, size, step;
};
NodeId slice(Graph& g, NodeId x, const SliceSpec& spec);
/// Zeros of shape `dims` with x placed at start + i * step: the adjoint of slice.
NodeId slice_scatter(Graph& g, NodeId x, std::span<const int64_t> dims,
                     std::span<const int64_t> start, std::span<const int64_t> step);
/// A block that stands among zeros: at start + i * step of a tensor.
struct Placement {
  NodeId from;
  Dims start, step;
};
/// What a slice_scatter says, of other nodes nothing.
std::optional<Placement> placement(const Graph& g, NodeId id);
NodeId concat(Graph& g, std::span<const NodeId> xs, int axis);

/// The matrix that a transposition of its last two axes has transposed; kNoNode for others.
NodeId transposed_matrix(const Graph& g, NodeId id);

struct SliceAttributes {
  std::span<const int64_t> start, step;
  static constexpr auto fields() {
    return std::tuple{Field{"start", AttributeKind::Box, &SliceAttributes::start},
                      Field{"step", AttributeKind::Box, &SliceAttributes::step}};
  }
};

}  // namespace gradcell

// The family that looks for the largest element of windows, and reads and writes elements at the
// places that it found. The places are counted through the windowed dimensions, row-major.
#pragma once

#include "ops/combining/convolution.h"

namespace gradcell {

/// One number for each windowed dimension, which are a tensor's last. `size`: of the result.
struct WindowAttributes {
  std::span<const int64_t> kernel, stride, dilation, before, size;
  static constexpr auto fields() {
    using A = WindowAttributes;
    return std::tuple{Field{"kernel", AttributeKind::Box, &A::kernel},
                      Field{"stride", AttributeKind::Box, &A::stride},
                      Field{"dilation", AttributeKind::Box, &A::dilation},
                      Field{"before", AttributeKind::Box, &A::before},
                      Field{"size", AttributeKind::Box, &A::size}};
  }
};

/// y[r, i] = x[r, places[r, i]]; 0 where that is -1.
NodeId take_along(Graph& g, NodeId x, NodeId places);
/// Zeros [rows, size] with updates[r, i] added at [r, places[r, i]]; those at -1 are dropped.
NodeId put_along(Graph& g, NodeId places, NodeId updates, int64_t size);

/// Whether a node of windows says where the largest elements are, not what they are.
bool finds_places(Op op);

/// The windowed dimensions of an input of these dimensions.
std::vector<WindowAxis> window_axes(const Dims& input, const WindowAttributes& attributes);

}  // namespace gradcell

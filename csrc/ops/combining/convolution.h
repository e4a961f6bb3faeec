// The family of convolutions: the three partial derivatives of one trilinear form,
//
//   sum of y[n, o, p] w[o, c, u] x[n, c, q],  q = p * stride + u * dilation - before,
//
// over images n, channels o and c of one group, places p of the result and u of the kernel, and
// those q that lie in x. By y it is the convolution of x with w, by x that of y with w (the
// transposed one), by w the gradient of the weights; so each one's adjoints are the other two.
#pragma once

#include "ir/spec.h"

namespace gradcell {

/// One number for each windowed dimension, and `groups`. `size`: of the result. `last`: bits of the
/// operands, 1 and 2, and of the result, 4, whose channels come last, as a GPU's plan has them;
/// else they come second.
struct ConvolutionAttributes {
  std::span<const int64_t> stride, dilation, before, size;
  int64_t groups, last;
  static constexpr auto fields() {
    using A = ConvolutionAttributes;
    return std::tuple{Field{"stride", AttributeKind::Box, &A::stride},
                      Field{"dilation", AttributeKind::Box, &A::dilation},
                      Field{"before", AttributeKind::Box, &A::before},
                      Field{"size", AttributeKind::Box, &A::size},
                      Field{"groups", AttributeKind::Size, &A::groups},
                      Field{"last", AttributeKind::Size, &A::last}};
  }
};

/// Which of the form's three tensors a node of the family is.
enum class ConvolutionPart : uint8_t { Output, Input, Weight };
ConvolutionPart convolution_part(Op op);

/// How windows lie along one dimension.
struct WindowAxis {
  int64_t input, kernel, output;  ///< sizes
  int64_t stride, dilation, before;
};

/// Which element of the input the window of result `place` reads by the kernel's element `tap`,
/// both counted along each axis; -1: it lies outside.
int64_t element_read(std::span<const WindowAxis> axes, const Dims& place, const Dims& tap);

struct ConvolutionSizes {
  int64_t images, groups;
  int64_t inputs, outputs;  ///< channels of a group
  std::vector<WindowAxis> axes;

  int64_t inner(int64_t WindowAxis::* size) const {
    int64_t n = 1;
    for (const WindowAxis& a : axes) n *= a.*size;
    return n;
  }
  /// Multiplications, at most.
  int64_t work() const {
    return images * groups * inputs * outputs * inner(&WindowAxis::output) *
           inner(&WindowAxis::kernel);
  }
};

/// Of a node with these inputs and this result.
ConvolutionSizes convolution_sizes(Op op, const Dims& a, const Dims& b, const Dims& out,
                                   const ConvolutionAttributes& attributes);

}  // namespace gradcell

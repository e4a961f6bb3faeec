// The family of discrete Fourier transforms: of pairs [..., n, ..., 2] along an axis, without a
// factor: y[k] is the sum over j of x[j] exp(-2 pi i j k / n), with + for the inverse.
#pragma once

#include "ir/spec.h"

namespace gradcell {

struct FourierAttributes {
  int64_t axis;
  bool inverse;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", AttributeKind::Axis, &FourierAttributes::axis},
                      Field{"inverse", AttributeKind::Flag, &FourierAttributes::inverse}};
  }
};

NodeId fourier(Graph& g, NodeId pairs, const FourierAttributes& a);

}  // namespace gradcell

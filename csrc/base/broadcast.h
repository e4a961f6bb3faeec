// NumPy's broadcasting of two shapes.
#pragma once

#include <optional>

#include "base/dims.h"

namespace gradcell {

/// The shape that both broadcast to; none if they do not.
inline std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return {};
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace gradcell

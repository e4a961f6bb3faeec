// Work on n things in parts, as many as pay for waking threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"

namespace gradcell {

/// body(begin, end) for parts of n things of `each` elements, on all threads.
template <class F>
void by_parts(int64_t n, int64_t each, F body) {
  if (n == 0) return;
  const int64_t parts = std::clamp<int64_t>(n * each / 16384, 1, std::min<int64_t>(n, 64));
  parallel_for(parts, [&](int p, int) { body(n * p / parts, n * (p + 1) / parts); });
}

}  // namespace gradcell

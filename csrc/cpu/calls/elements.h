// What calls on tensors of any dtype share: work split over the threads, and half types widened.
#pragma once

#include <algorithm>
#include <vector>

#include "base/element.h"
#include "base/thread_pool.h"
#include "cpu/calls/calls.h"
#include "cpu/kernels/combine.h"

namespace gradcell::cpu {

/// Splits [0, n) into pieces worth a thread, if `work` elements in all are.
template <class F>
void split(int64_t n, int64_t work, F body) {
  int64_t pieces = std::min<int64_t>({n, work / 65536, 4 * max_threads()});
  if (pieces <= 1 || max_threads() == 1) return body(int64_t(0), n);
  parallel_for(pieces, [&](int p, int) { body(n * p / pieces, n * (p + 1) / pieces); });
}

/// A tensor of a half type as float32.
std::vector<float> widened(const TensorDesc& t, const void* p);

/// What sums and products of elements that compute as C are taken in: one rounding at the end.
template <class C>
using Accumulator = std::conditional_t<std::is_floating_point_v<C>, double, int64_t>;

}  // namespace gradcell::cpu

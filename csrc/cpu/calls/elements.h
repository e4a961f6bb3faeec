// What calls on tensors of any dtype share.
#pragma once

#include <algorithm>
#include <vector>

#include "base/element.h"
#include "base/parts.h"
#include "cpu/calls/calls.h"
#include "cpu/kernels/combine.h"

namespace gradcell::cpu {

/// A tensor of a half type as float32.
std::vector<float> widened(const TensorDesc& t, const void* p);

/// What sums and products of elements that compute as C are taken in: one rounding at the end.
template <class C>
using Accumulator = std::conditional_t<std::is_floating_point_v<C>, double, int64_t>;

}  // namespace gradcell::cpu

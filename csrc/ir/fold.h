// The forward functions of the op table on single numbers, for constant folding.
#pragma once

#include <bit>

#include "ir/graph.h"

namespace gradcell {

/// The result of an elementwise op on constants of `dtype`, as the bits of a constant of `out`.
uint64_t fold(Op op, DType dtype, DType out, std::span<const uint64_t> inputs);

/// `value` as a number of `dtype` would hold it (rounded, wrapped), as the bits of a constant.
uint64_t to_bits(DType dtype, double value);
uint64_t to_bits(DType dtype, int64_t value);
uint64_t convert_bits(DType from, DType to, uint64_t bits);

/// A constant's bits as a number.
template <class T>
T from_bits(DType dtype, uint64_t bits) {
  return is_floating(dtype) ? static_cast<T>(std::bit_cast<double>(bits))
                            : static_cast<T>(std::bit_cast<int64_t>(bits));
}

}  // namespace gradcell

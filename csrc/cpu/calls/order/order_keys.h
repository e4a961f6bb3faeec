// What tells which of two elements comes first: keys in the order of the numbers. For what
// puts elements in order or finds equal ones.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "base/element.h"
#include "base/parts.h"

namespace gradcell {

template <class T>
bool is_nan(T v) {
  return v != v;
}

/// An unsigned integer in the order of the numbers: all NaN one, and last; zeros one.
template <class T>
auto key_of(T v) {
  if constexpr (std::is_floating_point_v<T>) {
    using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr U kSign = U(1) << (8 * sizeof(T) - 1);
    if (is_nan(v)) return ~U(0);
    const U bits = std::bit_cast<U>(v + T(0));  // -0 + 0 is 0
    return bits & kSign ? static_cast<U>(~bits) : static_cast<U>(bits | kSign);
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>>(v);
  } else {
    using U = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
    using Wide = std::conditional_t<sizeof(T) <= 4, int32_t, int64_t>;
    return static_cast<U>(static_cast<U>(static_cast<Wide>(v)) ^ (U(1) << (8 * sizeof(U) - 1)));
  }
}

/// f(elements) of int32 or int64.
template <class F>
void with_positions(DType dtype, const void* elements, F f) {
  if (dtype == DType::Int32)
    f(static_cast<const int32_t*>(elements));
  else
    f(static_cast<const int64_t*>(elements));
}

}  // namespace gradcell

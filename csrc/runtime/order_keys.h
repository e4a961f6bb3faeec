// What tells which of two elements comes first: keys in the order of the numbers, and elements read
// as numbers. For the files of this folder that put elements in order or find equal ones.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "base/element.h"
#include "base/parts.h"
#include "runtime/storage.h"

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
    return static_cast<uint32_t>(v);
  } else {
    using U = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
    using Wide = std::conditional_t<sizeof(T) <= 4, int32_t, int64_t>;
    return static_cast<U>(static_cast<U>(static_cast<Wide>(v)) ^ (U(1) << (8 * sizeof(U) - 1)));
  }
}

/// f(elements, a function that gives an element's number); of no complex numbers.
template <class F>
void with_numbers(const Array& x, F f) {
  by_dtype(x.dtype, [&]<class S>() {
    using Number = typename ComputeOf<S>::type;
    f(static_cast<const S*>(x.data()), [](S v) { return static_cast<Number>(v); });
  });
}

/// The same of numbers that have a key.
template <class F>
void with_ordered(const Array& x, F f) {
  if (is_complex(x.dtype) || x.dtype == DType::UInt64)
    fail(ErrorKind::Type, "elements of ", name(x.dtype), " are not put in order: cast them first");
  with_numbers(x, f);
}

/// f(elements) of a tensor of int32 or int64.
template <class F>
void with_positions(const Array& x, F f) {
  if (x.dtype == DType::Int32)
    f(static_cast<int32_t*>(x.data()));
  else
    f(static_cast<int64_t*>(x.data()));
}

}  // namespace gradcell

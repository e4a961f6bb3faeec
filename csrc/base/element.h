// Elements as they are stored: their C++ types, by dtype.
#pragma once

#include <array>
#include <type_traits>

#include "base/error.h"
#include "base/half.h"
#include "base/types.h"

namespace gradcell {

struct F16 {
  uint16_t bits;
  explicit F16(float f) : bits(float_to_half(f)) {}
  operator float() const { return half_to_float(bits); }
};
struct BF16 {
  uint16_t bits;
  explicit BF16(float f) : bits(float_to_bfloat(f)) {}
  operator float() const { return bfloat_to_float(bits); }
};

/// What elements stored as S are computed in.
template <class S>
struct ComputeOf {
  using type = std::conditional_t<std::is_class_v<S>, float, S>;
};

/// f.operator()<storage type>().
template <class F>
void by_dtype(DType t, F f) {
  using Half = F16;
  using Bfloat = BF16;
  using Bool = uint8_t;
  switch (t) {
#define GRADCELL_X(Name, storage, ...) \
  case DType::Name:                    \
    return f.template operator()<storage>();
    GRADCELL_DTYPES(GRADCELL_X)
#undef GRADCELL_X
    default:
      fail(ErrorKind::Runtime, name(t), " in an engine");
  }
}

/// The same for what gives integers of one size the same bits, signed or not: sums and products.
template <class F>
void by_dtype_and_size(DType t, F f) {
  by_dtype(t, [&]<class S>() {
    if constexpr (std::is_unsigned_v<S>)
      f.template operator()<std::make_signed_t<S>>();
    else
      f.template operator()<S>();
  });
}

/// f.operator()<a type of that many bytes>(): for what only moves elements.
template <class F>
void by_size(size_t bytes, F f) {
  switch (bytes) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    case 16:
      return f.template operator()<std::array<uint64_t, 2>>();
    default:
      fail(ErrorKind::Runtime, "elements of ", bytes, " bytes");
  }
}

}  // namespace gradcell

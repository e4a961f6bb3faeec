// Elements as they are stored: their C++ types, by dtype.
#pragma once

#include <array>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/types.h"

namespace gradcell {

/// Whether S stores a narrow float.
template <class S>
inline constexpr bool kNarrowFloat = std::is_class_v<S>;

/// What elements stored as S are computed in.
template <class S>
struct ComputeOf {
  using type = std::conditional_t<kNarrowFloat<S>, float, S>;
};

/// f.operator()<storage type>().
template <class F>
void by_dtype(DType t, F f) {
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

/// The least number that a dtype has, or the largest.
template <class T>
T end_of(DType t, bool least) {
  T end{};
  by_dtype(t, [&]<class S>() {
    if constexpr (kNarrowFloat<S>)
      end = static_cast<T>(least ? -S::kLargest : S::kLargest);
    else
      end =
          static_cast<T>(least ? std::numeric_limits<S>::lowest() : std::numeric_limits<S>::max());
  });
  return end;
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

// What calls on tensors of any dtype share: element types, and work split over the threads.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/half.h"
#include "base/thread_pool.h"
#include "cpu/calls/calls.h"

namespace gradcell::cpu {

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
  }
}

/// f.operator()<unsigned type of that many bytes>(): for what only moves elements.
template <class F>
void by_size(size_t bytes, F f) {
  switch (bytes) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

/// Splits [0, n) into pieces worth a thread, if `work` elements in all are.
template <class F>
void split(int64_t n, int64_t work, F body) {
  int64_t pieces = std::min<int64_t>({n, work / 65536, 4 * max_threads()});
  if (pieces <= 1) return body(int64_t(0), n);
  parallel_for(static_cast<int>(pieces),
               [&](int p, int) { body(n * p / pieces, n * (p + 1) / pieces); });
}

/// A tensor of a half type as float32.
std::vector<float> widened(const TensorDesc& t, const void* p);

/// What sums and products of elements that compute as C are taken in: one rounding at the end.
template <class C>
using Accumulator = std::conditional_t<std::is_floating_point_v<C>, double, int64_t>;

/// NaN stays NaN.
template <Combine how, class T>
T combined(T a, T b) {
  if constexpr (how == Combine::Sum)
    return a + b;
  else if constexpr (how == Combine::Product)
    return a * b;
  else if constexpr (how == Combine::Max)
    return a > b || a != a ? a : b;
  else
    return a < b || a != a ? a : b;
}

/// f.operator()<how>().
template <class F>
void by_combine(Combine how, F f) {
  switch (how) {
    case Combine::Sum:
      return f.template operator()<Combine::Sum>();
    case Combine::Product:
      return f.template operator()<Combine::Product>();
    case Combine::Max:
      return f.template operator()<Combine::Max>();
    case Combine::Min:
      return f.template operator()<Combine::Min>();
  }
}

}  // namespace gradcell::cpu

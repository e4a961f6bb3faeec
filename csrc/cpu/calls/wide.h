// Elements as numbers of few types, in the same order: narrow integers as int32 or int64, half
// types as float. What only compares is compiled for these.
#pragma once

#include <type_traits>
#include <vector>

#include "base/element.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/kernels/whole_kernels.h"

namespace gradcell::cpu {

template <class T>
inline constexpr DType kWideType = std::is_same_v<T, float>      ? DType::Float32
                                   : std::is_same_v<T, double>   ? DType::Float64
                                   : std::is_same_v<T, int32_t>  ? DType::Int32
                                   : std::is_same_v<T, uint64_t> ? DType::UInt64
                                                                 : DType::Int64;

/// f.operator()<the type that elements of the dtype are compared in>().
template <class F>
void by_wide_dtype(DType t, F f) {
  if (t == DType::Float64) return f.template operator()<double>();
  if (is_floating(t)) return f.template operator()<float>();
  if (t == DType::UInt64) return f.template operator()<uint64_t>();
  if (t == DType::Int64 || t == DType::UInt32) return f.template operator()<int64_t>();
  f.template operator()<int32_t>();
}

/// Whether elements of S are compared in T.
template <class S, class T>
inline constexpr bool kComparedAs = std::is_same_v<
    T, std::conditional_t<std::is_class_v<S>, float,
                          std::conditional_t<std::is_same_v<S, uint32_t>, int64_t,
                                             std::conditional_t<sizeof(S) < 4, int32_t, S>>>>;

/// n elements as T: they themselves, or a copy.
template <class T>
class Wide {
 public:
  Wide(DType t, const void* elements, int64_t n) : data_(static_cast<const T*>(elements)) {
    if (t == kWideType<T>) return;
    const auto count = static_cast<size_t>(n);
    own_.resize(count);
    if constexpr (std::is_same_v<T, float>)
      tile_kernels().transpose.load(elements, t, own_.data(), count);
    else
      whole_kernels().convert(t, kWideType<T>, elements, own_.data(), count);
    data_ = own_.data();
  }
  const T* data() const { return data_; }

 private:
  std::vector<T> own_;
  const T* data_;
};

/// f(elements, results) in float, double, int32 or int64, of which narrower integers and half types
/// get copies. Integers may wrap.
template <class F>
void in_wide_type(DType t, const void* elements, void* results, int64_t n, F f) {
  t = as_signed(t);
  by_wide_dtype(t, [&]<class T>() {
    if constexpr (!std::is_same_v<T, uint64_t>) {
      const Wide<T> wide(t, elements, n);
      if (t == kWideType<T>) return f(wide.data(), static_cast<T*>(results));
      const auto count = static_cast<size_t>(n);
      std::vector<T> found(count);
      f(wide.data(), found.data());
      if constexpr (std::is_same_v<T, float>)
        tile_kernels().transpose.store(found.data(), t, results, count);
      else
        whole_kernels().convert(kWideType<T>, t, found.data(), results, count);
    }
  });
}

}  // namespace gradcell::cpu

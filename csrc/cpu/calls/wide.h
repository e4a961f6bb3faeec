// Elements as numbers of few types, in the same order: narrow integers as int32 or int64, half
// types as float. What only compares is compiled for these.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>

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

/// n elements of a dtype as T, and back: narrow integers wrap, half types are rounded.
template <class T>
void widen(DType t, const void* elements, T* to, int64_t n) {
  const auto count = static_cast<size_t>(n);
  if constexpr (std::is_same_v<T, float>)
    tile_kernels().transpose.load(elements, t, to, count);
  else
    whole_kernels().convert(t, kWideType<T>, elements, to, count);
}
template <class T>
void narrow(const T* from, DType t, void* elements, int64_t n) {
  const auto count = static_cast<size_t>(n);
  if constexpr (std::is_same_v<T, float>)
    tile_kernels().transpose.store(from, t, elements, count);
  else
    whole_kernels().convert(kWideType<T>, t, from, elements, count);
}

/// n elements as T: they themselves, or a copy.
template <class T>
class Wide {
 public:
  Wide(DType t, const void* elements, int64_t n) : data_(static_cast<const T*>(elements)) {
    if (t == kWideType<T>) return;
    own_ = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(n));
    widen(t, elements, own_.get(), n);
    data_ = own_.get();
  }
  const T* data() const { return data_; }

 private:
  std::unique_ptr<T[]> own_;
  const T* data_;
};

/// f(elements, results, how many parts) for parts of `size` elements, in float, double, int32 or
/// int64; narrower integers, which may wrap, and half types get copies of some parts at a time.
template <class F>
void in_wide_type(DType t, const void* elements, void* results, int64_t parts, int64_t size, F f) {
  constexpr int64_t kMost = 1 << 16;  // elements that stay in the caches
  t = as_signed(t);
  by_wide_dtype(t, [&]<class T>() {
    if constexpr (!std::is_same_v<T, uint64_t>) {
      if (t == kWideType<T>)
        return f(static_cast<const T*>(elements), static_cast<T*>(results), parts);
      const int64_t most = std::clamp<int64_t>(kMost / size, 1, parts);
      const auto room = static_cast<size_t>(most * size);
      const auto wide = std::make_unique_for_overwrite<T[]>(room);
      const auto found = std::make_unique_for_overwrite<T[]>(room);
      const auto part_bytes = static_cast<size_t>(size) * item_size(t);
      for (int64_t first = 0; first < parts; first += most) {
        const int64_t many = std::min(most, parts - first);
        const size_t at = static_cast<size_t>(first) * part_bytes;
        widen(t, static_cast<const std::byte*>(elements) + at, wide.get(), many * size);
        f(static_cast<const T*>(wide.get()), found.get(), many);
        narrow(found.get(), t, static_cast<std::byte*>(results) + at, many * size);
      }
    }
  });
}

}  // namespace gradcell::cpu

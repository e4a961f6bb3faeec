// Elements as numbers of few types, in the same order: narrow integers as int32 or int64, half
// types as float. What compares, or adds one element after the other, is compiled for these.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "base/element.h"
#include "base/parts.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/kernels/whole_kernels.h"

namespace gradcell::cpu {

template <class T>
inline constexpr DType kWideType = std::is_same_v<T, float>      ? DType::Float32
                                   : std::is_same_v<T, double>   ? DType::Float64
                                   : std::is_same_v<T, int32_t>  ? DType::Int32
                                   : std::is_same_v<T, uint64_t> ? DType::UInt64
                                                                 : DType::Int64;

/// f.operator()<the type that elements of the dtype, which is not complex, are compared in>().
template <class F>
void by_wide_dtype(DType t, F f) {
  require(!is_complex(t), ErrorKind::Runtime, name(t), " where elements have an order");
  if (t == DType::Float64) return f.template operator()<double>();
  if (is_floating(t)) return f.template operator()<float>();
  if (t == DType::UInt64) return f.template operator()<uint64_t>();
  if (t == DType::Int64 || t == DType::UInt32) return f.template operator()<int64_t>();
  f.template operator()<int32_t>();
}

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
void store_wide(const T* from, DType t, void* elements, int64_t n) {
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
    data_ = own_.get();
    by_parts(n, 1, [&](int64_t begin, int64_t end) {
      const size_t at = static_cast<size_t>(begin) * item_size(t);
      widen(t, static_cast<const std::byte*>(elements) + at, own_.get() + begin, end - begin);
    });
  }
  const T* data() const { return data_; }

 private:
  std::unique_ptr<T[]> own_;
  const T* data_;
};

/// Room for n results of T: where they are wanted, or a copy from which finish() narrows them.
template <class T>
class WideResults {
 public:
  WideResults(DType t, void* results, int64_t n)
      : dtype_(t), results_(results), count_(n), data_(static_cast<T*>(results)) {
    if (t == kWideType<T>) return;
    own_ = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(n));
    data_ = own_.get();
  }
  T* data() const { return data_; }
  void finish() const {
    if (!own_) return;
    by_parts(count_, 1, [&](int64_t begin, int64_t end) {
      const size_t at = static_cast<size_t>(begin) * item_size(dtype_);
      store_wide(data_ + begin, dtype_, static_cast<std::byte*>(results_) + at, end - begin);
    });
  }

 private:
  DType dtype_;
  void* results_;
  int64_t count_;
  std::unique_ptr<T[]> own_;
  T* data_;
};

/// f(elements, the first part, how many) for parts of `size` elements in the type that they are
/// compared in; of narrower ones a copy of some parts at a time.
template <class F>
void by_wide_parts(DType t, const void* elements, int64_t parts, int64_t size, F f) {
  constexpr int64_t kMost = 1 << 16;  // elements that stay in the caches
  by_wide_dtype(t, [&]<class T>() {
    if (t == kWideType<T>) return f(static_cast<const T*>(elements), int64_t(0), parts);
    const int64_t most = std::clamp<int64_t>(kMost / size, 1, parts);
    const auto wide = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(most * size));
    const auto* from = static_cast<const std::byte*>(elements);
    const auto part_bytes = static_cast<size_t>(size) * item_size(t);
    for (int64_t first = 0; first < parts; first += most) {
      const int64_t many = std::min(most, parts - first);
      widen(t, from + static_cast<size_t>(first) * part_bytes, wide.get(), many * size);
      f(static_cast<const T*>(wide.get()), first, many);
    }
  });
}

/// f(elements, results of their type, how many parts) likewise; results are narrowed again.
template <class F>
void in_wide_type(DType t, const void* elements, void* results, int64_t parts, int64_t size, F f) {
  const auto part_bytes = static_cast<size_t>(size) * item_size(t);
  by_wide_parts(t, elements, parts, size, [&]<class T>(const T* x, int64_t first, int64_t many) {
    auto* const to = static_cast<std::byte*>(results) + static_cast<size_t>(first) * part_bytes;
    const WideResults<T> found(t, to, many * size);
    f(x, found.data(), many);
    found.finish();
  });
}

}  // namespace gradcell::cpu

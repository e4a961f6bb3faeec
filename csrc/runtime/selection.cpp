#include "runtime/selection.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/half.h"

namespace gradcell {

namespace {

template <class T>
bool is_nan(T v) {
  return v != v;
}

/// read(p, i): element i of the memory at p, as a type that compares.
template <class Read>
Array select(const Array& x, int64_t k, bool largest, bool sorted, Read read) {
  const int64_t n = x.dims.back(), rows = n ? x.count() / n : 0;
  Dims dims = x.dims;
  dims.back() = k;
  Array out = empty_array(DType::Int64, dims);
  auto* to = static_cast<int64_t*>(out.data());
  using Value = decltype(read(x.data(), 0));
  std::vector<Value> row(static_cast<size_t>(n));
  std::vector<int64_t> at(static_cast<size_t>(n));
  auto before = [&](int64_t i, int64_t j) {
    const Value a = row[i], b = row[j];
    if (largest) return a > b || (is_nan(a) && !is_nan(b));
    return a < b || (!is_nan(a) && is_nan(b));
  };
  // With ties by position the order is total, whatever selection does.
  auto in_order = [&](int64_t i, int64_t j) { return before(i, j) || (!before(j, i) && i < j); };
  for (int64_t r = 0; r < rows; ++r, to += k) {
    for (int64_t i = 0; i < n; ++i) row[i] = read(x.data(), r * n + i);
    std::iota(at.begin(), at.end(), 0);
    if (sorted) {
      std::nth_element(at.begin(), at.begin() + k, at.end(), in_order);
      std::sort(at.begin(), at.begin() + k, in_order);
    } else {
      std::nth_element(at.begin(), at.begin() + k, at.end(), before);
    }
    std::copy_n(at.begin(), k, to);
  }
  return out;
}

template <class T>
T plain(const void* p, int64_t i) {
  return static_cast<const T*>(p)[i];
}

}  // namespace

Array first_of_rows(const Array& x, int64_t k, bool largest, bool sorted) {
  auto with = [&](auto read) { return select(x, k, largest, sorted, read); };
  switch (x.dtype) {
    case DType::Bool:
    case DType::UInt8:
      return with(plain<uint8_t>);
    case DType::Int8:
      return with(plain<int8_t>);
    case DType::Int16:
      return with(plain<int16_t>);
    case DType::Int32:
      return with(plain<int32_t>);
    case DType::Int64:
      return with(plain<int64_t>);
    case DType::Float16:
      return with([](const void* p, int64_t i) { return half_to_float(plain<uint16_t>(p, i)); });
    case DType::BFloat16:
      return with([](const void* p, int64_t i) { return bfloat_to_float(plain<uint16_t>(p, i)); });
    case DType::Float32:
      return with(plain<float>);
    case DType::Float64:
      return with(plain<double>);
  }
  return {};
}

}  // namespace gradcell

// Shapes, and what is reckoned with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace gradcell {

using Dims = std::vector<int64_t>;

inline std::string to_string(std::span<const int64_t> dims) { return str(listed(dims)); }

/// A process has addresses for no more bytes. (So bytes of all dtypes can be counted too.)
inline constexpr int64_t kMostElements = int64_t(1) << 48;

/// Throws Memory, by the name of who makes the tensor, for more elements than can be addressed.
inline int64_t element_count(std::span<const int64_t> dims, std::string_view owner = {}) {
  int64_t n = 1;
  bool overflow = false;
  for (int64_t d : dims) overflow |= __builtin_mul_overflow(n, d, &n);
  overflow |= n > kMostElements;
  if (overflow && std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  require(!overflow, ErrorKind::Memory, owner, owner.empty() ? "" : ": ", "a tensor of shape ",
          listed(dims), " has more elements than can be addressed");
  return n;
}

/// The product of dimensions first, ..., last - 1.
inline int64_t product(std::span<const int64_t> dims, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t k = first; k < last; ++k) n *= dims[k];
  return n;
}

/// Elements between neighbours along each axis of a dense tensor.
inline Dims row_major(std::span<const int64_t> dims) {
  Dims s(dims.size(), 1);
  for (size_t k = dims.size(); k-- > 1;) s[k - 1] = s[k] * dims[k];
  return s;
}

inline bool contains(std::span<const int64_t> values, size_t value) {
  return std::find(values.begin(), values.end(), static_cast<int64_t>(value)) != values.end();
}

/// The dimensions (or strides) in `values` of the axes that are, or are not, among `axes`.
inline Dims pick(std::span<const int64_t> values, std::span<const int64_t> axes, bool among) {
  Dims out;
  for (size_t k = 0; k < values.size(); ++k)
    if (contains(axes, k) == among) out.push_back(values[k]);
  return out;
}

/// Calls f(linear index, multi-index) over a box.
template <class F>
void for_each_index(const Dims& dims, F f) {
  Dims at(dims.size(), 0);
  const int64_t n = element_count(dims);
  for (int64_t i = 0; i < n; ++i) {
    f(i, at);
    for (size_t k = dims.size(); k-- > 0;) {
      if (++at[k] < dims[k]) break;
      at[k] = 0;
    }
  }
}

}  // namespace gradcell

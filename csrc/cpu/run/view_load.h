// Elements of a tensor in memory that stand at equal distances, side by side in their compute type:
// how runners read a view that no loop reads where it lies.
#pragma once

#include <algorithm>
#include <cstring>

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/kernels/whole_kernels.h"

namespace gradcell::cpu {

/// Few bytes, most often a multiple of 4: a call of memcpy would cost as much again.
inline void copy_rows(const std::byte* from, std::byte* to, size_t bytes) {
  constexpr size_t kLong = 1024;  // by the library's widest moves
  if (bytes >= kLong) return std::memcpy(to, from, bytes), void();
  size_t at = 0;
  auto copy = [&](size_t n) { std::memcpy(to + at, from + at, n), at += n; };
  while (at + 64 <= bytes) copy(64);
  while (at + 16 <= bytes) copy(16);
  if (at + 8 <= bytes) copy(8);
  if (at + 4 <= bytes) copy(4);
  if (at < bytes) copy(bytes - at);
}

/// n elements, `step` apart.
inline void load_run(const std::byte* from, DType dtype, int64_t step, std::byte* to, size_t n) {
  const TileTranspose& t = tile_kernels().transpose;
  if (step == 1) {
    if (is_compute_type(dtype))
      copy_rows(from, to, n * item_size(dtype));
    else
      t.load(from, dtype, to, n);
  } else if (step == 0) {
    alignas(8) std::byte one[8];
    t.load(from, dtype, one, 1);
    LoopArgs fill;
    fill.d = to, fill.p[0] = one, fill.s[0] = 0, fill.features = 1;
    fill.rows = narrow<int32_t>(n);
    kernels().expand(compute_type(dtype), true)(fill);
  } else if (is_compute_type(dtype)) {
    whole_kernels().copy_apart(item_size(dtype), from, step, to, n);
  } else {
    const size_t item = item_size(dtype), size = compute_size(compute_type(dtype));
    for (size_t i = 0; i < n; ++i)
      t.load(from + static_cast<ptrdiff_t>(i) * step * static_cast<ptrdiff_t>(item), dtype,
             to + i * size, 1);
  }
}

/// f(place in the buffer, row, how many rows) for the runs of rows [first, first + count) of a view
/// that lie v.strides.back() elements apart. line: room for the view's dimensions.
template <class F>
void for_view_runs(const View& v, int64_t first, int64_t count, Dims& line, F f) {
  const int64_t length = v.dims.back(), step = v.strides.back();
  const size_t outer = v.dims.size() - 1;
  int64_t inside = first % length, at = v.offset;
  line.resize(outer);
  for (size_t k = outer, rest = static_cast<size_t>(first / length); k-- > 0;) {
    const auto n = static_cast<size_t>(v.dims[k]);
    line[k] = static_cast<int64_t>(rest % n);
    at += line[k] * v.strides[k];
    rest /= n;
  }
  for (int64_t row = 0; row < count; inside = 0) {
    const int64_t n = std::min(length - inside, count - row);
    f(at + inside * step, row, n);
    row += n;
    for (size_t k = outer; k-- > 0;) {  // the next line
      at += v.strides[k];
      if (++line[k] < v.dims[k]) break;
      at -= line[k] * v.strides[k];
      line[k] = 0;
    }
  }
}

}  // namespace gradcell::cpu

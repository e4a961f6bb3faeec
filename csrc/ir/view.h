// Movement, defined once: where the elements of a node that only moves elements come from and where
// they stand. The CPU's copies, row labels, tile programs, GPU fusion and kernels all read this.
#pragma once

#include <optional>

#include "base/dims.h"

namespace gradcell {

/// Element c of a box of `dims` is a tensor's element offset + sum of c[k] * strides[k].
struct View {
  Dims dims, strides;
  int64_t offset = 0;
};

/// A dense tensor as it lies.
inline View whole(const Dims& dims) { return {dims, row_major(dims), 0}; }

/// Whether several of its elements are one element of the tensor, as where strides are 0.
inline bool overlaps(const View& v) {
  if (element_count(v.dims) == 0) return false;
  for (size_t k = 0; k < v.dims.size(); ++k)
    if (v.dims[k] > 1 && v.strides[k] == 0) return true;
  return false;
}

/// Whether all elements that differ in the axes from `lead` on alone are one element.
inline bool is_row_one_element(const View& v, size_t lead) {
  for (size_t k = lead; k < v.dims.size(); ++k)
    if (v.dims[k] > 1 && v.strides[k] != 0) return false;
  return true;
}

/// The same elements, in order, in as few dimensions as there can be, at least one.
View merged(const View& v);

/// The same elements, in order, in other dimensions; none: no strides say where they are.
std::optional<View> reshaped(const View& v, const Dims& to);

/// Elements of one input: element c of the view stands at place[k] = start[k] + c[k] * step[k] of
/// the result, whose rank is the view's.
struct Piece {
  int input = 0;
  View from;
  Dims start, step;
};

/// A result that consists of pieces. They do not overlap; where there is none it is zero, if
/// `zeros`, and else there is no such place.
struct Movement {
  std::vector<Piece> pieces;
  bool zeros = false;
};

/// A movement that is a view of its one input: every place of the result reads an element.
inline bool is_view(const Movement& m) { return m.pieces.size() == 1 && !m.zeros; }

/// The movement that a view of input 0 is.
inline Movement moved(View v) {
  Dims start(v.dims.size(), 0), step(v.dims.size(), 1);
  return {{{0, std::move(v), std::move(start), std::move(step)}}, false};
}

/// How a piece's box lies in the result.
inline View placed(const Piece& p, const Dims& result) {
  View v{p.from.dims, row_major(result), 0};
  for (size_t k = 0; k < result.size(); ++k) {
    v.offset += p.start[k] * v.strides[k];
    v.strides[k] *= p.step[k];
  }
  return v;
}

/// What row r of the result needs of an input, rows being what the leading `lead` axes count.
enum class RowsOf : uint8_t {
  Same,  ///< only row r
  None,  ///< the same elements for every row
  Any,
};

/// Which axes count the rows of a tensor: the first `lead` and, of blocks of rows that lie side by
/// side, those from `trail` on. Those between count features.
struct RowAxes {
  size_t lead, trail;
};

/// For a tensor of that shape and `rows` rows in blocks of `block`.
inline RowAxes row_axes(const Dims& dims, int64_t rows, int64_t block) {
  RowAxes axes{0, dims.size()};
  for (int64_t n = 1; axes.trail > 0 && n < block;) n *= dims[--axes.trail];
  for (int64_t n = 1; axes.lead < axes.trail && n < rows / block;) n *= dims[axes.lead++];
  return axes;
}

/// For a result of `rows` rows in blocks, which `axes` count, and an input of `count` elements.
inline RowsOf rows_of(const Piece& p, const Dims& result, RowAxes axes, int64_t rows, int64_t block,
                      int64_t count) {
  bool same = count % rows == 0, none = true;
  auto whole = [&](size_t k) {
    return p.from.dims[k] == result[k] && p.start[k] == 0 && p.step[k] == 1;
  };
  // Axes [first, behind) all count rows, the last of which are `stride` elements apart.
  auto count_rows = [&](size_t first, size_t behind, int64_t stride) {
    bool all = true;
    for (size_t k = behind; k-- > first; stride *= result[k]) {
      all &= whole(k);
      if (result[k] == 1) continue;
      same &= p.from.strides[k] == stride;
      none &= p.from.strides[k] == 0;
    }
    return all;
  };
  const int64_t stride = count / rows * block;
  for (size_t k = axes.lead; k < axes.trail && block > 1; ++k)
    same &= p.from.dims[k] == 1 || p.from.strides[k] % block == 0;
  // (The rest of a row lies within it, as all does.)
  if (p.from.offset >= stride || p.from.offset % block != 0) same = false;
  if (!count_rows(axes.trail, result.size(), 1) || !count_rows(0, axes.lead, stride))
    return RowsOf::Any;
  return same ? RowsOf::Same : none ? RowsOf::None : RowsOf::Any;
}

/// For rows that the first `lead` axes count.
inline RowsOf rows_of(const Piece& p, const Dims& result, size_t lead, int64_t rows,
                      int64_t count) {
  return rows_of(p, result, {lead, result.size()}, rows, 1, count);
}

}  // namespace gradcell

// What orders the elements of rows: the first k by size, all of them, the best so far. In: a tensor
// with a value; out: positions. Rows are along the last dimension; NaN counts as larger than any
// number, and zeros of both signs are equal.
#pragma once

#include <utility>

#include "runtime/storage.h"

namespace gradcell {

/// The positions of the k largest (or smallest) elements of each row, int64 [..., k].
///
/// sorted: in order, of equal elements the first first. If not, in the order in which selection
/// leaves them (std::nth_element over positions, as MindSpore's CPU kernel has it).
Array first_of_rows(const Array& x, int64_t k, bool largest, bool sorted);

/// The positions of all elements of each row in ascending order, of equal ones the first first, or
/// in descending order: int32 or int64, x's shape.
Array order_of_rows(const Array& x, bool descending, DType position);

/// For each element of x how many of a line of doubles in ascending order come before it; `right`:
/// or are equal to it. int32 or int64. x: not int64, whose elements a double may not hold.
Array places_in_line(const Array& line, const Array& x, bool right, DType place);

/// The smallest and the largest of integers; {0, -1} of none.
std::pair<int64_t, int64_t> bounds(const Array& x);

/// (The largest (or smallest) element up to each along an axis, of equal ones the last; its
/// position, int32 or int64): x's shape. A NaN stays the best until the next one.
std::pair<Array, Array> running_extremes(const Array& x, int64_t axis, bool largest, DType place);

}  // namespace gradcell

// Which elements occur in a tensor with a value, where, and how often. NaN is one number where
// occurrences are found, zeros of both signs are one.
#pragma once

#include <utility>

#include "runtime/storage.h"

namespace gradcell {

/// (The positions of the first occurrences of x's different elements, in order, int64; for each
/// element the place of its number among those, `place`: int32 or int64, x's shape.)
std::pair<Array, Array> first_occurrences(const Array& x, DType place);

/// (The positions of the elements that differ from the one before, and 0, int64; those elements.) A
/// NaN differs from every number.
std::pair<Array, Array> runs(const Array& x);

/// How often each number from 0 to length - 1 is among integers that are no others, float32
/// [length].
Array counts_of(const Array& x, int64_t length);

/// How many elements lie in each interval [edges[i], edges[i + 1]), the last one closed; what lies
/// in none does not count. edges: float64, in ascending order; x: not int64, whose elements a
/// double may not hold. int64.
Array counts_between(const Array& x, const Array& edges);

/// Whether each element of x is among `tests`, of x's dtype, NaN among none; bool, x's shape.
Array among(const Array& x, const Array& tests);

/// For rows [n, m] the largest (or smallest) element of each column among the rows of one segment,
/// of equal ones the first, and its row: (elements, int64) [count, m]; where a segment has no row,
/// `none`, one element, and -1. ids: int32 or int64 [n]; those below 0 count nowhere. A NaN stays
/// if it comes first, and else is passed over. Throws Index for an id that is not below count.
std::pair<Array, Array> segment_extremes(const Array& rows, const Array& ids, const Array& none,
                                         int64_t count, bool largest);

}  // namespace gradcell

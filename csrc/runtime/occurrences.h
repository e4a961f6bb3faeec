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

/// The smallest and the largest of integers; {0, -1} of none.
std::pair<int64_t, int64_t> bounds(const Array& x);

}  // namespace gradcell

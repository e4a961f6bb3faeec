// The first k of each row of a tensor, by size. In: a tensor with a value; out: positions.
#pragma once

#include "runtime/storage.h"

namespace gradcell {

/// The positions of the k largest (or smallest) elements of each row, int64 [..., k]; rows are
/// along the last dimension. NaN counts as larger than any number.
///
/// sorted: in order, of equal elements the first first. If not, in the order in which selection
/// leaves them (std::nth_element over positions, as MindSpore's CPU kernel has it).
Array first_of_rows(const Array& x, int64_t k, bool largest, bool sorted);

}  // namespace gradcell

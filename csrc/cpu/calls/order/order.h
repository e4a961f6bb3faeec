#pragma once

#include <cstdint>

#include "base/types.h"

namespace gradcell::cpu {

/// The places of all elements of each row in ascending order, of equal ones the first first, or in
/// descending order. Rows shorter than 2^31, of no complex numbers.
void order_of_rows(DType dtype, const void* x, int64_t rows, int64_t length, bool descending,
                   int32_t* out);

}  // namespace gradcell::cpu

// What integers are permitted, outside of plans too.
#pragma once

#include "base/types.h"
#include "ops/moving/order.h"

namespace gradcell::cpu {

/// Whether an op may take all of n integers of a dtype.
bool all_permitted(DType dtype, const void* integers, int64_t n, IntegerLimit limit);

}  // namespace gradcell::cpu

// Products of half-precision matrices by the processor's matrix unit (AMX), where it has one.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace gradcell::cpu {

/// Whether this machine has the unit, the system lets the process use it, and GRADCELL_ISA does not
/// ask for a level below v4. Asked for once.
bool has_half_products();

/// c[m, n] = a[m, k] x b[k, n] of bfloat16 patterns, row-major and dense; a flag says that the
/// operand is stored transposed. Sums are in float32, each by one thread in the order of k, and are
/// rounded once to `made`, which may be float32. The unit takes denormal inputs and makes denormal
/// sums (below 2^-126) zero. Needs has_half_products().
void bf16_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                  const uint16_t* a, const uint16_t* b, DType made, void* c);

/// The same of float16 patterns, each cut into two bfloat16 numbers whose sum it is: four products,
/// all of them exact. False, and c as it was, if a number is not finite, which has no such parts.
bool f16_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                 const uint16_t* a, const uint16_t* b, DType made, void* c);

}  // namespace gradcell::cpu

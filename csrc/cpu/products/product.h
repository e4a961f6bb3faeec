// Products of whole matrices: by the micro-kernel of the tiles where they fill its blocks, by the
// BLAS otherwise, and below AVX-512 where they are large.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace gradcell::cpu {

/// c[m, n] = a[m, k] x b[k, n], row-major and dense; a flag says that the operand is stored
/// transposed; float or double. Runs on all threads; the result does not depend on their number.
/// Of a matrix and itself transposed half is computed, and mirrored.
/// Throws Memory, and Runtime if the BLAS is needed and cannot be opened.
template <class T>
void matrix_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a,
                    const T* b, T* c);

/// The same of a half type's patterns, `type`, summed up in float32 and rounded once to `made`,
/// that type or float32: bfloat16 by pairs where the processor multiplies them (pair_kernels.h),
/// else widened where they are packed.
void half_matrix_product(DType type, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                         int64_t k, const uint16_t* a, const uint16_t* b, DType made, void* c);

}  // namespace gradcell::cpu

// Products of matrices with vectors, which read each element once, and of small matrices: a table
// for each instruction-set level. float or double; sums are taken in lanes, in an order that the
// sizes decide.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace gradcell::cpu {

/// Products of matrices with at most so many rows and columns take less time than as many calls of
/// the BLAS library.
struct SmallProduct {
  static constexpr int64_t kRows = 32, kColumns = 16, kTerms = 32;
  static bool fits(int64_t m, int64_t n, int64_t k) {
    return m <= kRows && n <= kColumns && k <= kTerms;
  }
  bool transpose_a, transpose_b;
  int m, n, k;
};

struct VectorKernels {
  /// y[r] = sum over j < n of a[r * stride + j] * x[r * x_stride + j].
  void (*dots)(DType type, const void* a, ptrdiff_t stride, size_t rows, const void* x,
               ptrdiff_t x_stride, size_t n, void* y);
  /// The same of floats in double, where no product of two floats overflows or is too small.
  void (*wide_dots)(const float* a, ptrdiff_t stride, size_t rows, const float* x,
                    ptrdiff_t x_stride, size_t n, double* y);
  /// y[j] += sum over r of x[r] * a[r * stride + j], j < n.
  void (*add_rows)(DType type, const void* a, ptrdiff_t stride, size_t rows, const void* x,
                   size_t n, void* y);
  /// c[batch, m, n] = a[batch, m, k] x b[batch, k, n].
  void (*small_products)(DType type, const SmallProduct& p, size_t batch, const void* a,
                         const void* b, void* c);
};

const VectorKernels& vector_kernels();

}  // namespace gradcell::cpu

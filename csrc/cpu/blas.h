// OpenBLAS, opened at run time: the scipy-openblas32 wheel's library, or what GRADCELL_BLAS names.
// It runs on one thread; large products are split over gradcell's own pool.
#pragma once

#include <cstdint>
#include <string>

namespace gradcell::cpu {

/// Where the library is. Must be called before the first product; the file is opened only then.
void set_blas_path(std::string path);

/// c[m, n] = a[m, k] x b[k, n], row-major and dense; a flag says that the operand is stored
/// transposed. Throws Runtime if the library cannot be opened.
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a,
          const float* b, float* c);
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const double* a,
          const double* b, double* c);

}  // namespace gradcell::cpu

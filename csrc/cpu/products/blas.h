// OpenBLAS, opened at run time: the scipy-openblas32 wheel's library, or what GRADCELL_BLAS names.
// It runs on one thread; large products are split over gradcell's own pool. Others, as NumPy, may
// use the library that GRADCELL_BLAS names: it has their number of threads again after each call.
#pragma once

#include <cstdint>
#include <string>

namespace gradcell::cpu {

/// Where the library is. Must be called before the first product; the file is opened only then.
void set_blas_path(std::string path);

/// A function of the library, with or without scipy's prefix. Throws Runtime if there is none.
void* blas_symbol(const char* name);

/// While one of these lives the library runs on one thread.
class OneBlasThread {
 public:
  OneBlasThread();
  ~OneBlasThread();
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;
};

/// c[m, n] = a[m, k] x b[k, n], row-major and dense; a flag says that the operand is stored
/// transposed; float or double. Throws Runtime if the library cannot be opened.
template <class T>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a,
          const T* b, T* c);

/// The upper triangle of c[n, n], a' a of a[k, n] (transposed), or a a' of a[n, k], likewise.
template <class T>
void gram(bool transposed, int64_t n, int64_t k, const T* a, T* c);

}  // namespace gradcell::cpu

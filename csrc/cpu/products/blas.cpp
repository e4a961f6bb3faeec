#include "cpu/products/blas.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/thread_pool.h"

namespace gradcell::cpu {

namespace {

template <class T>
using Gemm = void (*)(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);

struct Library {
  void* handle = nullptr;
  Gemm<float> sgemm = nullptr;
  Gemm<double> dgemm = nullptr;
};

std::string& path() {
  static std::string p;
  return p;
}

void* symbol(void* handle, const char* name) {
  for (std::string prefix : {"scipy_", ""})
    if (void* s = dlsym(handle, (prefix + name).c_str())) return s;
  return nullptr;
}

Library open_library() {
  const char* named = std::getenv("GRADCELL_BLAS");
  std::string file = named ? named : path();
  require(!file.empty(), ErrorKind::Runtime,
          "no BLAS library: install scipy-openblas32, or name a libopenblas in GRADCELL_BLAS");
  // The handle stays open for the life of the process.
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    fail(ErrorKind::Runtime, "cannot open the BLAS library: ", why ? why : file.c_str());
  }
  Library lib;
  lib.handle = handle;
  lib.sgemm = reinterpret_cast<Gemm<float>>(symbol(handle, "cblas_sgemm"));
  lib.dgemm = reinterpret_cast<Gemm<double>>(symbol(handle, "cblas_dgemm"));
  require(lib.sgemm && lib.dgemm, ErrorKind::Runtime, file, " has no cblas_sgemm or cblas_dgemm");
  if (auto threads = reinterpret_cast<void (*)(int)>(symbol(handle, "openblas_set_num_threads")))
    threads(1);
  return lib;
}

const Library& library() {
  static const Library lib = open_library();
  return lib;
}

}  // namespace

void set_blas_path(std::string p) { path() = std::move(p); }

void* blas_symbol(const char* name) {
  void* found = symbol(library().handle, name);
  require(found, ErrorKind::Runtime, "the BLAS library has no ", name,
          ": matrices are factorised by its LAPACK, as that of scipy-openblas32");
  return found;
}

template <class T>
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  if (m == 0 || n == 0) return;
  if (k == 0) return void(std::memset(c, 0, static_cast<size_t>(m * n) * sizeof(T)));
  constexpr int64_t kLimit = std::numeric_limits<int>::max();
  require(m <= kLimit && n <= kLimit && k <= kLimit, ErrorKind::Value,
          "a matrix product: a dimension is larger than the BLAS can address");
  const Gemm<T> cblas = [] {
    if constexpr (std::is_same_v<T, float>)
      return library().sgemm;
    else
      return library().dgemm;
  }();
  auto lda = static_cast<int>(ta ? m : k), ldb = static_cast<int>(tb ? k : n);
  // Each task gets a slab of rows of c that is worth waking a thread for. An element must be summed
  // alike whichever slab it is in. So slabs begin at multiples of the BLAS's own blocks, none is
  // narrower than one (a single row would be a product with a vector), and none has less than half
  // of kSlabFlops (up to 2e6 the BLAS may take its way for small products). Columns are not split:
  // some of the BLAS's kernels sum those at the edge of their vectors in another order.
  constexpr int64_t kBlock = 48;
  constexpr double kSlabFlops = 8e6;
  double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  int64_t blocks = std::max<int64_t>(1, m / kBlock);
  int64_t slabs = std::clamp<int64_t>(static_cast<int64_t>(flops / kSlabFlops), 1, blocks);
  slabs = std::min<int64_t>(slabs, max_threads());
  auto begin = [&](int64_t s) { return s == slabs ? m : blocks * s / slabs * kBlock; };
  auto slab = [&](int s, int) {
    int64_t at = begin(s);
    auto size = static_cast<int>(begin(s + 1) - at);
    cblas(101, ta ? 112 : 111, tb ? 112 : 111, size, static_cast<int>(n), static_cast<int>(k), T(1),
          ta ? a + at : a + at * lda, lda, b, ldb, T(0), c + at * n, static_cast<int>(n));
  };
  parallel_for(static_cast<int>(slabs), slab);
}

template void gemm(bool, bool, int64_t, int64_t, int64_t, const float*, const float*, float*);
template void gemm(bool, bool, int64_t, int64_t, int64_t, const double*, const double*, double*);

}  // namespace gradcell::cpu

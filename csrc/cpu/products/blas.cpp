#include "cpu/products/blas.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <type_traits>

#include "base/error.h"
#include "base/system/system.h"
#include "base/thread_pool.h"

namespace gradcell::cpu {

namespace {

template <class T>
using Gemm = void (*)(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);

template <class T>
using Syrk = void (*)(int, int, int, int, int, T, const T*, int, T, T*, int);

template <class T>
struct Products {
  Gemm<T> gemm = nullptr;
  Syrk<T> syrk = nullptr;
};

struct Library {
  void* handle = nullptr;
  Products<float> f32;
  Products<double> f64;
  int (*threads)() = nullptr;  ///< both null: it is nobody else's, or has one thread
  void (*set_threads)(int) = nullptr;
  template <class T>
  const Products<T>& of() const {
    if constexpr (std::is_same_v<T, float>)
      return f32;
    else
      return f64;
  }
};

constexpr int kRowMajor = 101, kAsItIs = 111, kTransposed = 112, kUpper = 121;

std::string& path() {
  static std::string p;
  return p;
}

void* symbol(void* handle, const char* name) {
  for (std::string prefix : {"scipy_", ""})
    if (void* s = system::find_symbol(handle, (prefix + name).c_str())) return s;
  return nullptr;
}

Library open_library() {
  const char* named = std::getenv("GRADCELL_BLAS");
  std::string file = named ? named : path();
  require(!file.empty(), ErrorKind::Runtime,
          "no BLAS library: install scipy-openblas32, or name a libopenblas in GRADCELL_BLAS");
  // The handle stays open for the life of the process.
  void* handle = system::open_library(file);
  require(handle, ErrorKind::Runtime, "cannot open the BLAS library ", file, ": ",
          system::why_not_opened());
  Library lib;
  lib.handle = handle;
  auto find = [&]<class F>(const char* name, F& function) {
    function = reinterpret_cast<F>(symbol(handle, name));
    require(function, ErrorKind::Runtime, file, " has no ", name);
  };
  find("cblas_sgemm", lib.f32.gemm);
  find("cblas_dgemm", lib.f64.gemm);
  find("cblas_ssyrk", lib.f32.syrk);
  find("cblas_dsyrk", lib.f64.syrk);
  auto* const set = reinterpret_cast<void (*)(int)>(symbol(handle, "openblas_set_num_threads"));
  auto* const get = reinterpret_cast<int (*)()>(symbol(handle, "openblas_get_num_threads"));
  if (named && get)
    lib.threads = get, lib.set_threads = set;
  else if (set)
    set(1);
  return lib;
}

const Library& library() {
  static const Library lib = open_library();
  return lib;
}

std::mutex g_sharing;
int g_calls = 0, g_their_threads = 1;  ///< calls in progress; the number before the first of them

void addressable(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kLimit = std::numeric_limits<int>::max();
  require(m <= kLimit && n <= kLimit && k <= kLimit, ErrorKind::Value,
          "a matrix product: a dimension is larger than the BLAS can address");
}

}  // namespace

void set_blas_path(std::string p) { path() = std::move(p); }

void* blas_symbol(const char* name) {
  void* found = symbol(library().handle, name);
  require(found, ErrorKind::Runtime, "the BLAS library has no ", name,
          ": matrices are factorised by its LAPACK, as that of scipy-openblas32");
  return found;
}

OneBlasThread::OneBlasThread() {
  const Library& lib = library();
  if (!lib.set_threads) return;
  const std::lock_guard lock(g_sharing);
  if (g_calls++ > 0) return;
  g_their_threads = lib.threads();
  if (g_their_threads != 1) lib.set_threads(1);
}

OneBlasThread::~OneBlasThread() {
  const Library& lib = library();
  if (!lib.set_threads) return;
  const std::lock_guard lock(g_sharing);
  if (--g_calls == 0 && g_their_threads != 1) lib.set_threads(g_their_threads);
}

template <class T>
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  if (m == 0 || n == 0) return;
  if (k == 0) return void(std::memset(c, 0, static_cast<size_t>(m * n) * sizeof(T)));
  addressable(m, n, k);
  const Gemm<T> cblas = library().of<T>().gemm;
  const OneBlasThread alone;
  auto lda = narrow<int>(ta ? m : k), ldb = narrow<int>(tb ? k : n);
  // Each task gets a slab of rows of c that is worth waking a thread for. An element must be summed
  // alike whichever slab it is in. So slabs begin at multiples of the BLAS's own blocks, none is
  // narrower than one (a single row would be a product with a vector), and none has less than half
  // of kSlabFlops (up to 2e6 the BLAS may take its way for small products). Columns are not split:
  // some of the BLAS's kernels sum those at the edge of their vectors in another order.
  constexpr int64_t kBlock = 48;
  constexpr double kSlabFlops = 8e6;
  double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  int64_t blocks = std::max<int64_t>(1, m / kBlock);
  int64_t slabs = std::max<int64_t>(1, place_among(flops / kSlabFlops, blocks + 1));
  slabs = std::min<int64_t>(slabs, max_threads());
  auto begin = [&](int64_t s) { return s == slabs ? m : blocks * s / slabs * kBlock; };
  auto slab = [&](int s, int) {
    int64_t at = begin(s);
    auto size = narrow<int>(begin(s + 1) - at);
    cblas(kRowMajor, ta ? kTransposed : kAsItIs, tb ? kTransposed : kAsItIs, size, narrow<int>(n),
          narrow<int>(k), T(1), ta ? a + at : a + at * lda, lda, b, ldb, T(0), c + at * n,
          narrow<int>(n));
  };
  parallel_for(slabs, slab);
}

template <class T>
void gram(bool transposed, int64_t n, int64_t k, const T* a, T* c) {
  addressable(n, n, k);
  const Products<T>& cblas = library().of<T>();
  const auto ld = narrow<int>(transposed ? n : k), ldc = narrow<int>(n);
  const auto depth = narrow<int>(k);
  const OneBlasThread alone;
  const int left = transposed ? kTransposed : kAsItIs, right = transposed ? kAsItIs : kTransposed;
  // So many rows are a task, however many threads there are: their part of the diagonal, and what
  // is right of it. The longest and the shortest come in turn, so that shares are about equal.
  constexpr int64_t kRows = 240;
  const auto tasks = narrow<int>((n + kRows - 1) / kRows);
  parallel_for(tasks, [&](int task, int) {
    const int64_t row = (task % 2 ? tasks - 1 - task / 2 : task / 2) * kRows;
    const auto rows = narrow<int>(std::min(kRows, n - row));
    const auto rest = narrow<int>(n - row - rows);
    const T* const own = transposed ? a + row : a + row * ld;
    const T* const others = transposed ? own + rows : own + int64_t(rows) * ld;
    T* const to = c + row * n + row;
    cblas.syrk(kRowMajor, kUpper, left, rows, depth, T(1), own, ld, T(0), to, ldc);
    if (rest > 0)
      cblas.gemm(kRowMajor, left, right, rows, rest, depth, T(1), own, ld, others, ld, T(0),
                 to + rows, ldc);
  });
}

template void gemm(bool, bool, int64_t, int64_t, int64_t, const float*, const float*, float*);
template void gemm(bool, bool, int64_t, int64_t, int64_t, const double*, const double*, double*);
template void gram(bool, int64_t, int64_t, const float*, float*);
template void gram(bool, int64_t, int64_t, const double*, double*);

}  // namespace gradcell::cpu

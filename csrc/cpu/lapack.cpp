#include "cpu/lapack.h"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cpu/blas.h"

namespace gradcell::cpu {

namespace {

template <class T>
constexpr bool kComplex = !std::is_floating_point_v<T>;

template <class T>
T conjugate(const T& x) {
  if constexpr (kComplex<T>)
    return std::conj(x);
  else
    return x;
}

/// A routine of LAPACK, by its name without the letter of the type. Texts' lengths come behind all
/// arguments, as Fortran has it.
class Routine {
 public:
  template <class T>
  static Routine of(const char* name) {
    return Routine(blas_symbol((std::string(kComplex<T> ? "z" : "d") + name + "_").c_str()));
  }
  template <class... Args>
  void operator()(Args... args) const {
    using Function = void (*)(Args..., size_t, size_t, size_t, size_t);
    reinterpret_cast<Function>(at_)(args..., 1, 1, 1, 1);
  }

 private:
  explicit Routine(void* at) : at_(at) {}
  void* at_;
};

/// f(i) for each of so many matrices, on all threads if there is enough to do.
template <class F>
void each(int64_t count, int n, F f) {
  constexpr double kWorth = 1e5;  // multiplications
  const double work = static_cast<double>(count) * n * n * n;
  parallel_if(count > 1 && work > kWorth, static_cast<int>(count), [&](int i, int) { f(i); });
}

void succeeded(int info, const char* what) {
  require(info >= 0, ErrorKind::Runtime, "LAPACK: argument ", -info, " of ", what, " is wrong");
}

}  // namespace

template <class T>
void lu(int64_t count, int n, T* a, int32_t* pivots) {
  if (n == 0) return;
  const Routine getrf = Routine::of<T>("getrf");
  each(count, n, [&](int64_t i) {
    int info = 0;
    getrf(&n, &n, a + i * n * n, &n, pivots + i * n, &info);
    succeeded(info, "getrf");
  });
}

template <class T>
void lu_solve(bool transposed, int64_t count, int n, int k, const T* factors, const int32_t* pivots,
              T* b) {
  if (n == 0 || k == 0) return;
  const Routine getrs = Routine::of<T>("getrs");
  each(count, n, [&](int64_t i) {
    int info = 0;
    getrs(transposed ? "N" : "T", &n, &k, factors + i * n * n, &n, pivots + i * n, b + i * n * k,
          &n, &info);
    succeeded(info, "getrs");
  });
}

template <class T>
void lu_inverse(int64_t count, int n, T* factors, const int32_t* pivots) {
  if (n == 0) return;
  const Routine getri = Routine::of<T>("getri");
  each(count, n, [&](int64_t i) {
    int info = 0;
    const int size = 64 * n;
    std::vector<T> work(static_cast<size_t>(size));
    getri(&n, factors + i * n * n, &n, pivots + i * n, work.data(), &size, &info);
    succeeded(info, "getri");
  });
}

template <class T>
bool cholesky(int64_t count, int n, T* a) {
  if (n == 0) return true;
  std::atomic<bool> definite = true;
  const Routine potrf = Routine::of<T>("potrf");
  each(count, n, [&](int64_t i) {
    int info = 0;
    T* const l = a + i * n * n;
    potrf("U", &n, l, &n, &info);
    succeeded(info, "potrf");
    if (info > 0) definite = false;
    for (int r = 0; r < n; ++r) std::fill(l + r * n + r + 1, l + (r + 1) * n, T(0));
  });
  return definite;
}

template <class T>
void cholesky_solve(int64_t count, int n, int k, const T* factors, T* b) {
  if (n == 0 || k == 0) return;
  const Routine potrs = Routine::of<T>("potrs");
  each(count, n, [&](int64_t i) {
    int info = 0;
    T* const x = b + i * n * k;
    // LAPACK takes L for the factor of the conjugate matrix.
    auto turn = [&] {
      if constexpr (kComplex<T>) std::transform(x, x + n * k, x, conjugate<T>);
    };
    turn();
    potrs("U", &n, &k, factors + i * n * n, &n, x, &n, &info);
    succeeded(info, "potrs");
    turn();
  });
}

template <class T>
void cholesky_inverse(int64_t count, int n, T* factors) {
  if (n == 0) return;
  const Routine potri = Routine::of<T>("potri");
  each(count, n, [&](int64_t i) {
    int info = 0;
    T* const x = factors + i * n * n;
    potri("U", &n, x, &n, &info);
    succeeded(info, "potri");
    for (int r = 0; r < n; ++r)
      for (int c = 0; c < r; ++c) x[c * n + r] = conjugate(x[r * n + c]);
  });
}

namespace {

/// Columns that are reflected together, and that a task takes.
constexpr int kPanel = 32, kColumns = 64;

/// Blocks of reflectors H = I - V T V^H, as geqrf leaves them below a matrix's diagonal.
template <class T>
struct Reflectors {
  int m, k;
  const T* v;        ///< column-major, columns m apart
  std::vector<T> t;  ///< [block][kPanel][kPanel]
  Routine larft = Routine::of<T>("larft"), larfb = Routine::of<T>("larfb");

  T* block(int j) { return t.data() + static_cast<ptrdiff_t>(j / kPanel) * kPanel * kPanel; }

  void form(int j, int width, const T* tau) {
    const int rows = m - j, ld = kPanel;
    larft("F", "C", &rows, &width, v + static_cast<ptrdiff_t>(j) * m + j, &m, tau, block(j), &ld);
  }
  /// Columns of c, column-major and m apart, times the block at j, or its adjoint.
  void apply(bool adjoint, int j, T* c, int columns, T* work) {
    const int rows = m - j, width = std::min(kPanel, k - j), ld = kPanel;
    larfb("L", adjoint ? "C" : "N", "F", "C", &rows, &columns, &width,
          v + static_cast<ptrdiff_t>(j) * m + j, &m, block(j), &ld, c + j, &m, work, &columns);
  }
};

/// body(first, columns, work) for parts of columns [begin, end), on all threads. Which parts there
/// are does not depend on their number.
template <class T, class F>
void by_columns(int begin, int end, int rows, F body) {
  const int parts = (end - begin + kColumns - 1) / kColumns;
  const bool worth = static_cast<double>(end - begin) * rows * kPanel > 2e5;
  parallel_if(worth, parts, [&](int part, int) {
    T work[kColumns * kPanel];
    const int first = begin + part * kColumns;
    body(first, std::min(kColumns, end - first), work);
  });
}

template <class T>
void one_qr(int m, int n, int c, T* a, T* q, T* r) {
  const int k = std::min(m, n);
  Reflectors<T> h{m, k, a, std::vector<T>(static_cast<size_t>(k / kPanel + 1) * kPanel * kPanel)};
  const Routine geqr2 = Routine::of<T>("geqr2");
  T tau[kPanel], work[kPanel];
  auto column = [m](T* p, int j) { return p + static_cast<ptrdiff_t>(j) * m; };
  for (int j = 0; j < k; j += kPanel) {
    const int rows = m - j, width = std::min(kPanel, k - j);
    int info = 0;
    geqr2(&rows, &width, column(a, j) + j, &m, tau, work, &info);
    succeeded(info, "geqr2");
    h.form(j, width, tau);
    by_columns<T>(j + width, n, rows, [&](int first, int columns, T* own) {
      h.apply(true, j, column(a, first), columns, own);
    });
  }
  for (int i = 0; i < c; ++i)
    for (int j = 0; j < n; ++j)
      r[static_cast<ptrdiff_t>(i) * n + j] = i <= j ? column(a, j)[i] : T(0);
  // Column j of Q is what the blocks make of e_j; those behind j leave it as it is.
  std::fill_n(q, static_cast<ptrdiff_t>(c) * m, T(0));
  for (int j = 0; j < c; ++j) column(q, j)[j] = T(1);
  by_columns<T>(0, c, m, [&](int first, int columns, T* own) {
    const int last = std::min(first + columns, k) - 1;
    for (int j = last / kPanel * kPanel; last >= 0 && j >= 0; j -= kPanel)
      h.apply(false, j, column(q, first), columns, own);
  });
}

}  // namespace

template <class T>
void qr(int64_t count, int m, int n, int c, T* turned, T* q_turned, T* r) {
  if (m == 0 || std::max(n, c) == 0) return;
  each(count, std::max(m, n), [&](int64_t i) {
    one_qr(m, n, c, turned + i * m * n, q_turned + i * m * c, r + i * c * n);
  });
}

#define INSTANCES(T)                                                             \
  template void lu(int64_t, int, T*, int32_t*);                                  \
  template void lu_solve(bool, int64_t, int, int, const T*, const int32_t*, T*); \
  template void lu_inverse(int64_t, int, T*, const int32_t*);                    \
  template bool cholesky(int64_t, int, T*);                                      \
  template void cholesky_solve(int64_t, int, int, const T*, T*);                 \
  template void cholesky_inverse(int64_t, int, T*);                              \
  template void qr(int64_t, int, int, int, T*, T*, T*);
INSTANCES(double)
INSTANCES(std::complex<double>)
#undef INSTANCES

}  // namespace gradcell::cpu

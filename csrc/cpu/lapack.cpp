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
    for (int64_t r = 0; r < n; ++r) std::fill(l + r * n + r + 1, l + (r + 1) * n, T(0));
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
      if constexpr (kComplex<T>) std::transform(x, x + int64_t{n} * k, x, conjugate<T>);
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
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < r; ++c) x[c * n + r] = conjugate(x[r * n + c]);
  });
}

template <class T>
void qr(int64_t count, int m, int n, int c, T* turned, T* q_turned, T* r) {
  if (m == 0 || std::max(n, c) == 0) return;
  const int k = std::min(m, n);
  const Routine geqrf = Routine::of<T>("geqrf");
  const Routine orgqr = Routine::of<T>(kComplex<T> ? "ungqr" : "orgqr");
  each(count, std::max(m, n), [&](int64_t i) {
    int info = 0;
    const int size = 64 * std::max(n, c);
    std::vector<T> work(static_cast<size_t>(size)), tau(static_cast<size_t>(k));
    T *const a = turned + i * m * n, *const q = q_turned + i * m * c, *const to = r + i * c * n;
    if (n > 0) geqrf(&m, &n, a, &m, tau.data(), work.data(), &size, &info);
    succeeded(info, "geqrf");
    auto column = [m](T* p, int j) { return p + static_cast<ptrdiff_t>(j) * m; };
    for (int row = 0; row < c; ++row)
      for (int j = 0; j < n; ++j)
        to[static_cast<ptrdiff_t>(row) * n + j] = row <= j ? column(a, j)[row] : T(0);
    std::copy_n(a, static_cast<ptrdiff_t>(k) * m, q);  // what reflects
    std::fill(column(q, k), column(q, c), T(0));
    if (c > 0) orgqr(&m, &c, &k, q, &m, tau.data(), work.data(), &size, &info);
    succeeded(info, "orgqr");
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

#include "cpu/products/lapack.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/scratch.h"
#include "base/thread_pool.h"
#include "cpu/products/blas.h"

namespace gradcell::cpu {

namespace {

template <class T>
constexpr bool kComplex = !std::is_floating_point_v<T>;

template <class T>
using Real = decltype(std::abs(T()));

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
    const char* const letter = kComplex<T> ? "z" : std::is_same_v<T, float> ? "s" : "d";
    return Routine(blas_symbol((std::string(letter) + name + "_").c_str()));
  }
  template <class... Args>
  void operator()(Args... args) const {
    using Function = void (*)(Args..., size_t, size_t, size_t, size_t);
    const OneBlasThread alone;
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
  parallel_if(count > 1 && work > kWorth, count, [&](int i, int) { f(i); });
}

void succeeded(int info, const char* what) {
  require(info >= 0, ErrorKind::Runtime, "LAPACK: argument ", -info, " of ", what, " is wrong");
}

/// Columns that a task takes, and those whose reflections are made into one product. How many
/// threads there are changes neither, nor any number.
constexpr int kColumns = 64, kPanel = 32;

/// f(first, columns) for blocks of the columns from `begin` to `end`, the last ones first.
template <class F>
void each_block(bool worth, int begin, int end, F f, int most = kColumns) {
  const int blocks = (end - begin + most - 1) / most;
  parallel_if(worth && blocks > 1, std::max(blocks, 0), [&](int task, int) {
    const int first = begin + (blocks - 1 - task) * most;
    f(first, std::min(most, end - first));
  });
}

/// to[j][i] = from[i][j], rows that lie so many elements apart; some rows at a time, whose elements
/// are neighbours there.
template <class S, class T>
void turn(const S* from, ptrdiff_t apart, int rows, int columns, T* to, ptrdiff_t to_apart) {
  constexpr int kRows = 8;
  for (int first = 0; first < rows; first += kRows) {
    const int end = std::min(rows, first + kRows);
    for (int j = 0; j < columns; ++j)
      for (int i = first; i < end; ++i) to[j * to_apart + i] = static_cast<T>(from[i * apart + j]);
  }
}

/// A product Q of reflections of m numbers, which stand below the diagonal of v, [m, k] by columns:
/// I - V T V^H for one panel of columns after the other.
template <class T>
class Reflections {
 public:
  Reflections(int m, int k, const T* v, int stride)
      : m_(m), k_(k), v_(v), stride_(stride), t_(static_cast<size_t>(k + kPanel) * kPanel) {}

  /// The panel from column j on is there, with these factors.
  void add(int j, const T* tau) {
    const int rows = m_ - j, columns = width(j), triangle = kPanel;
    larft_("F", "C", &rows, &columns, at(j), &stride_, tau + j, factor(j), &triangle);
  }
  /// This panel's product, or its adjoint, times c[m, columns].
  void apply(int j, bool adjoint, T* c, int columns, int stride) const {
    T* const work = kept<T, Reflections>(int64_t{kColumns} * kPanel);
    const int rows = m_ - j, panel = width(j), triangle = kPanel;
    larfb_("L",
           !adjoint      ? "N"
           : kComplex<T> ? "C"
                         : "T",
           "F", "C", &rows, &columns, &panel, at(j), &stride_, factor(j), &triangle, c + j, &stride,
           work, &columns);
  }

 private:
  int width(int j) const { return std::min(kPanel, k_ - j); }
  const T* at(int j) const { return v_ + static_cast<ptrdiff_t>(j) * (stride_ + 1); }
  T* factor(int j) { return t_.data() + static_cast<ptrdiff_t>(j) * kPanel; }
  const T* factor(int j) const { return t_.data() + static_cast<ptrdiff_t>(j) * kPanel; }

  Routine larft_ = Routine::of<T>("larft"), larfb_ = Routine::of<T>("larfb");
  int m_, k_;
  const T* v_;
  int stride_;
  std::vector<T> t_;
};

/// Whether the columns of a matrix are worth waking threads for.
bool many(int rows, int columns) { return rows >= 96 && columns > kColumns; }

/// The eigenvalues d, ascending, and eigenvectors z[n, n] by columns of the tridiagonal matrix with
/// diagonal d and e beside it, whose largest element is about 1. Two halves are solved at the same
/// time, and joined as Cuppen's method has it. False: not found.
template <class R>
bool tridiagonal_eigen(int n, R* d, R* e, R* z) {
  constexpr int kHalved = 64;
  auto solve = [](int size, R* diagonal, R* beside, R* to, int stride) {
    const int work = 1 + 4 * size + size * size, integers = 3 + 5 * size;
    std::vector<R> own(static_cast<size_t>(work));
    std::vector<int> indices(static_cast<size_t>(integers));
    int info = 0;
    Routine::of<R>("stedc")("I", &size, diagonal, beside, to, &stride, own.data(), &work,
                            indices.data(), &integers, &info);
    succeeded(info, "stedc");
    return info == 0;
  };
  if (n < kHalved) return solve(n, d, e, z, n);
  const int half = n / 2;
  R between = e[half - 1];
  d[half - 1] -= std::abs(between), d[half] -= std::abs(between);
  std::fill_n(z, static_cast<ptrdiff_t>(n) * n, R(0));
  std::atomic<bool> found = true;
  parallel_for(2, [&](int part, int) {
    const ptrdiff_t from = part ? half : 0;
    if (!solve(part ? n - half : half, d + from, e + from, z + from * (n + 1), n)) found = false;
  });
  if (!found) return false;
  std::vector<int> order(static_cast<size_t>(n)), indices(4 * static_cast<size_t>(n));
  std::iota(order.begin(), order.begin() + half, 1);
  std::iota(order.begin() + half, order.end(), 1);
  std::vector<R> work(static_cast<size_t>(n) * (static_cast<size_t>(n) + 4));
  int info = 0;
  Routine::of<R>("laed1")(&n, d, z, &n, order.data(), &between, &half, work.data(), indices.data(),
                          &info);
  succeeded(info, "laed1");
  if (info > 0) return false;
  const std::vector<R> values(d, d + n);
  std::copy_n(z, static_cast<ptrdiff_t>(n) * n, work.data());
  for (int k = 0; k < n; ++k) {
    const int from = order[static_cast<size_t>(k)] - 1;
    d[k] = values[static_cast<size_t>(from)];
    std::copy_n(work.data() + static_cast<ptrdiff_t>(from) * n, n,
                z + static_cast<ptrdiff_t>(k) * n);
  }
  return true;
}

/// 2^k that brings the largest element of a matrix's lower triangle close to 1; 0 if there is an
/// infinity or a NaN among them.
template <class T>
Real<T> scale_of(int n, const T* a) {
  Real<T> most = 0;
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c <= r; ++c) {
      const Real<T> size =
          std::max(std::abs(std::real(a[r * n + c])), std::abs(std::imag(a[r * n + c])));
      if (!(size <= std::numeric_limits<Real<T>>::max())) return 0;
      most = std::max(most, size);
    }
  if (most == 0) return 1;
  constexpr int kLargest = std::numeric_limits<Real<T>>::max_exponent - 1;  // of a denormal number
  return std::ldexp(Real<T>(1), std::min(-std::ilogb(most), kLargest));
}

// Matrices so small that a call of LAPACK takes longer than the work. As getrf has it they lie by
// columns.

constexpr int kFewRows = 16;

template <class T>
Real<T> rough_size(const T& x) {
  return std::abs(std::real(x)) + std::abs(std::imag(x));
}

/// P L U by columns, with the largest of each column as pivot (Golub and Van Loan, 3.4).
template <class T>
void small_lu(int n, T* a, int32_t* pivots) {
  for (int k = 0; k < n; ++k) {
    T* const column = a + k * n;
    int best = k;
    for (int i = k + 1; i < n; ++i)
      if (rough_size(column[i]) > rough_size(column[best])) best = i;
    pivots[k] = best + 1;
    if (column[best] == T(0)) continue;
    if (best != k)
      for (int j = 0; j < n; ++j) std::swap(a[j * n + k], a[j * n + best]);
    if (const T by = T(1) / column[k]; std::isfinite(rough_size(by)))
      for (int i = k + 1; i < n; ++i) column[i] *= by;
    else  // the pivot is denormal
      for (int i = k + 1; i < n; ++i) column[i] /= column[k];
    for (int j = k + 1; j < n; ++j) {
      const T by = a[j * n + k];
      for (int i = k + 1; i < n; ++i) a[j * n + i] -= column[i] * by;
    }
  }
}

/// The same for a number of rows that is known: all numbers stay in registers, and the search for
/// pivots has no branches, which nothing could predict.
template <class T, int N>
void unrolled_lu(T* matrix, int32_t* pivots) {
  T a[N * N];
  std::copy_n(matrix, N * N, a);
#pragma GCC unroll 4
  for (int k = 0; k < N; ++k) {
    int best = k;
    Real<T> most = rough_size(a[k * N + k]);
#pragma GCC unroll 4
    for (int i = k + 1; i < N; ++i) {
      const Real<T> size = rough_size(a[k * N + i]);
      const bool larger = size > most;
      best = larger ? i : best;
      most = larger ? size : most;
    }
    pivots[k] = best + 1;
    if (most == 0) continue;
#pragma GCC unroll 4
    for (int i = k + 1; i < N; ++i)
      if (best == i)
#pragma GCC unroll 4
        for (int j = 0; j < N; ++j) std::swap(a[j * N + k], a[j * N + i]);
    const T by = T(1) / a[k * N + k];
    const bool denormal = !std::isfinite(rough_size(by));
#pragma GCC unroll 4
    for (int i = k + 1; i < N; ++i)
      a[k * N + i] = denormal ? a[k * N + i] / a[k * N + k] : a[k * N + i] * by;
#pragma GCC unroll 4
    for (int j = k + 1; j < N; ++j) {
      const T factor = a[j * N + k];
#pragma GCC unroll 4
      for (int i = k + 1; i < N; ++i) a[j * N + i] -= a[k * N + i] * factor;
    }
  }
  std::copy_n(a, N * N, matrix);
}

template <class T>
void few_rows_lu(int n, T* a, int32_t* pivots) {
  switch (n) {
    case 2:
      return unrolled_lu<T, 2>(a, pivots);
    case 3:
      return unrolled_lu<T, 3>(a, pivots);
    case 4:
      return unrolled_lu<T, 4>(a, pivots);
    default:
      return small_lu(n, a, pivots);
  }
}

/// b becomes x of P L U x = b.
template <class T>
void small_solve(int n, const T* f, const int32_t* pivots, T* b) {
  for (int k = 0; k < n; ++k) std::swap(b[k], b[pivots[k] - 1]);
  for (int k = 0; k < n; ++k)
    for (int i = k + 1; i < n; ++i) b[i] -= f[k * n + i] * b[k];
  for (int k = n; k-- > 0;) {
    b[k] /= f[k * n + k];
    for (int i = 0; i < k; ++i) b[i] -= f[k * n + i] * b[k];
  }
}

/// The same of the transposed matrix.
template <class T>
void small_solve_transposed(int n, const T* f, const int32_t* pivots, T* b) {
  for (int k = 0; k < n; ++k) {
    for (int i = 0; i < k; ++i) b[k] -= f[k * n + i] * b[i];
    b[k] /= f[k * n + k];
  }
  for (int k = n; k-- > 0;)
    for (int i = k + 1; i < n; ++i) b[k] -= f[k * n + i] * b[i];
  for (int k = n; k-- > 0;) std::swap(b[k], b[pivots[k] - 1]);
}

/// The factors become the inverse: as small_solve, of all columns at once, by rows. N: how many
/// rows, where that is known; else 0.
template <class T, int N = 0>
void small_inverse(int rows, T* f, const int32_t* pivots) {
  const int n = N > 0 ? N : rows;
  constexpr int kMost = N > 0 ? N : kFewRows;
  T x[kMost * kMost] = {};
  for (int k = 0; k < n; ++k) x[k * n + k] = T(1);
  for (int k = 0; k < n; ++k)
    if (const int other = pivots[k] - 1; other != k)
      std::swap_ranges(x + k * n, x + (k + 1) * n, x + other * n);
  const auto subtract = [&](int i, int k) {
    for (int c = 0; c < n; ++c) x[i * n + c] -= f[k * n + i] * x[k * n + c];
  };
  for (int k = 0; k < n; ++k)
    for (int i = k + 1; i < n; ++i) subtract(i, k);
  for (int k = n; k-- > 0;) {
    for (int c = 0; c < n; ++c) x[k * n + c] /= f[k * n + k];
    for (int i = 0; i < k; ++i) subtract(i, k);
  }
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < n; ++c) f[c * n + i] = x[i * n + c];
}

}  // namespace

template <class T>
void lu(int64_t count, int n, T* a, int32_t* pivots) {
  if (n <= kFewRows)
    return each(count, n, [&](int64_t i) { few_rows_lu(n, a + i * n * n, pivots + i * n); });
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
  if (n <= kFewRows)
    return each(count, n, [&](int64_t i) {
      for (int64_t row = i * k; row < (i + 1) * k; ++row)
        (transposed ? small_solve<T> : small_solve_transposed<T>)(n, factors + i * n * n,
                                                                  pivots + i * n, b + row * n);
    });
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
  if (n <= kFewRows)
    return each(count, n, [&](int64_t i) {
      (n == 3   ? small_inverse<T, 3>
       : n == 4 ? small_inverse<T, 4>
                : small_inverse<T>)(n, factors + i * n * n, pivots + i * n);
    });
  const Routine getri = Routine::of<T>("getri");
  each(count, n, [&](int64_t i) {
    int info = 0;
    const int size = 64 * n;
    std::vector<T> work(static_cast<size_t>(size));
    getri(&n, factors + i * n * n, &n, pivots + i * n, work.data(), &size, &info);
    succeeded(info, "getri");
  });
}

/// U of U^H U = a[n, n], by columns, over its upper triangle; what is below is not read, but may
/// change. A block of rows at a time, whose products with the columns behind it run on all threads.
/// False: not definite.
template <class T>
bool cholesky_in_blocks(int n, T* a) {
  constexpr int kBlock = 96;
  const Routine potrf = Routine::of<T>("potrf"), trsm = Routine::of<T>("trsm"),
                gemm = Routine::of<T>("gemm");
  const char* const adjoint = kComplex<T> ? "C" : "T";
  const T one = 1, less = -1;
  auto at = [&](int row, int column) { return a + int64_t{column} * n + row; };
  for (int j = 0; j < n; j += kBlock) {
    const int rows = std::min(kBlock, n - j), next = j + rows;
    int info = 0;
    potrf("U", &rows, at(j, j), &n, &info);
    succeeded(info, "potrf");
    if (info > 0) return false;
    auto solve = [&](int first, int columns) {
      trsm("L", "U", adjoint, "N", &rows, &columns, &one, at(j, j), &n, at(j, first), &n);
    };
    auto subtract = [&](int first, int columns) {
      const int above = first + columns - next;
      gemm(adjoint, "N", &above, &columns, &rows, &less, at(j, next), &n, at(j, first), &n, &one,
           at(next, first), &n);
    };
    each_block(true, next, n, solve, kBlock);
    each_block(true, next, n, subtract, kBlock);
  }
  return true;
}

template <class T>
bool cholesky(int64_t count, int n, T* a) {
  if (n == 0) return true;
  std::atomic<bool> definite = true;
  const Routine potrf = Routine::of<T>("potrf");
  constexpr int kWorth = 256;  // rows
  each(count, n, [&](int64_t i) {
    int info = 0;
    T* const l = a + i * n * n;
    if (n >= kWorth) {
      if (!cholesky_in_blocks(n, l)) definite = false;
    } else {
      potrf("U", &n, l, &n, &info);
      succeeded(info, "potrf");
      if (info > 0) definite = false;
    }
    for (int64_t r = 0; r < n; ++r) std::fill(l + r * n + r + 1, l + (r + 1) * n, T(0));
  });
  return definite;
}

template <class T>
void cholesky_solve(int64_t count, int n, int k, const T* factors, T* b) {
  if (n == 0 || k == 0) return;
  const Routine potrs = Routine::of<T>("potrs"), trsv = Routine::of<T>("trsv");
  constexpr int kFew =
      2;  // right sides for which packing the triangle takes longer than reading it
  each(count, n, [&](int64_t i) {
    int info = 0;
    T* const x = b + i * n * k;
    // LAPACK takes L for the factor of the conjugate matrix.
    auto turn = [&] {
      if constexpr (kComplex<T>) std::transform(x, x + int64_t{n} * k, x, conjugate<T>);
    };
    turn();
    const T* const u = factors + i * n * n;
    const int apart = 1;
    if (k <= kFew) {
      for (int c = 0; c < k; ++c)
        for (const char* side : {kComplex<T> ? "C" : "T", "N"})
          trsv("U", side, "N", &n, u, &n, x + int64_t{c} * n, &apart);
    } else {
      potrs("U", &n, &k, u, &n, x, &n, &info);
      succeeded(info, "potrs");
    }
    turn();
  });
}

template <class T>
void triangular_solve(bool adjoint, int n, int k, const T* l, T* b) {
  if (n == 0 || k == 0) return;
  constexpr int kFew = 16;  // rows of matrices for which a call takes longer than its work
  if (n <= kFew) {
    for (int row = 0; row < n; ++row) {
      const int i = adjoint ? n - 1 - row : row;
      T* const x = b + int64_t{i} * k;
      for (int done = 0; done < row; ++done) {
        const int j = adjoint ? n - 1 - done : done;
        const T factor = adjoint ? conjugate(l[j * n + i]) : l[i * n + j];
        for (int c = 0; c < k; ++c) x[c] -= factor * b[int64_t{j} * k + c];
      }
      const T pivot = adjoint ? conjugate(l[i * n + i]) : l[i * n + i];
      for (int c = 0; c < k; ++c) x[c] /= pivot;
    }
    return;
  }
  // BLAS has x^T and L^T for what lies here: x^T L^T = b^T, or x^T (L^T)^H = b^T.
  const Routine trsm = Routine::of<T>("trsm");
  const T one = 1;
  constexpr int kMany = 4 * kColumns;  // each call packs the triangle
  auto solve = [&](int first, int columns) {
    trsm("R", "U", adjoint ? "C" : "N", "N", &columns, &n, &one, l, &n, b + first, &k);
  };
  each_block(double(n) * n * k > 1e6, 0, k, solve, kMany);
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

template <class T, class S>
void qr(int64_t count, int m, int n, int c, const S* a, S* q, S* r) {
  if (m == 0 || std::max(n, c) == 0) return;
  const int k = std::min(m, n);
  const Routine geqr2 = Routine::of<T>("geqr2");
  each(count, std::max(m, n), [&](int64_t i) {
    const S* const from = a + i * m * n;
    S* const to_r = r + i * c * n;
    std::vector<T> w(static_cast<size_t>(m) * static_cast<size_t>(n)), tau(static_cast<size_t>(k));
    auto column = [m](T* p, int j) { return p + static_cast<ptrdiff_t>(j) * m; };
    const bool worth = many(m, n);
    each_block(worth, 0, n, [&](int first, int columns) {
      turn(from + first, n, m, columns, column(w.data(), first), m);
    });
    Reflections<T> reflections(m, k, w.data(), m);
    auto factor = [&](int j) {
      const int rows = m - j, panel = std::min(kPanel, k - j);
      T work[kPanel];
      int info = 0;
      geqr2(&rows, &panel, column(w.data(), j) + j, &m, tau.data() + j, work, &info);
      succeeded(info, "geqr2");
      reflections.add(j, tau.data());
    };
    factor(0);
    for (int j = 0; j < k; j += kPanel) {
      // The next panel first: while others are reduced, it is factored.
      const int next = std::min(k, j + kPanel), after = std::min(n, next + kPanel);
      if (next == n) break;
      const int others = (n - after + kColumns - 1) / kColumns;
      parallel_if(worth && others > 0, 1 + others, [&](int task, int) {
        const int first = task == 0 ? next : after + (task - 1) * kColumns;
        const int columns = task == 0 ? after - next : std::min(kColumns, n - first);
        reflections.apply(j, true, column(w.data(), first), columns, m);
        if (task == 0 && next < k) factor(next);
      });
    }
    each_block(worth, 0, n, [&](int first, int columns) {
      turn(column(w.data(), first), m, columns, c, to_r + first, n);
      for (int row = first + 1; row < c; ++row)
        std::fill_n(to_r + static_cast<ptrdiff_t>(row) * n + first, std::min(columns, row - first),
                    S(0));
    });
    if (!q) return;
    each_block(many(m, c), 0, c, [&](int first, int columns) {
      std::vector<T> block(static_cast<size_t>(columns) * static_cast<size_t>(m));
      for (int j = 0; j < columns; ++j) column(block.data(), j)[first + j] = T(1);
      for (int j = (std::min(k, first + columns) - 1) / kPanel * kPanel; j >= 0; j -= kPanel)
        reflections.apply(j, false, block.data(), columns, m);
      turn(block.data(), m, columns, m, q + i * m * c + first, c);
    });
  });
}

template <class T>
bool eigh(int64_t count, int n, const T* a, Real<T>* values, T* vectors) {
  if (n == 0) return true;
  using R = Real<T>;
  std::atomic<bool> found = true;
  const Routine trd = Routine::of<T>(kComplex<T> ? "hetrd" : "sytrd");
  const auto size = static_cast<size_t>(n);
  each(count, n, [&](int64_t i) {
    const T* const x = a + i * n * n;
    R* const d = values + i * n;
    T* const v = vectors + i * n * n;
    const R scale = scale_of(n, x);
    if (scale == 0) {
      std::fill_n(d, n, std::numeric_limits<R>::quiet_NaN());
      std::fill_n(v, static_cast<ptrdiff_t>(n) * n, T(std::numeric_limits<R>::quiet_NaN()));
      return;
    }
    // The lower triangle, by columns.
    std::vector<T> w(size * size), tau(size), work(64 * size);
    for (size_t r = 0; r < size; ++r)
      for (size_t c = 0; c <= r; ++c) w[c * size + r] = x[r * size + c] * scale;
    std::vector<R> e(size), z(size * size);
    int info = 0;
    const int room = 64 * n;
    trd("L", &n, w.data(), &n, d, e.data(), tau.data(), work.data(), &room, &info);
    succeeded(info, "sytrd");
    if (!tridiagonal_eigen(n, d, e.data(), z.data())) {
      found = false;
      return;
    }
    Reflections<T> reflections(n - 1, n - 1, w.data() + 1, n);
    const int panels = (n - 1 + kPanel - 1) / kPanel;
    for (int j = 0; j < panels; ++j) reflections.add(j * kPanel, tau.data());
    each_block(many(n, n), 0, n, [&](int first, int columns) {
      std::vector<T> block(z.begin() + static_cast<ptrdiff_t>(first) * n,
                           z.begin() + static_cast<ptrdiff_t>(first + columns) * n);
      for (int j = panels - 1; j >= 0; --j)
        reflections.apply(j * kPanel, false, block.data() + 1, columns, n);
      for (int r = 0; r < n; ++r)
        for (int c = 0; c < columns; ++c)
          v[static_cast<ptrdiff_t>(r) * n + first + c] =
              block[static_cast<size_t>(c) * size + static_cast<size_t>(r)];
    });
    for (int k = 0; k < n; ++k) d[k] /= scale;
  });
  return found;
}

template <class T>
bool svd(int m, int n, bool vectors, bool full, const T* a, double* values, T* u, T* v) {
  const int k = std::min(m, n), columns = full ? m : k;
  const int64_t size = int64_t{m} * n;
  auto is_finite = [](const T& x) {
    return std::isfinite(std::real(x)) && std::isfinite(std::imag(x));
  };
  if (!std::all_of(a, a + size, is_finite)) return false;
  if (k == 0) {
    auto unit = [](T* to, int order) {
      for (int64_t i = 0; i < int64_t{order} * order; ++i) to[i] = T(i % (order + 1) == 0);
    };
    if (vectors && full) unit(u, m), unit(v, n);
    return true;
  }
  // LAPACK takes the rows for columns, and so gives V^H's rows as U, and U's as V^H's.
  std::vector<T> copy(a, a + size);
  std::vector<int> integers(8 * static_cast<size_t>(k));
  const char* const job = !vectors ? "N" : full ? "A" : "S";
  const Routine gesdd = Routine::of<T>("gesdd");
  const size_t small = static_cast<size_t>(k), large = static_cast<size_t>(std::max(m, n));
  std::vector<double> reals(kComplex<T> ? std::max(5 * small * small + 5 * small,
                                                   2 * large * small + 2 * small * small + small)
                                        : 0);
  int info = 0;
  auto run = [&](T* work, int room) {
    const int lead_u = n, lead_v = std::max(1, columns);
    if constexpr (kComplex<T>)
      gesdd(job, &n, &m, copy.data(), &n, values, v, &lead_u, u, &lead_v, work, &room, reals.data(),
            integers.data(), &info);
    else
      gesdd(job, &n, &m, copy.data(), &n, values, v, &lead_u, u, &lead_v, work, &room,
            integers.data(), &info);
  };
  T wanted{};
  run(&wanted, -1);
  succeeded(info, "gesdd");
  const int room = narrow<int>(std::real(wanted));
  std::vector<T> work(static_cast<size_t>(room));
  run(work.data(), room);
  succeeded(info, "gesdd");
  return info == 0;
}

#define INSTANCES(T)                                                             \
  template void lu(int64_t, int, T*, int32_t*);                                  \
  template void lu_solve(bool, int64_t, int, int, const T*, const int32_t*, T*); \
  template void lu_inverse(int64_t, int, T*, const int32_t*);                    \
  template bool cholesky(int64_t, int, T*);                                      \
  template void cholesky_solve(int64_t, int, int, const T*, T*);                 \
  template void cholesky_inverse(int64_t, int, T*);                              \
  template void triangular_solve(bool, int, int, const T*, T*);                  \
  template void qr<T>(int64_t, int, int, int, const T*, T*, T*);                 \
  template bool eigh(int64_t, int, const T*, Real<T>*, T*);                      \
  template bool svd(int, int, bool, bool, const T*, double*, T*, T*);
INSTANCES(double)
INSTANCES(std::complex<double>)
#undef INSTANCES
template void triangular_solve(bool, int, int, const float*, float*);
template void qr<double>(int64_t, int, int, int, const float*, float*, float*);
template bool eigh(int64_t, int, const float*, float*, float*);

}  // namespace gradcell::cpu

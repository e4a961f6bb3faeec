// Factorisations of matrices and solutions, by LAPACK (cpu/products/lapack.h).
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "cpu/calls/routines.h"
#include "cpu/products/lapack.h"
#include "ir/attributes.h"
#include "ops/factorisation.h"

namespace gradcell::cpu {

namespace {

using Complex = std::complex<double>;

template <class T>
Complex conjugate(Complex x) {
  return std::conj(x);
}
template <class T>
double conjugate(double x) {
  return x;
}

/// The matrices of a tensor [..., rows, columns], or of pairs.
struct Matrices {
  int64_t count = 1;
  int rows, columns;
  Matrices(const TensorDesc& t, bool pairs) {
    const size_t lead = t.dims.size() - (pairs ? 3 : 2);
    for (size_t k = 0; k < lead; ++k) count *= t.dims[k];
    rows = narrow<int>(t.dims[lead]), columns = narrow<int>(t.dims[lead + 1]);
  }
  int64_t size() const { return int64_t{rows} * columns; }
};

template <class A>
A attributes_of(const Call& c) {
  return decode<A>(c.attributes);
}

/// f.operator()<T>() for what numbers are: pairs are complex.
template <class F>
void by_number(bool pairs, F f) {
  pairs ? f.template operator()<Complex>() : f.template operator()<double>();
}

template <class T>
const T* read(const void* p) {
  return static_cast<const T*>(p);
}
template <class T>
T* write(void* p) {
  return static_cast<T*>(p);
}

double cubed(int n) { return static_cast<double>(n) * n * n; }

/// to[columns][rows] = from[rows][columns], conjugated if asked for.
template <class T>
void turned(const T* from, int rows, int columns, bool conjugated, T* to) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const T x = from[r * columns + c];
      to[c * rows + r] = conjugated ? conjugate<T>(x) : x;
    }
}

/// The rows that a factorisation has exchanged, those of few rows without an allocation.
class Pivots {
 public:
  explicit Pivots(int n) {
    if (n > kFew) many_.resize(static_cast<size_t>(n));
  }
  int32_t* data() { return many_.empty() ? few_ : many_.data(); }
  const int32_t* data() const { return many_.empty() ? few_ : many_.data(); }

 private:
  static constexpr int kFew = 16;
  int32_t few_[kFew];
  std::vector<int32_t> many_;
};

void lu_factors(const Call& c, const void* const* in, void* out) {
  const bool pairs = attributes_of<FactorAttributes>(c).pairs;
  const Matrices a(c.in[0], pairs);
  const int n = a.rows;
  by_number(pairs, [&]<class T> {
    each_problem(a.count, cubed(n), [&](int64_t i) {
      T* const factors = write<T>(out) + i * (a.size() + n);
      std::copy_n(read<T>(in[0]) + i * a.size(), a.size(), factors);
      Pivots pivots(n);
      lu(1, n, factors, pivots.data());
      std::copy_n(pivots.data(), n, factors + a.size());
    });
  });
}

/// The factors of one matrix.
template <class T>
struct Factors {
  int n;
  const T* matrix;
  Pivots pivots;
  Factors(const void* in, int64_t i, int n)
      : n(n), matrix(read<T>(in) + i * (int64_t{n} + 1) * n), pivots(n) {
    const T* const rows = matrix + int64_t{n} * n;
    for (int k = 0; k < n; ++k) pivots.data()[k] = narrow<int32_t>(std::real(rows[k]));
  }
  T diagonal(int64_t k) const { return matrix[k * (n + 1)]; }
};

/// Throws Value for a matrix that has a zero on its factor's diagonal.
template <class T>
void check_regular(const T* factor, int n, const char* op, const char* hint = "") {
  for (int64_t k = 0; k < n; ++k)
    require(factor[k * (n + 1)] != T(0), ErrorKind::Value, op, ": Singular matrix", hint);
}

void lu_solve(const Call& c, const void* const* in, void* out) {
  const auto a = attributes_of<SolveAttributes>(c);
  const Matrices b(c.in[1], a.pairs);
  const int n = b.rows, k = b.columns;
  by_number(a.pairs, [&]<class T> {
    each_problem(b.count, cubed(n) + static_cast<double>(n) * n * k, [&](int64_t i) {
      const Factors<T> f(in[0], i, n);
      check_regular(f.matrix, n, "matrix_solve");
      std::vector<T> rows(static_cast<size_t>(b.size()));
      turned(read<T>(in[1]) + i * b.size(), n, k, a.adjoint, rows.data());
      cpu::lu_solve(a.adjoint, 1, n, k, f.matrix, f.pivots.data(), rows.data());
      turned(rows.data(), k, n, a.adjoint, write<T>(out) + i * b.size());
    });
  });
}

void lu_inverse(const Call& c, const void* const* in, void* out) {
  const bool pairs = attributes_of<FactorAttributes>(c).pairs;
  const Matrices y(c.out, pairs);
  by_number(pairs, [&]<class T> {
    each_problem(y.count, 2 * cubed(y.rows), [&](int64_t i) {
      const Factors<T> f(in[0], i, y.rows);
      check_regular(f.matrix, y.rows, "inverse", "; det and slogdet have no derivative there");
      T* const to = write<T>(out) + i * y.size();
      std::copy_n(f.matrix, y.size(), to);
      cpu::lu_inverse(1, y.rows, to, f.pivots.data());
    });
  });
}

/// Products of many numbers, whose exponents may leave the range before they come back.
template <class T>
class Product {
 public:
  void times(T x) {
    // A factor that is large or small itself is scaled first: the product of two may leave the
    // range.
    const int own = outside(size_of(x)) ? std::ilogb(size_of(x)) : 0;
    product_ *= own ? x * std::ldexp(1.0, -own / 2) * std::ldexp(1.0, own / 2 - own) : x;
    exponent_ += own;
    const double size = size_of(product_);
    if (!outside(size)) return;
    const int e = std::ilogb(size);
    product_ *= std::ldexp(1.0, -e);
    exponent_ += e;
  }
  /// The sign, or the direction of a complex number; 0 of 0.
  T sign() const {
    if constexpr (std::is_same_v<T, double>)
      return product_ > 0 ? 1 : product_ < 0 ? -1 : product_ == 0 ? 0 : product_;
    else
      return product_ == T(0) ? product_ : product_ / std::abs(product_);
  }
  double log_of_size() const {
    return std::log(std::abs(product_)) + static_cast<double>(exponent_) * std::numbers::ln2;
  }
  T value() const {
    if (exponent_ == 0) return product_;
    const int e = narrow<int>(std::clamp<int64_t>(exponent_, -5000, 5000));
    auto scaled = [&](double x) { return x == 0 ? x : std::ldexp(x, e); };
    if constexpr (std::is_same_v<T, Complex>)
      return {scaled(product_.real()), scaled(product_.imag())};
    else
      return scaled(product_);
  }

 private:
  static double size_of(T x) { return std::max(std::abs(std::real(x)), std::abs(std::imag(x))); }
  /// Whether a number is finite, but so large or small that it should be scaled.
  static bool outside(double size) {
    return !(size >= 1e-150 && size <= 1e150) && size != 0 && std::isfinite(size);
  }
  T product_ = 1;
  int64_t exponent_ = 0;
};

void lu_determinant(const Call& c, const void* const* in, void* out) {
  const bool pairs = attributes_of<FactorAttributes>(c).pairs;
  const Matrices f(c.in[0], pairs);
  const int n = f.columns;
  by_number(pairs, [&]<class T> {
    each_problem(f.count, 8.0 * n, [&](int64_t i) {
      const Factors<T> factors(in[0], i, n);
      Product<T> det;
      for (int k = 0; k < n; ++k)
        det.times(factors.pivots.data()[k] == k + 1 ? factors.diagonal(k) : -factors.diagonal(k));
      const T whole = det.value(), sign = det.sign();
      double* const to = write<double>(out) + i * kDeterminantParts;
      to[0] = std::real(sign), to[1] = std::imag(sign), to[2] = det.log_of_size();
      to[3] = std::real(whole), to[4] = std::imag(whole);
    });
  });
}

/// Of matrices, whose lower triangles are read, or of those with `damping` on their diagonals.
template <class T>
void cholesky_factors(const Matrices& a, const T* from, const T* damping, T* factors) {
  const int64_t n = a.rows;
  each_problem(a.count, cubed(a.rows), [&](int64_t i) {
    T* const to = factors + i * a.size();
    for (int64_t r = 0; r < n; ++r) {
      std::copy_n(from + i * a.size() + r * n, r + 1, to + r * n);
      if (damping) to[r * n + r] += damping[i];
    }
    require(cholesky(1, a.rows, to), ErrorKind::Value, "cholesky: Matrix is not positive definite");
  });
}

void cholesky_factor(const Call& c, const void* const* in, void* out) {
  const bool pairs = attributes_of<FactorAttributes>(c).pairs;
  const Matrices a(c.in[0], pairs);
  by_number(pairs, [&]<class T> {
    cholesky_factors(a, read<T>(in[0]), c.in.size() > 1 ? read<T>(in[1]) : nullptr, write<T>(out));
  });
}

void cholesky_solve(const Call& c, const void* const* in, void* out) {
  const auto a = attributes_of<SolveAttributes>(c);
  const Matrices b(c.in[1], a.pairs);
  const int n = b.rows, k = b.columns;
  by_number(a.pairs, [&]<class T> {
    each_problem(b.count, cubed(n) + static_cast<double>(n) * n * k, [&](int64_t i) {
      const T* const factor = read<T>(in[0]) + i * int64_t{n} * n;
      check_regular(factor, n, "cholesky_solve");
      std::vector<T> rows(static_cast<size_t>(b.size()));
      turned(read<T>(in[1]) + i * b.size(), n, k, false, rows.data());
      cpu::cholesky_solve(1, n, k, factor, rows.data());
      turned(rows.data(), k, n, false, write<T>(out) + i * b.size());
    });
  });
}

void triangular_solve(const Call& c, const void* const* in, void* out) {
  const auto a = attributes_of<SolveAttributes>(c);
  const Matrices b(c.in[1], a.pairs);
  const int n = b.rows, k = b.columns;
  const auto solve = [&]<class T> {
    each_problem(b.count, static_cast<double>(n) * n * k, [&](int64_t i) {
      const T* const factor = read<T>(in[0]) + i * int64_t{n} * n;
      check_regular(factor, n, "solve_triangular");
      T* const to = write<T>(out) + i * b.size();
      std::copy_n(read<T>(in[1]) + i * b.size(), b.size(), to);
      cpu::triangular_solve(a.adjoint, n, k, factor, to);
    });
  };
  if (c.in[0].dtype == DType::Float32) return solve.template operator()<float>();
  by_number(a.pairs, solve);
}

/// Of L L^H, where L need not be triangular: then its product is factored first.
void cholesky_inverse(const Call& c, const void* const* in, void* out) {
  const bool pairs = attributes_of<FactorAttributes>(c).pairs;
  const Matrices a(c.in[0], pairs);
  const int64_t n = a.rows;
  by_number(pairs, [&]<class T> {
    each_problem(a.count, 2 * cubed(a.rows), [&](int64_t i) {
      const T* const l = read<T>(in[0]) + i * a.size();
      T* const to = write<T>(out) + i * a.size();
      bool lower = true;
      for (int64_t r = 0; r < n; ++r)
        for (int64_t k = r + 1; k < n; ++k) lower &= l[r * n + k] == T(0);
      std::copy_n(l, a.size(), to);
      if (!lower) {
        for (int64_t r = 0; r < n; ++r)
          for (int64_t s = 0; s < n; ++s) {
            T sum = 0;
            for (int64_t k = 0; k < n; ++k) sum += l[r * n + k] * conjugate<T>(l[s * n + k]);
            to[r * n + s] = sum;
          }
        require(cholesky(1, a.rows, to), ErrorKind::Value, "cholesky_inverse: Singular matrix");
      }
      check_regular(to, a.rows, "cholesky_inverse");
      cpu::cholesky_inverse(1, a.rows, to);
    });
  });
}

template <class T, class S>
void qr_of(const Matrices& a, int columns, bool vectors, const void* in, void* out) {
  const int64_t q = vectors ? int64_t{a.rows} * columns : 0, r = int64_t{columns} * a.columns;
  each_problem(a.count, cubed(std::max(a.rows, a.columns)), [&](int64_t i) {
    S* const to = write<S>(out) + i * (q + r);
    if (q + r > 0)
      qr<T>(1, a.rows, a.columns, columns, read<S>(in) + i * a.size(), vectors ? to : nullptr,
            to + q);
  });
}

void qr_factors(const Call& c, const void* const* in, void* out) {
  const auto a = attributes_of<OrthogonalAttributes>(c);
  const Matrices x(c.in[0], a.pairs);
  const int columns = a.full ? x.rows : std::min(x.rows, x.columns);
  if (c.in[0].dtype == DType::Float32)
    return qr_of<double, float>(x, columns, a.vectors, in[0], out);
  by_number(a.pairs, [&]<class T> { qr_of<T, T>(x, columns, a.vectors, in[0], out); });
}

template <class T>
void eigen_of(const Matrices& a, const void* in, void* out) {
  const int n = a.rows;
  // One at a time: a large matrix takes all threads.
  auto one = [&](int64_t i) {
    T* const to = write<T>(out) + i * (a.size() + n);
    std::vector<decltype(std::abs(T()))> values(static_cast<size_t>(n));
    require(eigh(1, n, read<T>(in) + i * a.size(), values.data(), to + n), ErrorKind::Value,
            "eigh: Eigenvalues did not converge");
    std::copy(values.begin(), values.end(), to);
  };
  each_problem(a.count, 10 * cubed(n), one);
}

void eigen_factors(const Call& c, const void* const* in, void* out) {
  const bool pairs = attributes_of<FactorAttributes>(c).pairs;
  const Matrices a(c.in[0], pairs);
  if (c.in[0].dtype == DType::Float32) return eigen_of<float>(a, in[0], out);
  by_number(pairs, [&]<class T> { eigen_of<T>(a, in[0], out); });
}

void singular_factors(const Call& c, const void* const* in, void* out) {
  const auto a = attributes_of<OrthogonalAttributes>(c);
  const Matrices x(c.in[0], a.pairs);
  const int m = x.rows, n = x.columns, k = std::min(m, n);
  const int64_t u = a.vectors ? int64_t{m} * (a.full ? m : k) : 0;
  const int64_t v = a.vectors ? int64_t{a.full ? n : k} * n : 0;
  by_number(a.pairs, [&]<class T> {
    each_problem(x.count, 10 * cubed(std::max(m, n)), [&](int64_t i) {
      T* const to = write<T>(out) + i * (k + u + v);
      std::vector<double> values(static_cast<size_t>(k));
      const bool found = svd(m, n, a.vectors, a.full, read<T>(in[0]) + i * x.size(), values.data(),
                             to + k, to + k + u);
      require(found, ErrorKind::Value, "svd: SVD did not converge");
      std::copy(values.begin(), values.end(), to);
    });
  });
}

constexpr RoutineRow kFactorisations[] = {
    {Op::LUFactors, lu_factors},
    {Op::LUSolve, lu_solve},
    {Op::LUInverse, lu_inverse},
    {Op::LUDeterminant, lu_determinant},
    {Op::CholeskyFactor, cholesky_factor},
    {Op::DampedCholeskyFactor, cholesky_factor},
    {Op::CholeskySolve, cholesky_solve},
    {Op::CholeskyInverse, cholesky_inverse},
    {Op::TriangularSolve, triangular_solve},
    {Op::QRFactors, qr_factors},
    {Op::EigenFactors, eigen_factors},
    {Op::SingularFactors, singular_factors},
};

}  // namespace

std::span<const RoutineRow> factorisations() { return kFactorisations; }

}  // namespace gradcell::cpu

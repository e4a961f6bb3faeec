// Factorisations of matrices as textbooks have them, in long double: for the interpreter of tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "base/error.h"

namespace gradcell::testing {

using Number = std::complex<long double>;

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<Number> at;
  Matrix(int64_t rows, int64_t columns)
      : rows(rows), columns(columns), at(static_cast<size_t>(rows * columns)) {}
  Number& operator()(int64_t i, int64_t j) { return at[static_cast<size_t>(i * columns + j)]; }
  const Number& operator()(int64_t i, int64_t j) const {
    return at[static_cast<size_t>(i * columns + j)];
  }
};

inline Matrix identity(int64_t n) {
  Matrix y(n, n);
  for (int64_t i = 0; i < n; ++i) y(i, i) = 1;
  return y;
}
inline Matrix turned(const Matrix& a, bool conjugated) {
  Matrix y(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) y(j, i) = conjugated ? std::conj(a(i, j)) : a(i, j);
  return y;
}
inline Matrix times(const Matrix& a, const Matrix& b) {
  Matrix y(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.columns; ++k)
      for (int64_t j = 0; j < b.columns; ++j) y(i, j) += a(i, k) * b(k, j);
  return y;
}
/// The Hermitian matrix of a lower triangle.
inline Matrix of_lower(const Matrix& a) {
  Matrix y = a;
  for (int64_t i = 0; i < a.rows; ++i) {
    y(i, i) = a(i, i).real();
    for (int64_t j = 0; j < i; ++j) y(j, i) = std::conj(a(i, j));
  }
  return y;
}

/// P L U of a matrix: the packed factors, and in each step which row came up.
inline Matrix lu(Matrix a, std::vector<int64_t>& pivots) {
  const int64_t n = a.rows;
  auto size = [](Number x) { return std::fabs(x.real()) + std::fabs(x.imag()); };  // LAPACK's
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (size(a(i, k)) > size(a(best, k))) best = i;
    pivots.push_back(best);
    for (int64_t j = 0; j < n; ++j) std::swap(a(k, j), a(best, j));
    if (a(k, k) == Number(0)) continue;
    for (int64_t i = k + 1; i < n; ++i) {
      a(i, k) /= a(k, k);
      for (int64_t j = k + 1; j < n; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  return a;
}

/// x with P L U transposed x = b.
inline Matrix solved(const Matrix& f, const std::vector<int64_t>& pivots, Matrix b) {
  const int64_t n = f.rows;
  for (int64_t j = 0; j < b.columns; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < i; ++k) b(i, j) -= f(k, i) * b(k, j);
      b(i, j) /= f(i, i);
    }
    for (int64_t i = n; i-- > 0;)
      for (int64_t k = i + 1; k < n; ++k) b(i, j) -= f(k, i) * b(k, j);
    for (int64_t k = n; k-- > 0;) std::swap(b(k, j), b(pivots[static_cast<size_t>(k)], j));
  }
  return b;
}
inline Matrix solved(const Matrix& a, const Matrix& b) {
  std::vector<int64_t> pivots;
  const Matrix f = lu(turned(a, false), pivots);
  return solved(f, pivots, b);
}

inline Matrix cholesky(const Matrix& a) {
  const int64_t n = a.rows;
  Matrix l(n, n);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i) {
      Number sum = i == j ? Number(a(i, j).real()) : a(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= l(i, k) * std::conj(l(j, k));
      require(i != j || sum.real() > 0, ErrorKind::Value, "Matrix is not positive definite");
      l(i, j) = i == j ? Number(std::sqrt(sum.real())) : sum / l(j, j);
    }
  return l;
}

/// Q, square, and R by Householder's reflections, with LAPACK's signs.
inline std::pair<Matrix, Matrix> qr(Matrix r) {
  Matrix q = identity(r.rows);
  for (int64_t k = 0; k < std::min(r.rows, r.columns); ++k) {
    long double below = 0;
    for (int64_t i = k + 1; i < r.rows; ++i) below += std::norm(r(i, k));
    const Number head = r(k, k);
    if (below == 0 && head.imag() == 0) continue;
    const long double beta = -std::copysign(std::sqrt(std::norm(head) + below), head.real());
    const Number tau = std::conj((beta - head) / beta);
    std::vector<Number> v(static_cast<size_t>(r.rows));
    v[static_cast<size_t>(k)] = 1;
    for (int64_t i = k + 1; i < r.rows; ++i) v[static_cast<size_t>(i)] = r(i, k) / (head - beta);
    auto reflect = [&](Matrix& a, Number by, bool right) {
      const int64_t lines = right ? a.rows : a.columns;
      for (int64_t j = 0; j < lines; ++j) {
        Number dot = 0;
        for (int64_t i = k; i < r.rows; ++i) {
          const Number w = v[static_cast<size_t>(i)];
          dot += right ? a(j, i) * w : std::conj(w) * a(i, j);
        }
        for (int64_t i = k; i < r.rows; ++i) {
          const Number w = v[static_cast<size_t>(i)];
          (right ? a(j, i) : a(i, j)) -= by * dot * (right ? std::conj(w) : w);
        }
      }
    };
    reflect(r, tau, false);
    reflect(q, std::conj(tau), true);
    for (int64_t i = k + 1; i < r.rows; ++i) r(i, k) = 0;
  }
  return {q, r};
}

/// Turns columns p and q of a and of v by Jacobi's rotation, so that <p, q> of the Hermitian form
/// [[x, z], [conj z, y]] becomes 0.
inline void rotate(Matrix& a, int64_t p, int64_t q, long double x, long double y, Number z) {
  const long double size = std::abs(z);
  const long double t0 = (y - x) / (2 * size);
  const long double t = (t0 < 0 ? -1 : 1) / (std::fabs(t0) + std::sqrt(t0 * t0 + 1));
  const long double c = 1 / std::sqrt(t * t + 1), s = t * c;
  const Number phase = z / size;
  for (int64_t i = 0; i < a.rows; ++i) {
    const Number u = a(i, p), w = a(i, q) * std::conj(phase);
    a(i, p) = c * u - s * w;
    a(i, q) = s * u + c * w;
  }
}

/// a V = U S with U's columns of length 1, by one-sided rotations: S descending, columns to match.
struct Singular {
  std::vector<long double> values;
  Matrix u, v;
};
inline Singular singular(const Matrix& given) {
  const int64_t n = given.columns;
  Matrix both(given.rows + n, n);  // a V over V
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < given.rows; ++i) both(i, j) = given(i, j);
    both(given.rows + j, j) = 1;
  }
  for (int sweep = 0; sweep < 60; ++sweep)
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        long double x = 0, y = 0;
        Number z = 0;
        for (int64_t i = 0; i < given.rows; ++i) {
          x += std::norm(both(i, p)), y += std::norm(both(i, q));
          z += std::conj(both(i, p)) * both(i, q);
        }
        if (std::abs(z) > 1e-19L * std::sqrt(x * y)) rotate(both, p, q, x, y, z);
      }
  std::vector<std::pair<long double, int64_t>> order;
  for (int64_t j = 0; j < n; ++j) {
    long double sum = 0;
    for (int64_t i = 0; i < given.rows; ++i) sum += std::norm(both(i, j));
    order.emplace_back(-std::sqrt(sum), j);
  }
  std::ranges::stable_sort(order, {}, [](const auto& o) { return o.first; });
  Singular y{{}, Matrix(given.rows, n), Matrix(n, n)};
  for (int64_t j = 0; j < n; ++j) {
    const auto [minus, from] = order[static_cast<size_t>(j)];
    y.values.push_back(-minus);
    for (int64_t i = 0; i < given.rows; ++i)
      y.u(i, j) = minus == 0 ? Number(0) : both(i, from) / -minus;
    for (int64_t i = 0; i < n; ++i) y.v(i, j) = both(given.rows + i, from);
  }
  return y;
}

/// Of a Hermitian matrix: eigenvalues ascending, vectors as columns (each up to a factor of size
/// 1).
inline std::pair<std::vector<long double>, Matrix> eigen(const Matrix& a) {
  // Of what is positive definite, singular vectors are eigenvectors.
  const int64_t n = a.rows;
  long double shift = 1;
  for (const Number& x : a.at) shift += std::abs(x);
  Matrix moved = a;
  for (int64_t i = 0; i < n; ++i) moved(i, i) += shift;
  const Singular s = singular(moved);
  std::vector<long double> values;
  Matrix vectors(n, n);
  for (int64_t j = 0; j < n; ++j) {
    values.push_back(s.values[static_cast<size_t>(n - 1 - j)] - shift);
    for (int64_t i = 0; i < n; ++i) vectors(i, j) = s.v(i, n - 1 - j);
  }
  return {values, vectors};
}

/// Columns of length 1 that are orthogonal to each other, added to `count` of a square matrix's.
inline void complete(Matrix& q, int64_t count) {
  for (int64_t e = 0; e < q.rows && count < q.columns; ++e) {
    std::vector<Number> x(static_cast<size_t>(q.rows));
    x[static_cast<size_t>(e)] = 1;
    for (int again = 0; again < 2; ++again)
      for (int64_t j = 0; j < count; ++j) {
        Number dot = 0;
        for (int64_t i = 0; i < q.rows; ++i) dot += std::conj(q(i, j)) * x[static_cast<size_t>(i)];
        for (int64_t i = 0; i < q.rows; ++i) x[static_cast<size_t>(i)] -= dot * q(i, j);
      }
    long double size = 0;
    for (const Number& v : x) size += std::norm(v);
    if (size < 0.01L / static_cast<long double>(q.rows)) continue;
    for (int64_t i = 0; i < q.rows; ++i) q(i, count) = x[static_cast<size_t>(i)] / std::sqrt(size);
    ++count;
  }
}

}  // namespace gradcell::testing

// Factorisations of matrices, by the LAPACK that comes with the BLAS library (blas.h).
//
// Matrices lie one behind the other, row-major, and are of double or std::complex<double>; LAPACK
// takes them for their transposes. Several run in parallel, each on one thread; the columns of a
// large one too in qr and eigh. Right-hand sides are rows: [count][k][n].
#pragma once

#include <complex>
#include <cstdint>

namespace gradcell::cpu {

/// a [count][n][n] becomes its factors, as getrf leaves those of the transpose; pivots [count][n].
/// A singular matrix has a zero on its factors' diagonal.
template <class T>
void lu(int64_t count, int n, T* a, int32_t* pivots);
/// b becomes the solutions of a x = b, or of a' x = b (transposed, not conjugated). No factor has a
/// zero on its diagonal.
template <class T>
void lu_solve(bool transposed, int64_t count, int n, int k, const T* factors, const int32_t* pivots,
              T* b);
/// The factors become the inverses of what they are of.
template <class T>
void lu_inverse(int64_t count, int n, T* factors, const int32_t* pivots);

/// The lower triangle of a becomes L with L L^H = a, the upper one zero. False if a matrix is not
/// positive definite.
template <class T>
bool cholesky(int64_t count, int n, T* a);
/// b becomes the solutions of L L^H x = b.
template <class T>
void cholesky_solve(int64_t count, int n, int k, const T* factors, T* b);
/// b [n][k], not its rows, becomes the solution of L x = b, or of L^H x = b, for the lower triangle
/// of L [n][n].
template <class T>
void triangular_solve(bool adjoint, int n, int k, const T* l, T* b);
/// L becomes the inverse of L L^H.
template <class T>
void cholesky_inverse(int64_t count, int n, T* factors);

/// Of a [count][m][n]: the first c columns of Q, [count][m][c], and R [count][c][n]. c is m, or the
/// smaller one of m and n. Computed in T; S is T, or float for double. q: null if nobody wants it.
template <class T, class S>
void qr(int64_t count, int m, int n, int c, const S* a, S* q, S* r);

/// Of symmetric (Hermitian) matrices, of which the lower triangles are read, the eigenvalues
/// [count][n], ascending, and the eigenvectors as columns [count][n][n]; NaN where a matrix is not
/// finite. False if the iteration does not converge for one. T may be float.
template <class T>
bool eigh(int64_t count, int n, const T* a, decltype(std::abs(T()))* values, T* vectors);

/// Of a [m][n]: the singular values, descending, and with `vectors` the columns of U [m][c] and the
/// rows of V^H [c'][n]: as many as there are values, or all of them if `full`. False if the
/// iteration does not converge, as for what is not finite.
template <class T>
bool svd(int m, int n, bool vectors, bool full, const T* a, double* values, T* u, T* v);

}  // namespace gradcell::cpu

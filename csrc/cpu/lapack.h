// Factorisations of matrices, by the LAPACK that comes with the BLAS library (blas.h).
//
// Matrices lie one behind the other, row-major, and are of double or std::complex<double>; LAPACK
// takes them for their transposes. Each runs on one thread, several in parallel. Right-hand sides
// are rows: [count][k][n].
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
/// L becomes the inverse of L L^H.
template <class T>
void cholesky_inverse(int64_t count, int n, T* factors);

/// Of matrices with m rows and n columns, given as their transposes, which do not stay: R
/// [count][c][n] and q' [count][c][m], the first c columns of Q. c is m, or the smaller one of m
/// and n.
template <class T>
void qr(int64_t count, int m, int n, int c, T* turned, T* q_turned, T* r);

}  // namespace gradcell::cpu

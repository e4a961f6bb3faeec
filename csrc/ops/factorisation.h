// The family of factorisations of matrices [..., n, n] (or [..., m, n]) and of what is solved with
// them. Complex matrices are pairs [..., n, n, 2] of real numbers, and then so are results. LAPACK
// computes them (cpu/products/lapack.h); derivatives are rules in Python, made of products and
// solutions.
#pragma once

#include "ir/spec.h"

namespace gradcell {

struct FactorAttributes {
  bool pairs;
  static constexpr auto fields() {
    return std::tuple{Field{"pairs", AttributeKind::Flag, &FactorAttributes::pairs}};
  }
};

/// adjoint: of the conjugate transpose.
struct SolveAttributes {
  bool pairs, adjoint;
  static constexpr auto fields() {
    return std::tuple{Field{"pairs", AttributeKind::Flag, &SolveAttributes::pairs},
                      Field{"adjoint", AttributeKind::Flag, &SolveAttributes::adjoint}};
  }
};

/// full: square factors, not only the columns that are needed. vectors: not the triangle, or the
/// singular values, alone.
struct OrthogonalAttributes {
  bool pairs, full, vectors;
  static constexpr auto fields() {
    return std::tuple{Field{"pairs", AttributeKind::Flag, &OrthogonalAttributes::pairs},
                      Field{"full", AttributeKind::Flag, &OrthogonalAttributes::full},
                      Field{"vectors", AttributeKind::Flag, &OrthogonalAttributes::vectors}};
  }
};

/// What LUDeterminant gives of each matrix: the sign of the determinant, the logarithm of its size,
/// itself; the sign and itself as pairs.
inline constexpr int64_t kDeterminantParts = 5;

}  // namespace gradcell

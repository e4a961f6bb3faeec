#include "ops/factorisation.h"

#include "ops/moving/movement.h"
#include "ops/routine.h"

namespace gradcell {

namespace {

constexpr Parameter kPairs = attribute("pairs", "False"), kMatrix = tensor("a");
constexpr Parameter kOne[] = {kMatrix, kPairs};
constexpr Parameter kDamped[] = {kMatrix, tensor("damping"), kPairs};
constexpr Parameter kSolved[] = {tensor("factors"), tensor("b"), kPairs,
                                 attribute("adjoint", "False")};
constexpr Parameter kFactored[] = {tensor("factors"), kPairs};
constexpr Parameter kOrthogonal[] = {kMatrix, kPairs, attribute("full", "False"),
                                     attribute("vectors", "True")};

/// Problems are matrices, or matrices of pairs; each family's first attribute says which.
class OfMatrices : public Routine {
 public:
  using Routine::Routine;
  size_t problem_rank(std::span<const int64_t> attributes, size_t) const override {
    return attributes[0] ? 3 : 2;
  }
  const char* not_in_onnx() const override { return "it has no factorisations of matrices"; }

 protected:
  virtual bool takes_singles() const { return false; }
  static bool pairs(const Draft& d) { return d.attributes[0] != 0; }

  /// [rows, columns] of the k-th input.
  std::pair<int64_t, int64_t> matrix(const Graph& g, const Draft& d, size_t k) const {
    const NodeId x = d.inputs[k];
    const DType t = g.dtype(x);
    const bool single = t == DType::Float32 && takes_singles() && !pairs(d);
    require(t == DType::Float64 || single, ErrorKind::Type, name(), ": needs float64, got ",
            gradcell::name(t));
    const Dims dims = problem(g, d, k);
    require(!pairs(d) || dims.back() == 2, ErrorKind::Value, name(), ": no pairs, got shape ",
            listed(g.dims(x)));
    require(std::max(dims[0], dims[1]) < INT32_MAX, ErrorKind::Value, name(),
            ": a matrix of 2^31 rows or columns");
    return {dims[0], dims[1]};
  }
  int64_t square(const Graph& g, const Draft& d, size_t k) const {
    const auto [m, n] = matrix(g, d, k);
    require(m == n, ErrorKind::Value, name(), ": square matrices are needed, got shape ",
            listed(g.dims(d.inputs[k])));
    return n;
  }
  /// The factors of LUFactors, of matrices of so many rows.
  int64_t factored(const Graph& g, const Draft& d) const {
    const auto [m, n] = matrix(g, d, 0);
    require(m == n + 1, ErrorKind::Value, name(), ": no factors, got shape ",
            listed(g.dims(d.inputs[0])));
    return n;
  }
  /// So many results of each problem, pairs where the matrices are.
  Type results(const Graph& g, const Draft& d, std::initializer_list<int64_t> dims) const {
    Dims all = problems(g, d);
    all.insert(all.end(), dims);
    if (pairs(d)) all.push_back(2);
    return {g.dtype(d.inputs[0]), all};
  }
};

/// [n + 1, n], float64: the factors, and the rows that were exchanged.
class LU : public OfMatrices {
 public:
  explicit LU(Op op) : OfMatrices(op, kAttributes<FactorAttributes>, kOne) {}
  Type infer(const Graph& g, const Draft& d) const override {
    const int64_t n = square(g, d, 0);
    return results(g, d, {n + 1, n});
  }
};

/// Matrices [n, k] solved with factors [n + 1, n], or with a lower triangle [n, n]: a Cholesky
/// factor, or what is solved with itself.
class Solve : public OfMatrices {
 public:
  Solve(Op op, bool lu) : OfMatrices(op, kAttributes<SolveAttributes>, kSolved), lu_(lu) {}
  Type infer(const Graph& g, const Draft& d) const override {
    const int64_t n = lu_ ? factored(g, d) : square(g, d, 0);
    const auto [rows, columns] = matrix(g, d, 1);
    require(rows == n, ErrorKind::Value, name(), ": right-hand sides of shape ",
            listed(g.dims(d.inputs[1])), " do not fit matrices of ", n, " rows");
    require(g.dtype(d.inputs[0]) == g.dtype(d.inputs[1]), ErrorKind::Type, name(),
            ": both inputs need one dtype");
    return results(g, d, {rows, columns});
  }
  /// With the same factors for all examples, these are more columns.
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    if (b.batched[0]) return Routine::batch(g, id, b);
    Dims all = g.dims(b.inputs[1]);
    const size_t column = all.size() - (g.attrs(id)[0] ? 2 : 1);
    const NodeId columns = move_axis(g, b.inputs[1], 0, column - 1);
    all = g.dims(columns);
    const NodeId right = join_axes(g, columns, column - 1);
    const NodeId in[] = {b.inputs[0], right};
    const Dims attributes(g.attrs(id).begin(), g.attrs(id).end());
    const NodeId solved = make(g, op, {in, attributes, {g.dtype(id), g.dims(right)}});
    return move_axis(g, reshape(g, solved, all), column - 1, 0);
  }

 private:
  bool takes_singles() const override { return op == Op::TriangularSolve; }
  bool lu_;
};

class Inverse : public OfMatrices {
 public:
  Inverse(Op op, bool lu) : OfMatrices(op, kAttributes<FactorAttributes>, kFactored), lu_(lu) {}
  Type infer(const Graph& g, const Draft& d) const override {
    const int64_t n = lu_ ? factored(g, d) : square(g, d, 0);
    return results(g, d, {n, n});
  }

 private:
  bool lu_;
};

class Determinant : public OfMatrices {
 public:
  explicit Determinant(Op op) : OfMatrices(op, kAttributes<FactorAttributes>, kFactored) {}
  Type infer(const Graph& g, const Draft& d) const override {
    factored(g, d);
    Dims dims = problems(g, d);
    dims.push_back(kDeterminantParts);
    return {DType::Float64, dims};
  }
};

/// [n, n], lower.
class Cholesky : public OfMatrices {
 public:
  explicit Cholesky(Op op) : OfMatrices(op, kAttributes<FactorAttributes>, kOne) {}
  Type infer(const Graph& g, const Draft& d) const override {
    const int64_t n = square(g, d, 0);
    return results(g, d, {n, n});
  }
};

/// [n, n], lower: the factor of a matrix with the one element of `damping`, [1, 1], added to its
/// diagonal.
class DampedCholesky : public OfMatrices {
 public:
  explicit DampedCholesky(Op op) : OfMatrices(op, kAttributes<FactorAttributes>, kDamped) {}
  Type infer(const Graph& g, const Draft& d) const override {
    const int64_t n = square(g, d, 0);
    require(square(g, d, 1) == 1, ErrorKind::Value, name(), ": the damping must be of shape ",
            listed(Dims{1, 1}), ", got shape ", listed(g.dims(d.inputs[1])));
    return results(g, d, {n, n});
  }
};

/// Q, unless the triangle alone is asked for, and then R, of c columns and rows.
class QR : public OfMatrices {
 public:
  explicit QR(Op op) : OfMatrices(op, kAttributes<OrthogonalAttributes>, kOrthogonal) {}
  Type infer(const Graph& g, const Draft& d) const override {
    const auto [m, n] = matrix(g, d, 0);
    const int64_t c = d.attributes[1] ? m : std::min(m, n);
    return results(g, d, {(d.attributes[2] != 0 ? m * c : 0) + c * n});
  }

 private:
  bool takes_singles() const override { return true; }
};

/// [n + 1, n]: the eigenvalues, and the eigenvectors as columns, of symmetric (Hermitian) matrices.
class Eigen : public OfMatrices {
 public:
  explicit Eigen(Op op) : OfMatrices(op, kAttributes<FactorAttributes>, kOne) {}
  Type infer(const Graph& g, const Draft& d) const override {
    const int64_t n = square(g, d, 0);
    constexpr int64_t kMost = 40000;  // LAPACK counts its scratch in 32 bits
    require(n <= kMost, ErrorKind::Value, name(), ": matrices of at most ", kMost, " rows, got ",
            n);
    return results(g, d, {n + 1, n});
  }

 private:
  bool takes_singles() const override { return true; }
};

/// The singular values, then U [m, c] and V^H [c', n], if vectors are asked for.
class Singular : public OfMatrices {
 public:
  explicit Singular(Op op) : OfMatrices(op, kAttributes<OrthogonalAttributes>, kOrthogonal) {}
  Type infer(const Graph& g, const Draft& d) const override {
    const auto [m, n] = matrix(g, d, 0);
    const int64_t k = std::min(m, n);
    const bool full = d.attributes[1] != 0, vectors = d.attributes[2] != 0;
    const int64_t rows = full ? m * m : m * k, columns = full ? n * n : k * n;
    return results(g, d, {k + (vectors ? rows + columns : 0)});
  }
};

}  // namespace

SPEC(LUFactors, LU)
SPEC(LUSolve, Solve, true)
SPEC(LUInverse, Inverse, true)
SPEC(LUDeterminant, Determinant)
SPEC(CholeskyFactor, Cholesky)
SPEC(DampedCholeskyFactor, DampedCholesky)
SPEC(CholeskySolve, Solve, false)
SPEC(CholeskyInverse, Inverse, false)
SPEC(TriangularSolve, Solve, false)
SPEC(QRFactors, QR)
SPEC(EigenFactors, Eigen)
SPEC(SingularFactors, Singular)

}  // namespace gradcell

// Factorisations of NumPy's matrices of float64 or complex128: for
// python/gradcell/ops/factorisations.py.
#include "cpu/products/lapack.h"

#include <pybind11/complex.h>

#include "bind/bind.h"

namespace gradcell::bind {

namespace {

template <class T>
using Matrices = py::array_t<T, py::array::c_style | py::array::forcecast>;
using Pivots = Matrices<int32_t>;

/// f<T>() for what LAPACK computes with: T is double, or std::complex<double> for complex numbers.
template <class F>
auto by_kind(const py::array& a, F f) {
  return a.dtype().kind() == 'c' ? f.template operator()<std::complex<double>>()
                                 : f.template operator()<double>();
}

bool is_float(const py::array& a) { return a.dtype().is(py::dtype::of<float>()); }

/// Computes without the interpreter's lock.
template <class F>
void compute(F f) {
  const WithoutGil none;
  f();
}

/// Matrices [..., rows, columns].
template <class T>
struct Stack {
  Matrices<T> array;
  int64_t count = 1;
  int rows, columns;

  explicit Stack(const py::array& a) : array(Matrices<T>::ensure(a)) {
    require(array && array.ndim() >= 2, ErrorKind::Value, "LAPACK: no matrices of numbers");
    const py::ssize_t rank = array.ndim();
    for (py::ssize_t k = 0; k + 2 < rank; ++k) count *= array.shape(k);
    require(std::max(array.shape(rank - 2), array.shape(rank - 1)) <= INT32_MAX, ErrorKind::Value,
            "LAPACK: a matrix of more than 2^31 - 1 rows or columns");
    rows = static_cast<int>(array.shape(rank - 2));
    columns = static_cast<int>(array.shape(rank - 1));
  }
  const Stack& square() const {
    require(rows == columns, ErrorKind::Value, "LAPACK: a matrix that is not square");
    return *this;
  }
  /// As many arrays of other dimensions.
  template <class A = Matrices<T>>
  A others(std::initializer_list<py::ssize_t> dims) const {
    std::vector<py::ssize_t> all(array.shape(), array.shape() + array.ndim() - 2);
    all.insert(all.end(), dims);
    return A(all);
  }
  /// A copy for LAPACK to write into.
  Matrices<T> copy() const {
    auto to = others({rows, columns});
    std::copy_n(array.data(), array.size(), to.mutable_data());
    return to;
  }
};

/// Right-hand sides as rows of n.
template <class T>
Stack<T> right_sides(const py::array& rows, const Stack<T>& of) {
  Stack<T> b(rows);
  require(b.columns == of.rows && b.count == of.count, ErrorKind::Value,
          "LAPACK: right-hand sides do not fit");
  return b;
}

template <class T>
Pivots pivots_of(const py::array& pivots, const Stack<T>& factors) {
  auto p = Pivots::ensure(pivots);
  require(p && p.size() == factors.count * factors.rows, ErrorKind::Value,
          "LAPACK: pivots do not fit");
  return p;
}

py::tuple lu(const py::array& a) {
  return by_kind(a, [&]<class T>() -> py::tuple {
    const auto x = Stack<T>(a).square();
    auto factors = x.copy();
    auto pivots = x.template others<Pivots>({x.rows});
    T* const f = factors.mutable_data();
    int32_t* const p = pivots.mutable_data();
    compute([&] { cpu::lu(x.count, x.rows, f, p); });
    return py::make_tuple(factors, pivots);
  });
}

py::array lu_solve(const py::array& factors, const py::array& pivots, const py::array& rows,
                   bool transposed) {
  return by_kind(factors, [&]<class T>() -> py::array {
    const auto f = Stack<T>(factors).square();
    const auto b = right_sides(rows, f);
    const Pivots p = pivots_of(pivots, f);
    auto x = b.copy();
    T* const to = x.mutable_data();
    compute(
        [&] { cpu::lu_solve(transposed, f.count, f.rows, b.rows, f.array.data(), p.data(), to); });
    return x;
  });
}

py::array lu_inverse(const py::array& factors, const py::array& pivots) {
  return by_kind(factors, [&]<class T>() -> py::array {
    const auto f = Stack<T>(factors).square();
    const Pivots p = pivots_of(pivots, f);
    auto x = f.copy();
    T* const to = x.mutable_data();
    compute([&] { cpu::lu_inverse(f.count, f.rows, to, p.data()); });
    return x;
  });
}

py::array cholesky(const py::array& a) {
  return by_kind(a, [&]<class T>() -> py::array {
    const auto x = Stack<T>(a).square();
    auto l = x.copy();
    T* const to = l.mutable_data();
    bool definite;
    compute([&] { definite = cpu::cholesky(x.count, x.rows, to); });
    require(definite, ErrorKind::Value, "Matrix is not positive definite");
    return l;
  });
}

py::array cholesky_solve(const py::array& l, const py::array& rows) {
  return by_kind(l, [&]<class T>() -> py::array {
    const auto f = Stack<T>(l).square();
    const auto b = right_sides(rows, f);
    auto x = b.copy();
    T* const to = x.mutable_data();
    compute([&] { cpu::cholesky_solve(f.count, f.rows, b.rows, f.array.data(), to); });
    return x;
  });
}

py::array cholesky_inverse(const py::array& l) {
  return by_kind(l, [&]<class T>() -> py::array {
    const auto f = Stack<T>(l).square();
    auto x = f.copy();
    T* const to = x.mutable_data();
    compute([&] { cpu::cholesky_inverse(f.count, f.rows, to); });
    return x;
  });
}

template <class T, class S>
py::tuple qr_in(const py::array& a, bool complete) {
  const Stack<S> x(a);
  const int m = x.rows, n = x.columns, c = complete ? m : std::min(m, n);
  auto q = x.others({m, c}), r = x.others({c, n});
  S *const to_q = q.mutable_data(), *const to_r = r.mutable_data();
  compute([&] { cpu::qr<T>(x.count, m, n, c, x.array.data(), to_q, to_r); });
  return py::make_tuple(q, r);
}

py::tuple qr(const py::array& a, bool complete) {
  if (is_float(a)) return qr_in<double, float>(a, complete);
  return by_kind(a, [&]<class T>() -> py::tuple { return qr_in<T, T>(a, complete); });
}

template <class T>
py::tuple eigen(const py::array& a) {
  const auto x = Stack<T>(a).square();
  constexpr int kMost = 40000;  // LAPACK counts its scratch in 32 bits
  require(x.rows <= kMost, ErrorKind::Value, "eigh: matrices of at most ", kMost, " rows, got ",
          x.rows);
  using R = decltype(std::abs(T()));
  auto values = x.template others<Matrices<R>>({x.rows});
  auto vectors = x.others({x.rows, x.rows});
  R* const d = values.mutable_data();
  T* const v = vectors.mutable_data();
  bool found;
  compute([&] { found = cpu::eigh(x.count, x.rows, x.array.data(), d, v); });
  require(found, ErrorKind::Value, "Eigenvalues did not converge");
  return py::make_tuple(values, vectors);
}

py::tuple eigh(const py::array& a) {
  if (is_float(a)) return eigen<float>(a);
  return by_kind(a, [&]<class T>() -> py::tuple { return eigen<T>(a); });
}

}  // namespace

void bind_lapack(py::module_& m) {
  py::module_ l = m.def_submodule("lapack", "Factorisations of float64 or complex128 matrices.");
  l.def("lu", &lu, py::arg("a"), "(factors, pivots), for the functions below.");
  l.def("lu_solve", &lu_solve, py::arg("factors"), py::arg("pivots"), py::arg("rows"),
        py::arg("transposed"),
        "The solutions x of a x = b, right-hand sides and x as rows [..., k, n].");
  l.def("lu_inverse", &lu_inverse, py::arg("factors"), py::arg("pivots"), "The inverses.");
  l.def("cholesky", &cholesky, py::arg("a"),
        "The lower factors. Raises ValueError unless positive definite.");
  l.def("cholesky_solve", &cholesky_solve, py::arg("l"), py::arg("rows"),
        "The solutions x of l l^H x = b, right-hand sides and x as rows [..., k, n].");
  l.def("cholesky_inverse", &cholesky_inverse, py::arg("l"), "The inverses of l l^H.");
  l.def("qr", &qr, py::arg("a"), py::arg("complete"),
        "(Q, R); all of Q if complete. Of float32 matrices computed in double and rounded once.");
  l.def("eigh", &eigh, py::arg("a"),
        "(eigenvalues, ascending, eigenvectors as columns) of symmetric matrices, of float32 too; "
        "the "
        "lower triangles are read. NaN for what is not finite. Raises ValueError where there is no "
        "convergence.");
}

}  // namespace gradcell::bind

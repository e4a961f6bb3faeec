// The minimisers: vectors come and go as NumPy arrays.
#include "runtime/minimisers/quasi_newton.h"

#include <pybind11/numpy.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/element.h"
#include "bind/bind.h"

namespace gradcell::bind {

namespace {

template <class T>
using Vector = py::array_t<T, py::array::c_style | py::array::forcecast>;

template <class T>
std::span<const T> elements(const Vector<T>& v) {
  return {v.data(), static_cast<size_t>(v.size())};
}

template <class T>
py::array_t<T> copied(std::span<const T> v) {
  return py::array_t<T>(static_cast<py::ssize_t>(v.size()), v.data());
}

template <class S>
const char* word(S state) {
  switch (state) {
    case S::Search:
      return "search";
    case S::Stepped:
      return "stepped";
    case S::SmallGradient:
      return "small gradient";
    case S::SmallDecrease:
      return "small decrease";
    case S::NoLowerPoint:
      return "no lower point";
    case S::Stalled:
      return "stalled";
    case S::NotFinite:
      return "not finite";
  }
  return "";
}

/// A tensor's only element, and the relative size of the last digit that its dtype has.
std::pair<double, double> number_in(const py::handle& tensor) {
  const Array a = only_tensor(tensor, "L-BFGS")->value();
  const double value = a.dtype == DType::Float64 ? *static_cast<const double*>(a.data())
                       : a.dtype == DType::Float32
                           ? *static_cast<const float*>(a.data())
                           : double(py::float_(py::reinterpret_borrow<py::object>(tensor)));
  double digit = 0x1p-10;
  by_dtype(a.dtype, [&]<class S>() {
    if constexpr (kNarrowFloat<S>)
      digit = std::ldexp(1.0, 1 - S::kDigits);
    else if constexpr (std::is_floating_point_v<S>)
      digit = std::numeric_limits<S>::epsilon();
  });
  return {value, digit};
}

/// Minimises what `evaluate(vector, *args)` gives, (value, gradient) as tensors, without Python in
/// between where that is a compiled function: until it ends, so many steps have been taken or so
/// many evaluations made (0: any number). Says which, or why it ended.
template <class T, class M>
const char* run(M& l, const py::object& evaluate, const py::tuple& args, int64_t steps,
                int64_t evaluations) {
  using State = typename M::State;
  constexpr DType dtype = sizeof(T) == 8 ? DType::Float64 : DType::Float32;
  const int64_t last_step = l.steps() + steps, last = l.evaluations() + evaluations;
  std::vector<PyObject*> given(1 + args.size());
  for (size_t i = 0; i < args.size(); ++i) given[i + 1] = args[i].ptr();
  for (;;) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    Array vector = empty_array(dtype, {static_cast<int64_t>(l.wanted().size())});
    std::ranges::copy(l.wanted(), static_cast<T*>(vector.data()));
    const py::object at = py::cast(std::make_shared<Tensor>(std::move(vector)));
    given[0] = at.ptr();
    const auto found = py::reinterpret_steal<py::object>(
        PyObject_Vectorcall(evaluate.ptr(), given.data(), given.size(), nullptr));
    if (!found) throw py::error_already_set();
    const auto pair = found.cast<py::tuple>();
    const Array gradient = only_tensor(pair[1], "L-BFGS")->value();
    require(gradient.dtype == dtype, ErrorKind::Type, "The gradient is of ", name(gradient.dtype),
            ", the point of ", name(dtype));
    require(gradient.count() == static_cast<int64_t>(l.point().size()), ErrorKind::Value,
            "The gradient has another size than the point");
    const auto [value, rounding] = number_in(pair[0]);
    const State state =
        l.advance(value, {static_cast<const T*>(gradient.data()), l.point().size()}, rounding);
    if (state != State::Search && state != State::Stepped) return word(state);
    if (l.steps() >= last_step) return "steps";
    if (evaluations != 0 && l.evaluations() >= last) return "evaluations";
  }
}

/// What all of them can do, of class M over vectors of T.
template <class T, class M>
py::class_<M> bind_minimiser(py::module_& m, const char* name, const char* text) {
  return py::class_<M>(m, name, text)
      .def(
          "advance",
          [](M& l, double value, const Vector<T>& gradient) {
            require(gradient.size() == static_cast<py::ssize_t>(l.point().size()), ErrorKind::Value,
                    "The gradient has another size than the point");
            return word(
                l.advance(value, elements(gradient), std::numeric_limits<double>::epsilon()));
          },
          py::arg("value"), py::arg("gradient"),
          "Takes value and gradient at `wanted`; says what that was: search, stepped, or why it "
          "ends.")
      .def("run", &run<T, M>, py::arg("evaluate"), py::arg("args"), py::arg("steps"),
           py::arg("evaluations"),
           "Goes on with the value and the gradient that evaluate(wanted, *args) gives; says what "
           "it stopped at: steps, evaluations (0: any number), or why it ended.")
      .def(
          "renew", [](M& l) { l.renew(); },
          "The function has changed: it is wanted at `point` again.")
      .def(
          "restart",
          [](M& l, const Vector<T>& point) {
            require(point.size() == static_cast<py::ssize_t>(l.point().size()), ErrorKind::Value,
                    "The new point has another size than the old one");
            l.restart(elements(point));
          },
          py::arg("point"), "The point is another one; nothing is known of the function there.")
      .def(
          "saved", [](const M& l) { return copied(std::span<const T>(l.saved())); },
          "What is known of the curvature, as numbers.")
      .def(
          "load",
          [](M& l, const Vector<T>& point, const Vector<T>& curvature, int64_t steps,
             double length) {
            require(point.size() == static_cast<py::ssize_t>(l.point().size()) &&
                        l.load(elements(point), elements(curvature), steps, length),
                    ErrorKind::Value, "The saved state is of another method, or of other sizes");
          },
          py::arg("point"), py::arg("curvature"), py::arg("steps"), py::arg("length"),
          "Goes on from a point and what `saved` and `length` gave there.")
      .def_property_readonly(
          "wanted", [](const M& l) { return copied(l.wanted()); },
          "Where value and gradient are wanted.")
      .def_property_readonly(
          "point", [](const M& l) { return copied(l.point()); }, "The best point so far.")
      .def_property_readonly(
          "value", [](const M& l) { return l.value(); }, "The function there.")
      .def_property_readonly(
          "gradient", [](const M& l) { return copied(l.gradient()); }, "Its gradient there.")
      .def_property_readonly(
          "length", [](const M& l) { return l.length(); }, "How long the last step was.")
      .def_property_readonly(
          "skipped", [](const M& l) { return l.skipped(); },
          "How many steps taught nothing of the curvature.")
      .def_property_readonly(
          "steps", [](const M& l) { return l.steps(); }, "How often the point has moved.")
      .def_property_readonly(
          "evaluations", [](const M& l) { return l.evaluations(); },
          "How often it has been told value and gradient.");
}

template <class T>
void bind_limited(py::module_& m, const char* name) {
  bind_minimiser<T, Lbfgs<T>>(m, name,
                              "L-BFGS that is told values and gradients where it wants them.")
      .def(py::init([](const Vector<T>& start, int history, int search, double gradient_tolerance,
                       double value_tolerance) {
             return std::make_unique<Lbfgs<T>>(
                 elements(start), history,
                 typename QuasiNewton<T>::Options{search, gradient_tolerance, value_tolerance});
           }),
           py::arg("start"), py::arg("history"), py::arg("search"), py::arg("gradient_tolerance"),
           py::arg("value_tolerance"));
}

BroydenUpdate update_of(const std::string& name) {
  if (name == "bfgs") return BroydenUpdate::Bfgs;
  if (name == "ssbfgs") return BroydenUpdate::ScaledBfgs;
  require(name == "ssbroyden", ErrorKind::Value, "There is no update ", name);
  return BroydenUpdate::ScaledBroyden;
}

}  // namespace

void bind_quasi_newton(py::module_& m) {
  bind_limited<float>(m, "LbfgsFloat32");
  bind_limited<double>(m, "LbfgsFloat64");
  bind_minimiser<double, DenseQuasiNewton>(
      m, "DenseQuasiNewton",
      "BFGS and its kin that are told values and gradients where they want them.")
      .def(py::init([](const Vector<double>& start, const std::string& update, int search,
                       double gradient_tolerance, double value_tolerance) {
             return std::make_unique<DenseQuasiNewton>(
                 elements(start), update_of(update),
                 QuasiNewton<double>::Options{search, gradient_tolerance, value_tolerance});
           }),
           py::arg("start"), py::arg("update"), py::arg("search"), py::arg("gradient_tolerance"),
           py::arg("value_tolerance"));
}

}  // namespace gradcell::bind

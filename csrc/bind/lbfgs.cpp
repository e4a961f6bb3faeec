// The minimiser, one class a dtype: vectors come and go as NumPy arrays.
#include "runtime/lbfgs.h"

#include <pybind11/numpy.h>

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
    case S::NotFinite:
      return "not finite";
  }
  return "";
}

template <class T>
void bind_minimiser(py::module_& m, const char* name) {
  using L = Lbfgs<T>;
  py::class_<L>(m, name, "L-BFGS that is told values and gradients where it wants them.")
      .def(py::init([](const Vector<T>& start, int history, int search, double gradient_tolerance,
                       double value_tolerance) {
             return L(elements(start), {history, search, gradient_tolerance, value_tolerance});
           }),
           py::arg("start"), py::arg("history"), py::arg("search"), py::arg("gradient_tolerance"),
           py::arg("value_tolerance"))
      .def(
          "advance",
          [](L& l, double value, const Vector<T>& gradient) {
            require(gradient.size() == static_cast<py::ssize_t>(l.point().size()), ErrorKind::Value,
                    "L-BFGS: the gradient has another size than the point");
            return word(l.advance(value, elements(gradient)));
          },
          py::arg("value"), py::arg("gradient"),
          "Takes value and gradient at `wanted`; says what that was: search, stepped, or why it "
          "ends.")
      .def("renew", &L::renew, "The function has changed: it is wanted at `point` again.")
      .def(
          "restart",
          [](L& l, const Vector<T>& point) {
            require(point.size() == static_cast<py::ssize_t>(l.point().size()), ErrorKind::Value,
                    "L-BFGS: the new point has another size than the old one");
            l.restart(elements(point));
          },
          py::arg("point"), "The point is another one; nothing is known of the function there.")
      .def_property_readonly(
          "wanted", [](const L& l) { return copied(l.wanted()); },
          "Where value and gradient are wanted.")
      .def_property_readonly(
          "point", [](const L& l) { return copied(l.point()); }, "The best point so far.")
      .def_property_readonly("value", &L::value, "The function there.")
      .def_property_readonly("steps", &L::steps, "How often the point has moved.");
}

}  // namespace

void bind_lbfgs(py::module_& m) {
  bind_minimiser<float>(m, "LbfgsFloat32");
  bind_minimiser<double>(m, "LbfgsFloat64");
}

}  // namespace gradcell::bind

// Trees of tensors: what nested tuples, lists and dicts hold, and the same tree with something else
// in the place of each tensor. Containers of other kinds (subclasses, dataclasses, registered
// classes) Python knows: base/tree.py.
#include "bind/bind.h"

namespace gradcell::bind {

namespace {

/// Python's part. (Never freed: Python may be gone.)
struct Rules {
  py::object parts;    ///< parts(x): what x holds; None: it is a leaf
  py::object mapped;   ///< mapped(fn, x), for a container of another kind, or a leaf
  py::object endless;  ///< endless(tree) raises: it contains itself
};
Rules& rules() {
  static auto* const made = new Rules;
  return *made;
}

bool is_tensor(PyObject* o) {
  static PyTypeObject* const type = reinterpret_cast<PyTypeObject*>(py::type::of<Tensor>().ptr());
  return PyObject_TypeCheck(o, type);
}

bool is_plain_leaf(PyObject* o) {
  return o == Py_None || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) ||
         PyUnicode_CheckExact(o);
}

/// f(...) in Python.
template <class... Args>
py::object python(const py::object& f, const Args&... args) {
  return calling_python([&]() -> py::object { return f(args...); });
}

/// One level of a tree, which has to end.
class Level {
 public:
  Level() {
    if (Py_EnterRecursiveCall(" in a tree")) throw py::error_already_set();
  }
  ~Level() { Py_LeaveRecursiveCall(); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
};

py::object values_of(PyObject* dict) {
  return py::reinterpret_steal<py::object>(PyDict_Values(dict));
}

void collect(PyObject* o, py::list& out) {
  if (is_tensor(o)) return out.append(py::handle(o));
  if (is_plain_leaf(o)) return;
  const Level level;
  const bool sequence = PyTuple_CheckExact(o) || PyList_CheckExact(o);
  const py::object held = sequence               ? py::reinterpret_borrow<py::object>(o)
                          : PyDict_CheckExact(o) ? values_of(o)
                                                 : python(rules().parts, py::handle(o));
  if (!held.is_none())
    for (py::handle part : held) collect(part.ptr(), out);
}

py::object mapped(const py::object& fn, PyObject* o) {
  if (is_tensor(o)) return python(fn, py::handle(o));
  if (is_plain_leaf(o)) return py::reinterpret_borrow<py::object>(o);
  const Level level;
  if (PyTuple_CheckExact(o)) {
    const auto held = py::reinterpret_borrow<py::tuple>(o);
    py::tuple made(held.size());
    for (size_t i = 0; i < held.size(); ++i) made[i] = mapped(fn, held[i].ptr());
    return made;
  }
  if (PyList_CheckExact(o)) {
    const auto held =
        py::reinterpret_steal<py::tuple>(PyList_AsTuple(o));  // fn may change the list
    py::list made;
    for (py::handle part : held) made.append(mapped(fn, part.ptr()));
    return made;
  }
  if (PyDict_CheckExact(o)) {
    const auto held = py::reinterpret_steal<py::list>(PyDict_Items(o));
    py::dict made;
    for (py::handle item : held)
      made[PyTuple_GET_ITEM(item.ptr(), 0)] = mapped(fn, PyTuple_GET_ITEM(item.ptr(), 1));
    return made;
  }
  return python(rules().mapped, fn, py::handle(o));
}

/// walk(tree), which raises for a tree without an end.
template <class F>
auto in_finite(py::handle tree, F walk) {
  try {
    return walk();
  } catch (py::error_already_set& e) {
    if (!e.matches(PyExc_RecursionError)) throw;
  }
  python(rules().endless, tree);
  throw std::logic_error("endless returned");
}

}  // namespace

void bind_trees(py::module_& m) {
  m.def(
      "leaves",
      [](py::handle tree) {
        return in_finite(tree, [&] {
          py::list out;
          collect(tree.ptr(), out);
          return out;
        });
      },
      py::arg("tree"), "The tensors of a tree, depth first.");
  m.def(
      "map_leaves",
      [](const py::object& fn, py::handle tree) {
        return in_finite(tree, [&] { return mapped(fn, tree.ptr()); });
      },
      py::arg("fn"), py::arg("tree"),
      "The same tree with fn(t) in the place of each tensor t; other leaves stay.");
  m.def(
      "set_trees",
      [](py::object parts, py::object mapped, py::object endless) {
        rules() = {std::move(parts), std::move(mapped), std::move(endless)};
      },
      py::arg("parts"), py::arg("mapped"), py::arg("endless"),
      "What Python knows of containers of other kinds.");
}

}  // namespace gradcell::bind

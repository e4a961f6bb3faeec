// dtype and Tensor: construction, values, NumPy and DLPack.
#include "bind/bind.h"

#include <cstring>
#include <stdexcept>

#include "runtime/occurrences.h"
#include "runtime/placement.h"

namespace gradcell::bind {

namespace {

/// A tensor that is a variable.
class ParameterBase : public Tensor {
 public:
  using Tensor::Tensor;
};

py::object& converter() {
  static auto* fn = new py::object;
  return *fn;
}

py::object& number_dtype() {
  static auto* fn = new py::object;
  return *fn;
}

std::vector<py::object>& dtype_objects() {
  static auto* objects = new std::vector<py::object>;
  return *objects;
}

/// NumPy's code for arrays of such elements; what it has no dtype for comes as bit patterns.
std::string numpy_code(DType t) {
  if (t == DType::Bool) return "?";
  const bool bits = is_narrow_float(t) && t != DType::Float16;
  const char* kind = bits || is_unsigned(t) ? "u"
                     : is_complex(t)        ? "c"
                     : is_floating(t)       ? "f"
                                            : "i";
  return str(kind, item_size(t));
}
py::dtype numpy_dtype(DType t) { return py::dtype(numpy_code(t)); }

/// A new array from a C-contiguous, native, aligned NumPy array.
Array array_from(const py::array& a, DType t, bool share) {
  Dims dims(a.shape(), a.shape() + a.ndim());
  if (share) {
    PyObject* owner = a.inc_ref().ptr();
    Array out{t, dims, nullptr};
    out.storage =
        Storage::wrap(const_cast<void*>(a.data()), static_cast<size_t>(a.nbytes()), a.writeable(),
                      [owner] { with_gil([owner] { Py_DECREF(owner); }); });
    return out;
  }
  Array out = empty_array(t, dims);
  std::memcpy(out.data(), a.data(), out.bytes());
  return out;
}

/// What the Python converter makes of anything: (contiguous array, dtype), or a tensor.
Array convert(py::handle data, py::handle dtype) {
  py::object result = calling_python([&] { return converter()(data, dtype); });
  if (py::isinstance<Tensor>(result)) return result.cast<TensorPtr>()->value();
  auto made = py::reinterpret_borrow<py::tuple>(result);
  return array_from(made[0].cast<py::array>(), made[1].cast<DTypeObject>().value, false);
}

/// Numbers of Python that are made a tensor once their dtype is known.
Numbers numbers(Number::Kind kind, Dims dims, py::handle value) {
  auto kept = py::reinterpret_borrow<py::object>(value);
  return {kind, std::move(dims), [kept](DType wanted) {
            try {
              return std::make_shared<Tensor>(convert(kept, dtype_object(wanted)));
            } catch (py::error_already_set& error) {
              if (!error.matches(PyExc_OverflowError)) throw;
              throw std::overflow_error(py::str(error.value()));
            }
          }};
}

/// f() as a tensor, other threads running Python meanwhile.
template <class F>
TensorPtr computed(F f) {
  WithoutGil nogil;
  return std::make_shared<Tensor>(f());
}

/// The two of f() as tensors, likewise.
template <class F>
std::pair<TensorPtr, TensorPtr> both(F f) {
  WithoutGil nogil;
  auto [a, b] = f();
  return {std::make_shared<Tensor>(std::move(a)), std::make_shared<Tensor>(std::move(b))};
}

py::tuple shape_tuple(const Dims& dims) {
  py::tuple t(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) t[i] = py::int_(dims[i]);
  return t;
}

}  // namespace

py::array view(const Array& a, bool writable) {
  if (!a.storage->on_host()) {
    WithoutGil nogil;
    a.data();
  }
  auto* keep = new std::shared_ptr<Storage>(a.storage);
  py::capsule owner(keep, [](void* p) { delete static_cast<std::shared_ptr<Storage>*>(p); });
  py::array array(numpy_dtype(a.dtype), a.dims, a.data(), owner);
  // A GPU's copy would not see what is written here.
  if (!writable || a.storage->has_device() || !a.storage->writable())
    py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

bool is_plain(Tensor& x) {
  return !x.traced() && !x.variable() && !x.root().traced() && !x.root().variable();
}

py::object dtype_object(DType t) { return dtype_objects()[static_cast<size_t>(t)]; }

PyTypeObject* type_of(const char* module, const char* name) {
  py::object type = py::module_::import(module).attr(name);
  return reinterpret_cast<PyTypeObject*>(type.release().ptr());
}

TensorPtr to_tensor(py::handle value, const char* op, py::handle dtype) {
  if (py::isinstance<Tensor>(value)) return value.cast<TensorPtr>();
  require(!value.is_none() && !PyUnicode_Check(value.ptr()), ErrorKind::Type, op,
          ": expected a Tensor, got ", Py_TYPE(value.ptr())->tp_name);
  return std::make_shared<Tensor>(convert(value, dtype));
}

TensorPtr only_tensor(py::handle value, const char* op) {
  if (py::isinstance<Tensor>(value)) return value.cast<TensorPtr>();
  require(is_array(value) || is_scalar(value), ErrorKind::Type, op, ": expected a Tensor, got ",
          Py_TYPE(value.ptr())->tp_name, "; gradcell.Tensor(x) makes one of a number or a list");
  return to_tensor(value, op);
}

bool is_array(py::handle value) {
  static PyObject* const protocols[] = {PyUnicode_InternFromString("__array__"),
                                        PyUnicode_InternFromString("__dlpack__"),
                                        PyUnicode_InternFromString("__cuda_array_interface__"),
                                        PyUnicode_InternFromString("__array_interface__")};
  if (py::isinstance<Tensor>(value) || is_scalar(value) || PyType_Check(value.ptr())) return false;
  // (An attribute may be the object's own; a class that computes attributes is not asked for them.)
  PyTypeObject* const type = Py_TYPE(value.ptr());
  const bool plain = type->tp_getattro == PyObject_GenericGetAttr;
  const py::handle from = plain ? value : py::handle(reinterpret_cast<PyObject*>(type));
  return std::ranges::any_of(protocols, [&](PyObject* name) { return py::hasattr(from, name); });
}

bool is_scalar(py::handle value) {
  static PyTypeObject* const generic = type_of("numpy", "generic");
  return PyType_IsSubtype(Py_TYPE(value.ptr()), generic);
}

bool is_operand(py::handle v) {
  PyObject* p = v.ptr();
  return py::isinstance<Tensor>(v) || PyFloat_Check(p) || PyLong_Check(p) || PyComplex_Check(p) ||
         PyIndex_Check(p) || PyList_Check(p) || PyTuple_Check(p) || is_scalar(v) || is_array(v);
}

/// Whether it is a tensor or a list or tuple with one somewhere in it.
static bool holds_tensors(py::handle value) {
  if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr()))
    return py::isinstance<Tensor>(value);
  return std::ranges::any_of(value, [](py::handle part) { return holds_tensors(part); });
}

/// What NumPy calls the kind of a scalar of its own; 0 of anything else. Asked before whether it is
/// an index, which NumPy's bools were before NumPy 2.3.
static char scalar_kind(py::handle value) {
  if (!is_scalar(value)) return 0;
  return py::str(value.attr("dtype").attr("kind")).cast<std::string>()[0];
}

TensorOrNumber to_operand(py::handle value, const char* op, Lists lists) {
  PyObject* p = value.ptr();
  if (py::isinstance<Tensor>(value)) return value.cast<TensorPtr>();
  if (PyBool_Check(p)) return Number{Number::Kind::Bool, p == Py_True ? 1.0 : 0.0, p == Py_True};
  if (PyFloat_Check(p)) return Number{Number::Kind::Float, PyFloat_AS_DOUBLE(p), 0};
  const char kind = scalar_kind(value);
  if (kind == 'b')
    return Number{Number::Kind::Bool, double(value.cast<bool>()), value.cast<bool>()};
  if (PyLong_Check(p) || (PyIndex_Check(p) && (kind != 0 || !is_array(value)))) {
    py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(p));
    if (!index) throw py::error_already_set();
    int overflow = 0;
    long long i = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow != 0) return numbers(Number::Kind::Int, {}, index);
    return Number{Number::Kind::Int, static_cast<double>(i), i};
  }
  if (PyComplex_Check(p) || kind == 'c') return numbers(Number::Kind::Complex, {}, value);
  if (kind == 'f' || kind == 'V')  // ('V': those that NumPy does not know, bfloat16)
    return Number{Number::Kind::Float, py::float_(py::reinterpret_borrow<py::object>(value)), 0};
  require(PyList_Check(p) || PyTuple_Check(p) || is_array(value), ErrorKind::Type, op,
          ": expected a Tensor or a number, got ", Py_TYPE(p)->tp_name);
  if (PyList_Check(p) || PyTuple_Check(p)) {
    const bool tensors = holds_tensors(value);
    require(!tensors || lists == Lists::Joined, ErrorKind::Type, op, ": a ", Py_TYPE(p)->tp_name,
            " with tensors in it is no operand; gradcell.ops.stack makes one tensor of it, and "
            "where it is a pair that a function gave, choose one of the two");
    if (tensors)  // through which derivatives go
      return py::module_::import("gradcell.tensors.indexing")
          .attr("tensor_of_list")(value)
          .cast<TensorPtr>();
    py::object found = number_dtype()(value);
    if (!found.is_none()) {
      const DType t = found.cast<DTypeObject>().value;
      const auto kind = is_complex(t)       ? Number::Kind::Complex
                        : t == DType::Bool  ? Number::Kind::Bool
                        : t == DType::Int64 ? Number::Kind::Int
                                            : Number::Kind::Float;
      // In a dtype that holds what any other does, for the dimensions alone.
      const DType holds = is_complex(t) ? DType::Complex128 : DType::Float64;
      return numbers(kind, convert(value, dtype_object(holds)).dims, value);
    }
  }
  return to_tensor(value, op);
}

namespace {

void bind_dtypes(py::module_& m) {
  py::class_<DTypeObject> dtype(m, "DType", "An element type, for instance gradcell.float32.");
  dtype
      .def_property_readonly("name",
                             [](const DTypeObject& d) { return std::string(name(d.value)); })
      .def_property_readonly("itemsize", [](const DTypeObject& d) { return item_size(d.value); })
      .def_property_readonly("is_floating",
                             [](const DTypeObject& d) { return is_floating(d.value); })
      .def_property_readonly("is_complex", [](const DTypeObject& d) { return is_complex(d.value); })
      .def_property_readonly(
          "is_narrow_float", [](const DTypeObject& d) { return is_narrow_float(d.value); },
          "Whether numbers are computed as float32 and rounded: float16, bfloat16.")
      .def_property_readonly(
          "numpy_code", [](const DTypeObject& d) { return numpy_code(d.value); },
          "The code of arrays of its elements, or of their bits where NumPy has no such dtype.")
      .def("__str__", [](const DTypeObject& d) { return std::string(info(d.value).printed); })
      .def("__repr__",
           [](const DTypeObject& d) { return "gradcell." + std::string(name(d.value)); })
      .def("__hash__", [](const DTypeObject& d) { return narrow<int>(d.value); })
      .def("__eq__",
           [](const DTypeObject& a, py::handle b) {
             return py::isinstance<DTypeObject>(b) && b.cast<DTypeObject>().value == a.value;
           })
      .def("__reduce__", [](const DTypeObject& d) {
        return py::make_tuple(py::module_::import("gradcell._core").attr("dtype_named"),
                              py::make_tuple(std::string(name(d.value))));
      });
  for (int i = 0; i < kDTypeCount; ++i) {
    dtype_objects().push_back(py::cast(DTypeObject{static_cast<DType>(i)}));
    m.attr(std::string(name(static_cast<DType>(i))).c_str()) = dtype_objects().back();
  }
  m.def("holds_tensors", &holds_tensors,
        "Whether it is a tensor, or a list or tuple with one somewhere in it.");
  m.def("dtypes", [] { return py::tuple(py::cast(dtype_objects())); });
  m.def("dtype_named", [](const std::string& wanted) -> py::object {
    for (int i = 0; i < kDTypeCount; ++i)
      if (name(static_cast<DType>(i)) == wanted) return dtype_object(static_cast<DType>(i));
    fail(ErrorKind::Type, "no dtype is called ", wanted);
  });
  m.def("default_dtype", [] { return dtype_object(default_float()); });
  m.def("set_default_dtype", [](DTypeObject t) { set_default_float(t.value); });
  m.def("promote",
        [](DTypeObject a, DTypeObject b) { return dtype_object(promote(a.value, b.value)); });
  m.def("promote_number", [](DTypeObject t, py::handle number) {
    const TensorOrNumber o = to_operand(number, "promote_number");
    if (auto* n = std::get_if<Number>(&o)) return dtype_object(promote(t.value, n->kind));
    auto* n = std::get_if<Numbers>(&o);
    require(n, ErrorKind::Type, "promote_number: expected a number");
    return dtype_object(promote(t.value, n->kind));
  });
}

void bind_conversion(py::module_& m) {
  m.def("set_converter", [](py::object to_array, py::object dtype_of_numbers) {
    converter() = std::move(to_array);
    number_dtype() = std::move(dtype_of_numbers);
  });
  m.def("is_array", &is_array, "Whether it is an array of another library.");
  m.def(
      "from_numpy",
      [](const py::array& a, DTypeObject t) {
        return std::make_shared<Tensor>(array_from(a, t.value, true));
      },
      "A tensor that shares a contiguous array's memory.");
}

/// What looks at elements, which no graph can: sizes that depend on values.
void bind_elements(py::module_& m) {
  m.def(
      "elements_along",
      [](const Tensor& x, int64_t axis, const Tensor& index) {
        const Array value = x.value(), at = index.value();
        return computed([&] { return elements_along(value, axis, at); });
      },
      "The elements at indices along an axis, in their shape, which is x's but along the axis.");
  m.def(
      "bounds",
      [](const Tensor& x) {
        const Array value = x.value();
        WithoutGil nogil;
        return bounds(value);
      },
      "(The smallest, the largest) of integers; (0, -1) of none.");
  m.def(
      "joined_index",
      [](const std::vector<TensorPtr>& indices, const std::vector<int64_t>& sizes) -> TensorPtr {
        std::vector<Array> values;
        for (const TensorPtr& t : indices) values.push_back(t->value());
        std::optional<Array> joined = joined_index(values, sizes);
        return joined ? std::make_shared<Tensor>(std::move(*joined)) : nullptr;
      },
      py::arg("indices"), py::arg("sizes"),
      "One index over axes of these sizes taken as one, of indices along each with values; None if "
      "they are not integers of one shape. Raises IndexError.");
  m.def(
      "write_slices",
      [](const TensorPtr& x, int64_t axis, int64_t count, const Tensor& places,
         const Tensor& values) {
        const Array at = places.value(), now = values.value();
        if (x->root().captured()) bump_structure_version();
        return write_slices(x, axis, count, at, now);
      },
      py::arg("x"), py::arg("axis"), py::arg("count"), py::arg("places"), py::arg("values"),
      "Writes slices along axes taken as one, at places in their order; False if another way has "
      "to\n"
      "be gone, and nothing is written.");
  m.def(
      "with_elements",
      [](const Tensor& x, int64_t axis, const Tensor& index, const Tensor& values, bool added) {
        const Array from = x.value(), at = index.value(), now = values.value();
        return computed([&] { return with_elements(from, axis, at, now, added); });
      },
      "x with values at indices along an axis; of several for one place the last stays, or all are "
      "added.");
  m.def(
      "with_slices_added",
      [](const Tensor& x, int64_t axis, const Tensor& places, const Tensor& values) {
        const Array from = x.value(), at = places.value(), more = values.value();
        return computed([&] { return with_slices_added(from, axis, at, more); });
      },
      "x with slices added at places along an axis.");
  m.def(
      "first_occurrences",
      [](const Tensor& x, DTypeObject place) {
        const Array value = x.value();
        return both([&] { return first_occurrences(value, place.value); });
      },
      "(The positions where different elements first occur, int64; each element's place among "
      "them).");
  m.def(
      "runs",
      [](const Tensor& x) {
        const Array value = x.value();
        return both([&] { return runs(value); });
      },
      "(The positions of elements that differ from the one before, int64; those elements).");
  m.def(
      "counts_of",
      [](const Tensor& x, int64_t length) {
        const Array value = x.value();
        return computed([&] { return counts_of(value, length); });
      },
      "How often each number from 0 to length - 1 occurs, float32.");
  m.def(
      "places_not_zero",
      [](const Tensor& x) {
        const Array value = x.value();
        WithoutGil nogil;
        return std::make_shared<Tensor>(places_not_zero(value));
      },
      "The coordinates of the elements that are not zero, int64 [count, rank].");
  m.def(
      "places_in_triangle",
      [](int64_t rows, int64_t columns, int64_t offset, bool below) {
        return computed([&] { return places_in_triangle(rows, columns, offset, below); });
      },
      "The coordinates of the elements on and below (above) a diagonal, int64 [2, count].");
}

void bind_tensor_class(py::module_& m) {
  py::class_<Tensor, TensorPtr>(
      m, "Tensor", py::dynamic_attr(),
      "An n-dimensional array of one dtype. While a function is differentiated or compiled, its\n"
      "tensors stand for nodes of the recorded graph.\n\n"
      "input_data: a number, nested lists or tuples of equal lengths, a NumPy array (which is\n"
      "copied) or a tensor. dtype: by default the dtype of the data; float32 for Python floats,\n"
      "int64 for Python integers. Raises TypeError for data that are not numbers and for lists\n"
      "of unequal lengths.\n\n"
      "shape: of a tensor without data, Tensor(shape=, dtype=, init=), which is initializer(init,\n"
      "shape, dtype); without init only the shape and the dtype count, and a size that is not "
      "known\n"
      "is None. init: an initialiser or its name. const_arg, device: accepted for compatibility "
      "with\n"
      "MindSpore; tensors are where the context says. Raises ValueError for shape or init beside\n"
      "input_data or without dtype.")
      .def(py::init([](py::object data, py::object dtype) -> TensorPtr {
             if (py::isinstance<Tensor>(data)) {
               const auto x = data.cast<TensorPtr>();
               if (dtype.is_none()) return gradcell::view(x, {});
               if (!is_plain(*x) && py::isinstance<DTypeObject>(dtype))  // gradients go through
                 return cast(x, dtype.cast<DTypeObject>().value);
             }
             return std::make_shared<Tensor>(convert(data, dtype));
           }),
           py::arg("input_data"), py::arg("dtype") = py::none())
      .def(py::init([](py::object shape, py::object dtype, py::object init) -> TensorPtr {
             py::object shaped = py::module_::import("gradcell.tensors.tensor").attr("shaped");
             return std::make_shared<Tensor>(shaped(shape, dtype, init).cast<TensorPtr>()->value());
           }),
           py::kw_only(), py::arg("shape"), py::arg("dtype"), py::arg("init") = py::none())
      .def_property_readonly(
          "shape", [](const Tensor& t) { return shape_tuple(t.dims()); },
          "The sizes of the dimensions, a tuple of ints.")
      .def_property_readonly(
          "dtype", [](const Tensor& t) { return dtype_object(t.dtype()); }, "The elements' dtype.")
      .def_property_readonly(
          "ndim", [](const Tensor& t) { return t.dims().size(); }, "The number of dimensions.")
      .def_property_readonly(
          "size", [](const Tensor& t) { return element_count(t.dims()); },
          "The number of elements.")
      .def_property_readonly("_traced", &Tensor::traced)
      .def_property_readonly("_is_variable",
                             [](const Tensor& t) { return t.variable() != nullptr; })
      .def("_variable_id",
           [](const Tensor& t) { return t.variable() ? t.variable()->number() : 0; })
      .def(
          "_numpy", [](const Tensor& t) { return view(t.value(), false); },
          "The elements as an array for reading (bfloat16 as uint16 patterns).")
      .def(
          "_shared_numpy", [](Tensor& t) { return view(t.shared_array(), true); },
          "The same, for one who may write to the tensor's memory.")
      .def("_data_pointer",
           [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.value().data()); });
}

/// Tensors that can be written to.
void bind_parameters(py::module_& m) {
  m.def(
      "write",
      [](const TensorPtr& x, const TensorPtr& value) {
        if (x->root().captured()) bump_structure_version();
        write(x, value);
      },
      py::arg("x"), py::arg("value"),
      "Gives x's elements those of value, cast and broadcast; of a view, in its base.");
  m.def(
      "snapshot",
      [](const std::vector<TensorPtr>& tensors) {
        std::vector<VariablePtr> variables;
        if (!current_trace())
          for (const TensorPtr& t : tensors)
            if (t->variable()) variables.push_back(t->variable());
        std::vector<Array> values = values_of(variables);
        auto value = values.begin();
        std::vector<TensorPtr> out;
        for (const TensorPtr& t : tensors)
          out.push_back(std::make_shared<Tensor>(
              shared(t->variable() && value != values.end() ? *value++ : t->value())));
        return out;
      },
      py::arg("tensors"),
      "The present elements as tensors of their own; those of parameters as they are at one time.");
  m.def("copy", &copy, py::arg("x"), "A tensor of its own with the same elements.");

  // A Parameter is made of a variable: see python/gradcell/tensors/parameter.py.
  py::class_<ParameterBase, Tensor, std::shared_ptr<ParameterBase>>(m, "ParameterBase",
                                                                    py::dynamic_attr())
      .def(py::init([](const TensorPtr& value) {
        Trace* t = current_trace();
        if (!t) return std::make_shared<ParameterBase>(std::make_shared<Variable>(value->value()));
        const NodeId node = value->in(*t);
        const bool known = !value->traced() || t->is_fixed(node);
        return std::make_shared<ParameterBase>(t->born(
            known ? std::make_shared<Variable>(value->value())
                  : std::make_shared<Variable>(Type{t->graph.dtype(node), t->graph.dims(node)}),
            node, known));
      }))
      .def("_set_array",
           [](ParameterBase& p, const TensorPtr& value) {
             Trace* t = current_trace();
             if (t)
               t->assign(p.variable(), value->in(*t));
             else
               p.variable()->set(value->value());
           })
      .def(
          "_stored",
          [](ParameterBase& p) { return std::make_shared<Tensor>(p.variable()->value()); },
          "The present elements, also inside a trace, which does not see it.")
      .def(
          "_node_tensor", [](const std::shared_ptr<ParameterBase>& p) { return gradcell::copy(p); },
          "The value as a plain tensor: a node inside a trace, the present elements outside.");
}

}  // namespace

void bind_watch(py::module_& m) {
  py::class_<Watch>(m, "Watch", "A look at an int32 that steps leave behind, without a wait.")
      .def(py::init<>())
      .def(py::pickle([](const Watch&) { return py::tuple(); },  // a copy begins anew
                      [](const py::tuple&) { return std::make_unique<Watch>(); }))
      .def(
          "look", [](Watch& w, ParameterBase& p) { return w.look(p.variable()->value()); },
          "The present element, as far as it is known: a GPU's is sent for at every 32nd look, and "
          "has come by the next such one.");
}

void bind_tensor(py::module_& m) {
  bind_dtypes(m);
  bind_conversion(m);
  bind_elements(m);
  bind_tensor_class(m);
  bind_parameters(m);
  bind_watch(m);
}

}  // namespace gradcell::bind

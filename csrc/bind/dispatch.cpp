// Dispatcher: a callable that runs a compiled trace without entering Python when the arguments look
// as they did before, and calls a Python function that traces when they do not.
//
// An entry's signature is flat: each argument is a plain tensor (dtype and shape), a parameter or
// any other object (by identity, or by value for numbers, strings and None). Trees of tensors are
// left to the Python side, which has signatures of its own.
#include "bind/bind.h"

#include <structmember.h>

#include <bit>
#include <cstddef>

namespace gradcell::bind {

namespace {

struct Argument {
  bool tensor = false;
  DType dtype = DType::Float32;
  Dims dims;
  py::object object;  ///< what is no plain tensor
};

struct Entry {
  uint64_t version;
  std::vector<Argument> arguments;
  std::shared_ptr<Compiled> compiled;
  py::object fill;     ///< makes the result of a list of tensors; None: a single tensor
  bool tuple = false;  ///< the result is a flat tuple
};

struct Dispatcher {
  PyObject_HEAD vectorcallfunc call;
  PyObject* dict;
  PyObject* weak;
  PyObject* slow;
  std::vector<Entry>* entries;
};

uint64_t g_version = 0;  ///< of what compiled functions depend on and arguments do not show

PyTypeObject* tensor_type() {
  static PyTypeObject* type = reinterpret_cast<PyTypeObject*>(py::type::of<Tensor>().ptr());
  return type;
}

/// The C++ tensor inside an exact Tensor object, without pybind11's generic casting.
Tensor* tensor_in(PyObject* o) {
  if (Py_TYPE(o) != tensor_type()) return nullptr;
  return py::handle(o).cast<Tensor*>();
}

bool same_object(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_Check(a))  // by bits: 0.0 is not -0.0, and NaN is itself
    return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(a)) ==
           std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(b));
  if (!PyLong_Check(a) && !PyUnicode_Check(a)) return false;
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

const Entry* find(const Dispatcher* self, PyObject* const* args, size_t n, Tensor** tensors) {
  for (const Entry& e : *self->entries) {
    if (e.version != g_version || e.arguments.size() != n) continue;
    bool same = true;
    for (size_t i = 0; same && i < n; ++i) {
      const Argument& a = e.arguments[i];
      if (a.tensor) {
        tensors[i] = tensor_in(args[i]);
        same = tensors[i] && !tensors[i]->traced() && tensors[i]->dtype() == a.dtype &&
               tensors[i]->dims() == a.dims;
      } else {
        same = same_object(args[i], a.object.ptr());
      }
    }
    if (same) return &e;
  }
  return nullptr;
}

PyObject* run(const Entry& e, Tensor* const* tensors) {
  Array inline_arrays[8];
  std::vector<Array> many;
  size_t n = e.arguments.size();
  if (n > 8) many.resize(n);
  Array* in = n > 8 ? many.data() : inline_arrays;
  size_t count = 0;
  for (size_t i = 0; i < n; ++i)
    if (e.arguments[i].tensor) in[count++] = tensors[i]->value();
  std::shared_ptr<Compiled> compiled = e.compiled;  // a reentrant call may change the entries
  std::vector<Array> out;
  if (compiled->executable->work() > 20000) {
    py::gil_scoped_release nogil;
    out = compiled->run({in, count});
  } else {
    out = compiled->run({in, count});
  }
  auto wrap = [](Array& a) { return py::cast(std::make_shared<Tensor>(std::move(a))); };
  if (e.fill.is_none() && !e.tuple) return wrap(out[0]).release().ptr();
  if (e.tuple) {
    py::tuple result(out.size());
    for (size_t i = 0; i < out.size(); ++i) result[i] = wrap(out[i]);
    return result.release().ptr();
  }
  py::list tensors_out;
  for (Array& a : out) tensors_out.append(wrap(a));
  return e.fill(tensors_out).release().ptr();
}

PyObject* dispatch(PyObject* self_object, PyObject* const* args, size_t flags, PyObject* names) {
  auto* self = reinterpret_cast<Dispatcher*>(self_object);
  size_t n = PyVectorcall_NARGS(flags);
  if (!names && n <= 32 && !current_trace()) {
    Tensor* tensors[32];
    try {
      if (const Entry* e = find(self, args, n, tensors)) return run(*e, tensors);
    } catch (py::error_already_set& e) {
      e.restore();
      return nullptr;
    } catch (...) {
      // The translators know gradcell's errors; they are reached through pybind11.
      try {
        py::detail::try_translate_exceptions();
      } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, "unknown error");
      }
      return nullptr;
    }
  }
  return PyObject_Vectorcall(self->slow, args, flags, names);
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* slow = nullptr;
  if (!PyArg_ParseTuple(args, "O", &slow)) return nullptr;
  auto* self = reinterpret_cast<Dispatcher*>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->call = dispatch;
  self->dict = PyDict_New();
  self->weak = nullptr;
  Py_INCREF(slow);
  self->slow = slow;
  self->entries = new std::vector<Entry>;
  return reinterpret_cast<PyObject*>(self);
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<Dispatcher*>(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(self->dict);
  Py_VISIT(self->slow);
  return 0;
}

int clear(PyObject* o) {
  auto* self = reinterpret_cast<Dispatcher*>(o);
  Py_CLEAR(self->dict);
  Py_CLEAR(self->slow);
  if (self->entries) self->entries->clear();
  return 0;
}

void destroy(PyObject* o) {
  auto* self = reinterpret_cast<Dispatcher*>(o);
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (self->weak) PyObject_ClearWeakRefs(o);
  clear(o);
  delete self->entries;
  type->tp_free(o);
  Py_DECREF(type);
}

/// A dispatcher that is a class attribute is a method.
PyObject* bind_to(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, instance);
}

PyObject* add_entry(PyObject* o, PyObject* args) {
  auto* self = reinterpret_cast<Dispatcher*>(o);
  PyObject *arguments, *compiled, *fill;
  int tuple;
  if (!PyArg_ParseTuple(args, "O!OOp", &PyTuple_Type, &arguments, &compiled, &fill, &tuple))
    return nullptr;
  try {
    Entry e;
    e.version = g_version;
    for (py::handle a : py::reinterpret_borrow<py::tuple>(arguments)) {
      Argument argument;
      if (Tensor* t = tensor_in(a.ptr())) {
        argument.tensor = true, argument.dtype = t->dtype(), argument.dims = t->dims();
      } else {
        argument.object = py::reinterpret_borrow<py::object>(a);
      }
      e.arguments.push_back(std::move(argument));
    }
    e.compiled = py::handle(compiled).cast<std::shared_ptr<Compiled>>();
    e.fill = py::reinterpret_borrow<py::object>(fill);
    e.tuple = tuple;
    auto& entries = *self->entries;
    std::erase_if(entries, [](const Entry& old) { return old.version != g_version; });
    if (entries.size() >= 64) entries.pop_back();
    entries.insert(entries.begin(), std::move(e));
  } catch (py::error_already_set& error) {
    error.restore();
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"_add", add_entry, METH_VARARGS,
                          "Remembers a compiled form: (arguments, compiled, fill, is_tuple)."},
                         {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Dispatcher, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Dispatcher, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Dispatcher, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(bind_to)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_tp_getset, properties},
                       {0, nullptr}};
PyType_Spec spec = {
    "gradcell._core.Dispatcher", sizeof(Dispatcher), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE,
    slots};

}  // namespace

void bump_structure_version() { ++g_version; }

void bind_dispatch(py::module_& m) {
  m.add_object("Dispatcher", py::reinterpret_steal<py::object>(PyType_FromSpec(&spec)));
  m.def("structure_version", [] { return g_version; });
  m.def("bump_structure_version", &bump_structure_version,
        "Makes compiled functions look again: something that they may depend on has changed.");
}

}  // namespace gradcell::bind

// The extension's entry point. Tensors, plans and caches belong to the process, so that only the
// main interpreter can have it.
#include "bind/bind.h"

namespace {

bool in_main_interpreter() { return PyInterpreterState_Get() == PyInterpreterState_Main(); }

constexpr const char* kRefusal =
    "gradcell cannot be imported in a subinterpreter: import it in the main interpreter, or in a "
    "process of its own";

}  // namespace

#define PyInit__core init_core  // pybind11's, behind the check below
PYBIND11_MODULE(_core, m) {
  using namespace gradcell::bind;
  if (!in_main_interpreter()) throw pybind11::import_error(kRefusal);
  m.doc() = "gradcell's core: graph, adjoints, kernels.";
  bind_location(m);
  bind_tensor(m);
  bind_ops(m);
  bind_trace(m);
  bind_calls(m);
  bind_dispatch(m);
  bind_spelling(m);
  bind_trees(m);
  bind_inspect(m);
  bind_profile(m);
  bind_cuda(m);
  bind_exchange(m);
  bind_communication(m);
  bind_quasi_newton(m);
}
#undef PyInit__core

extern "C" PYBIND11_EXPORT PyObject* PyInit__core() {
  // Up to Python 3.11 pybind11's own start would wait for the main interpreter's lock, for ever;
  // from 3.12 on this runs in the main interpreter.
  if (in_main_interpreter()) return init_core();
  PyErr_SetString(PyExc_ImportError, kRefusal);
  return nullptr;
}

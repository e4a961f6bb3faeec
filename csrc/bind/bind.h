// What the files of the binding share. pybind11 calls only: nothing here computes.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "base/promotion.h"
#include "bind/gil.h"
#include "runtime/frontend.h"

namespace gradcell::bind {

namespace py = pybind11;

/// A dtype as Python sees it.
struct DTypeObject {
  DType value;
};
py::object dtype_object(DType t);
/// A constant's bits as a float or an int.
py::object number(DType t, uint64_t bits);

/// What a row of the op table computes, for docstrings.
std::string row_text(Op op);
Location python_location();

/// Whether a list with tensors in it is taken as one tensor of them.
enum class Lists { Refused, Joined };
/// The one rule of what a Tensor is made of where one is needed: an array of another library
/// becomes a Tensor of its own dtype. Beside a Tensor, numbers and lists of them take its dtype
/// (to_operand); where a Tensor alone has a meaning they are none (only_tensor), or become one too
/// (to_tensor). Throw Type, naming op.
TensorOrNumber to_operand(py::handle value, const char* op, Lists lists = Lists::Refused);
TensorPtr only_tensor(py::handle value, const char* op);
TensorPtr to_tensor(py::handle value, const char* op, py::handle dtype = py::none());
/// Whether it says that it can be read as an array, and it is no Tensor; whether it is one of
/// NumPy's scalars, which are numbers.
bool is_array(py::handle value);
bool is_scalar(py::handle value);
/// A type of another module.
PyTypeObject* type_of(const char* module, const char* name);
/// The elements as an array that shares their memory (bfloat16 as uint16 patterns). writable: for
/// one who may write to them; not to memory whose owner forbids it.
py::array view(const Array& a, bool writable);
/// A node of a trace as a tensor, and tensors as nodes of it.
inline TensorPtr wrap(Trace& trace, NodeId id) {
  return std::make_shared<Tensor>(trace.shared_from_this(), id);
}
inline std::vector<NodeId> nodes(Trace& trace, const std::vector<TensorPtr>& tensors) {
  std::vector<NodeId> ids;
  for (const TensorPtr& t : tensors) ids.push_back(t->in(trace));
  return ids;
}
/// f(the current trace, ...) as a function of the rest.
template <class R, class... Args>
auto in_trace(R (*f)(Trace&, Args...)) {
  return [f](Args... args) -> R { return f(required_trace(), std::forward<Args>(args)...); };
}

/// Whether its value is fixed while the present trace lasts: neither traced nor a parameter's.
bool is_plain(Tensor& x);
/// Makes compiled functions look again at what they depend on.
void bump_structure_version();
/// What makes a callable that is a class attribute a method: for Py_tp_descr_get.
PyObject* bind_to(PyObject* self, PyObject* instance, PyObject* owner);

/// Runs the handlers of signals that came while C++ ran; throws what they raise. The next Python to
/// run may be a weak reference's callback, in which an exception is only printed: Ctrl-C would be
/// lost.
void answer_signals();
/// True for what an operator accepts on its other side.
bool is_operand(py::handle value);

void bind_location(py::module_& m);
void bind_tensor(py::module_& m);
void bind_ops(py::module_& m);
void bind_trace(py::module_& m);
void bind_calls(py::module_& m);
void bind_dispatch(py::module_& m);
void bind_spelling(py::module_& m);
void bind_trees(py::module_& m);
void bind_inspect(py::module_& m);
void bind_profile(py::module_& m);
void bind_cuda(py::module_& m);
void bind_exchange(py::module_& m);
void bind_communication(py::module_& m);
void bind_quasi_newton(py::module_& m);

}  // namespace gradcell::bind

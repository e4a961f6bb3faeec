// Spelling: a callable that hands its arguments to another under that one's names, without a frame
// of Python.
//
// Which arguments go where depends on how many come by place and on the names of the others. A
// Python function, `planned`, says it for each such form, once, and refuses a form that does not
// fit: (target, sources, how many of them by place, names of the rest, turns, then). A source is
// the number of an argument, in the call's order, or a 1-tuple of a constant. A turn is an
// argument's number and what makes of it what is handed on. then: None, or a function of the
// result, or such a function and the source of its second argument.
#include "bind/bind.h"
#include "bind/location.h"

#include <structmember.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace gradcell::bind {

namespace {

struct Source {
  Py_ssize_t index = -1;
  py::object constant;  ///< of index -1
};

struct Plan {
  Py_ssize_t count = 0;  ///< of arguments by place
  py::object names;      ///< of the others; null: none
  py::object target;
  std::vector<Source> sources;
  size_t by_place = 0;
  py::object target_names;  ///< of the sources that are not by place; null: none
  std::vector<std::pair<size_t, py::object>> turns;
  py::object then;  ///< null: the result is the target's
  bool second = false;
  Source then_source;
  bool as_given = false;  ///< all arguments, in their order, and nothing else
};
using PlanPtr = std::shared_ptr<const Plan>;

struct Spelling {
  PyObject_HEAD vectorcallfunc call;
  PyObject* dict;
  PyObject* weak;
  PyObject* planned;
  std::vector<PlanPtr>* plans;
};

/// More forms of calls than a program has; they begin anew.
constexpr size_t kMostPlans = 64;

Source source_of(py::handle from) {
  if (py::isinstance<py::tuple>(from)) return {-1, py::reinterpret_borrow<py::tuple>(from)[0]};
  return {from.cast<Py_ssize_t>(), {}};
}

PlanPtr make_plan(py::handle from, size_t count, PyObject* names) {
  const auto parts = py::reinterpret_borrow<py::tuple>(from);
  auto plan = std::make_shared<Plan>();
  plan->count = static_cast<Py_ssize_t>(count);
  plan->names = py::reinterpret_borrow<py::object>(names);
  plan->target = parts[0];
  for (py::handle each : parts[1]) plan->sources.push_back(source_of(each));
  plan->by_place = parts[2].cast<size_t>();
  const py::tuple target_names = parts[3];
  if (!target_names.empty()) plan->target_names = target_names;
  for (py::handle each : parts[4]) {
    const auto turn = py::reinterpret_borrow<py::tuple>(each);
    plan->turns.emplace_back(turn[0].cast<size_t>(), py::object(turn[1]));
  }
  if (const py::tuple then = parts[5]; !then.empty()) {
    plan->then = then[0];
    plan->second = then.size() > 1;
    if (plan->second) plan->then_source = source_of(then[1]);
  }
  const size_t given = count + (names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0);
  plan->as_given = plan->sources.size() == given;
  for (size_t i = 0; i < plan->sources.size(); ++i)
    plan->as_given = plan->as_given && plan->sources[i].index == static_cast<Py_ssize_t>(i);
  return plan;
}

bool same_names(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i) {
    PyObject *x = PyTuple_GET_ITEM(a, i), *y = PyTuple_GET_ITEM(b, i);
    if (x != y && PyUnicode_Compare(x, y) != 0) return false;
  }
  return true;
}

PlanPtr plan_for(Spelling* self, size_t count, PyObject* names) {
  if (names && PyTuple_GET_SIZE(names) == 0) names = nullptr;
  for (const PlanPtr& plan : *self->plans)
    if (plan->count == static_cast<Py_ssize_t>(count) && same_names(plan->names.ptr(), names))
      return plan;
  const auto planned = py::reinterpret_borrow<py::object>(self->planned);
  py::object said = planned(count, names ? py::reinterpret_borrow<py::tuple>(names) : py::tuple());
  PlanPtr plan = make_plan(said, count, names);
  if (self->plans->size() == kMostPlans) {
    const std::vector<PlanPtr> dropped = std::exchange(*self->plans, {});  // may run Python
  }
  self->plans->push_back(plan);
  return plan;
}

py::object hand_on(const Plan& plan, PyObject* const* args) {
  PyObject* inline_values[16];
  std::vector<PyObject*> many;
  const size_t size = plan.sources.size();
  PyObject** values = inline_values;
  if (size > std::size(inline_values)) many.resize(size), values = many.data();
  for (size_t i = 0; i < size; ++i) {
    const Source& source = plan.sources[i];
    values[i] = source.index < 0 ? source.constant.ptr() : args[source.index];
  }
  return py::reinterpret_steal<py::object>(
      PyObject_Vectorcall(plan.target.ptr(), values, plan.by_place, plan.target_names.ptr()));
}

py::object with_turns(const Plan& plan, PyObject* const* args, size_t count) {
  std::vector<PyObject*> values(args, args + count);
  std::vector<py::object> made;
  for (const auto& [place, function] : plan.turns) {
    made.push_back(
        py::reinterpret_steal<py::object>(PyObject_CallOneArg(function.ptr(), args[place])));
    if (!made.back()) return {};
    values[place] = made.back().ptr();
  }
  return hand_on(plan, values.data());
}

/// The error that is set, with the spelling's name where its text has a place but not the name.
void name_error(PyObject* self) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  try {
    const auto error = py::reinterpret_borrow<py::object>(value);
    const py::tuple arguments = error.attr("args");
    if (arguments.size() == 1 && py::isinstance<py::str>(arguments[0])) {
      const std::string name = py::str(py::handle(self).attr("__name__"));
      error.attr("args") = py::make_tuple(named_error(py::str(arguments[0]), name));
    }
  } catch (py::error_already_set&) {  // the error stays as it is
  }
  PyErr_Restore(type, value, traceback);
}

PyObject* call_planned(const Plan& plan, PyObject* const* args, size_t flags, size_t given) {
  if (plan.as_given && plan.turns.empty() && !plan.then)
    return PyObject_Vectorcall(plan.target.ptr(), args,
                               plan.by_place | (flags & PY_VECTORCALL_ARGUMENTS_OFFSET),
                               plan.target_names.ptr());
  py::object result = plan.turns.empty() ? hand_on(plan, args) : with_turns(plan, args, given);
  if (!result || !plan.then) return result.release().ptr();
  if (!plan.second) return PyObject_CallOneArg(plan.then.ptr(), result.ptr());
  const Source& source = plan.then_source;
  PyObject* both[] = {result.ptr(), source.index < 0 ? source.constant.ptr() : args[source.index]};
  return PyObject_Vectorcall(plan.then.ptr(), both, 2, nullptr);
}

PyObject* call(PyObject* object, PyObject* const* args, size_t flags, PyObject* names) {
  auto* self = reinterpret_cast<Spelling*>(object);
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  PlanPtr plan;
  try {
    plan = plan_for(self, count, names);
  } catch (py::error_already_set& e) {
    e.restore();
    return nullptr;
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_SystemError, e.what());
    return nullptr;
  }
  const size_t given = count + (names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0);
  PyObject* const result = call_planned(*plan, args, flags, given);
  if (!result) name_error(object);
  return result;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* planned = nullptr;
  if (!PyArg_ParseTuple(args, "O", &planned)) return nullptr;
  auto* self = reinterpret_cast<Spelling*>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->call = call;
  self->dict = PyDict_New();
  self->weak = nullptr;
  Py_INCREF(planned);
  self->planned = planned;
  self->plans = new std::vector<PlanPtr>;
  return reinterpret_cast<PyObject*>(self);
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<Spelling*>(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(self->dict);
  Py_VISIT(self->planned);
  return 0;
}

int clear(PyObject* o) {
  auto* self = reinterpret_cast<Spelling*>(o);
  Py_CLEAR(self->dict);
  Py_CLEAR(self->planned);
  if (self->plans) const std::vector<PlanPtr> dropped = std::exchange(*self->plans, {});
  return 0;
}

void destroy(PyObject* o) {
  auto* self = reinterpret_cast<Spelling*>(o);
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (self->weak) PyObject_ClearWeakRefs(o);
  clear(o);
  delete self->plans;
  type->tp_free(o);
  Py_DECREF(type);
}

/// Pickled by its name, as functions are.
PyObject* reduce(PyObject* o, PyObject*) { return PyObject_GetAttrString(o, "__qualname__"); }

PyObject* represent(PyObject* o) {
  auto name = py::reinterpret_steal<py::object>(PyObject_GetAttrString(o, "__qualname__"));
  if (!name) return nullptr;
  return PyUnicode_FromFormat("<function %U>", name.ptr());
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, "The name."},
                         {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Spelling, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Spelling, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Spelling, weak), READONLY, nullptr},
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
                       {Py_tp_repr, reinterpret_cast<void*>(represent)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_tp_getset, properties},
                       {0, nullptr}};
PyType_Spec type_spec = {"gradcell._core.Spelling", sizeof(Spelling), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                             Py_TPFLAGS_METHOD_DESCRIPTOR,
                         slots};

}  // namespace

void bind_spelling(py::module_& m) {
  m.add_object("Spelling", py::reinterpret_steal<py::object>(PyType_FromSpec(&type_spec)));
}

}  // namespace gradcell::bind

// The user's file and line: the innermost Python frame outside the gradcell package, and outside
// packages that run on it.
#include "bind/bind.h"

#include <frameobject.h>

#include <algorithm>
#include <unordered_map>

namespace gradcell::bind {

namespace {

std::vector<std::string>& package_directories() {
  static auto* dirs = new std::vector<std::string>;
  return *dirs;
}

/// Code objects seen so far, each kept alive for good, and whether they belong to the package.
bool is_internal(PyCodeObject* code) {
  static auto* seen = new std::unordered_map<PyCodeObject*, bool>;
  auto it = seen->find(code);
  if (it != seen->end()) return it->second;
  const std::string file =
      py::str(py::handle(reinterpret_cast<PyObject*>(code)).attr("co_filename"));
  const bool internal = std::ranges::any_of(
      package_directories(), [&](const std::string& dir) { return file.starts_with(dir); });
  Py_INCREF(code);
  seen->emplace(code, internal);
  return internal;
}

/// By the order of ErrorKind.
PyObject* exception_of(ErrorKind kind) {
  PyObject* const of[] = {PyExc_TypeError,    PyExc_ValueError,  PyExc_IndexError,
                          PyExc_RuntimeError, PyExc_MemoryError, PyExc_NotImplementedError};
  return of[static_cast<int>(kind)];
}

int last_instruction(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti < 0 ? -1 : frame->f_lasti * 2;
#endif
}

}  // namespace

Location python_location() {
  PyFrameObject* frame = PyEval_GetFrame();  // borrowed
  if (!frame) return {};
  Py_INCREF(frame);
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    bool internal = is_internal(code);
    Location here{code, last_instruction(frame)};
    Py_DECREF(code);  // is_internal keeps it
    PyFrameObject* back = internal ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    if (!internal) return here;
    frame = back;
  }
  return {};
}

std::string location_text(const Location& location) {
  if (!location.code) return "";
  auto* code = static_cast<PyCodeObject*>(const_cast<void*>(location.code));
  int line = location.offset < 0 ? code->co_firstlineno : PyCode_Addr2Line(code, location.offset);
  return std::string(py::str(py::handle(reinterpret_cast<PyObject*>(code)).attr("co_filename"))) +
         ":" + std::to_string(line);
}

void bind_location(py::module_& m) {
  set_locator(python_location);
  m.def(
      "add_package_directory",
      [](std::string dir) { package_directories().push_back(std::move(dir)); },
      py::arg("directory"),
      "What runs from this folder, which ends with a separator, is none of the user's code.");
  m.def(
      "user_location", [] { return location_text(python_location()); },
      "The user's file and line, as 'file.py:12'.");
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const Error& e) {
      std::string text = e.what();
      std::string where = location_text(python_location());
      if (!where.empty()) text += " (" + where + ")";
      PyErr_SetString(exception_of(e.kind), text.c_str());
    }
  });
}

}  // namespace gradcell::bind

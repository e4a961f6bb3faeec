// The user's file and line: the innermost Python frame outside the gradcell package, and outside
// packages that run on it.
#include "bind/location.h"

#include "bind/bind.h"

#include <frameobject.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_map>

namespace gradcell::bind {

namespace {

std::vector<std::string>& package_directories() {
  static auto* dirs = new std::vector<std::string>;
  return *dirs;
}

/// A code object, kept alive for good.
class PythonCode final : public Code {
 public:
  explicit PythonCode(PyCodeObject* code) : code_(code) {
    Py_INCREF(code);
    internal_ = std::ranges::any_of(package_directories(), [file = file()](const std::string& dir) {
      return file.starts_with(dir);
    });
  }
  bool internal() const { return internal_; }  ///< whether it belongs to the package
  std::string line_of(int32_t offset) const override {
    std::string text;
    with_gil([&] {
      const int line = offset < 0 ? code_->co_firstlineno : PyCode_Addr2Line(code_, offset);
      text = file() + ":" + std::to_string(line);
    });
    return text;
  }

 private:
  std::string file() const {
    return py::str(py::handle(reinterpret_cast<PyObject*>(code_)).attr("co_filename"));
  }
  PyCodeObject* code_;
  bool internal_;
};

/// One for each that was seen so far.
const PythonCode& known(PyCodeObject* code) {
  static auto* seen = new std::unordered_map<PyCodeObject*, PythonCode>;
  const auto it = seen->find(code);
  return it != seen->end() ? it->second : seen->try_emplace(code, code).first->second;
}

/// By the order of ErrorKind.
PyObject* exception_of(ErrorKind kind) {
  PyObject* const of[] = {PyExc_TypeError,    PyExc_ValueError,  PyExc_IndexError,
                          PyExc_RuntimeError, PyExc_MemoryError, PyExc_NotImplementedError};
  return of[narrow<int>(kind)];
}

int last_instruction(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti < 0 ? -1 : frame->f_lasti * 2;
#endif
}

/// Letters and digits alone, small: what two spellings of a name have in common.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (std::isalnum(low_bits<unsigned char>(c)))
      out += low_bits<char>(std::tolower(low_bits<unsigned char>(c)));
  return out;
}

/// Packages whose functions and classes users call by their own names.
constexpr std::string_view kCalledByName[] = {"ops", "nn", "numpy", "mint", "scipy", "physics"};

/// What users call a function of the package's, from its frame: the name of a function of a module,
/// of what a wrapper wraps, or of the class of a layer or primitive; empty for what is private.
std::string called_name(const py::object& frame) {
  const py::dict globals = frame.attr("f_globals");
  std::string module = py::str(globals["__name__"]);
  if (!module.starts_with("gradcell.")) return "";
  module.erase(0, std::string_view("gradcell.").size());
  if (!std::ranges::count(kCalledByName, module.substr(0, module.find('.')))) return "";
  const py::str name = frame.attr("f_code").attr("co_name");
  std::string found;
  if (globals.contains(name)) {
    found = name;
  } else if (const py::object locals = frame.attr("f_locals"); locals.contains("self")) {
    found = py::str(py::type::of(locals["self"]).attr("__name__"));
  } else if (locals.contains("function") && py::hasattr(locals["function"], "__name__")) {
    // (that of a wrapper)
    found = py::str(locals["function"].attr("__name__"));
  }
  return found.starts_with("_") ? "" : found;
}

/// The function of the package's that the user called; empty if it has no name of its own.
std::string called_function() {
  std::string found;
  const py::object first = py::reinterpret_borrow<py::object>(
      reinterpret_cast<PyObject*>(PyEval_GetFrame()));  // (null, while no Python runs)
  for (py::object frame = first; frame && !frame.is_none(); frame = frame.attr("f_back")) {
    const py::object code = frame.attr("f_code");
    if (!known(reinterpret_cast<PyCodeObject*>(code.ptr())).internal()) break;
    if (std::string name = called_name(frame); !name.empty()) found = std::move(name);
  }
  return found;
}

/// An error's text with the function that the user called, unless it is named there, and the user's
/// file and line.
std::string located(std::string text) {
  const std::string where = python_location().text();
  if (where.empty() || text.ends_with(" (" + where + ")")) return text;
  const std::string function = called_function();
  if (plain(text).find(plain(function)) == std::string::npos) text += ", in " + function;
  return text + " (" + where + ")";
}

}  // namespace

Location python_location() {
  PyFrameObject* frame = PyEval_GetFrame();  // borrowed
  if (!frame) return {};
  Py_INCREF(frame);
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const PythonCode& kept = known(code);
    Location here{&kept, last_instruction(frame)};
    Py_DECREF(code);
    PyFrameObject* back = kept.internal() ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    if (!kept.internal()) return here;
    frame = back;
  }
  return {};
}

std::string named_error(std::string text, std::string_view function) {
  const auto frame =
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  if (!frame || plain(text).find(plain(function)) != std::string::npos) return text;
  const py::object code = frame.attr("f_code");
  if (known(reinterpret_cast<PyCodeObject*>(code.ptr())).internal()) return text;
  const std::string place = " (" + python_location().text() + ")";
  if (!text.ends_with(place)) return text;
  text.erase(text.size() - place.size());
  return text + ", in " + std::string(function) + place;
}

void bind_location(py::module_& m) {
  m.def(
      "add_package_directory",
      [](std::string dir) { package_directories().push_back(std::move(dir)); },
      py::arg("directory"),
      "What runs from this folder, which ends with a separator, is none of the user's code.");
  m.def(
      "user_location", [] { return python_location().text(); },
      "The user's file and line, as 'file.py:12'.");
  m.def("located", &located, py::arg("text"),
        "An error's text with the function that the user called, unless it is named there, and the "
        "user's file and line.");
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const Error& e) {
      PyErr_SetString(exception_of(e.kind), located(e.what()).c_str());
    } catch (const std::overflow_error& e) {
      PyErr_SetString(PyExc_OverflowError, located(e.what()).c_str());
    }
  });
}

}  // namespace gradcell::bind

// The interpreter's lock, for C++ that gives it up, takes it, or calls Python.
//
// A thread that wants the lock while the interpreter closes down never gets it. Up to Python 3.13
// it is ended by unwinding its stack, which C++ frames that hold Python objects cannot stand; here
// it stays where it is, as later Pythons have it, until the process ends.
#pragma once

#include <Python.h>

#include "base/system/system.h"

namespace gradcell::bind {

/// Whether the interpreter closes down, so that Python functions that others rely on may have gone.
inline bool interpreter_closes() {
#if PY_VERSION_HEX >= 0x030D0000
  return !Py_IsInitialized() || Py_IsFinalizing();
#else
  return !Py_IsInitialized() || _Py_IsFinalizing();
#endif
}

/// f(), which may call Python or take the lock.
template <class F>
auto calling_python(F f) {
  try {
    return f();
  } catch (system::ThreadEnd&) {
    system::wait_forever();
  }
}

/// Without the lock while it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    calling_python([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// f() with the lock, on whatever thread: what hands memory back to its owner. Nothing once the
/// interpreter closes down.
template <class F>
void with_gil(F f) {
  if (interpreter_closes()) return;
  struct Held {
    PyGILState_STATE state = calling_python([] { return PyGILState_Ensure(); });
    ~Held() { PyGILState_Release(state); }
  } const held;
  f();
}

}  // namespace gradcell::bind

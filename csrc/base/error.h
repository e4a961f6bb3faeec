// The one exception type of the core. The binding turns each kind into Python's exception of that
// name and adds the user's file and line.
#pragma once

#include <stdexcept>
#include <string>

#include "base/text.h"

namespace gradcell {

enum class ErrorKind { Type, Value, Index, Runtime, Memory, NotImplemented };

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind(kind) {}
  ErrorKind kind;
};

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, const Args&... args) {
  throw Error(kind, str(args...));
}

template <class... Args>
void require(bool ok, ErrorKind kind, const Args&... args) {
  if (!ok) fail(kind, args...);
}

}  // namespace gradcell

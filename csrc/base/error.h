// The one exception type of the core. The binding turns each kind into Python's exception of that
// name and adds the user's file and line.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace gradcell {

enum class ErrorKind { Type, Value, Index, Runtime, Memory, NotImplemented };

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind(kind) {}
  ErrorKind kind;
};

/// Concatenates its arguments: str("axis ", 3, " out of range").
template <class... Args>
std::string str(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, const Args&... args) {
  throw Error(kind, str(args...));
}

template <class... Args>
void require(bool ok, ErrorKind kind, const Args&... args) {
  if (!ok) fail(kind, args...);
}

}  // namespace gradcell

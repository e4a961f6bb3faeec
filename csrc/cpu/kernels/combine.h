// What reductions and scans combine elements with, on numbers and on vectors of them. A file of
// csrc/cpu has its own copy: code of one instruction-set level must never be linked into another.
#pragma once

#include <limits>

#include "ir/spec.h"

namespace gradcell::cpu {
namespace {

/// f.operator()<how>().
template <class F>
void by_combine(Combine how, F f) {
  switch (how) {
    case Combine::Sum:
      return f.template operator()<Combine::Sum>();
    case Combine::Product:
      return f.template operator()<Combine::Product>();
    case Combine::Max:
      return f.template operator()<Combine::Max>();
    case Combine::Min:
      return f.template operator()<Combine::Min>();
  }
}

/// NaN stays NaN.
template <Combine how, class V>
inline V combined(V a, V b) {
  if constexpr (how == Combine::Sum)
    return a + b;
  else if constexpr (how == Combine::Product)
    return a * b;
  else if constexpr (how == Combine::Max)
    return ((a > b) | (a != a)) ? a : b;
  else
    return ((a < b) | (a != a)) ? a : b;
}

/// What changes nothing that it is combined with.
template <Combine how, class T>
constexpr T identity() {
  using Limits = std::numeric_limits<T>;
  if constexpr (how == Combine::Max)
    return Limits::has_infinity ? -Limits::infinity() : Limits::min();
  else if constexpr (how == Combine::Min)
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  else
    return T(how == Combine::Product);
}

}  // namespace
}  // namespace gradcell::cpu

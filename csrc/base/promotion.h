// The dtype of tensors of two dtypes that meet: MindSpore's rules.
#pragma once

#include <utility>

#include "base/error.h"
#include "base/types.h"

namespace gradcell {

constexpr DType promote(DType a, DType b) {
  auto family = [](DType t) {
    return t == DType::Bool ? 0 : is_complex(t) ? 3 : is_floating(t) ? 2 : 1;
  };
  auto wide_unsigned = [](DType t) { return is_unsigned(t) && t != DType::UInt8; };
  if (a == b) return a;
  if (a == DType::Bool || b == DType::Bool) return a == DType::Bool ? b : a;
  if (wide_unsigned(a) || wide_unsigned(b))
    fail(ErrorKind::Type, name(a), " and ", name(b),
         " have no common dtype, as in MindSpore: cast one of them");
  if (family(a) != family(b)) {
    if (family(a) < family(b)) std::swap(a, b);
    return b == DType::Float64 ? DType::Complex128 : a;
  }
  if (a > b) std::swap(a, b);
  if (is_narrow_float(a) && is_narrow_float(b)) return DType::Float32;
  if (a == DType::UInt8 && b == DType::Int8) return DType::Int16;
  return b;
}

}  // namespace gradcell

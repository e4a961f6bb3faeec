// The dtype of tensors of two dtypes that meet: MindSpore's rules, and NumPy's where it has none.
#pragma once

#include <utility>

#include "base/types.h"

namespace gradcell {

constexpr DType promote(DType a, DType b);

/// Of uint16, uint32 or uint64 and another that is not bool: MindSpore refuses these.
constexpr DType promote_unsigned(DType u, DType t) {
  const DType floating = u == DType::UInt16 ? DType::Float32 : DType::Float64;
  if (is_floating(t)) return promote(floating, t);
  if (item_size(t) > item_size(u) || is_unsigned(t)) return item_size(t) > item_size(u) ? t : u;
  return u == DType::UInt16 ? DType::Int32 : u == DType::UInt32 ? DType::Int64 : floating;
}

constexpr DType promote(DType a, DType b) {
  auto family = [](DType t) {
    return t == DType::Bool ? 0 : is_complex(t) ? 3 : is_floating(t) ? 2 : 1;
  };
  auto wide_unsigned = [](DType t) { return is_unsigned(t) && t != DType::UInt8; };
  if (a == b) return a;
  if (a == DType::Bool || b == DType::Bool) return a == DType::Bool ? b : a;
  if (wide_unsigned(a)) return promote_unsigned(a, b);
  if (wide_unsigned(b)) return promote_unsigned(b, a);
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

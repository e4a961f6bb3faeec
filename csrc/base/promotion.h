// The dtype of tensors of two dtypes that meet: MindSpore's rules.
#pragma once

#include <utility>

#include "base/types.h"

namespace gradcell {

constexpr DType promote(DType a, DType b) {
  auto family = [](DType t) { return t == DType::Bool ? 0 : is_floating(t) ? 2 : 1; };
  if (a == b) return a;
  if (family(a) != family(b)) return family(a) > family(b) ? a : b;
  if (a > b) std::swap(a, b);
  if (a == DType::Float16 && b == DType::BFloat16) return DType::Float32;
  if (a == DType::UInt8 && b == DType::Int8) return DType::Int16;
  return b;
}

}  // namespace gradcell

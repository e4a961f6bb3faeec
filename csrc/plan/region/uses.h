// Who makes and who uses the values of a tile program, for passes that join instructions.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace gradcell {

/// Types whose arithmetic is not followed by a rounding of its own, which joining would skip.
constexpr bool exact(DType t) { return t == DType::Float32 || t == DType::Float64; }

/// A value as it lies, feature by feature.
constexpr bool dense(const Operand& o) { return !o.uniform && o.base == 0 && o.stride == 1; }

struct Uses {
  std::vector<int32_t> maker;  ///< by value: its only instruction; -1: loaded, or made in steps
  std::vector<uint8_t> inner;  ///< by value: one instruction makes it, one operand uses it
  std::vector<int32_t> count;  ///< by value: of the operands that use it; 0: others need it, too

  explicit Uses(const Region& region);

  /// The instruction whose result is this operand's alone; -1: none.
  int32_t only_for(const Operand& o) const {
    return dense(o) && inner[o.value] ? maker[o.value] : -1;
  }
  /// That whose result is only operands'; -1: none.
  int32_t made_for(const Operand& o) const {
    return dense(o) && count[o.value] > 0 ? maker[o.value] : -1;
  }
};

}  // namespace gradcell

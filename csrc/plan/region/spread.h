// Copies that repeat or space features, and products that are only added up: an engine can read
// what they read in their place.
#pragma once

#include <optional>

#include "plan/plan.h"

namespace gradcell {

/// A map of alike parts: feature f is base + f / n * outer + f % n * step.
struct Nested {
  int32_t base, outer, step, n;
  int32_t operator[](int32_t f) const { return base + f / n * outer + f % n * step; }
};
std::optional<Nested> nested(const std::vector<int32_t>& map);

/// Whether an instruction is a product of two values, or a square.
bool is_product_of_values(const Instruction& i);

}  // namespace gradcell

#include "plan/region/spread.h"

namespace gradcell {

std::optional<Nested> nested(const std::vector<int32_t>& map) {
  const size_t size = map.size();
  if (size < 3) return {};
  Nested s{map[0], 0, map[1] - map[0], 2};
  const auto at = [&](int32_t f) { return map[static_cast<size_t>(f)]; };
  const auto count = narrow<int32_t>(size);
  while (s.n < count && at(s.n) - at(s.n - 1) == s.step) ++s.n;
  if (s.n == count || count % s.n != 0) return {};
  s.outer = at(s.n) - s.base;
  for (int32_t f = s.n; f < count; ++f)
    if (at(f) != s[f]) return {};
  return s;
}

bool is_product_of_values(const Instruction& i) {
  if (i.kind != TileOp::Elementwise || (i.op != Op::Mul && i.op != Op::Square)) return false;
  if (i.type != Compute::F32 && i.type != Compute::F64) return false;
  for (int k = 0; k < i.operand_count; ++k)
    if (i.operand[k].uniform) return false;
  return true;
}

}  // namespace gradcell

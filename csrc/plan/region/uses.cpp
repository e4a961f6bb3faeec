#include "plan/region/uses.h"

namespace gradcell {

Uses::Uses(const Region& region)
    : maker(region.values.size(), -1),
      inner(region.values.size(), 1),
      count(region.values.size(), 0) {
  auto keep = [&](uint32_t value) { inner[value] = 0; };
  for (size_t at = 0; at < region.program.size(); ++at) {
    const Instruction& i = region.program[at];
    for (int k = 0; k < i.operand_count; ++k)
      if (!i.operand[k].uniform) ++count[i.operand[k].value];
    if (accumulates(i)) continue;
    if (maker[i.dst] >= 0 || !exact(i.dtype)) keep(i.dst);
    maker[i.dst] = narrow<int32_t>(at);
  }
  for (const RowStore& s : region.stores)
    if (!s.from.uniform) keep(s.from.value);
  for (const RowLoad& l : region.loads) keep(l.value);
  for (size_t v = 0; v < count.size(); ++v) {
    if (!inner[v] || maker[v] < 0) count[v] = 0;
    if (count[v] != 1) inner[v] = 0;
  }
}

}  // namespace gradcell

#include "plan/uses.h"

namespace gradcell {

Uses::Uses(const Region& region) : maker(region.values.size(), -1), inner(region.values.size(), 1) {
  std::vector<int32_t> count(region.values.size(), 0);
  for (size_t at = 0; at < region.program.size(); ++at) {
    const Instruction& i = region.program[at];
    for (int k = 0; k < i.operand_count; ++k)
      if (!i.operand[k].uniform) ++count[i.operand[k].value];
    if (accumulates(i)) continue;
    if (maker[i.dst] >= 0 || !exact(i.dtype)) inner[i.dst] = 0;
    maker[i.dst] = static_cast<int32_t>(at);
  }
  for (const RowStore& s : region.stores)
    if (!s.from.uniform) inner[s.from.value] = 0;
  for (const RowLoad& l : region.loads) inner[l.value] = 0;
  for (size_t v = 0; v < count.size(); ++v)
    if (count[v] != 1 || maker[v] < 0) inner[v] = 0;
}

}  // namespace gradcell

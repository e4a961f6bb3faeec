#include <unordered_map>

#include "cpu/calls/calls.h"
#include "cpu/calls/routines.h"
#include "ir/op_info.h"

namespace gradcell::cpu {

void routine(const Call& c, const void* const* in, void* out) {
  static const auto all = [] {
    std::unordered_map<Op, decltype(RoutineRow::run)> rows;
    for (const auto table : {factorisations(), orders(), searches(), functions_of_integers()})
      for (const RoutineRow& row : table) rows.emplace(row.op, row.run);
    return rows;
  }();
  const auto row = all.find(c.op);
  require(row != all.end(), ErrorKind::NotImplemented, info(c.op).name, " has no routine");
  row->second(c, in, out);
}

}  // namespace gradcell::cpu

// The levels' tables of levels/vecmath_level.cpp, for those that this machine runs.
#include "vecmath_table.h"

#include "built_levels.h"
#include "cpu/kernels/isa_level.h"

namespace gradcell {

#define GRADCELL_X(ns, ...) const VecMathTable& vecmath_table_##ns();
GRADCELL_BUILT_LEVELS(GRADCELL_X)
#undef GRADCELL_X

std::vector<const VecMathTable*> vecmath_tables() {
  std::vector<const VecMathTable*> runnable;
  for (cpu::IsaLevel level : cpu::runnable_isa_levels()) {
#define GRADCELL_X(ns, Level, ...) \
  if (level == cpu::IsaLevel::Level) runnable.push_back(&vecmath_table_##ns());
    GRADCELL_BUILT_LEVELS(GRADCELL_X)
#undef GRADCELL_X
  }
  return runnable;
}

}  // namespace gradcell

// Exports this level's vector math as a table (see vecmath_table.h).
#include "math/vecmath_table.h"

#include "math/vecmath.h"

#define GRADCELL_JOIN_(a, b) a##b
#define GRADCELL_JOIN(a, b) GRADCELL_JOIN_(a, b)
#define GRADCELL_STRING_(a) #a
#define GRADCELL_STRING(a) GRADCELL_STRING_(a)

namespace gradcell {

const VecMathTable& GRADCELL_JOIN(vecmath_table_, GRADCELL_ISA)() {
  namespace isa = GRADCELL_ISA;
#define GRADCELL_X(name, Name) \
  {#name, isa::map_##name<float>, isa::map_##name<double>, isa::scalar::name, isa::scalar::name},
  static constexpr UnaryMath unary[] = {GRADCELL_VECMATH_UNARY(GRADCELL_X)};
  static constexpr BinaryMath binary[] = {GRADCELL_VECMATH_BINARY(GRADCELL_X)};
  static constexpr VecMathTable table{GRADCELL_STRING(GRADCELL_ISA),
                                      {unary, sizeof(unary) / sizeof(unary[0])},
                                      {binary, sizeof(binary) / sizeof(binary[0])}};
#undef GRADCELL_X
  return table;
}

}  // namespace gradcell

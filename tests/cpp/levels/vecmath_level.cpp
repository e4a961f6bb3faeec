// This level's vector math as a table (see vecmath_table.h): each function over arrays, in
// registers, and of one number. Compiled once for each level, as the kernels are.
#include "../vecmath_table.h"

#include "math/vecmath.h"

#define GRADCELL_JOIN_(a, b) a##b
#define GRADCELL_JOIN(a, b) GRADCELL_JOIN_(a, b)
#define GRADCELL_STRING_(a) #a
#define GRADCELL_STRING(a) GRADCELL_STRING_(a)

namespace gradcell {

namespace GRADCELL_ISA {

/// y[i] = F(x[i]...) for i < n, in registers; the last few go through one padded with ones.
template <class F, class V, class... X>
GRADCELL_INLINE void map_registers(ElementOf<V>* y, size_t n, X... x) {
  for (size_t i = 0; i < n; i += kLanes<V>) {
    const size_t bytes = sizeof(ElementOf<V>) * (n - i < kLanes<V> ? n - i : kLanes<V>);
    const auto part = [=](const ElementOf<V>* from) {
      V v = all<V>(1);
      std::memcpy(&v, from + i, bytes);
      return v;
    };
    const V result = apply<F>(part(x)...);
    std::memcpy(y + i, &result, bytes);
  }
}
template <class F, class V, class T>
void map(const T* x, T* y, size_t n) {
  map_registers<F, V>(y, n, x);
}
template <class F, class V, class T>
void map(const T* a, const T* b, T* y, size_t n) {
  map_registers<F, V>(y, n, a, b);
}

}  // namespace GRADCELL_ISA

const VecMathTable& GRADCELL_JOIN(vecmath_table_, GRADCELL_ISA)() {
  namespace isa = GRADCELL_ISA;
#define GRADCELL_X(name, Name)                                                    \
  {#name, isa::map<isa::Name##Fn, isa::VecF>, isa::map<isa::Name##Fn, isa::VecD>, \
   isa::scalar::name, isa::scalar::name},
  static constexpr UnaryMath unary[] = {GRADCELL_VECMATH_UNARY(GRADCELL_X)};
  static constexpr BinaryMath binary[] = {GRADCELL_VECMATH_BINARY(GRADCELL_X)};
  static constexpr VecMathTable table{GRADCELL_STRING(GRADCELL_ISA),
                                      {unary, sizeof(unary) / sizeof(unary[0])},
                                      {binary, sizeof(binary) / sizeof(binary[0])}};
#undef GRADCELL_X
  return table;
}

}  // namespace gradcell

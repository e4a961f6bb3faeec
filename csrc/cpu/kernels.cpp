#include "cpu/kernels.h"

#include "cpu/isa_level.h"

namespace gradcell::cpu {

// Defined in csrc/cpu/isa/loops.cpp, once for each level.
#define GRADCELL_X(ns, ...)      \
  namespace ns {                 \
  extern const Kernels kKernels; \
  }
GRADCELL_ISA_LEVELS(GRADCELL_X)
#undef GRADCELL_X

const Kernels& kernels() {
#define GRADCELL_X(ns, ...) &ns::kKernels,
  static constexpr const Kernels* all[] = {GRADCELL_ISA_LEVELS(GRADCELL_X)};
#undef GRADCELL_X
  static const Kernels& chosen = *all[static_cast<int>(isa_level())];
  return chosen;
}

}  // namespace gradcell::cpu

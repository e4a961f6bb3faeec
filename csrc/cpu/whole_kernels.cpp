#include "cpu/whole_kernels.h"

#include "cpu/isa_level.h"

namespace gradcell::cpu {

// Defined in csrc/cpu/isa/whole.cpp, once for each level.
#define GRADCELL_X(ns, ...)                \
  namespace ns {                           \
  extern const WholeKernels kWholeKernels; \
  }
GRADCELL_ISA_LEVELS(GRADCELL_X)
#undef GRADCELL_X

const WholeKernels& whole_kernels() {
#define GRADCELL_X(ns, ...) &ns::kWholeKernels,
  static constexpr const WholeKernels* all[] = {GRADCELL_ISA_LEVELS(GRADCELL_X)};
#undef GRADCELL_X
  static const WholeKernels& chosen = *all[static_cast<int>(isa_level())];
  return chosen;
}

}  // namespace gradcell::cpu

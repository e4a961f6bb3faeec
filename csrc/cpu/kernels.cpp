#include "cpu/kernels.h"

#include "cpu/isa_level.h"

namespace gradcell::cpu {

// Defined in csrc/cpu/isa/loops.cpp, once for each level.
#ifdef __x86_64__
namespace v2 {
extern const Kernels kKernels;
}
namespace v3 {
extern const Kernels kKernels;
}
namespace v4 {
extern const Kernels kKernels;
}
#else
namespace base {
extern const Kernels kKernels;
}
#endif

const Kernels& kernels() {
#ifdef __x86_64__
  static const Kernels& chosen = isa_level() == IsaLevel::V4   ? v4::kKernels
                                 : isa_level() == IsaLevel::V3 ? v3::kKernels
                                                               : v2::kKernels;
  return chosen;
#else
  return base::kKernels;
#endif
}

}  // namespace gradcell::cpu

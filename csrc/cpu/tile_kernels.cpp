#include "cpu/tile_kernels.h"

namespace gradcell::cpu {

// Defined in csrc/cpu/isa, once for each level.
#define GRADCELL_DECLARE_LEVEL(ns)                \
  namespace ns {                                  \
  extern const TileMatmul<float> kTileMatmulF32;  \
  extern const TileMatmul<double> kTileMatmulF64; \
  extern const TileTranspose kTileTranspose;      \
  }

#define GRADCELL_LEVEL(ns, level)                                     \
  static const TileKernels ns##_kernels {                             \
    level, ns::kTileMatmulF32, ns::kTileMatmulF64, ns::kTileTranspose \
  }

#ifdef __x86_64__
GRADCELL_DECLARE_LEVEL(v2)
GRADCELL_DECLARE_LEVEL(v3)
GRADCELL_DECLARE_LEVEL(v4)
#else
GRADCELL_DECLARE_LEVEL(base)
#endif

const TileKernels& tile_kernels(IsaLevel level) {
#ifdef __x86_64__
  GRADCELL_LEVEL(v2, IsaLevel::V2);
  GRADCELL_LEVEL(v3, IsaLevel::V3);
  GRADCELL_LEVEL(v4, IsaLevel::V4);
  return level == IsaLevel::V4 ? v4_kernels : level == IsaLevel::V3 ? v3_kernels : v2_kernels;
#else
  (void)level;
  GRADCELL_LEVEL(base, IsaLevel::Base);
  return base_kernels;
#endif
}

const TileKernels& tile_kernels() {
  static const TileKernels& kernels = tile_kernels(isa_level());
  return kernels;
}

}  // namespace gradcell::cpu

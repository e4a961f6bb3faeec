#include "cpu/tile_kernels.h"

namespace gradcell::cpu {

// Defined in csrc/cpu/isa, once for each level.
#define GRADCELL_X(ns, ...)                             \
  namespace ns {                                        \
  extern const TileMatmul<float> kTileMatmulF32;        \
  extern const TileMatmul<double> kTileMatmulF64;       \
  extern const TileTranspose kTileTranspose;            \
  extern const TileShifted<float> kTileShiftedF32;      \
  extern const TileShifted<double> kTileShiftedF64;     \
  extern const TileWindows kTileWindows;                \
  extern const TileAttention<float> kTileAttentionF32;  \
  extern const TileAttention<double> kTileAttentionF64; \
  }
GRADCELL_ISA_LEVELS(GRADCELL_X)
#undef GRADCELL_X

const TileKernels& tile_kernels(IsaLevel level) {
#define GRADCELL_X(ns, Level, ...)                                 \
  {IsaLevel::Level,    ns::kTileMatmulF32,    ns::kTileMatmulF64,  \
   ns::kTileTranspose, ns::kTileShiftedF32,   ns::kTileShiftedF64, \
   ns::kTileWindows,   ns::kTileAttentionF32, ns::kTileAttentionF64},
  static const TileKernels all[] = {GRADCELL_ISA_LEVELS(GRADCELL_X)};
#undef GRADCELL_X
  return all[static_cast<int>(level)];
}

const TileKernels& tile_kernels() {
  static const TileKernels& kernels = tile_kernels(isa_level());
  return kernels;
}

}  // namespace gradcell::cpu

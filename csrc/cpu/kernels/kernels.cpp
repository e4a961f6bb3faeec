// The tables of csrc/cpu/isa: a set for each instruction-set level, and which of them is in use.
#include "cpu/kernels/kernels.h"

#include <algorithm>

#include "built_levels.h"
#include "cpu/kernels/pair_kernels.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/kernels/vector_kernels.h"
#include "cpu/kernels/whole_kernels.h"

namespace gradcell::cpu {

#define GRADCELL_X(ns, ...)                            \
  namespace ns {                                       \
  extern const Kernels kKernels;                       \
  extern const WholeKernels kWholeKernels;             \
  extern const VectorKernels kVectorKernels;           \
  extern const PerFloat<TileMatmul> kTileMatmul;       \
  extern const TileTranspose kTileTranspose;           \
  extern const PerFloat<TileShifted> kTileShifted;     \
  extern const TileWindows kTileWindows;               \
  extern const PerFloat<TileAttention> kTileAttention; \
  }
GRADCELL_BUILT_LEVELS(GRADCELL_X)
#undef GRADCELL_X

#ifdef GRADCELL_PAIRS
namespace v4_pairs {
extern const PairKernels kPairKernels;
}
#endif

namespace {

struct Tables {
  const Kernels& loops;
  const WholeKernels& whole;
  const VectorKernels& vectors;
  TileKernels tiles;
};

const Tables& tables(IsaLevel level) {
#define GRADCELL_X(ns, Level, ...)                                                            \
  {ns::kKernels,                                                                              \
   ns::kWholeKernels,                                                                         \
   ns::kVectorKernels,                                                                        \
   {IsaLevel::Level, ns::kTileMatmul, ns::kTileTranspose, ns::kTileShifted, ns::kTileWindows, \
    ns::kTileAttention}},
  static const Tables all[] = {GRADCELL_BUILT_LEVELS(GRADCELL_X)};
#undef GRADCELL_X
  return *std::ranges::find(all, level, [](const Tables& t) { return t.tiles.level; });
}

const Tables& in_use() {
  static const Tables& chosen = tables(isa_level());
  return chosen;
}

}  // namespace

const Kernels& kernels() { return in_use().loops; }
const VectorKernels& vector_kernels() { return in_use().vectors; }
const WholeKernels& whole_kernels() { return in_use().whole; }
const TileKernels& tile_kernels() { return in_use().tiles; }
const TileKernels& tile_kernels(IsaLevel level) { return tables(level).tiles; }

const PairKernels* pair_kernels() {
#ifdef GRADCELL_PAIRS
  static const bool has = uses_avx512() && __builtin_cpu_supports("avx512bf16");
  return has ? &v4_pairs::kPairKernels : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace gradcell::cpu

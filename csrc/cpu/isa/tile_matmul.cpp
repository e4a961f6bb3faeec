// Matrix products on feature-major tiles (contract: cpu/kernels/tile_kernels.h).
#include "cpu/isa/tile_matmul.h"
#include "cpu/kernels/tile_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

template <class T>
constexpr TileMatmul<T> matmul_table() {
  return {kMaxV * kLanes<T> > 16 ? kMaxV * kLanes<T> : 16,
          packed_size<T>,
          pack_weights<T>,
          matmul<T>,
          matmul_rows<T>,
          grad_accumulator_size<T>,
          grad_zero<T>,
          weight_grad<T>,
          grad_finish<T>};
}

}  // namespace

extern const PerFloat<TileMatmul> kTileMatmul = {matmul_table<float>(), matmul_table<double>()};

}  // namespace gradcell::cpu::GRADCELL_ISA

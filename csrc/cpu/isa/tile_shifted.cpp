// Products whose right factor is read in place at shifts (contract: cpu/kernels/tile_kernels.h):
// what a convolution is on images with a margin of zeros, where a kernel's element reads the image
// moved.
#include <type_traits>

#include "cpu/isa/tile_dots.h"
#include "cpu/isa/tile_product.h"
#include "cpu/kernels/tile_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

template <class T>
void pack(const T* w, const int64_t* at, ptrdiff_t m_stride, int K, int M, int k_block, T* packed) {
  pack_shifted(K, M, k_block, packed, [=](int k, int m) { return w[at[k] + m * m_stride]; });
}

template <class T>
bool all_finite(const T* x, size_t n) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Bits kExponent = sizeof(T) == 4 ? Bits{0x7f800000u} : Bits(0x7ff0000000000000ull);
  Bits special = 0;
  for (size_t i = 0; i < n; ++i) {
    Bits bits;
    std::memcpy(&bits, x + i, sizeof bits);
    special |= static_cast<Bits>((bits & kExponent) == kExponent);
  }
  return special == 0;
}

template <class T>
constexpr TileShifted<T> shifted_table() {
  return {pack<T>, product_shifted<T>, dots<T>, spread<T>, collect<T>, all_finite<T>};
}

}  // namespace

extern const PerFloat<TileShifted> kTileShifted = {shifted_table<float>(), shifted_table<double>()};

}  // namespace gradcell::cpu::GRADCELL_ISA

// The kernels of cpu/pair_kernels.h, compiled for AVX-512 with AVX512_BF16.
#include "cpu/isa/tile_dots.h"
#include "cpu/isa/tile_product.h"
#include "cpu/pair_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

constexpr int kTileChunkBytes = 32 * 1024;  // of x in L1 while all column panels pass over it

void interleave(const uint16_t* even, const uint16_t* odd, Pair* to, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = even[i] | static_cast<Pair>(odd[i]) << 16;
}

void matmul_rows(const Pair* w, ptrdiff_t ldw, const Pair* x, ptrdiff_t ldx, float* y,
                 ptrdiff_t ldy, int K, int M, int R) {
  const Parts blocks(K, kTileChunkBytes / (kMaxV * kVectorBytes));
  product<Pair, Reads::Rows>({w, ldw}, {x, ldx, y, ldy, nullptr, false}, blocks, K, M, R);
}

void pack(const uint16_t* w, const int64_t* even, const int64_t* odd, ptrdiff_t m_stride, int K,
          int M, int k_block, Pair* packed) {
  auto number = [=](int64_t at, int m) { return at < 0 ? Pair(0) : Pair(w[at + m * m_stride]); };
  pack_shifted(K, M, k_block, packed,
               [=](int k, int m) { return number(even[k], m) | number(odd[k], m) << 16; });
}

/// A row: to[i] = make(i * step), zeros from n to the pitch.
template <class To, class F>
GRADCELL_INLINE void fill_row(To* to, ptrdiff_t step, int n, ptrdiff_t pitch, F make) {
  if (step == 1)
    for (int i = 0; i < n; ++i) to[i] = make(i);
  else
    for (int i = 0; i < n; ++i) to[i] = make(i * step);
  for (ptrdiff_t i = n; i < pitch; ++i) to[i] = 0;
}

void spread(const uint16_t* even, const uint16_t* odd, ptrdiff_t row, ptrdiff_t step, int rows,
            int n, Pair* to, ptrdiff_t pitch) {
  for (int r = 0; r < rows; ++r, even += row, to += pitch) {
    if (!odd) {
      fill_row(to, step, n, pitch, [=](ptrdiff_t i) { return Pair(even[i]); });
      continue;
    }
    fill_row(to, step, n, pitch,
             [=](ptrdiff_t i) { return even[i] | static_cast<Pair>(odd[i]) << 16; });
    odd += row;
  }
}

void spread_numbers(const uint16_t* from, ptrdiff_t row, ptrdiff_t step, int rows, int n,
                    uint16_t* to, ptrdiff_t pitch) {
  for (int r = 0; r < rows; ++r, from += row, to += pitch)
    fill_row(to, step, n, pitch, [=](ptrdiff_t i) { return from[i]; });
}

GRADCELL_INLINE uint16_t rounded(float x) {
  const auto bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t near = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : near);
}

void collect(const float* from, ptrdiff_t pitch, int rows, int n, uint16_t* to, ptrdiff_t row,
             ptrdiff_t step) {
  for (int r = 0; r < rows; ++r, from += pitch, to += row) {
    if (step == 1)
      for (int i = 0; i < n; ++i) to[i] = rounded(from[i]);
    else
      for (int i = 0; i < n; ++i) to[i * step] = rounded(from[i]);
  }
}

bool all_finite(const uint16_t* x, size_t n) {
  uint16_t special = 0;
  for (size_t i = 0; i < n; ++i) special |= static_cast<uint16_t>((x[i] & 0x7f80u) == 0x7f80u);
  return special == 0;
}

}  // namespace

extern const PairKernels kPairKernels;
const PairKernels kPairKernels = {
    interleave,     matmul_rows, pack,      product_shifted<Pair>, dots<uint16_t>, spread,
    spread_numbers, collect,     all_finite};

}  // namespace gradcell::cpu::GRADCELL_ISA

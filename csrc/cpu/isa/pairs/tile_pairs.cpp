// The kernels of cpu/pair_kernels.h, compiled for AVX-512 with AVX512_BF16.
#include "cpu/isa/tile_dots.h"
#include "cpu/isa/tile_matmul.h"
#include "cpu/pair_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

void interleave(const uint16_t* even, const uint16_t* odd, Pair* to, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = even[i] | static_cast<Pair>(odd[i]) << 16;
}

GRADCELL_INLINE Pair upper(float x) { return __builtin_bit_cast(Pair, x) & 0xffff0000u; }

void pair_features(const float* x, ptrdiff_t ldx, int K, int R, Pair* to) {
  for (int k = 0; k < K; k += 2, x += 2 * ldx, to += R) {
    const float* odd = x + ldx;
    if (k + 1 < K)
      for (int r = 0; r < R; ++r) to[r] = upper(x[r]) >> 16 | upper(odd[r]);
    else
      for (int r = 0; r < R; ++r) to[r] = upper(x[r]) >> 16;
  }
}

void pair_rows(const float* x, ptrdiff_t ldx, int K, int rows, Pair* to, ptrdiff_t ld) {
  for (int k = 0; k < K; ++k, x += ldx, to += ld) {
    auto* numbers = reinterpret_cast<uint16_t*>(to);
    for (int r = 0; r < rows; ++r) numbers[r] = static_cast<uint16_t>(upper(x[r]) >> 16);
    for (int r = rows; r < 2 * ld; ++r) numbers[r] = 0;
  }
}

constexpr int pairs(int numbers) { return (numbers + 1) / 2; }

size_t packed_size_of_pairs(int K, int M) { return packed_size<Pair>(pairs(K), M); }

void pack_pairs(const uint16_t* w, ptrdiff_t k_stride, ptrdiff_t m_stride, int K, int M,
                Pair* packed) {
  const Parts blocks = k_blocks<Pair>(pairs(K)), panels(M, kMaxW);
  for (int b = 0, k0 = 0; b < blocks.count; k0 += blocks.width(b++)) {
    for (int p = 0, m0 = 0; p < panels.count; m0 += panels.width(p++)) {
      for (int k = 2 * k0; k < 2 * (k0 + blocks.width(b)); k += 2) {
        const uint16_t* from = w + k * k_stride + m0 * m_stride;
        for (int m = 0; m < panels.width(p); ++m, from += m_stride)
          *packed++ = *from | (k + 1 < K ? static_cast<Pair>(from[k_stride]) << 16 : 0);
      }
    }
  }
}

void matmul_of_pairs(const Pair* packed, const Pair* x, ptrdiff_t ldx, float* y, ptrdiff_t ldy,
                     int K, int M, int R, const float* bias, bool accumulate) {
  matmul<Pair>(packed, x, ldx, y, ldy, pairs(K), M, R, bias, accumulate);
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
const PairKernels kPairKernels = {interleave,
                                  pair_features,
                                  pair_rows,
                                  packed_size_of_pairs,
                                  pack_pairs,
                                  matmul_of_pairs,
                                  grad_accumulator_size<Pair>,
                                  grad_zero<Pair>,
                                  weight_grad<Pair>,
                                  grad_finish<Pair>,
                                  matmul_rows<Pair>,
                                  pack,
                                  product_shifted<Pair>,
                                  dots<uint16_t>,
                                  spread,
                                  spread_numbers,
                                  collect,
                                  all_finite};

}  // namespace gradcell::cpu::GRADCELL_ISA

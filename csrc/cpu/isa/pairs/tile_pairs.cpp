// The kernels of cpu/kernels/pair_kernels.h, compiled for AVX-512 with AVX512_BF16.
#include "cpu/isa/tile_dots.h"
#include "cpu/isa/tile_matmul.h"
#include "cpu/kernels/pair_kernels.h"

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
    for (int r = 0; r < rows; ++r) numbers[r] = low_bits<uint16_t>(upper(x[r]) >> 16);
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

// Rows of images are short: what does not fill a vector is masked.

template <int N>
GRADCELL_INLINE uint32_t first_lanes(ptrdiff_t n) {
  return n >= N ? low_bits<uint32_t>((uint64_t{1} << N) - 1) : n <= 0 ? 0u : (1u << n) - 1;
}

/// The numbers of 16 columns i < n of a row, each in a lane.
template <int Step>
GRADCELL_INLINE __m512i every(const uint16_t* from, ptrdiff_t step, ptrdiff_t i, ptrdiff_t n) {
  if constexpr (Step == 1) {
    const auto mask = static_cast<__mmask16>(first_lanes<16>(n - i));
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from + i));
  } else if constexpr (Step == 2) {
    const __mmask32 mask = first_lanes<32>(2 * (n - i) - 1);
    return _mm512_and_si512(_mm512_maskz_loadu_epi16(mask, from + 2 * i),
                            _mm512_set1_epi32(0xffff));
  } else {
    alignas(64) uint32_t lanes[16] = {};
    for (ptrdiff_t l = 0; l < 16 && i + l < n; ++l) lanes[l] = from[(i + l) * step];
    return _mm512_load_si512(lanes);
  }
}

template <int Step>
void spread_pairs(const uint16_t* even, const uint16_t* odd, ptrdiff_t row, ptrdiff_t step,
                  int rows, int n, Pair* to, ptrdiff_t pitch) {
  const int odd_n = odd ? n : 0;
  if (!odd) odd = even;
  for (int r = 0; r < rows; ++r, even += row, odd += row, to += pitch) {
    for (ptrdiff_t i = 0; i < pitch; i += 16) {
      const __m512i pairs = _mm512_or_si512(
          every<Step>(even, step, i, n), _mm512_slli_epi32(every<Step>(odd, step, i, odd_n), 16));
      _mm512_mask_storeu_epi32(to + i, static_cast<__mmask16>(first_lanes<16>(pitch - i)), pairs);
    }
  }
}

void spread(const uint16_t* even, const uint16_t* odd, ptrdiff_t row, ptrdiff_t step, int rows,
            int n, Pair* to, ptrdiff_t pitch) {
  (step == 1   ? spread_pairs<1>
   : step == 2 ? spread_pairs<2>
               : spread_pairs<0>)(even, odd, row, step, rows, n, to, pitch);
}

template <int Step>
void spread_rows_of_numbers(const uint16_t* from, ptrdiff_t row, ptrdiff_t step, int rows, int n,
                            uint16_t* to, ptrdiff_t pitch) {
  for (int r = 0; r < rows; ++r, from += row, to += pitch) {
    for (ptrdiff_t i = 0; i < pitch; i += 16) {
      const __m256i numbers = _mm512_cvtepi32_epi16(every<Step>(from, step, i, n));
      _mm256_mask_storeu_epi16(to + i, static_cast<__mmask16>(first_lanes<16>(pitch - i)), numbers);
    }
  }
}

void spread_numbers(const uint16_t* from, ptrdiff_t row, ptrdiff_t step, int rows, int n,
                    uint16_t* to, ptrdiff_t pitch) {
  (step == 1   ? spread_rows_of_numbers<1>
   : step == 2 ? spread_rows_of_numbers<2>
               : spread_rows_of_numbers<0>)(from, row, step, rows, n, to, pitch);
}

template <int Step>
void collect_rows_of(const float* from, ptrdiff_t pitch, int rows, int n, uint16_t* to,
                     ptrdiff_t row, ptrdiff_t step) {
  for (int r = 0; r < rows; ++r, from += pitch, to += row) {
    for (ptrdiff_t i = 0; i < n; i += 16) {
      const auto mask = static_cast<__mmask16>(first_lanes<16>(n - i));
      const auto near = (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from + i));
      if constexpr (Step == 1) {
        if (n - i >= 16)
          _mm256_storeu_si256((__m256i*)(to + i), near);
        else
          _mm256_mask_storeu_epi16(to + i, mask, near);
      } else if constexpr (Step == 2) {  // what lies between belongs to other results
        const __mmask32 others = first_lanes<32>(2 * (n - i)) & 0x55555555u;
        _mm512_mask_storeu_epi16(to + 2 * i, others, _mm512_cvtepu16_epi32(near));
      } else {
        alignas(32) uint16_t numbers[16];
        _mm256_store_si256((__m256i*)numbers, near);
        for (ptrdiff_t l = 0; l < 16 && i + l < n; ++l) to[(i + l) * step] = numbers[l];
      }
    }
  }
}

void collect(const float* from, ptrdiff_t pitch, int rows, int n, uint16_t* to, ptrdiff_t row,
             ptrdiff_t step) {
  (step == 1   ? collect_rows_of<1>
   : step == 2 ? collect_rows_of<2>
               : collect_rows_of<0>)(from, pitch, rows, n, to, row, step);
}

bool all_finite(const uint16_t* x, size_t n) {
  uint16_t special = 0;
  for (size_t i = 0; i < n; ++i) special |= low_bits<uint16_t>((x[i] & 0x7f80u) == 0x7f80u);
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

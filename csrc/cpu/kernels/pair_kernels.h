// Products of bfloat16 numbers two by two, for processors that multiply and add pairs at once
// (AVX512_BF16): twice as many in an instruction as of floats.
//
// Sums are in float32, along pairs in their order. Denormal inputs and sums count as zero.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradcell::cpu {

/// Two numbers that are neighbours along k, the first in the lower half.
using Pair = uint32_t;

struct PairKernels {
  /// to[i] is even[i] and odd[i].
  void (*interleave)(const uint16_t* even, const uint16_t* odd, Pair* to, size_t n);

  /// to[k / 2][r] is numbers k and k + 1 of x, [k][r], ldx apart: floats that bfloat16 can hold.
  void (*pair_features)(const float* x, ptrdiff_t ldx, int K, int R, Pair* to);
  /// to[k][r / 2] is rows r and r + 1 of x, likewise; of an odd number of rows the last is alone.
  /// Features are `ld` apart; whole vectors are written.
  void (*pair_rows)(const float* x, ptrdiff_t ldx, int K, int rows, Pair* to, ptrdiff_t ld);

  /// As TileMatmul's, of tiles made by the former (K counts numbers, and weights are bfloat16), and
  /// by the latter: rows of pairs.
  size_t (*packed_size)(int K, int M);
  void (*pack_weights)(const uint16_t* w, ptrdiff_t k_stride, ptrdiff_t m_stride, int K, int M,
                       Pair* packed);
  void (*matmul)(const Pair* packed, const Pair* x, ptrdiff_t ldx, float* y, ptrdiff_t ldy, int K,
                 int M, int R, const float* bias, bool accumulate);
  size_t (*grad_accumulator_size)(int K, int M);
  void (*grad_zero)(float* acc, int K, int M);
  void (*weight_grad)(const Pair* x, ptrdiff_t ldx, const Pair* dy, ptrdiff_t ldy, int K, int M,
                      int R, int rows, float* acc);
  void (*grad_finish)(const float* acc, int K, int M, float* out, ptrdiff_t k_stride,
                      ptrdiff_t m_stride);

  /// As TileMatmul::matmul_rows, of K pairs.
  void (*matmul_rows)(const Pair* w, ptrdiff_t ldw, const Pair* x, ptrdiff_t ldx, float* y,
                      ptrdiff_t ldy, int K, int M, int R);
  /// As TileShifted's, of K pairs; the two weights of pair k are those at even[k] and at odd[k],
  /// where below 0 stands for zero.
  void (*pack)(const uint16_t* w, const int64_t* even, const int64_t* odd, ptrdiff_t m_stride,
               int K, int M, int k_block, Pair* packed);
  void (*product)(const Pair* packed, const Pair* x, const int32_t* at, float* y, ptrdiff_t ldy,
                  int K, int M, int R, int k_block);
  /// As TileShifted::dots, of bfloat16 numbers: R rows, rounded up to a multiple of 32 (dy must be
  /// zero there), are read in pairs.
  void (*dots)(const uint16_t* x, ptrdiff_t image_x, const int32_t* at, const uint16_t* dy,
               ptrdiff_t image_y, ptrdiff_t ldy, int images, int K, int M, int R, float* sums,
               ptrdiff_t lds, std::byte* room);

  /// As TileShifted::spread, of the numbers at `even` and `odd` (null: zeros).
  void (*spread)(const uint16_t* even, const uint16_t* odd, ptrdiff_t row, ptrdiff_t step, int rows,
                 int n, Pair* to, ptrdiff_t pitch);
  void (*spread_numbers)(const uint16_t* from, ptrdiff_t row, ptrdiff_t step, int rows, int n,
                         uint16_t* to, ptrdiff_t pitch);
  /// As TileShifted::collect, rounded to nearest even; NaN stays NaN.
  void (*collect)(const float* from, ptrdiff_t pitch, int rows, int n, uint16_t* to, ptrdiff_t row,
                  ptrdiff_t step);
  bool (*all_finite)(const uint16_t* x, size_t n);
};

/// Null where the processor has no such instructions, or GRADCELL_ISA asks for a level below v4.
const PairKernels* pair_kernels();

}  // namespace gradcell::cpu

// Kernels on feature-major tiles, one set of function pointers for each ISA level.
//
// A tile is [features][R]: the R rows of a feature lie side by side, features are `ld` >= R
// elements apart. R is a multiple of 16. Of a tail tile only the first `rows` rows mean anything.
// No pointer needs more than its element type's alignment (64 bytes is fastest), and an output may
// not overlap an input. No function allocates; all are safe to call from many threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "cpu/kernels/isa_level.h"

namespace gradcell::cpu {

/// T is float or double. Weights are any w[k * k_stride + m * m_stride], so both a matrix and its
/// transpose; packed weights and accumulators are only good for the level that made them.
template <class T>
struct TileMatmul {
  int columns;  ///< the R that suits matmul_rows best

  /// Elements that pack_weights writes.
  size_t (*packed_size)(int K, int M);
  void (*pack_weights)(const T* w, ptrdiff_t k_stride, ptrdiff_t m_stride, int K, int M, T* packed);

  /// y[m][r] = sum_k w[k][m] * x[k][r] + bias[m], and + the old y[m][r] if accumulate. All R rows
  /// are computed; rows do not mix, so garbage in a tail's rows stays there. bias may be null.
  void (*matmul)(const T* packed, const T* x, ptrdiff_t ldx, T* y, ptrdiff_t ldy, int K, int M,
                 int R, const T* bias, bool accumulate);

  /// y[m][r] = sum_k w[m * ldw + k] * x[k][r], of weights as they lie. For whole matrices: what
  /// comes next is fetched ahead, beyond the operands' ends too.
  void (*matmul_rows)(const T* w, ptrdiff_t ldw, const T* x, ptrdiff_t ldx, T* y, ptrdiff_t ldy,
                      int K, int M, int R);

  /// The gradient of the weights, G[k][m] = sum over tiles and rows of x[k][r] * dy[m][r], is
  /// collected in an accumulator of this many elements: zero, then weight_grad for each tile,
  /// finish. The sum's order is that of these calls.
  size_t (*grad_accumulator_size)(int K, int M);
  void (*grad_zero)(T* acc, int K, int M);
  /// Rows beyond `rows` do not contribute, whatever they hold.
  void (*weight_grad)(const T* x, ptrdiff_t ldx, const T* dy, ptrdiff_t ldy, int K, int M, int R,
                      int rows, T* acc);
  /// out[k * k_stride + m * m_stride] = G[k][m]. Leaves acc as it was.
  void (*grad_finish)(const T* acc, int K, int M, T* out, ptrdiff_t k_stride, ptrdiff_t m_stride);
};

/// Between row-major [rows][F] arrays of any dtype and feature-major tiles of its compute type.
struct TileTranspose {
  /// Reads `rows` rows into dst [F][R]. Rows from `rows` to R repeat the last one, so that they
  /// raise no NaN of their own (zeros if rows is 0). A bool is 1 where its byte is not 0.
  void (*load_rows)(const void* src, DType dtype, ptrdiff_t row_stride_elems, int rows, int F,
                    void* dst, ptrdiff_t ld, int R);
  /// Writes the first `rows` rows of src [F][..]. float16 and bfloat16 round to nearest even,
  /// overflow to infinity and keep NaN; narrow integers wrap; bool is 1 where src is not 0.
  void (*store_rows)(const void* src, ptrdiff_t ld, DType dtype, int rows, int F, void* dst,
                     ptrdiff_t row_stride_elems);

  /// Contiguous elements of a dtype to its compute type, and back.
  void (*load)(const void* src, DType dtype, void* dst, size_t n);
  void (*store)(const void* src, DType dtype, void* dst, size_t n);

  /// Rounds in place to the values that a narrow float can hold.
  void (*round)(DType dtype, float* x, size_t n);
};

/// Bytes, at an address that 64 divides, in which TileShifted::dots works: too many for the stacks
/// of some threads.
constexpr int64_t kDotsRoom = 80 * 1024;

/// Products with a factor that is read in place at shifts: feature k of x is what lies at at[k].
/// T is float or double, R a multiple of 16.
template <class T>
struct TileShifted {
  /// w[at[k] + m * m_stride] for all k and m, as `product` reads it: K * M elements.
  void (*pack)(const T* w, const int64_t* at, ptrdiff_t m_stride, int K, int M, int k_block,
               T* packed);
  /// y[m][r] = sum_k w[k][m] * x[at[k] + r], in blocks of about k_block values of k.
  void (*product)(const T* packed, const T* x, const int32_t* at, T* y, ptrdiff_t ldy, int K, int M,
                  int R, int k_block);
  /// sums[m * lds + k] += sum over s < images and r < R of dy[m][r] * x[at[k] + r], dy and x being
  /// those of image s: s * image_y and s * image_x elements on.
  void (*dots)(const T* x, ptrdiff_t image_x, const int32_t* at, const T* dy, ptrdiff_t image_y,
               ptrdiff_t ldy, int images, int K, int M, int R, T* sums, ptrdiff_t lds,
               std::byte* room);

  /// to[r * pitch + i] = from[r * row + i * step] for i < n, and zeros up to the pitch.
  void (*spread)(const T* from, ptrdiff_t row, ptrdiff_t step, int rows, int n, T* to,
                 ptrdiff_t pitch);
  /// to[r * row + i * step] = from[r * pitch + i] for i < n.
  void (*collect)(const T* from, ptrdiff_t pitch, int rows, int n, T* to, ptrdiff_t row,
                  ptrdiff_t step);
  bool (*all_finite)(const T* x, size_t n);
};

/// Weights of attention, on tiles of scores [n][R] whose rows are ld apart. T is float or double, R
/// a multiple of 16.
template <class T>
struct TileAttention {
  /// s becomes exp(s - top), where top, of each of R columns, is the largest score so far (0 if all
  /// are -inf); sum is what there was before by the factor `scale`, and those. scale is exp of how
  /// much top was lower.
  void (*soften)(T* s, ptrdiff_t ld, int n, int R, T* top, T* sum, T* scale);
  /// sum[r] becomes top[r] + log(sum[r]): -inf where nothing was summed up.
  void (*finish)(const T* top, T* sum, int R);
  /// s becomes exp(s - log_sum), 0 where it is -inf, or, if `rest` is not null,
  /// exp(s - log_sum - rest), times factors - shift (null: 1, and 0). by_lane: log_sum, rest and
  /// shift are numbers of the R columns, else of the n rows.
  void (*weigh)(T* s, const T* factors, ptrdiff_t ld, int n, int R, const T* log_sum,
                const T* shift, bool by_lane, const T* rest);
  /// w becomes e times w - shift, of the n rows (null: 0).
  void (*weigh_by)(T* w, const T* e, ptrdiff_t ld, int n, int R, const T* shift);
  /// How far numbers are from 0 at most; infinity where one is not finite.
  T (*farthest)(const T* x, size_t n);
  /// x[i][r] *= by[r].
  void (*scale_lanes)(T* x, ptrdiff_t ld, int n, int R, const T* by);
  void (*multiply)(T* x, const T* by, size_t n);
  void (*add)(T* x, const T* y, size_t n);
  /// `by` where `hidden` is not 0.
  void (*hide)(T* x, const int32_t* hidden, T by, size_t n);
  /// x * by where u is below keep, 0 elsewhere.
  void (*drop)(T* x, const float* u, float keep, T by, size_t n);
  /// Four numbers of [0, 1) for each of the generator's blocks from `counter` on.
  void (*uniform)(uint64_t key, uint64_t counter, size_t blocks, float* out);
};

/// Windows of a sheet [rows, columns], dense.
struct SheetWindows {
  /// Windows [begin, end) have an element of the kernel in the sheet: the first at `by`, the others
  /// `stride` apart.
  struct Span {
    int32_t begin, end, by;
  };
  struct Axis {
    int32_t input, kernel, output, stride;
    const Span* spans;  ///< of each of the kernel's elements
  } rows, columns;
};

/// best[window] = the larger of it and all elements of the window (the first of equal ones, the
/// last NaN). Where `place` is not null it follows, to at + an element's place in the sheet; below
/// 0 says that there is none yet.
using LargestOfSheet = void (*)(const SheetWindows& windows, const void* x, void* best,
                                int32_t* place, int32_t at);
struct TileWindows {
  LargestOfSheet f32, f64, i32, i64;
};

/// A table for each floating type that tiles compute in.
template <template <class> class Table>
struct PerFloat {
  Table<float> f32;
  Table<double> f64;
  template <class T>
  const Table<T>& of() const {
    if constexpr (sizeof(T) == 4)
      return f32;
    else
      return f64;
  }
};

struct TileKernels {
  IsaLevel level;
  PerFloat<TileMatmul> products;
  TileTranspose transpose;
  PerFloat<TileShifted> shifts;
  TileWindows windows;
  PerFloat<TileAttention> attentions;

  template <class T>
  const TileAttention<T>& attention() const {
    return attentions.of<T>();
  }
  template <class T>
  const TileMatmul<T>& matmul() const {
    return products.of<T>();
  }
  template <class T>
  const TileShifted<T>& shifted() const {
    return shifts.of<T>();
  }
};

/// The kernels of isa_level().
const TileKernels& tile_kernels();

/// The kernels of one of runnable_isa_levels().
const TileKernels& tile_kernels(IsaLevel level);

}  // namespace gradcell::cpu

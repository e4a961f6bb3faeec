// Loops over whole tensors that a call runs, one table for each instruction-set level. Types are a
// tensor's own, but for the half types: what is float16 or bfloat16 comes as float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/types.h"
#include "ir/spec.h"

namespace gradcell::cpu {

/// The signed integer of an unsigned one's size: for what gives both the same bits.
constexpr DType as_signed(DType t) {
  switch (t) {
    case DType::UInt8:
      return DType::Int8;
    case DType::UInt16:
      return DType::Int16;
    case DType::UInt32:
      return DType::Int32;
    case DType::UInt64:
      return DType::Int64;
    default:
      return t;
  }
}

/// What elements are combined in: sums and products wider, so that they are rounded once.
template <Combine how, class T>
using AccumulatorOf =
    std::conditional_t<how == Combine::Max || how == Combine::Min, T,
                       std::conditional_t<std::is_floating_point_v<T>, double, int64_t>>;

/// What is done to the bits of two integers. Shifts by as many bits as there are, or more, leave
/// none of them, but for the sign of what is shifted to the right.
enum class Bits : uint8_t { And, Or, Xor, LeftShift, RightShift };

/// What becomes of elements before they are added up: nothing, their squares, their sizes, or what
/// is no number another one.
enum class Mapped : uint8_t { Itself, Square, Size, Number };

struct WholeKernels {
  /// *acc combined with n elements side by side: in lanes, then lane by lane, an order that n
  /// decides.
  void (*fold)(Combine how, DType type, const void* x, size_t n, void* acc);
  /// *acc and the sum of n numbers of a half type as they are stored, added as floats are; false,
  /// and nothing is added, where the level has no instruction that widens them.
  bool (*sum_halves)(DType type, const uint16_t* x, size_t n, double* acc);
  /// acc[j] combined with x[r * stride + j], j < n, for one r < rows after the other.
  void (*fold_rows)(Combine how, DType type, const void* x, ptrdiff_t stride, size_t rows,
                    void* acc, size_t n);
  /// y[j] = the combination of x[r * stride + j], r < rows, for j < n.
  void (*reduce_rows)(Combine how, Compute type, const void* x, ptrdiff_t stride, size_t rows,
                      void* y, size_t n);
  /// As fold and fold_rows for sums of floats or doubles that are mapped first; `number`: for those
  /// that are none.
  void (*sum_mapped)(Mapped map, DType type, const void* x, size_t n, const void* number,
                     void* acc);
  void (*sum_rows_mapped)(Mapped map, DType type, const void* x, ptrdiff_t stride, size_t rows,
                          const void* number, void* acc, size_t n);
  /// As fold_rows for sums and products, after each row rounded to y[r * stride + j].
  void (*scan_rows)(Combine how, DType type, const void* x, void* y, ptrdiff_t stride, size_t rows,
                    void* acc, size_t n);
  /// Where the first largest (or smallest) of n > 0 elements stands; the first NaN before any
  /// other.
  int64_t (*first_extreme)(bool largest, DType type, const void* x, size_t n);
  /// The same of n columns, [rows][stride], rows > 0. `top`: room for n elements.
  void (*first_extremes)(bool largest, DType type, const void* x, ptrdiff_t stride, size_t rows,
                         void* top, int32_t* at, size_t n);
  /// top[j] = x[j] and at[j] = here for j < n where x[j] is larger (or smaller); a NaN is neither.
  void (*exceed)(bool largest, DType type, const void* x, int64_t here, void* top, int64_t* at,
                 size_t n);
  /// n elements of one dtype in another, neither of them a half type.
  void (*convert)(DType from, DType to, const void* x, void* y, size_t n);
  /// An op on bools; b is another a where it has one operand.
  void (*logical)(Op op, const uint8_t* a, const uint8_t* b, uint8_t* y, size_t n);
  /// The same of integers' bits; an operand that is not `many` is one number for all.
  void (*bits)(Bits what, DType type, const void* a, bool many_a, const void* b, bool many_b,
               void* y, size_t n);
  /// Of n indices (int32 or int64) of `size` places, which may count from the end, those of places
  /// from low on, `count` of them: found[k] is where one stands among the n, place[k] how far its
  /// place is from low. There is room for n + 16 of each. Returns how many there are, or -1 if an
  /// index is of no place. size is below 2^31.
  int64_t (*select)(DType type, const void* x, size_t n, int64_t size, int64_t low, int64_t count,
                    int32_t* found, int32_t* place);
  /// n indices (int32 or int64) into `size` elements, counted from the front; false where one is
  /// out of range.
  bool (*places)(DType type, const void* at, size_t n, int64_t size, int64_t* places);
  /// y[i] = x[i * step], i < n, elements of 1, 2, 4, 8 or 16 bytes.
  void (*copy_apart)(size_t item, const void* x, ptrdiff_t step, void* y, size_t n);
};

const WholeKernels& whole_kernels();

}  // namespace gradcell::cpu

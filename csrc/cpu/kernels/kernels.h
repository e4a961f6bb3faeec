// The loops that tile programs are made of, one table for each instruction-set level.
#pragma once

#include "plan/plan.h"

namespace gradcell::cpu {

/// Operand k's feature f starts at p[k] + f * s[k] elements; a uniform operand has one element
/// there, any other `rows` of them. Feature f of the result is at d + f * pitch.
struct LoopArgs {
  void* d;
  ptrdiff_t pitch;
  const void* p[kMaxOperands];
  ptrdiff_t s[kMaxOperands];
  int32_t features, rows;
};
using Loop = void (*)(const LoopArgs&);

/// Row accumulators hold this many partial results a feature, so that rows are reduced in vectors.
inline constexpr int kLanes = 16;

/// f(float()) or f(double()): what is templated over the floating types that tiles compute in.
template <class F>
void by_float(Compute type, F f) {
  if (type == Compute::F64)
    f(double());
  else
    f(float());
}

/// Features of a tile by where a reduction finds them.
struct Factor {
  const void* at;
  ptrdiff_t pitch;
  const int32_t *base, *step;
};

struct Kernels {
  /// Bit k of `uniform` says that operand k is uniform. Null if the op is not for that type.
  Loop (*elementwise)(Op op, Compute type, unsigned uniform);
  /// op(a, b) ? c : d for a comparison; a is not uniform. Floating types only.
  Loop (*choose)(Op op, Compute type, unsigned uniform);
  /// A chain of `operands`; `uniform_end`: its last one (of three) is uniform. Floating types only.
  Loop (*chain)(Compute type, const Link* links, int operands, bool uniform_end);
  Loop (*formula)(Compute type, Formula formula);  ///< floating types only
  Loop (*convert)(Compute from, DType to);         ///< dense in compute_type(to)
  Loop (*narrow)(DType to);
  Loop (*expand)(Compute type, bool uniform);  ///< copies, or spreads a uniform over the rows
  /// d[f] = a[map ? map[f] : f] in blocks of `rows`. Here and below a's features are `pitch`
  /// elements apart.
  void (*gather)(Compute type, void* d, const void* a, ptrdiff_t pitch, const int32_t* map,
                 int32_t n, int32_t rows);
  void (*scatter)(Compute type, void* d, const LoopArgs& from, bool uniform, const int32_t* map,
                  int32_t n);
  /// d[f] = reduction over k < n of a[base[f] + step[k]], or of its products with b's (null: none;
  /// a itself: squares).
  void (*feature_reduce)(Combine how, Compute type, void* d, const Factor& a, const Factor* b,
                         int32_t features, int32_t n, int32_t rows);
  /// acc[f][lane] combined with a[f][valid rows].
  void (*row_reduce)(Combine how, Compute type, void* acc, const void* a, ptrdiff_t pitch,
                     int32_t features, int32_t valid);
  void (*row_reduce_init)(Combine how, Compute type, void* acc, int32_t features);
  /// One number a feature, dense.
  void (*row_reduce_finish)(Combine how, Compute type, const void* acc, void* out,
                            int32_t features);
  /// to[i] combined with from[i].
  void (*merge)(Combine how, Compute type, void* to, const void* from, size_t n);
};

const Kernels& kernels();

}  // namespace gradcell::cpu

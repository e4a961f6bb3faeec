// Vector math: every function a row of the op table may use, for one number and for arrays.
//
// All of it is in namespace gradcell::GRADCELL_ISA (v2, v3, v4; base elsewhere), one copy for each
// instruction-set level. For each name below, say exp / Exp, and T = float or double:
//   scalar::exp(T)                    one number
//   map_exp(const T* x, T* y, n)      an array; y may be x itself, but not overlap it otherwise
//   ExpFn                             a tag: apply<ExpFn>(x) and map<ExpFn>(x, y, n) are the same
//                                     two, for code that is generic over functions
// pow and atan2 take two arguments likewise: map_pow(a, b, y, n). maximum, minimum, mod, floor_div
// (also int32_t, int64_t) and ipow (integers) are scalar only: loops over them are plain code.
//
// The same input gives the same bits by either way and at any place in an array. Inputs of every
// kind (NaN, infinities, signed zeros, denormals) give what C's annex F says; nothing is flushed.
// Error bounds: docs/accuracy.md.
#pragma once

#include "math/vecmath_erf.h"
#include "math/vecmath_log.h"
#include "math/vecmath_simple.h"
#include "math/vecmath_trig.h"

// clang-format off
#define GRADCELL_VECMATH_UNARY(X)                                                              \
  X(exp, Exp) X(expm1, Expm1) X(log, Log) X(log1p, Log1p) X(log2, Log2) X(log10, Log10)        \
  X(sin, Sin) X(cos, Cos) X(tan, Tan) X(asin, Asin) X(acos, Acos) X(atan, Atan) X(sinh, Sinh)  \
  X(cosh, Cosh) X(tanh, Tanh) X(asinh, Asinh) X(acosh, Acosh) X(atanh, Atanh)                  \
  X(sigmoid, Sigmoid) X(erf, Erf) X(erfc, Erfc) X(sqrt, Sqrt) X(rsqrt, Rsqrt) X(floor, Floor)  \
  X(ceil, Ceil) X(round, Round) X(sign, Sign) X(abs, Abs)
// clang-format on
#define GRADCELL_VECMATH_BINARY(X) X(pow, Pow) X(atan2, Atan2)

namespace gradcell::GRADCELL_ISA {

template <class F>
concept NativeFloat = requires { requires F::kNativeFloat; };
/// F's fast formula holds up to a limit; F::beyond(double) is for the rest (for floats that are
/// computed in float lanes, F::beyond32).
template <class F>
concept Limited = requires { F::beyond(0.0); };

/// How F computes T: in lanes of T itself, or floats in double lanes.
template <class F, class T>
inline constexpr bool kWidens = std::is_same_v<T, float> && !NativeFloat<F>;

template <class F, class T>
GRADCELL_INLINE bool within_limit(T x) {
  if constexpr (Limited<F>) {
    return abs_value(x) <= T(sizeof(T) == 4 ? F::limit32 : F::limit64);
  } else {
    return true;
  }
}

template <class F, class T>
GRADCELL_INLINE T beyond_limit(T x) {
  if constexpr (std::is_same_v<T, float> && NativeFloat<F>) {
    return static_cast<T>(F::beyond32(x));
  } else {
    return static_cast<T>(F::beyond(x));
  }
}

/// F at one number.
template <class F, class T>
GRADCELL_INLINE T apply(T x) {
  if constexpr (Limited<F>) {
    if (!within_limit<F>(x)) return beyond_limit<F>(x);
  }
  if constexpr (kWidens<F, T>) {
    return static_cast<T>(F::template f32<double>(x));
  } else if constexpr (std::is_same_v<T, float>) {
    return F::template f32<float>(x);
  } else {
    return F::template f64<double>(x);
  }
}
template <class F, class T>
GRADCELL_INLINE T apply(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<T>(F::template f32<double>(a, b));
  } else {
    return F::template f64<double>(a, b);
  }
}

/// One register of results: kStep elements from x to y.
template <class F, class T>
inline constexpr size_t kStep = kWidens<F, T> ? kLanes<VecD> : kVectorBytes / sizeof(T);

template <class F, class T, class... X>
GRADCELL_INLINE void step(T* y, const X*... x) {
  if constexpr (kWidens<F, T>) {
    store_narrow(y, F::template f32<VecD>(load_wide(x)...));
  } else if constexpr (std::is_same_v<T, float>) {
    store<VecF>(y, F::template f32<VecF>(load<VecF>(x)...));
  } else {
    store<VecD>(y, F::template f64<VecD>(load<VecD>(x)...));
  }
}

/// F within its limit over n elements; the last few go through a buffer padded with ones.
template <class F, class T, class... X>
GRADCELL_INLINE void map_steps(T* y, size_t n, const X*... x) {
  constexpr size_t kStepSize = kStep<F, T>;
  size_t i = 0;
  for (; i + kStepSize <= n; i += kStepSize) step<F, T>(y + i, (x + i)...);
  if (i == n) return;
  const auto padded = [&](const T* from, T* to) {
    for (size_t j = 0; j < kStepSize; ++j) to[j] = i + j < n ? from[i + j] : T(1);
    return to;
  };
  T results[kStepSize], buffers[sizeof...(X)][kStepSize];
  size_t k = 0;
  // The order in which the buffers are used does not matter, but which goes where does.
  T* slots[] = {(static_cast<void>(x), buffers[k++])...};
  k = 0;
  (padded(x, slots[k++]), ...);
  [&]<size_t... I>(std::index_sequence<I...>) {
    step<F, T>(results, static_cast<const T*>(slots[I])...);
  }(std::index_sequence_for<X...>{});
  for (size_t j = 0; i + j < n; ++j) y[i + j] = results[j];
}

/// y[i] = F(x[i]). Where F has a limit, blocks with an element beyond it are repaired one by one.
template <class F, class T>
inline void map(const T* x, T* y, size_t n) {
  if constexpr (Limited<F>) {
    constexpr size_t kBlock = 256;
    T kept[kBlock];
    for (size_t begin = 0; begin < n; begin += kBlock) {
      const size_t size = n - begin < kBlock ? n - begin : kBlock;
      int beyond = 0;
      for (size_t i = 0; i < size; ++i) beyond |= !within_limit<F>(x[begin + i]);
      if (beyond) std::memcpy(kept, x + begin, size * sizeof(T));
      map_steps<F, T>(y + begin, size, x + begin);
      if (!beyond) continue;
      for (size_t i = 0; i < size; ++i) {
        if (!within_limit<F>(kept[i])) y[begin + i] = beyond_limit<F>(kept[i]);
      }
    }
  } else {
    map_steps<F, T>(y, n, x);
  }
}
/// y[i] = F(a[i], b[i]).
template <class F, class T>
inline void map(const T* a, const T* b, T* y, size_t n) {
  map_steps<F, T>(y, n, a, b);
}

#define GRADCELL_X(name, Name)                                         \
  namespace scalar {                                                   \
  GRADCELL_INLINE float name(float x) { return apply<Name##Fn>(x); }   \
  GRADCELL_INLINE double name(double x) { return apply<Name##Fn>(x); } \
  }                                                                    \
  template <class T>                                                   \
  inline void map_##name(const T* x, T* y, size_t n) {                 \
    map<Name##Fn>(x, y, n);                                            \
  }
GRADCELL_VECMATH_UNARY(GRADCELL_X)
#undef GRADCELL_X
#define GRADCELL_X(name, Name)                                                      \
  namespace scalar {                                                                \
  GRADCELL_INLINE float name(float a, float b) { return apply<Name##Fn>(a, b); }    \
  GRADCELL_INLINE double name(double a, double b) { return apply<Name##Fn>(a, b); } \
  }                                                                                 \
  template <class T>                                                                \
  inline void map_##name(const T* a, const T* b, T* y, size_t n) {                  \
    map<Name##Fn>(a, b, y, n);                                                      \
  }
GRADCELL_VECMATH_BINARY(GRADCELL_X)
#undef GRADCELL_X

}  // namespace gradcell::GRADCELL_ISA

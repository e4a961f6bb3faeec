// Vector math: every function a row of the op table may use, for one number and for a register.
//
// All of it is in namespace gradcell::GRADCELL_ISA (v2, v3, v4; base elsewhere), one copy for each
// instruction-set level. scalar::exp(x) and so on take and give a lane value: float, double, VecF
// or VecD (vecmath_lanes.h). maximum, minimum, where, abs, sign, mod, fmod and floor_div take
// integers, too (one int32_t or int64_t), and ipow only those.
//
// The same input gives the same bits as a number and in any lane. Inputs of every kind (NaN,
// infinities, signed zeros, denormals) give what C's annex F says; nothing is flushed.
// Error bounds: docs/accuracy.md.
#pragma once

#include "math/vecmath_erf.h"
#include "math/vecmath_erfinv.h"
#include "math/vecmath_log.h"
#include "math/vecmath_probability.h"
#include "math/vecmath_simple.h"
#include "math/vecmath_trig.h"

// clang-format off
#define GRADCELL_VECMATH_UNARY(X)                                                              \
  X(exp, Exp) X(exp2, Exp2) X(expm1, Expm1) X(log, Log) X(log1p, Log1p) X(log2, Log2)          \
  X(log10, Log10)                                                                              \
  X(sin, Sin) X(cos, Cos) X(tan, Tan) X(asin, Asin) X(acos, Acos) X(atan, Atan) X(sinh, Sinh)  \
  X(cosh, Cosh) X(tanh, Tanh) X(asinh, Asinh) X(acosh, Acosh) X(atanh, Atanh)                  \
  X(sigmoid, Sigmoid) X(erf, Erf) X(erfc, Erfc) X(erfinv, Erfinv) X(sqrt, Sqrt)                \
  X(rsqrt, Rsqrt) X(floor, Floor) X(ceil, Ceil) X(round, Round) X(trunc, Trunc) X(sign, Sign) X(abs, Abs)
// clang-format on
/// Composed of others, and not so exact that they would be promised with them.
#define GRADCELL_VECMATH_COMPOSED(X) X(ndtr, Ndtr) X(logit, Logit)
#define GRADCELL_VECMATH_BINARY(X) \
  X(pow, Pow) X(atan2, Atan2) X(mod, Mod) X(fmod, Fmod) X(copysign, CopySign)

namespace gradcell::GRADCELL_ISA {

template <class F>
concept NativeFloat = requires { requires F::kNativeFloat; };
/// F's fast formula is good where F::within<T>(x...) is set; F::beyond<T>(x...) is for the rest,
/// one at a time.
template <class F>
concept Limited = requires { &F::template beyond<double>; };

template <class F, class T, class V, class... X>
__attribute__((noinline, cold)) V repaired(V y, MaskOf<V> within, X... x) {
  if constexpr (std::is_same_v<V, ElementOf<V>>) {
    y = static_cast<V>(F::template beyond<T>(x...));
  } else {
    for (size_t i = 0; i < kLanes<V>; ++i)
      if (!within[i]) y[i] = static_cast<ElementOf<V>>(F::template beyond<T>(x[i]...));
  }
  return y;
}

/// F to the precision of T, in lanes of T or wider ones.
template <class F, class T, class V, class... X>
GRADCELL_INLINE V evaluate(V x, X... more) {
  V y;
  if constexpr (std::is_same_v<T, float>) {
    y = F::f32(x, more...);
  } else {
    y = F::f64(x, more...);
  }
  if constexpr (Limited<F>) {
    const MaskOf<V> within = F::template within<T>(x, more...);
    if (!every(within)) return repaired<F, T>(y, within, x, more...);
  }
  return y;
}

/// F of lane values. Floats are computed in double lanes but where F is quick enough without.
template <class F, class... V>
GRADCELL_INLINE auto apply(V... x) {
  using First = std::common_type_t<V...>;
  using T = ElementOf<First>;
  if constexpr (std::is_same_v<T, double> || NativeFloat<F>) {
    return evaluate<F, T>(x...);
  } else if constexpr (std::is_same_v<First, float>) {
    return static_cast<float>(evaluate<F, float>(static_cast<double>(x)...));
  } else {
    return narrow(evaluate<F, float>(widen_first(x)...), evaluate<F, float>(widen_second(x)...));
  }
}

namespace scalar {

#define GRADCELL_X(name, Name)  \
  template <LaneValue V>        \
  GRADCELL_INLINE V name(V x) { \
    return apply<Name##Fn>(x);  \
  }
GRADCELL_VECMATH_UNARY(GRADCELL_X)
GRADCELL_VECMATH_COMPOSED(GRADCELL_X)
#undef GRADCELL_X
#define GRADCELL_X(name, Name)       \
  template <LaneValue V>             \
  GRADCELL_INLINE V name(V a, V b) { \
    return apply<Name##Fn>(a, b);    \
  }
GRADCELL_VECMATH_BINARY(GRADCELL_X)
#undef GRADCELL_X

/// a where c is set, b elsewhere.
template <class V>
  requires(LaneValue<V> || std::is_integral_v<V>)
GRADCELL_INLINE V where(MaskOf<V> c, V a, V b) {
  return c ? a : b;
}

/// floor(a / b), as in Python.
template <LaneValue V>
GRADCELL_INLINE V floor_div(V a, V b) {
  const V zero = all<V>(0), inf = all<V>(kInf), quotient = a / b;
  // Nearly an integer: the remainder has been taken off, so rounding can only repair the quotient.
  const V n = round_even((a - mod(a, b)) / b);
  const V regular = select(n == zero, copy_sign(zero, quotient), n);
  const V below = select((a < zero) != (b < zero), all<V>(-1), zero);
  const V y = select(both(abs_value(b) == inf, abs_value(a) < inf), below, regular);
  const auto exact = either(either(b == zero, a == zero), either(a != a, b != b));
  return select(exact, quotient, y);
}

}  // namespace scalar

}  // namespace gradcell::GRADCELL_ISA

// The functions a row of the op table may use, by the same names on both machines:
//   exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
//   sigmoid erf erfc erfinv ndtr logit sqrt rsqrt atan2 copysign  float, double
//   floor ceil round trunc sign abs pow maximum minimum mod fmod floor_div
//                                                                 float, double, int32, int64
//   where (of a condition and two numbers)                        float, double, int32, int64
//   ipow                                                          int32, int64
// On the CPU they are gradcell::GRADCELL_ISA::scalar::name of the vector math: of one number, or of
// a register of floats or doubles. Under NVRTC they are gradcell::scalar::name over CUDA's built-in
// device functions; no header is included there.
#pragma once

#ifndef __CUDACC_RTC__

#include "math/vecmath.h"

namespace gradcell::GRADCELL_ISA::scalar {

#define GRADCELL_INTEGER(T, U)                                      \
  GRADCELL_INLINE T abs(T x) { return x < 0 ? T(U(0) - U(x)) : x; } \
  GRADCELL_INLINE T sign(T x) { return T((x > 0) - (x < 0)); }      \
  GRADCELL_INLINE T floor(T x) { return x; }                        \
  GRADCELL_INLINE T ceil(T x) { return x; }                         \
  GRADCELL_INLINE T round(T x) { return x; }                        \
  GRADCELL_INLINE T trunc(T x) { return x; }                        \
  GRADCELL_INLINE T pow(T a, T n) { return ipow(a, n); }
GRADCELL_INTEGER(int32_t, uint32_t)
GRADCELL_INTEGER(int64_t, uint64_t)
#undef GRADCELL_INTEGER

}  // namespace gradcell::GRADCELL_ISA::scalar

#else

namespace gradcell {
namespace scalar {

#define GRADCELL_DEVICE __device__ __forceinline__
#define GRADCELL_BUILTIN(name)                                 \
  GRADCELL_DEVICE float name(float x) { return ::name##f(x); } \
  GRADCELL_DEVICE double name(double x) { return ::name(x); }
GRADCELL_BUILTIN(exp)
GRADCELL_BUILTIN(exp2)
GRADCELL_BUILTIN(expm1)
GRADCELL_BUILTIN(log)
GRADCELL_BUILTIN(log1p)
GRADCELL_BUILTIN(log2)
GRADCELL_BUILTIN(log10)
GRADCELL_BUILTIN(sin)
GRADCELL_BUILTIN(cos)
GRADCELL_BUILTIN(tan)
GRADCELL_BUILTIN(asin)
GRADCELL_BUILTIN(acos)
GRADCELL_BUILTIN(atan)
GRADCELL_BUILTIN(sinh)
GRADCELL_BUILTIN(cosh)
GRADCELL_BUILTIN(tanh)
GRADCELL_BUILTIN(asinh)
GRADCELL_BUILTIN(acosh)
GRADCELL_BUILTIN(atanh)
GRADCELL_BUILTIN(erf)
GRADCELL_BUILTIN(erfc)
GRADCELL_BUILTIN(erfinv)
GRADCELL_BUILTIN(sqrt)
GRADCELL_BUILTIN(rsqrt)
GRADCELL_BUILTIN(floor)
GRADCELL_BUILTIN(ceil)
GRADCELL_BUILTIN(trunc)
#undef GRADCELL_BUILTIN

GRADCELL_DEVICE float round(float x) { return ::rintf(x); }  // half to even
GRADCELL_DEVICE double round(double x) { return ::rint(x); }
GRADCELL_DEVICE float sigmoid(float x) {
  const float t = ::expf(-::fabsf(x));
  return (x < 0 ? t : 1.0f) / (1.0f + t);
}
GRADCELL_DEVICE double sigmoid(double x) {
  const double t = ::exp(-::fabs(x));
  return (x < 0 ? t : 1.0) / (1.0 + t);
}
GRADCELL_DEVICE float ndtr(float x) { return ::normcdff(x); }
GRADCELL_DEVICE double ndtr(double x) { return ::normcdf(x); }
GRADCELL_DEVICE float logit(float x) {  // 2x - 1 is exact around 1/2
  return x > 0.25f && x < 0.75f ? 2 * ::atanhf(2 * x - 1) : ::logf(x / (1 - x));
}
GRADCELL_DEVICE double logit(double x) {
  return x > 0.25 && x < 0.75 ? 2 * ::atanh(2 * x - 1) : ::log(x / (1 - x));
}
GRADCELL_DEVICE float pow(float a, float b) { return ::powf(a, b); }
GRADCELL_DEVICE double pow(double a, double b) { return ::pow(a, b); }
GRADCELL_DEVICE float atan2(float a, float b) { return ::atan2f(a, b); }
GRADCELL_DEVICE double atan2(double a, double b) { return ::atan2(a, b); }
GRADCELL_DEVICE float copysign(float a, float b) { return ::copysignf(a, b); }
GRADCELL_DEVICE double copysign(double a, double b) { return ::copysign(a, b); }
GRADCELL_DEVICE float abs(float x) { return ::fabsf(x); }
GRADCELL_DEVICE double abs(double x) { return ::fabs(x); }
GRADCELL_DEVICE float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x + 0.0f; }
GRADCELL_DEVICE double sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x + 0.0; }

// NaN if either argument is.
GRADCELL_DEVICE float maximum(float a, float b) { return a != a ? a : (a < b || b != b ? b : a); }
GRADCELL_DEVICE double maximum(double a, double b) {
  return a != a ? a : (a < b || b != b ? b : a);
}
GRADCELL_DEVICE float minimum(float a, float b) { return a != a ? a : (b < a || b != b ? b : a); }
GRADCELL_DEVICE double minimum(double a, double b) {
  return a != a ? a : (b < a || b != b ? b : a);
}

template <class T>
GRADCELL_DEVICE T where(bool c, T a, T b) {
  return c ? a : b;
}

// Python's remainder and quotient.
#define GRADCELL_FLOATING(T, f)                                          \
  GRADCELL_DEVICE T mod(T a, T b) {                                      \
    const T r = ::fmod##f(a, b);                                         \
    if (r == 0) return ::copysign##f(T(0), b);                           \
    return (r < 0) != (b < 0) ? r + b : r;                               \
  }                                                                      \
  GRADCELL_DEVICE T fmod(T a, T b) { return ::fmod##f(a, b); }           \
  GRADCELL_DEVICE T floor_div(T a, T b) {                                \
    if (b == 0 || a == 0 || a != a || b != b) return a / b;              \
    if (isinf(b) && !isinf(a)) return (a < 0) != (b < 0) ? T(-1) : T(0); \
    const T n = ::rint##f((a - mod(a, b)) / b);                          \
    return n == 0 ? ::copysign##f(T(0), a / b) : n;                      \
  }
GRADCELL_FLOATING(float, f)
GRADCELL_FLOATING(double, )
#undef GRADCELL_FLOATING

// Integers: a divisor of 0 gives 0, the most negative number over -1 wraps, and powers wrap.
#define GRADCELL_INTEGER(T, U)                                               \
  GRADCELL_DEVICE T abs(T x) { return x < 0 ? (T)(0 - (U)x) : x; }           \
  GRADCELL_DEVICE T sign(T x) { return (x > 0) - (x < 0); }                  \
  GRADCELL_DEVICE T floor(T x) { return x; }                                 \
  GRADCELL_DEVICE T ceil(T x) { return x; }                                  \
  GRADCELL_DEVICE T round(T x) { return x; }                                 \
  GRADCELL_DEVICE T trunc(T x) { return x; }                                 \
  GRADCELL_DEVICE T maximum(T a, T b) { return a < b ? b : a; }              \
  GRADCELL_DEVICE T minimum(T a, T b) { return b < a ? b : a; }              \
  GRADCELL_DEVICE T mod(T a, T b) {                                          \
    if (b == 0 || b == -1) return 0;                                         \
    const T r = a % b;                                                       \
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;                         \
  }                                                                          \
  GRADCELL_DEVICE T fmod(T a, T b) { return b == 0 || b == -1 ? 0 : a % b; } \
  GRADCELL_DEVICE T floor_div(T a, T b) {                                    \
    if (b == 0) return 0;                                                    \
    if (b == -1) return (T)(0 - (U)a);                                       \
    const T q = a / b, r = a % b;                                            \
    return r != 0 && (r < 0) != (b < 0) ? q - 1 : q;                         \
  }                                                                          \
  GRADCELL_DEVICE T ipow(T a, T n) {                                         \
    if (n < 0) return a == 1 ? 1 : a == -1 ? (n & 1 ? -1 : 1) : 0;           \
    U result = 1, base = (U)a;                                               \
    for (U e = (U)n; e != 0; e >>= 1) {                                      \
      if (e & 1) result *= base;                                             \
      base *= base;                                                          \
    }                                                                        \
    return (T)result;                                                        \
  }                                                                          \
  GRADCELL_DEVICE T pow(T a, T n) { return ipow(a, n); }
GRADCELL_INTEGER(int, unsigned)
GRADCELL_INTEGER(long long, unsigned long long)
#undef GRADCELL_INTEGER
#undef GRADCELL_DEVICE

}  // namespace scalar
}  // namespace gradcell

#endif

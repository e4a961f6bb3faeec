#include "ir/fold.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "ir/op_info.h"
#include "math/scalar.h"

namespace gradcell {

namespace {

using namespace base::scalar;  // NOLINT: the rows' function names

double rounded(DType dtype, double v) {
  switch (dtype) {
    case DType::Float16:
      return half_to_float(float_to_half(static_cast<float>(v)));
    case DType::BFloat16:
      return bfloat_to_float(float_to_bfloat(static_cast<float>(v)));
    case DType::Float32:
      return static_cast<float>(v);
    default:
      return v;
  }
}

int64_t wrapped(DType dtype, int64_t v) {
  switch (dtype) {
    case DType::Bool:
      return v != 0;
    case DType::UInt8:
      return static_cast<uint8_t>(v);
    case DType::Int8:
      return static_cast<int8_t>(v);
    case DType::Int16:
      return static_cast<int16_t>(v);
    case DType::Int32:
      return static_cast<int32_t>(v);
    default:
      return v;
  }
}

template <class T>
T forward1(Op op, T x) {
  switch (op) {
#define UNARY(Name, fn, cls, forward, adjoint)                                     \
  case Op::Name:                                                                   \
    if constexpr (std::is_floating_point_v<T> || OpClass_##cls) return T(forward); \
    break;
#define OpClass_Float false
#define OpClass_Number true
#define OpClass_Bool true
#define BINARY(...)
#define COMPARE(...)
#define PREDICATE(Name, fn, forward) \
  case Op::Name:                     \
    return T(forward);
#define TERNARY(...)
#define STRUCTURED(...)
#include "ir/ops.def"
#include "ir/undef.h"
    default:
      break;
  }
  fail(ErrorKind::Runtime, "cannot fold an op");
}

template <class T>
T forward2(Op op, T a, T b) {
  switch (op) {
#define UNARY(...)
#define BINARY(Name, fn, cls, forward, da, db)                                     \
  case Op::Name:                                                                   \
    if constexpr (std::is_floating_point_v<T> || OpClass_##cls) return T(forward); \
    break;
#define COMPARE(Name, fn, forward) \
  case Op::Name:                   \
    return T(forward);
#define PREDICATE(...)
#define TERNARY(...)
#define STRUCTURED(...)
#include "ir/ops.def"
#include "ir/undef.h"
    default:
      break;
  }
  fail(ErrorKind::Runtime, "cannot fold an op");
}

template <class T>
T evaluate(Op op, std::span<const uint64_t> in) {
  T a = std::bit_cast<T>(in[0]);
  return in.size() == 1 ? forward1<T>(op, a) : forward2<T>(op, a, std::bit_cast<T>(in[1]));
}

}  // namespace

uint64_t to_bits(DType dtype, double value) {
  if (is_floating(dtype)) return std::bit_cast<uint64_t>(rounded(dtype, value));
  if (value != value) return 0;
  constexpr double kLimit = 9223372036854775808.0;
  int64_t i = value >= kLimit   ? std::numeric_limits<int64_t>::max()
              : value < -kLimit ? std::numeric_limits<int64_t>::min()
                                : static_cast<int64_t>(value);
  return dtype == DType::Bool ? uint64_t(value != 0) : to_bits(dtype, i);
}

uint64_t to_bits(DType dtype, int64_t value) {
  if (is_floating(dtype))
    return std::bit_cast<uint64_t>(rounded(dtype, static_cast<double>(value)));
  return static_cast<uint64_t>(wrapped(dtype, value));
}

uint64_t convert_bits(DType from, DType to, uint64_t bits) {
  return is_floating(from) ? to_bits(to, std::bit_cast<double>(bits))
                           : to_bits(to, std::bit_cast<int64_t>(bits));
}

uint64_t fold(Op op, DType dtype, DType out, std::span<const uint64_t> inputs) {
  return is_floating(dtype) ? to_bits(out, evaluate<double>(op, inputs))
                            : to_bits(out, evaluate<int64_t>(op, inputs));
}

}  // namespace gradcell

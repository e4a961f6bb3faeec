#include "ir/fold.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/element.h"
#include "ir/op_info.h"
#include "math/scalar.h"

namespace gradcell {

namespace {

using namespace base::scalar;  // NOLINT: the rows' function names

double rounded(DType dtype, double v) {
  if (compute_type(dtype) == Compute::F64) return v;
  const auto f = static_cast<float>(v);
  double held = f;
  if (is_narrow_float(dtype))
    by_dtype(dtype, [&]<class S>() { held = static_cast<double>(static_cast<float>(S(f))); });
  return held;
}

int64_t wrapped(DType dtype, int64_t v) {
  if (dtype == DType::Bool) return v != 0;
  const size_t up = 64 - 8 * item_size(dtype);
  return is_unsigned(dtype) ? static_cast<int64_t>(static_cast<uint64_t>(v) << up >> up)
                            : v << up >> up;
}

#define OpClass_Float false
#define OpClass_Number true
#define OpClass_Bool true
#define FORWARD(Name, cls, forward)                                                \
  case Op::Name:                                                                   \
    if constexpr (std::is_floating_point_v<T> || OpClass_##cls) return T(forward); \
    break;

template <class T>
T forward1(Op op, T x) {
  switch (op) {
#define UNARY(Name, fn, cls, cost, forward, adjoint) FORWARD(Name, cls, forward)
#include "ir/rows.h"
    default:
      break;
  }
  fail(ErrorKind::Runtime, "cannot fold an op");
}

template <class T>
T forward2(Op op, T a, T b) {
  switch (op) {
#define BINARY(Name, fn, cls, cost, forward, da, db) FORWARD(Name, cls, forward)
#include "ir/rows.h"
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
  if (dtype == DType::Bool) return value != 0;
  if (value != value) return 0;
  constexpr double kLimit = 9223372036854775808.0;
  int64_t i = value >= kLimit   ? std::numeric_limits<int64_t>::max()
              : value < -kLimit ? std::numeric_limits<int64_t>::min()
                                : static_cast<int64_t>(value);
  return to_bits(dtype, i);
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

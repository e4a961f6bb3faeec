// Ops on the user's tensors: dtype promotion, implicit broadcasting, checks in the user's terms.
// Inside a trace an op records; outside it runs at once, as a plan of its own.
#pragma once

#include <functional>
#include <optional>
#include <variant>

#include "runtime/views.h"

namespace gradcell {

enum class Function : int64_t;

/// A Python number: weak, it takes the dtype of the tensor it meets, which rounds it once.
struct Number {
  enum class Kind : uint8_t { Bool, Int, Float, Complex } kind;  ///< Complex: of Numbers
  double f = 0;
  int64_t i = 0;
};
/// Nested lists of Python numbers, as weak as one: `in` makes them a tensor of a dtype.
struct Numbers {
  Number::Kind kind;
  Dims dims;
  std::function<TensorPtr(DType)> in;
};
using TensorOrNumber = std::variant<TensorPtr, Number, Numbers>;

/// The dtype of a number that meets a tensor of dtype t.
DType promote(DType t, Number::Kind number);
/// What Python floats are, and what integers become where an op is defined for floats alone.
DType default_float();
/// From now on: also what the function being traced, which sets it, records after this.
void set_default_float(DType t);

TensorPtr unary(Op op, const TensorPtr& x);
TensorPtr binary(Op op, const TensorOrNumber& a, const TensorOrNumber& b);
/// LogicalAnd, LogicalOr, LogicalXor of bools; of integers the same of their bits.
TensorPtr bits(Op op, const TensorOrNumber& a, const TensorOrNumber& b);
TensorPtr select(const TensorPtr& c, const TensorOrNumber& a, const TensorOrNumber& b);
/// A function of ops/value_of.h.
TensorPtr value_of(Function f, const TensorOrNumber& a, const TensorOrNumber& b);

/// What a structured op is called with, as its spec's parameters say.
struct Arguments {
  std::vector<TensorPtr> tensors;
  /// By the spec's attributes. Axes may count from the end; none: all axes.
  std::vector<std::optional<Dims>> attributes;
  Type asked{DType::Float32, {}};
  bool keep_dims = false;
  Location at = {};  ///< of an effect: what others wait for says where it is, in traces or not
};
TensorPtr apply(Op op, const Arguments& arguments);
/// The same of an op that moves elements of one tensor, as a view of it.
TensorPtr view(Op op, const Arguments& arguments);
/// Its slice at start, size and step, in another shape; a view.
TensorPtr index(const TensorPtr& x, const Dims& start, const Dims& size, const Dims& step,
                const Dims& shape);
/// The slices along an axis of x, from 0 on, without it: views.
std::vector<TensorPtr> unstack(const TensorPtr& x, int64_t axis);
/// The elements along two axes (which go) whose indices differ by `offset`, as the last dimension;
/// a view.
TensorPtr diagonal(const TensorPtr& x, int64_t offset, int64_t axis1, int64_t axis2);

TensorPtr full(const Dims& dims, DType dtype, Number value);
TensorPtr cast(const TensorPtr& x, DType dtype);
TensorPtr matmul(const TensorPtr& a, const TensorPtr& b);
/// In the dtype of x; half types add up in float32 and are rounded once. No axes: all.
TensorPtr mean(const TensorPtr& x, const std::optional<Dims>& axes, bool keep_dims);

}  // namespace gradcell

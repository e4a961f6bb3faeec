// Ops on the user's tensors: dtype promotion, implicit broadcasting, checks in the user's terms.
// Inside a trace an op records; outside it runs at once, as a plan of its own.
#pragma once

#include <functional>
#include <optional>
#include <variant>

#include "runtime/trace.h"

namespace gradcell {

/// A Python number: weak, it takes the dtype of the tensor it meets, which rounds it once.
struct Number {
  enum class Kind : uint8_t { Bool, Int, Float } kind;
  double f = 0;
  int64_t i = 0;
};
/// Nested lists of Python numbers, as weak as one: `in` makes them a tensor of a dtype.
struct Numbers {
  Number::Kind kind;
  Dims dims;
  std::function<TensorPtr(DType)> in;
};
using Operand2 = std::variant<TensorPtr, Number, Numbers>;

/// MindSpore's promotion of two dtypes.
DType promote(DType a, DType b);
/// The dtype of a number that meets a tensor of dtype t.
DType promote(DType t, Number::Kind number);
Dims broadcast_shapes(const char* op, const Dims& a, const Dims& b);

namespace ops {

TensorPtr unary(Op op, const TensorPtr& x);
TensorPtr binary(Op op, const Operand2& a, const Operand2& b);
TensorPtr select(const TensorPtr& c, const Operand2& a, const Operand2& b);
TensorPtr cast(const TensorPtr& x, DType dtype);
TensorPtr stop_gradient(const TensorPtr& x);

TensorPtr full(const Dims& dims, DType dtype, Number value);
TensorPtr iota(const Dims& dims, DType dtype, int axis);
TensorPtr random_uniform(const TensorPtr& state, const Dims& dims);

/// At most one dimension may be -1.
TensorPtr reshape(const TensorPtr& x, Dims dims);
TensorPtr transpose(const TensorPtr& x, Dims perm);
/// -1 keeps a dimension.
TensorPtr broadcast_to(const TensorPtr& x, Dims dims);
/// start, size and step for each dimension, within bounds.
TensorPtr slice(const TensorPtr& x, const SliceSpec& spec);
TensorPtr slice_scatter(const TensorPtr& x, const Dims& dims, const Dims& start, const Dims& step);
TensorPtr concat(const std::vector<TensorPtr>& xs, int axis);

/// NumPy's matmul: vectors, matrices, broadcast batches; flags transpose the last two dimensions.
TensorPtr matmul(const TensorPtr& a, const TensorPtr& b, bool transpose_a, bool transpose_b);
/// Sum, max or min; no axes: all of them.
TensorPtr reduce(Op op, const TensorPtr& x, const std::optional<Dims>& axes, bool keep_dims);
/// In the dtype of x; half types add up in float32 and are rounded once.
TensorPtr mean(const TensorPtr& x, const std::optional<Dims>& axes, bool keep_dims);
TensorPtr arg_reduce(Op op, const TensorPtr& x, int axis, bool keep_dims);
TensorPtr cumsum(const TensorPtr& x, int axis, bool exclusive, bool reverse);
TensorPtr gather(const TensorPtr& x, const TensorPtr& indices, int axis);
TensorPtr scatter_add(const TensorPtr& indices, const TensorPtr& updates, int axis, int64_t size);
TensorPtr last_writer(const TensorPtr& indices, int64_t size);

}  // namespace ops
}  // namespace gradcell

#include "ops/families.h"

#include <array>

#include "ops/elementwise.h"
#include "ops/moving/movement.h"

namespace gradcell {

#define NAMES_ALONE
#define STRUCTURED(Name, fn) const Spec& spec_of_##Name();
#include "ir/rows.h"

const Spec* const* specs() {
  static const std::array specs{
#define NAMES_ALONE
#define ROW(Name, ...) &elementwise_spec(Op::Name),
#define STRUCTURED(Name, fn) &spec_of_##Name(),
#include "ir/rows.h"
  };
  return specs.data();
}

NodeId Linear::tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const {
  std::vector<NodeId> in;
  for (size_t i = 0; i < dx.size(); ++i) {
    const NodeId x = g.input(id, narrow<int>(i));
    in.push_back(!computes_with(narrow<int>(i)) ? x
                 : dx[i] == kNoNode             ? constant(g, g.dtype(x), g.dims(x), 0)
                                                : dx[i]);
  }
  return make(g, op, {in, g.attrs(id), {g.dtype(id), g.dims(id)}});
}

NodeId over_batch(Graph& g, const Batch& b, size_t k) {
  const NodeId x = b.inputs[k];
  return b.batched[k] ? x : broadcast_to(g, x, behind_batch(b.size, g.dims(x)));
}

Dims behind_batch(int64_t size, std::span<const int64_t> dims) {
  Dims all{size};
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

Dims behind_batch(std::span<const int64_t> axes) {
  Dims moved;
  for (int64_t axis : axes) moved.push_back(axis + 1);
  return moved;
}

void check_axis(const char* op, int64_t axis, size_t rank) {
  require(axis >= 0 && axis < static_cast<int64_t>(rank), ErrorKind::Value, op, ": axis ", axis,
          " is out of range for a tensor of ", rank, " dimensions");
}

void check_shape(const char* op, const Dims& dims) {
  for (int64_t d : dims)
    require(d >= 0, ErrorKind::Value, op, ": a shape cannot have the negative dimension ", d);
}

void check_size(const char* op, int64_t size) {
  require(size >= 0, ErrorKind::Value, op, ": size ", size, " is negative");
}

void check_numbers(const char* op, const char* what, std::span<const int64_t> numbers,
                   int64_t least) {
  for (int64_t n : numbers)
    require(n >= least && n < int64_t{1} << 31, ErrorKind::Value, op, ": ", what, " ",
            listed(numbers), " must not be below ", least, " or beyond 2^31");
}

void check_index(const char* op, DType t) {
  require(t == DType::Int32 || t == DType::Int64, ErrorKind::Type, op,
          ": indices must be int32 or int64, got ", gradcell::name(t));
}

void check_same_dtype(const char* op, DType a, DType b) {
  require(a == b, ErrorKind::Type, op, ": dtypes ", gradcell::name(a), " and ", gradcell::name(b),
          " differ");
}

}  // namespace gradcell

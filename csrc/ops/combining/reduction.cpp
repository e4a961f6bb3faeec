#include "ops/combining/reduction.h"

#include <cmath>

#include "ops/combining/scan.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/identity.h"
#include "ops/moving/movement.h"

namespace gradcell {

namespace {

constexpr Parameter kReduced[] = {kX, attribute("axes", "None"), kKeepDims};
constexpr Parameter kExtreme[] = {kX, kAxis, kKeepDims};

/// Whether all elements along the axes are the same.
bool same_along(const Graph& g, NodeId x, std::span<const int64_t> axes) {
  if (is_constant(g, x)) return true;
  if (!is_broadcast(g, x)) return false;
  return std::ranges::all_of(axes, [&](int64_t axis) {
    return source_dim(g.dims(g.input(x, 0)), g.dims(x), static_cast<size_t>(axis)) == 1;
  });
}

/// One of those elements for each place of the result.
NodeId one_along(Graph& g, NodeId x, std::span<const int64_t> axes, const Dims& to) {
  if (is_constant(g, x)) return constant_bits(g, g.dtype(x), to, g[x].bits);
  const NodeId source = g.input(x, 0);
  Dims kept;
  for (size_t k = 0; k < g.dims(x).size(); ++k)
    if (!contains(axes, k)) kept.push_back(source_dim(g.dims(source), g.dims(x), k));
  return broadcast_to(g, reshape(g, source, kept), to);
}

class Reduction : public Spec {
 public:
  Reduction(Op op, Combine combine)
      : Spec(op, Form::Reduce, kAttributes<ReduceAttributes>, kReduced, combine) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const NodeId x = d.inputs[0];
    const Dims& from = g.dims(x);
    int64_t last = -1;
    for (int64_t axis : d.attributes) {
      check_axis(name(), axis, from.size());
      require(axis > last, ErrorKind::Value, name(), ": axes ", listed(d.attributes),
              " are not ascending");
      last = axis;
    }
    const Dims to = pick(from, d.attributes, false);
    require(has_identity() || element_count(pick(from, d.attributes, true)) > 0 ||
                element_count(to) == 0,
            ErrorKind::Value, name(), ": no identity for an empty reduction of shape ",
            listed(from));
    return {g.dtype(x), to};
  }

  NodeId simplify(Graph& g, Draft& d, const Type& type) const override {
    const NodeId x = d.inputs[0];
    const auto axes = d.attributes;
    if (axes.empty()) return x;
    const int64_t n = element_count(pick(g.dims(x), axes, true));
    if (n == 0) return constant(g, type.dtype, type.dims, combine == Combine::Product ? 1 : 0);
    if (n == 1) return reshape(g, x, type.dims);
    if (combine != Combine::Product && same_along(g, x, axes)) {
      const NodeId one = one_along(g, x, axes, type.dims);
      if (!sums()) return one;
      // A count may be beyond what a half type holds.
      const DType t = wide(type.dtype);
      const NodeId count = constant(g, t, type.dims, static_cast<double>(n));
      return cast(g, binary(g, Op::Mul, cast(g, one, t), count), type.dtype);
    }
    return g[x].op == op ? merged(g, x, axes) : kNoNode;
  }

  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    const NodeId spread_out = spread(g, dy, g.dims(g.input(id, 0)), g.attrs(id));
    return sums() ? spread_out : binary(g, Op::Mul, weights(g, id), spread_out);
  }

  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    return sum(g, sums() ? dx[0] : binary(g, Op::Mul, weights(g, id), dx[0]), g.attrs(id));
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    return make(g, op, {b.inputs, behind_batch(g.attrs(id))});
  }
  /// Which elements are extreme does not move.
  Law law() const override { return combine == Combine::Product ? Law::Smooth : Law::Linear; }

  NodeId apply(Graph& g, Draft d) const override {
    NodeId x = d.inputs[0];
    if (has_identity() && g.dtype(x) == DType::Bool) x = cast(g, x, DType::Int64);
    d.inputs = {&x, 1};
    return make(g, op, d);
  }

 private:
  bool sums() const { return combine == Combine::Sum; }
  bool has_identity() const { return sums() || combine == Combine::Product; }

  /// The derivative of a result by each element.
  NodeId weights(Graph& g, NodeId id) const {
    return combine == Combine::Product ? others(g, id) : shares(g, id);
  }

  /// The product of all other elements. (Nothing is divided by, so zeros need no special rule.)
  static NodeId others(Graph& g, NodeId id) {
    const NodeId x = g.input(id, 0);
    const std::span<const int64_t> axes = g.attrs(id);
    if (axes.size() == 1 && g.dims(x).size() > 1) return others_along(g, x, axes[0]);
    const Dims& full = g.dims(x);
    Dims order, kept = pick(full, axes, false);  // the reduced axes as one, the last
    for (size_t k = 0; k < full.size(); ++k)
      if (!contains(axes, k)) order.push_back(static_cast<int64_t>(k));
    order.insert(order.end(), axes.begin(), axes.end());
    const NodeId moved = transpose(g, x, order);
    kept.push_back(element_count(pick(full, axes, true)));
    const NodeId product = others_of_lines(g, reshape(g, moved, kept));
    return transpose(g, reshape(g, product, g.dims(moved)), inverse(order));
  }

  /// Of those before along an axis, and those behind.
  static NodeId others_along(Graph& g, NodeId x, int64_t axis) {
    return binary(g, Op::Mul, cumprod(g, x, {axis, true, false}),
                  cumprod(g, x, {axis, true, true}));
  }

  /// Along the last axis. A long line is cut into a sheet: the others of an element are those in
  /// its column, whose running products are vectors, and all of the other columns.
  static NodeId others_of_lines(Graph& g, NodeId x) {
    constexpr int64_t kLong = 4096;
    const Dims dims = g.dims(x);
    const size_t last = dims.size() - 1;
    const auto axis = static_cast<int64_t>(last);
    const int64_t n = dims[last];
    if (n < kLong) return others_along(g, x, axis);
    const auto columns = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
    const int64_t rows = (n + columns - 1) / columns, over = rows * columns - n;
    Dims sheet = dims, rest = dims;
    if (over > 0) {
      rest[last] = over;
      const NodeId parts[] = {x, constant(g, g.dtype(x), rest, 1)};
      x = concat(g, parts, narrow<int>(last));
    }
    sheet[last] = rows, sheet.push_back(columns);
    x = reshape(g, x, sheet);
    const int64_t down[] = {axis};
    const NodeId columns_others = others_of_lines(g, reduce(g, Combine::Product, x, down));
    const NodeId all =
        binary(g, Op::Mul, others_along(g, x, axis), spread(g, columns_others, sheet, down));
    rest[last] = rows * columns;
    const NodeId line = reshape(g, all, rest);
    return over == 0 ? line : slice(g, line, {Dims(dims.size(), 0), dims, Dims(dims.size(), 1)});
  }

  /// A reduction of a reduction.
  NodeId merged(Graph& g, NodeId x, std::span<const int64_t> axes) const {
    const NodeId source = g.input(x, 0);
    Dims all(g.attrs(x).begin(), g.attrs(x).end()), kept;
    for (size_t k = 0; k < g.dims(source).size(); ++k)
      if (!contains(g.attrs(x), k)) kept.push_back(static_cast<int64_t>(k));
    for (int64_t axis : axes) all.push_back(kept[axis]);
    std::sort(all.begin(), all.end());
    return make(g, op, {{&source, 1}, all});
  }

  /// 1 / (number of ties) where x equals its maximum (or minimum), else 0.
  static NodeId shares(Graph& g, NodeId id) {
    const NodeId x = g.input(id, 0);
    const Dims& full = g.dims(x);
    const std::span<const int64_t> axes = g.attrs(id);
    const NodeId hit = binary(g, Op::Equal, x, spread(g, id, full, axes));
    const NodeId mask = cast(g, hit, g.dtype(x));
    const Op divide = is_floating(g.dtype(x)) ? Op::Div : Op::FloorDiv;
    return binary(g, divide, mask, spread(g, sum(g, mask, axes), full, axes));
  }
};

class Extremum : public Constant {
 public:
  Extremum(Op op, Combine combine)
      : Constant(op, Form::Extremum, kAttributes<AxisAttributes>, kExtreme, combine) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const Dims& from = g.dims(d.inputs[0]);
    check_axis(name(), d.attributes[0], from.size());
    require(from[d.attributes[0]] > 0, ErrorKind::Value, name(), ": axis ", d.attributes[0],
            " of shape ", listed(from), " is empty");
    const DType place = from[d.attributes[0]] > INT32_MAX ? DType::Int64 : DType::Int32;
    return {place, pick(from, d.attributes, false)};
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    return make(g, op, {b.inputs, behind_batch(g.attrs(id))});
  }

  NodeId apply(Graph& g, Draft d) const override {  // a number counts as a vector of one
    NodeId x = d.inputs[0];
    if (g.dims(x).empty()) x = reshape(g, x, Dims{1});
    d.inputs = {&x, 1};
    return make(g, op, d);
  }
};

}  // namespace

SPEC(ReduceSum, Reduction, Combine::Sum)
SPEC(ReduceProd, Reduction, Combine::Product)
SPEC(ReduceMax, Reduction, Combine::Max)
SPEC(ReduceMin, Reduction, Combine::Min)
SPEC(ArgMax, Extremum, Combine::Max)
SPEC(ArgMin, Extremum, Combine::Min)

NodeId reduce(Graph& g, Combine combine, NodeId x, std::span<const int64_t> axes) {
  static constexpr Op kOps[] = {Op::ReduceSum, Op::ReduceProd, Op::ReduceMax, Op::ReduceMin};
  return make(g, kOps[static_cast<size_t>(combine)], {{&x, 1}, axes});
}

NodeId arg_reduce(Graph& g, Combine extreme, NodeId x, int axis) {
  const int64_t attributes[] = {axis};
  return make(g, extreme == Combine::Max ? Op::ArgMax : Op::ArgMin, {{&x, 1}, attributes});
}

NodeId spread(Graph& g, NodeId reduced, const Dims& full, std::span<const int64_t> axes) {
  Dims kept = full;
  for (int64_t axis : axes) kept[axis] = 1;
  return broadcast_to(g, reshape(g, reduced, kept), full);
}

}  // namespace gradcell

#include "ops/combining/scan.h"

#include <cstdlib>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/identity.h"
#include "ops/moving/movement.h"

namespace gradcell {

namespace {

constexpr Parameter kScanned[] = {kX, kAxis, attribute("exclusive", "False"),
                                  attribute("reverse", "False")};

constexpr Parameter kRecurring[] = {tensor("factors"), tensor("terms"), kAxis,
                                    attribute("exclusive", "False"), attribute("reverse", "False")};

template <class Base>
class Scan : public Base {
 public:
  Scan(Op op, Combine combine)
      : Base(op, Form::Scan, kAttributes<ScanAttributes>, kScanned, combine) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const NodeId x = d.inputs[0];
    require(!g.dims(x).empty(), ErrorKind::Value, this->name(),
            ": a tensor without dimensions has no axis");
    check_axis(this->name(), d.attributes[0], g.dims(x).size());
    return {g.dtype(x), g.dims(x)};
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    auto a = gradcell::attributes<ScanAttributes>(g, id);
    ++a.axis;
    return make(g, this->op, {b.inputs, encode(a)});
  }

  NodeId apply(Graph& g, Draft d) const override {
    NodeId x = d.inputs[0];
    if (g.dtype(x) == DType::Bool) x = cast(g, x, DType::Int32);
    d.inputs = {&x, 1};
    return make(g, this->op, d);
  }
};

class SumScan : public Scan<Linear> {
 public:
  using Scan::Scan;
  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    auto a = gradcell::attributes<ScanAttributes>(g, id);
    a.reverse = !a.reverse;
    return cumsum(g, dy, a);
  }
};

/// v moved by `by` places along an axis, zeros coming in: element j + by stands at j.
NodeId shifted(Graph& g, NodeId v, int64_t axis, int64_t by) {
  const Dims dims = g.dims(v);
  SliceSpec kept{Dims(dims.size(), 0), dims, Dims(dims.size(), 1)};
  kept.size[axis] = std::max<int64_t>(0, dims[axis] - std::abs(by));
  Dims place(dims.size(), 0);
  (by > 0 ? kept.start : place)[axis] = kept.size[axis] == 0 ? 0 : std::abs(by);
  return slice_scatter(g, slice(g, v, kept), dims, place, kept.step);
}

/// y[i] = a[i] y[i - 1] + b[i] along the axis, from 0 on; exclusive: y[i - 1] in y[i]'s place.
NodeId linear_recurrence(Graph& g, NodeId a, NodeId b, const ScanAttributes& how) {
  const NodeId in[] = {a, b};
  return make(g, Op::LinearRecurrence, {in, encode(how)});
}

/// y[i] is the product of x up to i; p[j] that before j. A derivative by x[j] is p[j] times the
/// products from j on without x[j], which recur.
class ProductScan : public Scan<Spec> {
 public:
  using Scan::Scan;
  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    const auto a = gradcell::attributes<ScanAttributes>(g, id);
    const int64_t next = a.reverse ? -1 : 1;
    const NodeId x = g.input(id, 0), factors = shifted(g, x, a.axis, next);
    if (a.exclusive) dy = shifted(g, dy, a.axis, next);
    return binary(g, Op::Mul, before(g, x, a),
                  linear_recurrence(g, factors, dy, {a.axis, false, !a.reverse}));
  }
  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    const auto a = gradcell::attributes<ScanAttributes>(g, id);
    const NodeId x = g.input(id, 0), own = binary(g, Op::Mul, before(g, x, a), dx[0]);
    return linear_recurrence(g, x, own, a);
  }
  Law law() const override { return Law::Smooth; }
  const char* not_in_onnx() const override { return "it has running sums only"; }

 private:
  NodeId before(Graph& g, NodeId x, ScanAttributes a) const {
    a.exclusive = true;
    return make(g, op, {{&x, 1}, encode(a)});
  }
};

/// The adjoints of its results recur too, the other way: each gets a multiple of the one after it.
class LinearRecurrence : public Spec {
 public:
  explicit LinearRecurrence(Op op)
      : Spec(op, Form::Recur, kAttributes<ScanAttributes>, kRecurring) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const NodeId a = d.inputs[0], b = d.inputs[1];
    require(g.dims(a) == g.dims(b) && g.dtype(a) == g.dtype(b), ErrorKind::Value, name(),
            ": factors ", gradcell::name(g.dtype(a)), listed(g.dims(a)), " and terms ",
            gradcell::name(g.dtype(b)), listed(g.dims(b)), " must be alike");
    require(g.dtype(a) != DType::Bool, ErrorKind::Type, name(), ": not defined for bool");
    require(!g.dims(a).empty(), ErrorKind::Value, name(),
            ": a tensor without dimensions has no axis");
    check_axis(name(), d.attributes[0], g.dims(a).size());
    return {g.dtype(a), g.dims(a)};
  }
  NodeId adjoint(Graph& g, NodeId id, int k, NodeId dy) const override {
    const auto how = gradcell::attributes<ScanAttributes>(g, id);
    const int64_t next = how.reverse ? -1 : 1;
    if (how.exclusive) dy = shifted(g, dy, how.axis, next);
    const NodeId factors = shifted(g, g.input(id, 0), how.axis, next);
    const NodeId by_term = linear_recurrence(g, factors, dy, {how.axis, false, !how.reverse});
    return k == 1 ? by_term : binary(g, Op::Mul, by_term, before(g, id, how));
  }
  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    const auto how = gradcell::attributes<ScanAttributes>(g, id);
    NodeId own = dx[1];
    if (dx[0] != kNoNode) own = accumulate(g, own, binary(g, Op::Mul, dx[0], before(g, id, how)));
    return linear_recurrence(g, g.input(id, 0), own, how);
  }
  Law law() const override { return Law::Smooth; }
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    auto how = gradcell::attributes<ScanAttributes>(g, id);
    ++how.axis;
    return linear_recurrence(g, over_batch(g, b, 0), over_batch(g, b, 1), how);
  }

 private:
  /// What the node has at each place but the element itself: the one before it.
  static NodeId before(Graph& g, NodeId id, const ScanAttributes& how) {
    return how.exclusive ? id : shifted(g, id, how.axis, how.reverse ? 1 : -1);
  }
};

}  // namespace

SPEC(CumSum, SumScan, Combine::Sum)
SPEC(CumProd, ProductScan, Combine::Product)
SPEC(LinearRecurrence, LinearRecurrence)

NodeId cumsum(Graph& g, NodeId x, const ScanAttributes& a) {
  return make(g, Op::CumSum, {{&x, 1}, encode(a)});
}

NodeId cumprod(Graph& g, NodeId x, const ScanAttributes& a) {
  return make(g, Op::CumProd, {{&x, 1}, encode(a)});
}

}  // namespace gradcell

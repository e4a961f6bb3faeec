#include "ops/scan.h"

#include <cstdlib>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/identity.h"
#include "ops/movement.h"

namespace gradcell {

namespace {

constexpr Parameter kScanned[] = {kX, kAxis, attribute("exclusive", "False"),
                                  attribute("reverse", "False")};

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

/// s[j] = b[j] + a[j] s[j + step]: by doubling, so that nothing is divided and zeros do no harm.
NodeId recurrence(Graph& g, NodeId a, NodeId b, int64_t axis, int64_t step) {
  for (int64_t reach = 1; reach < g.dims(b)[axis]; reach *= 2) {
    const int64_t by = reach * step;
    b = binary(g, Op::Add, b, binary(g, Op::Mul, a, shifted(g, b, axis, by)));
    a = binary(g, Op::Mul, a, shifted(g, a, axis, by));
  }
  return b;
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
    return binary(g, Op::Mul, before(g, x, a), recurrence(g, factors, dy, a.axis, next));
  }
  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    const auto a = gradcell::attributes<ScanAttributes>(g, id);
    const int64_t previous = a.reverse ? 1 : -1;
    const NodeId x = g.input(id, 0), own = binary(g, Op::Mul, before(g, x, a), dx[0]);
    const NodeId dy = recurrence(g, x, own, a.axis, previous);
    return a.exclusive ? shifted(g, dy, a.axis, previous) : dy;
  }
  Law law() const override { return Law::Smooth; }

 private:
  NodeId before(Graph& g, NodeId x, ScanAttributes a) const {
    a.exclusive = true;
    return make(g, op, {{&x, 1}, encode(a)});
  }
};

}  // namespace

SPEC(CumSum, SumScan, Combine::Sum)
SPEC(CumProd, ProductScan, Combine::Product)

NodeId cumsum(Graph& g, NodeId x, const ScanAttributes& a) {
  return make(g, Op::CumSum, {{&x, 1}, encode(a)});
}

NodeId cumprod(Graph& g, NodeId x, const ScanAttributes& a) {
  return make(g, Op::CumProd, {{&x, 1}, encode(a)});
}

}  // namespace gradcell

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

/// s[j] = b[j] + a[j] s[j + step] along a short axis, one after the other.
NodeId short_recurrence(Graph& g, NodeId a, NodeId b, int64_t axis, int64_t step) {
  const int64_t n = g.dims(b)[axis];
  auto at = [&](NodeId v, int64_t j) {
    const Dims dims = g.dims(v);
    SliceSpec one{Dims(dims.size(), 0), dims, Dims(dims.size(), 1)};
    one.start[axis] = j, one.size[axis] = 1;
    return slice(g, v, one);
  };
  std::vector<NodeId> sums(static_cast<size_t>(n));
  for (int64_t k = n; k-- > 0;) {
    const int64_t j = step > 0 ? k : n - 1 - k, next = j + step;
    sums[j] = at(b, j);
    if (k + 1 < n) sums[j] = binary(g, Op::Add, sums[j], binary(g, Op::Mul, at(a, j), sums[next]));
  }
  return concat(g, sums, static_cast<int>(axis));
}

/// The same along any axis: by blocks, of which the first (last) elements recur with the products
/// of each block. So nothing is divided, and zeros do no harm.
NodeId recurrence(Graph& g, NodeId a, NodeId b, int64_t axis, int64_t step) {
  constexpr int64_t kBlock = 8;
  const Dims dims = g.dims(b);
  const int64_t n = dims[axis], blocks = (n + kBlock - 1) / kBlock;
  if (n == 0) return b;
  if (n <= kBlock) return short_recurrence(g, a, b, axis, step);
  Dims padded = dims, cut = dims, ends = dims;
  padded[axis] = blocks * kBlock, cut[axis] = ends[axis] = blocks;
  cut.insert(cut.begin() + axis + 1, kBlock);
  auto in_blocks = [&](NodeId v) {
    const Dims start(dims.size(), 0), steps(dims.size(), 1);
    return reshape(g, n < padded[axis] ? slice_scatter(g, v, padded, start, steps) : v, cut);
  };
  a = in_blocks(a);
  const NodeId own = short_recurrence(g, a, in_blocks(b), axis + 1, step);
  const NodeId products =
      make(g, Op::CumProd, {{&a, 1}, encode(ScanAttributes{axis + 1, false, step > 0})});
  auto at_end = [&](NodeId v) {
    SliceSpec one{Dims(cut.size(), 0), cut, Dims(cut.size(), 1)};
    one.start[axis + 1] = step > 0 ? 0 : kBlock - 1, one.size[axis + 1] = 1;
    return reshape(g, slice(g, v, one), ends);
  };
  const NodeId last = recurrence(g, at_end(products), at_end(own), axis, step);
  Dims between = cut;
  between[axis + 1] = 1;
  const NodeId from = broadcast_to(g, reshape(g, shifted(g, last, axis, step), between), cut);
  const NodeId sums =
      reshape(g, binary(g, Op::Add, own, binary(g, Op::Mul, products, from)), padded);
  if (n == padded[axis]) return sums;
  return slice(g, sums, {Dims(dims.size(), 0), dims, Dims(dims.size(), 1)});
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

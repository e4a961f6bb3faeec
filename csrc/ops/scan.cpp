#include "ops/scan.h"

#include "ops/families.h"
#include "ops/identity.h"

namespace gradcell {

namespace {

constexpr Parameter kScanned[] = {kX,
                                  kAxis,
                                  {Parameter::Kind::Attribute, "exclusive", "False"},
                                  {Parameter::Kind::Attribute, "reverse", "False"}};

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

}  // namespace

SPEC(CumSum, SumScan, Combine::Sum)

NodeId cumsum(Graph& g, NodeId x, const ScanAttributes& a) {
  return make(g, Op::CumSum, {{&x, 1}, encode(a)});
}

}  // namespace gradcell

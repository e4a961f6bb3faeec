#include "ops/combining/fourier.h"

#include "ops/families.h"

namespace gradcell {

namespace {

constexpr Parameter kTransformed[] = {kX, kAxis, {Parameter::Kind::Attribute, "inverse", "False"}};

class Transform : public Linear {
 public:
  explicit Transform(Op op)
      : Linear(op, Form::Fourier, kAttributes<FourierAttributes>, kTransformed) {}
  const char* not_in_onnx() const override { return kNoComplexNumbers; }

  Type infer(const Graph& g, const Draft& d) const override {
    const NodeId x = d.inputs[0];
    const Dims& dims = g.dims(x);
    const DType t = g.dtype(x);
    require(t == DType::Float32 || t == DType::Float64, ErrorKind::Type, name(),
            ": needs pairs of float32 or float64, got ", gradcell::name(t));
    require(dims.size() > 1 && dims.back() == 2, ErrorKind::Value, name(),
            ": the last dimension must be 2, got shape ", listed(dims));
    check_axis(name(), d.attributes[0], dims.size() - 1);
    require(dims[d.attributes[0]] > 0, ErrorKind::Value, name(), ": axis ", d.attributes[0],
            " of shape ", listed(dims), " is empty");
    return {t, dims};
  }

  /// Its matrix is symmetric: the adjoint of what multiplies by it multiplies by the conjugate.
  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    auto a = gradcell::attributes<FourierAttributes>(g, id);
    a.inverse = !a.inverse;
    return fourier(g, dy, a);
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    auto a = gradcell::attributes<FourierAttributes>(g, id);
    ++a.axis;
    return fourier(g, b.inputs[0], a);
  }
};

}  // namespace

SPEC(FourierTransform, Transform)

NodeId fourier(Graph& g, NodeId x, const FourierAttributes& a) {
  return make(g, Op::FourierTransform, {{&x, 1}, encode(a)});
}

}  // namespace gradcell

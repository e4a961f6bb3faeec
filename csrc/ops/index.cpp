#include "ops/index.h"

#include "ops/families.h"

namespace gradcell {

namespace {

constexpr Parameter kIndices{Parameter::Kind::Tensor, "indices"};
constexpr Parameter kSize{Parameter::Kind::Attribute, "size"};
constexpr Parameter kTaken[] = {kX, kIndices, kAxis};
constexpr Parameter kScattered[] = {kIndices, {Parameter::Kind::Tensor, "updates"}, kAxis, kSize};
constexpr Parameter kLast[] = {kIndices, kSize};

void check_size(const char* op, int64_t size) {
  require(size >= 0, ErrorKind::Value, op, ": size ", size, " is negative");
}

class Taking : public Linear {
 public:
  explicit Taking(Op op) : Linear(op, Form::Take, kAttributes<AxisAttributes>, kTaken) {}

  Type infer(const Graph& g, const Draft& d) const override {
    check_index("Gather", g.dtype(d.inputs[1]));
    const Dims &from = g.dims(d.inputs[0]), &at = g.dims(d.inputs[1]);
    require(!from.empty(), ErrorKind::Value, "Gather: a tensor without dimensions has no axis");
    const int64_t axis = d.attributes[0];
    check_axis("Gather", axis, from.size());
    Dims to(from.begin(), from.begin() + axis);
    to.insert(to.end(), at.begin(), at.end());
    to.insert(to.end(), from.begin() + axis + 1, from.end());
    return {g.dtype(d.inputs[0]), to};
  }

  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    const int64_t axis = g.attrs(id)[0];
    return scatter_add(g, g.input(id, 1), dy, static_cast<int>(axis), g.dims(g.input(id, 0))[axis]);
  }
  bool computes_with(int k) const override { return k == 0; }
  bool may_fail() const override { return true; }
};

class Scattering : public Linear {
 public:
  explicit Scattering(Op op)
      : Linear(op, Form::Scatter, kAttributes<ScatterAttributes>, kScattered) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const Dims &at = g.dims(d.inputs[0]), &from = g.dims(d.inputs[1]);
    const auto a = decode<ScatterAttributes>(d.attributes);
    check_index("ScatterAdd", g.dtype(d.inputs[0]));
    check_size("ScatterAdd", a.size);
    const bool ok = a.axis >= 0 && a.axis + at.size() <= from.size() &&
                    std::equal(at.begin(), at.end(), from.begin() + a.axis);
    if (!ok)
      fail(ErrorKind::Value, "ScatterAdd: updates of shape ", to_string(from),
           " do not fit indices of shape ", to_string(at), " on axis ", a.axis);
    Dims to(from.begin(), from.begin() + a.axis);
    to.push_back(a.size);
    to.insert(to.end(), from.begin() + a.axis + static_cast<int64_t>(at.size()), from.end());
    return {g.dtype(d.inputs[1]), to};
  }

  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    return gather(g, dy, g.input(id, 0), static_cast<int>(g.attrs(id)[0]));
  }
  bool computes_with(int k) const override { return k == 1; }
  bool may_fail() const override { return true; }

  size_t rank(const Graph& g, const Draft& d) const override {
    const size_t updates = g.dims(d.inputs[1]).size() + 1, at = g.dims(d.inputs[0]).size();
    return updates > at ? updates - at : 0;
  }
};

class LastIndex : public Constant {
 public:
  explicit LastIndex(Op op)
      : Constant(op, Form::LastIndex, kAttributes<LastIndexAttributes>, kLast) {}

  Type infer(const Graph& g, const Draft& d) const override {
    check_index("LastWriter", g.dtype(d.inputs[0]));
    check_size("LastWriter", d.attributes[0]);
    return {DType::Int64, {d.attributes[0]}};
  }
  bool may_fail() const override { return true; }
};

}  // namespace

SPEC(Gather, Taking)
SPEC(ScatterAdd, Scattering)
SPEC(LastWriter, LastIndex)

NodeId gather(Graph& g, NodeId x, NodeId indices, int axis) {
  const NodeId in[] = {x, indices};
  return make(g, Op::Gather, {in, encode(AxisAttributes{axis})});
}

NodeId scatter_add(Graph& g, NodeId indices, NodeId updates, int axis, int64_t size) {
  const NodeId in[] = {indices, updates};
  return make(g, Op::ScatterAdd, {in, encode(ScatterAttributes{axis, size})});
}

NodeId last_writer(Graph& g, NodeId indices, int64_t size) {
  return make(g, Op::LastWriter, {{&indices, 1}, encode(LastIndexAttributes{size})});
}

}  // namespace gradcell

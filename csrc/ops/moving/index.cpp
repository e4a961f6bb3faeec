#include "ops/moving/index.h"

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/identity.h"
#include "ops/moving/movement.h"
#include "ops/source.h"

namespace gradcell {

namespace {

constexpr Parameter kIndices = tensor("indices"), kSize = attribute("size");
constexpr Parameter kTaken[] = {kX, kIndices, kAxis};
constexpr Parameter kScattered[] = {kIndices, tensor("updates"), kAxis, kSize};
constexpr Parameter kLast[] = {kIndices, kSize};

/// A number in the place of each of the indices.
NodeId number(Graph& g, NodeId like, int64_t v) {
  return constant_bits(g, DType::Int64, g.dims(like), static_cast<uint64_t>(v));
}
/// Of indices [N, ...] the number of the example, times `of_each`.
NodeId first_of_example(Graph& g, NodeId like, int64_t of_each) {
  const NodeId example = iota(g, DType::Int64, g.dims(like), 0);
  return binary(g, Op::Mul, example, number(g, like, of_each));
}

/// Indices [N, ...] that name one of `size` places of their own example, as indices into the places
/// of all examples one behind the other. What was out of range still is.
NodeId over_examples(Graph& g, NodeId at, int64_t size) {
  at = cast(g, at, DType::Int64);
  const NodeId none = number(g, at, 0), all = number(g, at, size);
  at = select(g, binary(g, Op::Less, at, none), binary(g, Op::Add, at, all), at);
  const NodeId outside =
      binary(g, Op::LogicalOr, binary(g, Op::Less, at, none), binary(g, Op::GreaterEqual, at, all));
  const NodeId place = binary(g, Op::Add, first_of_example(g, at, size), at);
  return select(g, outside, number(g, at, g.dims(at)[0] * size), place);
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
    return scatter_add(g, g.input(id, 1), dy, narrow<int>(axis), g.dims(g.input(id, 0))[axis]);
  }
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    const auto axis = static_cast<size_t>(g.attrs(id)[0]);
    const NodeId x = b.inputs[0], at = b.inputs[1];
    if (!b.batched[1]) return gather(g, x, at, narrow<int>(axis) + 1);
    if (!b.batched[0]) {
      const NodeId in[] = {x, at};
      const NodeId y = make(g, g[id].op, {in, encode(AxisAttributes{narrow<int>(axis)})});
      return move_axis(g, y, axis, 0);
    }
    const size_t index_rank = g.dims(at).size() - 1;
    const NodeId places = over_examples(g, at, g.dims(x)[axis + 1]);
    NodeId y = gather(g, join_axes(g, move_axis(g, x, axis + 1, 1), 0), places, 0);
    for (size_t k = 0; k < axis; ++k) y = move_axis(g, y, 1 + index_rank + k, 1 + k);
    return y;
  }
  bool computes_with(int k) const override { return k == 0; }
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
    return gather(g, dy, g.input(id, 0), narrow<int>(g.attrs(id)[0]));
  }
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    const auto a = gradcell::attributes<ScatterAttributes>(g, id);
    const auto axis = static_cast<size_t>(a.axis);
    NodeId at = b.inputs[0], updates = over_batch(g, b, 1);
    if (!b.batched[0]) return scatter_add(g, at, updates, narrow<int>(axis) + 1, a.size);
    const size_t index_rank = g.dims(at).size() - 1;
    for (size_t k = 0; k < index_rank; ++k) updates = move_axis(g, updates, 1 + axis + k, 1 + k);
    const NodeId y = scatter_add(g, over_examples(g, at, a.size), updates, 0, b.size * a.size);
    Dims split = g.dims(y);
    split[0] = a.size;
    return move_axis(g, reshape(g, y, behind_batch(b.size, split)), 1, 1 + axis);
  }
  bool computes_with(int k) const override { return k == 1; }

  size_t rank(const Graph& g, const Draft& d) const override {
    const size_t updates = g.dims(d.inputs[1]).size() + 1, at = g.dims(d.inputs[0]).size();
    return updates > at ? updates - at : 0;
  }
};

class LastIndex : public Constant {
 public:
  explicit LastIndex(Op op) : Constant(op, Form::LastIndex, kAttributes<SizeAttributes>, kLast) {}
  const char* not_in_onnx() const override {
    return "its scatters leave the order of repeated indices open";
  }

  Type infer(const Graph& g, const Draft& d) const override {
    check_index("LastWriter", g.dtype(d.inputs[0]));
    check_size("LastWriter", d.attributes[0]);
    return {g.count(d.inputs[0]) <= INT32_MAX ? DType::Int32 : DType::Int64, {d.attributes[0]}};
  }
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    const int64_t size = g.attrs(id)[0],
                  writers = g.count(b.inputs[0]) / std::max<int64_t>(1, b.size);
    const NodeId all = last_writer(g, over_examples(g, b.inputs[0], size), b.size * size);
    const NodeId last = cast(g, reshape(g, all, Dims{b.size, size}), DType::Int64);
    const NodeId written = binary(g, Op::GreaterEqual, last, number(g, last, 0));
    const NodeId own = binary(g, Op::Sub, last, first_of_example(g, last, writers));
    return cast(g, select(g, written, own, last), g.dtype(id));
  }
};

}  // namespace

SPEC(Gather, Taking)
/// Gather of the list of all classes by labels, of which none counts from the end.
SPEC(Label, Taking)
SPEC(ScatterAdd, Scattering)
SPEC(LastWriter, LastIndex)

bool are_labels(Op op) { return op == Op::Label; }

NodeId gather(Graph& g, NodeId x, NodeId indices, int axis) {
  const NodeId in[] = {x, indices};
  return make(g, Op::Gather, {in, encode(AxisAttributes{axis})});
}

NodeId scatter_add(Graph& g, NodeId indices, NodeId updates, int axis, int64_t size) {
  const NodeId in[] = {indices, updates};
  return make(g, Op::ScatterAdd, {in, encode(ScatterAttributes{axis, size})});
}

NodeId last_writer(Graph& g, NodeId indices, int64_t size) {
  return make(g, Op::LastWriter, {{&indices, 1}, encode(SizeAttributes{size})});
}

}  // namespace gradcell

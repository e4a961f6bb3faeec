#include "ops/combining/convolution.h"

#include <algorithm>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/moving/movement.h"

namespace gradcell {

namespace {

using Part = ConvolutionPart;

constexpr Parameter kInput = tensor("x"), kOutput = tensor("y"), kWeight = tensor("weight"),
                    kStride = attribute("stride"), kDilation = attribute("dilation"),
                    kBefore = attribute("before"), kSize = attribute("size"),
                    kGroups = attribute("groups"), kLast{Parameter::Kind::Attribute, "last", "0"};
constexpr Parameter kOfOutput[] = {kInput,  kWeight, kStride, kDilation,
                                   kBefore, kSize,   kGroups, kLast};
constexpr Parameter kOfInput[] = {kOutput, kWeight, kStride, kDilation,
                                  kBefore, kSize,   kGroups, kLast};
constexpr Parameter kOfWeight[] = {kInput,  kOutput, kStride, kDilation,
                                   kBefore, kSize,   kGroups, kLast};

/// An op of the family, and the two tensors that it computes its own from, in order.
struct Member {
  Op op;
  std::span<const Parameter> parameters;
  Part first, second;
};
const Member& member(Part part) {  // by the order of Part
  static constexpr Member kMembers[] = {
      {Op::Convolution, kOfOutput, Part::Input, Part::Weight},
      {Op::ConvolutionInput, kOfInput, Part::Output, Part::Weight},
      {Op::ConvolutionWeight, kOfWeight, Part::Input, Part::Output}};
  return kMembers[static_cast<size_t>(part)];
}

/// The three tensors' shapes where two of them and a node's attributes are known.
struct Shapes {
  Dims input, weight, output;
  Dims& of(Part p) { return p == Part::Input ? input : p == Part::Weight ? weight : output; }
};

/// The dimensions of a tensor whose channels come last, or second, with its channels second.
Dims channels_second(const Dims& dims, bool last) {
  Dims to = dims;
  if (last) std::rotate(to.begin() + 1, to.end() - 1, to.end());
  return to;
}

class Convolution : public Spec {
 public:
  Convolution(Op op, Part part)
      : Spec(op, Form::Convolve, kAttributes<ConvolutionAttributes>, member(part).parameters),
        part_(part) {}

  size_t rank(const Graph& g, const Draft& d) const override {
    const size_t rank = g.dims(d.inputs[0]).size();
    return rank > 2 ? rank - 2 : 0;
  }

  Type infer(const Graph& g, const Draft& d) const override {
    const NodeId a = d.inputs[0], b = d.inputs[1];
    check_same_dtype(name(), g.dtype(a), g.dtype(b));
    require(g.dtype(a) != DType::Bool, ErrorKind::Type, name(), ": not defined for bool");
    const auto at = decode<ConvolutionAttributes>(d.attributes);
    check_attributes(at);
    Shapes shapes;
    const size_t rank = at.size.size() + 2;
    if (g.dims(a).size() != rank || g.dims(b).size() != rank)
      fail(ErrorKind::Value, name(), ": inputs of shapes ", to_string(g.dims(a)), " and ",
           to_string(g.dims(b)), " must have ", rank, " dimensions each");
    shapes.of(member(part_).first) = channels_second(g.dims(a), at.last & 1);
    shapes.of(member(part_).second) = channels_second(g.dims(b), at.last & 2);
    Dims to = result(shapes, at);
    if (at.last & 4) std::rotate(to.begin() + 1, to.begin() + 2, to.end());
    return {g.dtype(a), to};
  }

  NodeId simplify(Graph& g, Draft& d, const Type& type) const override {
    const NodeId in[] = {d.inputs[0], d.inputs[1]};
    for (int k : {0, 1}) {
      if (is_constant(g, in[k]) && g[in[k]].bits == 0 && !is_floating(type.dtype))
        return constant(g, type.dtype, type.dims, 0);
      if (g[in[k]].op != Op::Neg) continue;  // exact but for a zero's sign; it may meet a sum
      NodeId x[] = {in[0], in[1]};
      x[k] = g.input(in[k], 0);
      return unary(g, Op::Neg, make(g, op, {x, d.attributes}));
    }
    return kNoNode;
  }

  NodeId adjoint(Graph& g, NodeId id, int k, NodeId dy) const override {
    const Member& own = member(part_);
    const Part kept = k == 0 ? own.second : own.first;
    const Member& wanted = member(k == 0 ? own.first : own.second);
    auto at = gradcell::attributes<ConvolutionAttributes>(g, id);
    require_channels_second(at);
    at.size = std::span(g.dims(g.input(id, k))).subspan(2);
    NodeId in[] = {g.input(id, 1 - k), dy};
    if (wanted.first != kept) std::swap(in[0], in[1]);
    return make(g, wanted.op, {in, encode(at)});
  }

  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    NodeId sum = kNoNode;
    for (int k : {0, 1}) {
      if (dx[k] == kNoNode) continue;
      NodeId in[] = {g.input(id, 0), g.input(id, 1)};
      in[k] = dx[k];
      sum = accumulate(g, sum, make(g, op, {in, g.attrs(id)}));
    }
    return sum;
  }

  Law law() const override { return Law::Bilinear; }

  /// Examples are more images where the weights are the same for all, and groups of channels where
  /// not.
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    require_channels_second(gradcell::attributes<ConvolutionAttributes>(g, id));
    const Dims result = behind_batch(b.size, g.dims(id));
    if (part_ != Part::Weight && !b.batched[1]) {
      const NodeId in[] = {join_axes(g, b.inputs[0], 0), b.inputs[1]};
      return reshape(g, make(g, op, {in, g.attrs(id)}), result);
    }
    auto at = gradcell::attributes<ConvolutionAttributes>(g, id);
    at.groups *= b.size;
    const NodeId in[] = {grouped(g, over_batch(g, b, 0), member(part_).first),
                         grouped(g, over_batch(g, b, 1), member(part_).second)};
    const NodeId made = make(g, op, {in, encode(at)});
    if (part_ == Part::Weight) return reshape(g, made, result);
    Dims apart = result;
    std::swap(apart[0], apart[1]);
    return move_axis(g, reshape(g, made, apart), 1, 0);
  }

 private:
  void require_channels_second(const ConvolutionAttributes& a) const {
    require(a.last == 0, ErrorKind::NotImplemented, name(),
            ": channels that come last are for plans of a GPU");
  }

  /// An operand over the batch whose examples are groups of its channels.
  static NodeId grouped(Graph& g, NodeId x, Part part) {
    return part == Part::Weight ? join_axes(g, x, 0) : join_axes(g, move_axis(g, x, 1, 0), 1);
  }

  void check_attributes(const ConvolutionAttributes& a) const {
    require(!a.size.empty(), ErrorKind::Value, name(), ": there is no dimension to move along");
    require(a.groups >= 1, ErrorKind::Value, name(), ": groups must be positive, got ", a.groups);
    require(a.last < 8, ErrorKind::Value, name(), ": last has three bits, got ", a.last);
    check_numbers(name(), "stride", a.stride, 1);
    check_numbers(name(), "dilation", a.dilation, 1);
    check_numbers(name(), "size", a.size, 0);
    check_numbers(name(), "before", a.before, 1 - (int64_t{1} << 31));
  }

  Dims result(Shapes& s, const ConvolutionAttributes& a) const {
    Dims to;
    auto divides = [&](const char* what, int64_t channels) {
      require(channels % a.groups == 0, ErrorKind::Value, name(), ": ", what, " channels ",
              channels, " do not fall into ", a.groups, " groups");
    };
    if (part_ == Part::Weight) {
      divides("input", s.input[1]);
      divides("output", s.output[1]);
      require(s.input[0] == s.output[0], ErrorKind::Value, name(), ": batches of ", s.input[0],
              " and ", s.output[0], " images differ");
      to = {s.output[1], s.input[1] / a.groups};
    } else if (part_ == Part::Output) {
      divides("output", s.weight[0]);
      require(s.input[1] == s.weight[1] * a.groups, ErrorKind::Value, name(),
              ": an input of shape ", listed(s.input), " does not have the ",
              s.weight[1] * a.groups, " channels of weights of shape ", listed(s.weight), " and ",
              a.groups, " groups");
      to = {s.input[0], s.weight[0]};
    } else {
      divides("output", s.weight[0]);
      require(s.output[1] == s.weight[0], ErrorKind::Value, name(), ": an input of shape ",
              listed(s.output), " does not have the ", s.weight[0],
              " channels of weights of shape ", listed(s.weight));
      to = {s.output[0], s.weight[1] * a.groups};
    }
    to.insert(to.end(), a.size.begin(), a.size.end());
    return to;
  }

  const Part part_;
};

}  // namespace

SPEC(Convolution, Convolution, Part::Output)
SPEC(ConvolutionInput, Convolution, Part::Input)
SPEC(ConvolutionWeight, Convolution, Part::Weight)

ConvolutionPart convolution_part(Op op) {
  for (Part part : {Part::Input, Part::Weight})
    if (member(part).op == op) return part;
  return Part::Output;
}

int64_t element_read(std::span<const WindowAxis> axes, const Dims& place, const Dims& tap) {
  int64_t element = 0;
  for (size_t k = 0; k < axes.size(); ++k) {
    const WindowAxis& a = axes[k];
    const int64_t i = place[k] * a.stride + tap[k] * a.dilation - a.before;
    if (i < 0 || i >= a.input) return -1;
    element = element * a.input + i;
  }
  return element;
}

ConvolutionSizes convolution_sizes(Op op, const Dims& a, const Dims& b, const Dims& out,
                                   const ConvolutionAttributes& attributes) {
  const Part part = convolution_part(op);
  Shapes s;
  s.of(member(part).first) = channels_second(a, attributes.last & 1);
  s.of(member(part).second) = channels_second(b, attributes.last & 2);
  s.of(part) = channels_second(out, attributes.last & 4);
  ConvolutionSizes sizes{
      s.input[0], attributes.groups, s.weight[1], s.weight[0] / attributes.groups, {}};
  for (size_t k = 0; k < attributes.stride.size(); ++k)
    sizes.axes.push_back({s.input[k + 2], s.weight[k + 2], s.output[k + 2], attributes.stride[k],
                          attributes.dilation[k], attributes.before[k]});
  return sizes;
}

}  // namespace gradcell

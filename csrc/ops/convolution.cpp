#include "ops/convolution.h"

#include <numeric>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace gradcell {

namespace {

using Part = ConvolutionPart;

constexpr Parameter kStride{Parameter::Kind::Attribute, "stride"};
constexpr Parameter kDilation{Parameter::Kind::Attribute, "dilation"};
constexpr Parameter kBefore{Parameter::Kind::Attribute, "before"};
constexpr Parameter kSize{Parameter::Kind::Attribute, "size"};
constexpr Parameter kGroups{Parameter::Kind::Attribute, "groups"};
constexpr Parameter kInput{Parameter::Kind::Tensor, "x"}, kOutput{Parameter::Kind::Tensor, "y"};
constexpr Parameter kWeight{Parameter::Kind::Tensor, "weight"};

constexpr Parameter kOfOutput[] = {kInput, kWeight, kStride, kDilation, kBefore, kSize, kGroups};
constexpr Parameter kOfInput[] = {kOutput, kWeight, kStride, kDilation, kBefore, kSize, kGroups};
constexpr Parameter kOfWeight[] = {kInput, kOutput, kStride, kDilation, kBefore, kSize, kGroups};

std::span<const Parameter> parameters_of(Part part) {
  return part == Part::Output  ? std::span<const Parameter>(kOfOutput)
         : part == Part::Input ? std::span<const Parameter>(kOfInput)
                               : std::span<const Parameter>(kOfWeight);
}

Op op_of(Part part) {
  return part == Part::Output  ? Op::Convolution
         : part == Part::Input ? Op::ConvolutionInput
                               : Op::ConvolutionWeight;
}

/// The two tensors that a part is computed from, in order of the node's inputs.
constexpr std::pair<Part, Part> sources(Part part) {
  return part == Part::Output  ? std::pair{Part::Input, Part::Weight}
         : part == Part::Input ? std::pair{Part::Output, Part::Weight}
                               : std::pair{Part::Input, Part::Output};
}

/// The three tensors' shapes where two of them and a node's attributes are known.
struct Shapes {
  Dims input, weight, output;
  Dims& of(Part p) { return p == Part::Input ? input : p == Part::Weight ? weight : output; }
};

class Convolution : public Spec {
 public:
  Convolution(Op op, Part part)
      : Spec(op, Form::Convolve, kAttributes<ConvolutionAttributes>, parameters_of(part)),
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
    const auto [first, second] = sources(part_);
    Shapes shapes;
    shapes.of(first) = g.dims(a), shapes.of(second) = g.dims(b);
    const size_t rank = at.size.size() + 2;
    if (g.dims(a).size() != rank || g.dims(b).size() != rank)
      fail(ErrorKind::Value, name(), ": inputs of shapes ", to_string(g.dims(a)), " and ",
           to_string(g.dims(b)), " must have ", rank, " dimensions each");
    return {g.dtype(a), result(shapes, at)};
  }

  NodeId simplify(Graph& g, Draft& d, const Type& type) const override {
    const NodeId in[] = {d.inputs[0], d.inputs[1]};
    for (int k : {0, 1}) {
      if (is_constant(g, in[k]) && g[in[k]].bits == 0 && !is_floating(type.dtype))
        return constant(g, type.dtype, type.dims, 0);
      if (g[in[k]].op != Op::Neg) continue;  // exact but for a zero's sign; it may meet a sum
      NodeId x[] = {in[0], in[1]};
      x[k] = g.input(in[k], 0);
      const Dims attributes(d.attributes.begin(), d.attributes.end());
      return unary(g, Op::Neg, make(g, op, {x, attributes}));
    }
    return kNoNode;
  }

  NodeId adjoint(Graph& g, NodeId id, int k, NodeId dy) const override {
    const auto [first, second] = sources(part_);
    const NodeId other = g.input(id, 1 - k);
    const Part wanted = k == 0 ? first : second, kept = k == 0 ? second : first;
    const Dims& to = g.dims(g.input(id, k));
    const Dims size(to.begin() + 2, to.end()), own(g.attrs(id).begin(), g.attrs(id).end());
    auto at = decode<ConvolutionAttributes>(own);
    at.size = size;
    const NodeId in[] = {sources(wanted).first == kept ? other : dy,
                         sources(wanted).first == kept ? dy : other};
    return make(g, op_of(wanted), {in, encode(at)});
  }

  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    NodeId sum = kNoNode;
    for (int k : {0, 1}) {
      if (dx[k] == kNoNode) continue;
      NodeId in[] = {g.input(id, 0), g.input(id, 1)};
      in[k] = dx[k];
      const Dims attributes(g.attrs(id).begin(), g.attrs(id).end());
      const NodeId term = make(g, op, {in, attributes});
      sum = sum == kNoNode ? term : binary(g, Op::Add, sum, term);
    }
    return sum;
  }

  Law law() const override { return Law::Bilinear; }

  /// Examples are more images where the weights are the same for all, and groups of channels where
  /// not.
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    const Dims result = behind_batch(b.size, g.dims(id));
    auto at = gradcell::attributes<ConvolutionAttributes>(g, id);
    const Dims own(g.attrs(id).begin(), g.attrs(id).end());
    if (part_ != Part::Weight && !b.batched[1]) {
      const NodeId in[] = {merged(g, b.inputs[0], 0), b.inputs[1]};
      return reshape(g, make(g, op, {in, own}), result);
    }
    at = decode<ConvolutionAttributes>(own);
    at.groups *= b.size;
    const auto [first, second] = sources(part_);
    const NodeId in[] = {grouped(g, over_batch(g, b, 0), first),
                         grouped(g, over_batch(g, b, 1), second)};
    const NodeId made = make(g, op, {in, encode(at)});
    if (part_ == Part::Weight) return reshape(g, made, result);
    Dims apart = result;
    std::swap(apart[0], apart[1]);
    return transpose(g, reshape(g, made, apart), swapped(apart.size()));
  }

 private:
  /// Axes k and k + 1 as one.
  static NodeId merged(Graph& g, NodeId x, size_t k) {
    Dims to = g.dims(x);
    to[k] *= to[k + 1];
    to.erase(to.begin() + static_cast<ptrdiff_t>(k) + 1);
    return reshape(g, x, to);
  }
  /// The batch and the first axis of an example, changed places.
  static Dims swapped(size_t rank) {
    Dims perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[0], perm[1]);
    return perm;
  }
  /// An operand over the batch whose examples are groups of its channels.
  static NodeId grouped(Graph& g, NodeId x, Part part) {
    if (part == Part::Weight) return merged(g, x, 0);
    return merged(g, transpose(g, x, swapped(g.dims(x).size())), 1);
  }

  void check_attributes(const ConvolutionAttributes& a) const {
    constexpr int64_t kLimit = int64_t{1} << 31;
    require(!a.size.empty(), ErrorKind::Value, name(), ": there is no dimension to move along");
    require(a.groups >= 1, ErrorKind::Value, name(), ": groups must be positive, got ", a.groups);
    auto within = [&](const char* what, std::span<const int64_t> values, int64_t least) {
      for (int64_t v : values)
        require(v >= least && v < kLimit, ErrorKind::Value, name(), ": ", what, " ",
                to_string(values), " must not be below ", least, " or beyond 2^31");
    };
    within("stride", a.stride, 1);
    within("dilation", a.dilation, 1);
    within("size", a.size, 0);
    within("before", a.before, 1 - kLimit);
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
              ": an input of shape ", to_string(s.input), " does not have the ",
              s.weight[1] * a.groups, " channels of weights of shape ", to_string(s.weight),
              " and ", a.groups, " groups");
      to = {s.input[0], s.weight[0]};
    } else {
      divides("output", s.weight[0]);
      require(s.output[1] == s.weight[0], ErrorKind::Value, name(), ": an input of shape ",
              to_string(s.output), " does not have the ", s.weight[0],
              " channels of weights of shape ", to_string(s.weight));
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
  return op == Op::ConvolutionInput    ? Part::Input
         : op == Op::ConvolutionWeight ? Part::Weight
                                       : Part::Output;
}

ConvolutionSizes convolution_sizes(Op op, const Dims& a, const Dims& b, const Dims& out,
                                   const ConvolutionAttributes& attributes) {
  const Part part = convolution_part(op);
  const auto [first, second] = sources(part);
  Shapes s;
  s.of(first) = a, s.of(second) = b, s.of(part) = out;
  ConvolutionSizes sizes{
      s.input[0], attributes.groups, s.weight[1], s.weight[0] / attributes.groups, {}};
  for (size_t k = 0; k < attributes.stride.size(); ++k)
    sizes.axes.push_back({s.input[k + 2], s.weight[k + 2], s.output[k + 2], attributes.stride[k],
                          attributes.dilation[k], attributes.before[k]});
  return sizes;
}

}  // namespace gradcell

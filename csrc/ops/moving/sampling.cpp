#include "ops/moving/sampling.h"

#include "ops/combining/reduction.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/identity.h"
#include "ops/moving/index.h"
#include "ops/moving/movement.h"
#include "ops/moving/window.h"
#include "ops/source.h"

namespace gradcell {

namespace {

using Part = SamplePart;

constexpr Parameter kPixels = tensor("places"), kWeights = tensor("weights"), kY = tensor("y"),
                    kSourceSize = attribute("size");
constexpr Parameter kOfResult[] = {kX, kPixels, kWeights};
constexpr Parameter kOfSource[] = {kY, kPixels, kWeights, kSourceSize};
constexpr Parameter kOfWeight[] = {kX, kPixels, kY};

/// An op of the family, and the two tensors that it computes its own from, in order: its first and
/// its last input.
struct Member {
  Op op;
  std::span<const Parameter> parameters;
  Part first, last;
};
const Member& member(Part part) {  // by the order of Part
  static constexpr Member kMembers[] = {{Op::Sample, kOfResult, Part::Source, Part::Weight},
                                        {Op::SampleSource, kOfSource, Part::Result, Part::Weight},
                                        {Op::SampleWeight, kOfWeight, Part::Source, Part::Result}};
  return kMembers[static_cast<size_t>(part)];
}

/// The node that is `part`, of two others; size: of x.
NodeId node_of(Graph& g, Part part, NodeId first, NodeId places, NodeId last, int64_t size) {
  const NodeId in[] = {first, places, last};
  if (part != Part::Source) return make(g, member(part).op, {in, {}});
  return make(g, Op::SampleSource, {in, encode(SizeAttributes{size})});
}

class Sampling : public Spec {
 public:
  Sampling(Op op, Part part)
      : Spec(op, Form::Sampling,
             part == Part::Source ? kAttributes<SizeAttributes> : std::span<const Attribute>{},
             member(part).parameters),
        part_(part) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const NodeId a = d.inputs[0], at = d.inputs[1], b = d.inputs[2];
    check_same_dtype(name(), g.dtype(a), g.dtype(b));
    require(is_floating(g.dtype(a)), ErrorKind::Type, name(), ": not defined for ",
            gradcell::name(g.dtype(a)));
    require(g.dtype(at) == DType::Int32, ErrorKind::Type, name(), ": places must be int32");
    const Dims &first = g.dims(a), &places = g.dims(at), &last = g.dims(b);
    const bool ranks = first.size() == 3 && places.size() == 3 && last.size() == 3;
    // What a factor shares with the places, and factors with each other.
    auto fits = [&](Part p, const Dims& dims) {
      return dims[0] == places[0] && (p == Part::Source || dims[2] == places[2]) &&
             (p != Part::Weight || dims[1] == places[1]);
    };
    const Member& own = member(part_);
    if (!ranks || !fits(own.first, first) || !fits(own.last, last) ||
        (part_ == Part::Weight && first[1] != last[1]))
      fail(ErrorKind::Value, name(), ": shapes ", to_string(first), " and ", to_string(last),
           " do not fit places of shape ", to_string(places));
    if (part_ == Part::Weight) return {g.dtype(a), places};
    if (part_ == Part::Result) return {g.dtype(a), {first[0], first[1], places[2]}};
    check_size(name(), d.attributes[0]);
    return {g.dtype(a), {first[0], first[1], d.attributes[0]}};
  }

  NodeId adjoint(Graph& g, NodeId id, int k, NodeId dy) const override {
    const Member& own = member(part_);
    const Part wanted = k == 0 ? own.first : own.last, kept = k == 0 ? own.last : own.first;
    NodeId first = g.input(id, k == 0 ? 2 : 0), last = dy;
    if (member(wanted).first != kept) std::swap(first, last);
    const int64_t size = wanted == Part::Source ? g.dims(g.input(id, k))[2] : 0;
    return node_of(g, wanted, first, g.input(id, 1), last, size);
  }

  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    NodeId total = kNoNode;
    for (int k : {0, 2}) {
      if (dx[k] == kNoNode) continue;
      NodeId in[] = {g.input(id, 0), g.input(id, 1), g.input(id, 2)};
      in[k] = dx[k];
      total = accumulate(g, total, make(g, op, {in, g.attrs(id)}));
    }
    return total;
  }

  Law law() const override { return Law::Bilinear; }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    NodeId in[3];
    for (size_t k = 0; k < 3; ++k) in[k] = join_axes(g, over_batch(g, b, k), 0);
    return reshape(g, make(g, op, {in, g.attrs(id)}), behind_batch(b.size, g.dims(id)));
  }

  bool computes_with(int k) const override { return k != 1; }

  NodeId apart(Graph& to, const Graph& from, NodeId id,
               std::span<const NodeId> inputs) const override;

 private:
  const Part part_;
};

/// Elements taken, products and sums.
NodeId Sampling::apart(Graph& to, const Graph& from, NodeId id,
                       std::span<const NodeId> inputs) const {
  const Part part = part_;
  const SampleSizes s = sample_sizes(from[id].op, from.dims(from.input(id, 0)),
                                     from.dims(from.input(id, 1)), from.dims(id));
  const int64_t rows = s.batch * s.channels;
  const Dims full{s.batch, s.channels, s.places, s.results}, lines{rows, s.places * s.results};
  // One of a tensor's dimensions is the same for all channels, or all places.
  auto spread = [&](NodeId x, bool of_channels) {
    const Dims one = of_channels ? Dims{s.batch, s.channels, 1, s.results}
                                 : Dims{s.batch, 1, s.places, s.results};
    return broadcast_to(to, reshape(to, x, one), full);
  };
  const NodeId at = spread(inputs[1], false);
  // By indices into all of x that are made as they are read, of ranges: a cleaned graph gets no
  // constants that no run brings.
  auto taken = [&](NodeId x) {
    if (rows * s.size == 0)
      return reshape(to, take_along(to, reshape(to, x, Dims{rows, s.size}), reshape(to, at, lines)),
                     full);
    const DType index = rows * s.size < (int64_t{1} << 31) ? DType::Int32 : DType::Int64;
    const NodeId all = iota(to, index, Dims{rows * s.size}, 0);
    auto every = [&](int64_t count, int64_t step) {
      return slice(to, all, {{0}, {count}, {step}});
    };
    const NodeId first = reshape(to, every(1, 1), Dims{1, 1, 1, 1});
    const NodeId zero = broadcast_to(to, first, full);
    const NodeId nothing = broadcast_to(to, cast(to, first, to.dtype(x)), full);
    const NodeId begin =
        broadcast_to(to, reshape(to, every(rows, s.size), Dims{s.batch, s.channels, 1, 1}), full);
    const NodeId place = cast(to, at, index);
    const NodeId within = binary(to, Op::Add, begin, binary(to, Op::Maximum, place, zero));
    const NodeId found = gather(to, reshape(to, x, Dims{rows * s.size}), within, 0);
    return select(to, binary(to, Op::Less, place, zero), nothing, found);
  };
  auto sum_over = [&](NodeId x, int64_t axis) { return sum(to, x, {{axis}}); };
  if (part == Part::Result)
    return sum_over(binary(to, Op::Mul, taken(inputs[0]), spread(inputs[2], false)), 2);
  if (part == Part::Weight)
    return sum_over(binary(to, Op::Mul, taken(inputs[0]), spread(inputs[2], true)), 1);
  const NodeId updates = binary(to, Op::Mul, spread(inputs[0], true), spread(inputs[2], false));
  const NodeId made = put_along(to, reshape(to, at, lines), reshape(to, updates, lines), s.size);
  return reshape(to, made, from.dims(id));
}

}  // namespace

SPEC(Sample, Sampling, Part::Result)
SPEC(SampleSource, Sampling, Part::Source)
SPEC(SampleWeight, Sampling, Part::Weight)

SamplePart sample_part(Op op) {
  for (Part part : {Part::Source, Part::Weight})
    if (member(part).op == op) return part;
  return Part::Result;
}

SampleSizes sample_sizes(Op op, const Dims& first, const Dims& places, const Dims& out) {
  const Dims& x = sample_part(op) == Part::Source ? out : first;
  return {places[0], first[1], x[2], places[1], places[2]};
}

}  // namespace gradcell

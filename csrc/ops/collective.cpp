#include "ops/collective.h"

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/identity.h"
#include "ops/moving/movement.h"

namespace gradcell {

namespace {

constexpr Parameter kGroup = attribute("group"), kSize = attribute("size"),
                    kRank = attribute("rank"), kReduction = attribute("reduction"),
                    kRoot = attribute("root");
constexpr Parameter kExchanged[] = {kX, kGroup, kSize, kRank};
constexpr Parameter kReduced[] = {kX, kGroup, kSize, kRank, kReduction};
constexpr Parameter kRooted[] = {kX, kGroup, kSize, kRank, kRoot};
constexpr Parameter kAlone[] = {kGroup, kSize, kRank};

class Collective : public Spec {
 public:
  Collective(Op op, std::span<const Parameter> parameters, Pattern pattern)
      : Spec(op, Form::Collective, kAttributes<CollectiveAttributes>, parameters),
        pattern(pattern) {}

  const Pattern pattern;

  bool effect() const override { return true; }
  Law law() const override { return Law::Linear; }
  const char* not_in_onnx() const override { return "a model file knows one process"; }

 protected:
  static CollectiveAttributes of(const Draft& d) {
    return decode<CollectiveAttributes>(d.attributes);
  }

  void check(const Graph& g, const Draft& d) const {
    const CollectiveAttributes a = of(d);
    require(a.size >= 1 && a.rank >= 0 && a.rank < a.size, ErrorKind::Value, name(), ": rank ",
            a.rank, " of a group of ", a.size);
    require(a.root >= 0 && a.root < a.size, ErrorKind::Value, name(), ": root ", a.root,
            " is none of the ", a.size, " processes");
    require(a.reduction >= 0 && a.reduction <= 3, ErrorKind::Value, name(), ": no such reduction");
    const DType t = g.dtype(d.inputs[0]);
    const bool extreme = a.combine() == Combine::Max || a.combine() == Combine::Min;
    require(!reduces(pattern) || t != DType::Bool || extreme, ErrorKind::Type, name(),
            ": bool has a max and a min, but no ", combine_name(a.combine()),
            " (cast to an integer first)");
    require(a.combine() != Combine::Product || !is_floating(t), ErrorKind::Type, name(),
            ": products of floating numbers are taken of what has been gathered");
  }
  /// Throws unless the first dimension has equal parts for all processes.
  void check_parts(const Graph& g, const Draft& d) const {
    const Dims& dims = g.dims(d.inputs[0]);
    const int64_t size = of(d).size;
    require(!dims.empty() && dims[0] % size == 0, ErrorKind::Value, name(),
            ": the first dimension of shape ", listed(dims), " is not a multiple of ", size,
            ", the number of processes");
  }

  /// The node over a batch, in the place of the one for an example. Parts are of each example's
  /// first dimension: before and behind, the batch axis changes places with that of the processes.
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    const auto a = gradcell::attributes<CollectiveAttributes>(g, id);
    const Dims &x = g.dims(g.input(id, 0)), &y = g.dims(id);
    const bool cut = pattern == Pattern::ReducedParts || pattern == Pattern::Swapped;
    const bool joined = pattern == Pattern::Gathered || pattern == Pattern::Swapped;
    NodeId in = b.inputs[0];
    if (cut) in = by_process(g, in, {b.size, a.size}, behind(x, a.size));
    const Type type = infer(g, {{&in, 1}, g.attrs(id)});
    NodeId out = g.effect(op, type.dtype, type.dims, {&in, 1}, g.attrs(id), g[id].bits);
    if (joined) out = by_process(g, out, {a.size, b.size}, behind(y, a.size));
    return reshape(g, out, behind_batch(b.size, y));
  }

  /// The dimensions of one of `parts` parts of the first.
  static Dims behind(Dims dims, int64_t parts) {
    dims[0] /= parts;
    return dims;
  }
  /// x, of dimensions `two` and `rest`, with the first two transposed; then joined to one.
  static NodeId by_process(Graph& g, NodeId x, const Dims& two, const Dims& rest) {
    Dims dims = two, perm{1, 0}, last{two[0] * two[1] * rest[0]};
    for (size_t k = 0; k < rest.size(); ++k) {
      dims.push_back(rest[k]);
      perm.push_back(static_cast<int64_t>(k) + 2);
      if (k > 0) last.push_back(rest[k]);
    }
    return reshape(g, transpose(g, reshape(g, x, dims), perm), last);
  }

  /// Another collective of the same group.
  static NodeId with(Graph& g, NodeId x, Op other, CollectiveAttributes a) {
    return make(g, other, {{&x, 1}, encode(a)});
  }
  static NodeId summed(Graph& g, NodeId x, CollectiveAttributes a) {
    a.reduction = static_cast<int64_t>(Combine::Sum), a.root = 0;
    return with(g, x, Op::AllReduce, a);
  }
};

/// y where the mask holds, else 0.
NodeId where(Graph& g, NodeId mask, NodeId y) {
  return select(g, mask, y, constant(g, g.dtype(y), g.dims(y), 0));
}

/// AllReduce and ReduceScatter: sums, and extremes, whose place does not move. The adjoint is the
/// sum over all processes of the cotangents (or all their parts), where the input is the extreme
/// one.
class Reducing : public Collective {
 public:
  Reducing(Op op, Pattern pattern) : Collective(op, kReduced, pattern) {}

  Type infer(const Graph& g, const Draft& d) const override {
    check(g, d);
    Dims dims = g.dims(d.inputs[0]);
    if (scatters()) {
      check_parts(g, d);
      dims[0] /= of(d).size;
    }
    return {g.dtype(d.inputs[0]), dims};
  }

  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    const auto a = gradcell::attributes<CollectiveAttributes>(g, id);
    dy = scatters() ? whole(g, dy, a) : summed(g, dy, a);
    return weighted(g, id, dy, a);
  }
  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    auto a = gradcell::attributes<CollectiveAttributes>(g, id);
    const NodeId own = weighted(g, id, dx[0], a);
    a.reduction = static_cast<int64_t>(Combine::Sum);
    return with(g, own, op, a);
  }

 private:
  bool scatters() const { return pattern == Pattern::ReducedParts; }
  static NodeId whole(Graph& g, NodeId part, CollectiveAttributes a) {
    a.reduction = 0, a.root = 0;
    return with(g, part, Op::AllGather, a);
  }

  /// v times the derivative of the reduction by this process's input.
  NodeId weighted(Graph& g, NodeId id, NodeId v, const CollectiveAttributes& a) const {
    const NodeId x = g.input(id, 0);
    switch (a.combine()) {
      case Combine::Sum:
      case Combine::Product:  // of integers, which has none
        return v;
      case Combine::Max:
      case Combine::Min:
        return where(g, binary(g, Op::Equal, x, scatters() ? whole(g, id, a) : id), v);
    }
    return kNoNode;
  }
};

/// Collectives that are linear: `back` is the transposed one.
class LinearCollective : public Collective {
 public:
  LinearCollective(Op op, Pattern pattern, std::span<const Parameter> parameters, Op back)
      : Collective(op, parameters, pattern), back_(back) {}

  Type infer(const Graph& g, const Draft& d) const override {
    check(g, d);
    Dims dims = g.dims(d.inputs[0]);
    if (pattern == Pattern::Gathered) {
      require(!dims.empty(), ErrorKind::Value, name(),
              ": a tensor without dimensions has no first one to gather along");
      dims[0] *= of(d).size;
    }
    if (pattern == Pattern::Swapped) check_parts(g, d);
    return {g.dtype(d.inputs[0]), dims};
  }
  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    return with(g, dy, back_, gradcell::attributes<CollectiveAttributes>(g, id));
  }
  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    return with(g, dx[0], op, gradcell::attributes<CollectiveAttributes>(g, id));
  }

 private:
  Op back_;
};

/// No data: an effect that all wait for.
class Barriers : public Collective {
 public:
  Barriers(Op op, Pattern pattern) : Collective(op, kAlone, pattern) {}
  Type infer(const Graph&, const Draft&) const override { return {DType::Int32, {}}; }
  NodeId adjoint(Graph&, NodeId, int, NodeId) const override { return kNoNode; }
  NodeId tangent(Graph&, NodeId, std::span<const NodeId>) const override { return kNoNode; }
  bool differentiable() const override { return false; }
  Law law() const override { return Law::Constant; }
};

}  // namespace

SPEC(AllReduce, Reducing, Pattern::Reduced)
SPEC(ReduceScatter, Reducing, Pattern::ReducedParts)
SPEC(AllGather, LinearCollective, Pattern::Gathered, kExchanged, Op::ReduceScatter)
SPEC(AllToAll, LinearCollective, Pattern::Swapped, kExchanged, Op::AllToAll)
SPEC(Broadcast, LinearCollective, Pattern::FromRoot, kRooted, Op::CollectiveReduce)
SPEC(CollectiveReduce, LinearCollective, Pattern::ReducedAtRoot, kRooted, Op::Broadcast)
SPEC(Barrier, Barriers, Pattern::Nothing)

Pattern pattern(Op op) { return static_cast<const Collective&>(spec(op)).pattern; }

}  // namespace gradcell

#include "ops/identity.h"

#include "ir/fold.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/moving/movement.h"

namespace gradcell {

namespace {

constexpr Parameter kStopped[] = {kX};
constexpr Parameter kCast[] = {kX, {Parameter::Kind::DType, "dtype"}};

Type like_input(const Graph& g, const Draft& d) {
  return {g.dtype(d.inputs[0]), g.dims(d.inputs[0])};
}

class Aliasing : public Spec {
 public:
  explicit Aliasing(Op op) : Spec(op, Form::Marker, {}, {}) {}
  size_t input_count() const override { return 1; }
  Type infer(const Graph& g, const Draft& d) const override { return like_input(g, d); }
  NodeId adjoint(Graph&, NodeId, int, NodeId dy) const override { return dy; }
  NodeId tangent(Graph&, NodeId, std::span<const NodeId> dx) const override { return dx[0]; }
  /// What was to be differentiated by it has been, when its example becomes a batch.
  NodeId batch(Graph&, NodeId, const Batch& b) const override { return b.inputs[0]; }
  Law law() const override { return Law::Linear; }
  bool unique() const override { return true; }
};

class Stopping : public Constant {
 public:
  explicit Stopping(Op op) : Constant(op, Form::Marker, {}, kStopped) {}
  Type infer(const Graph& g, const Draft& d) const override { return like_input(g, d); }
  NodeId simplify(Graph& g, Draft& d, const Type&) const override {
    const NodeId x = d.inputs[0];
    return is_constant(g, x) || g[x].op == op ? x : kNoNode;
  }
  NodeId batch(Graph& g, NodeId, const Batch& b) const override {
    return stop_gradient(g, b.inputs[0]);
  }
  // As a view: what is read has no derivative. A write to it passes this step over.
  bool views() const override { return true; }
  std::optional<View> lay(const View& x, std::span<const int64_t>, const Dims&) const override {
    return x;
  }
};

class CallMarking : public Spec {
 public:
  explicit CallMarking(Op op) : Spec(op, Form::Marker, kAttributes<CallAttributes>, {}) {}
  size_t input_count() const override { return kMany; }
  Type infer(const Graph& g, const Draft& d) const override { return like_input(g, d); }
  bool computes_with(int k) const override { return k > 0; }  // the first is what is inside
  // What differentiates asks the rule.
  NodeId adjoint(Graph&, NodeId, int, NodeId) const override { lacks("adjoint by itself"); }
  NodeId tangent(Graph&, NodeId, std::span<const NodeId>) const override {
    lacks("tangent by itself");
  }
  NodeId batch(Graph&, NodeId, const Batch&) const override { lacks("batching rule by itself"); }
  Law law() const override { return Law::Smooth; }
};

class Ordering : public Spec {
 public:
  explicit Ordering(Op op) : Spec(op, Form::Same, {}, {}) {}
  size_t input_count() const override { return kMany; }
  Type infer(const Graph& g, const Draft& d) const override { return like_input(g, d); }
  NodeId simplify(Graph& g, Draft& d, const Type&) const override {
    return is_constant(g, d.inputs[0]) ? d.inputs[0] : kNoNode;
  }
  bool computes_with(int k) const override { return k == 0; }
  NodeId adjoint(Graph&, NodeId, int, NodeId dy) const override { return dy; }
  NodeId tangent(Graph&, NodeId, std::span<const NodeId> dx) const override { return dx[0]; }
  NodeId batch(Graph& g, NodeId, const Batch& b) const override {
    return after(g, over_batch(g, b, 0), b.inputs.subspan(1));
  }
  Law law() const override { return Law::Linear; }
};

class Casting : public Linear {
 public:
  explicit Casting(Op op) : Linear(op, Form::Convert, {}, kCast) {}

  Type infer(const Graph& g, const Draft& d) const override {
    return {d.asked.dtype, g.dims(d.inputs[0])};
  }
  NodeId simplify(Graph& g, Draft& d, const Type& to) const override {
    const NodeId x = d.inputs[0];
    const DType from = g.dtype(x);
    if (from == to.dtype) return x;
    if (is_floating(from) && to.dtype == DType::UInt32)  // which int64 holds
      return cast(g, cast(g, x, DType::Int64), to.dtype);
    if ((is_floating(from) && to.dtype == DType::UInt64) ||
        (from == DType::UInt64 && is_floating(to.dtype)))
      return uint64_cast(g, x, to.dtype);
    if (is_constant(g, x))
      return constant_bits(g, to.dtype, to.dims, convert_bits(from, to.dtype, g[x].bits));
    return is_broadcast(g, x) ? broadcast_to(g, cast(g, g.input(x, 0), to.dtype), to.dims)
                              : kNoNode;
  }
  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    return cast(g, dy, g.dtype(g.input(id, 0)));
  }
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    return cast(g, b.inputs[0], g.dtype(id));
  }
};

}  // namespace

SPEC(Alias, Aliasing)
SPEC(StopGradient, Stopping)
SPEC(CallOutput, CallMarking)
SPEC(After, Ordering)
SPEC(Cast, Casting)

NodeId alias(Graph& g, NodeId x) { return g.unique(Op::Alias, g.dtype(x), g.dims(x), {&x, 1}); }

NodeId stop_gradient(Graph& g, NodeId x) { return make(g, Op::StopGradient, {{&x, 1}, {}}); }

NodeId call_output(Graph& g, NodeId x, std::span<const NodeId> inputs, const CallAttributes& a) {
  std::vector<NodeId> in{x};
  in.insert(in.end(), inputs.begin(), inputs.end());
  const Dims attributes = encode(a);
  return make(g, Op::CallOutput, {in, attributes});
}

NodeId after(Graph& g, NodeId x, std::span<const NodeId> tokens) {
  std::vector<NodeId> in{x};
  in.insert(in.end(), tokens.begin(), tokens.end());
  return make(g, Op::After, {in, {}});
}

NodeId cast(Graph& g, NodeId x, DType dtype) {
  if (g.dtype(x) == dtype) return x;
  return make(g, Op::Cast, {{&x, 1}, {}, {dtype, {}}});
}

NodeId unseen(Graph& g, NodeId x) {
  const NodeId in[] = {x};
  return g.intern(Op::Cast, g.dtype(x), Dims(g.dims(x)), in);
}

}  // namespace gradcell

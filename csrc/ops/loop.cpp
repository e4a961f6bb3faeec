#include "ops/loop.h"

#include "ops/families.h"
#include "ops/moving/movement.h"
#include "ops/source.h"
#include "ops/steps.h"

namespace gradcell {

namespace {

Dims over_steps(int64_t steps, std::span<const int64_t> dims) { return behind_batch(steps, dims); }

bool equal(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::ranges::equal(a, b);
}

class Looping : public Spec {
 public:
  explicit Looping(Op op) : Spec(op, Form::Loop, kAttributes<LoopAttributes>, {}) {}

  size_t input_count() const override { return kMany; }
  const char* not_in_onnx() const override { return "networks are recorded step by step instead"; }

  Type infer(const Graph& g, const Draft& d) const override {
    const auto a = decode<LoopAttributes>(d.attributes);
    const BodyView body = view_body(a.body);
    require(a.steps >= 0 && a.carried >= 0 && a.sliced >= 0 && body.inputs == d.inputs.size() &&
                body.next.size() == static_cast<size_t>(a.carried) &&
                a.carried + a.sliced <= static_cast<int64_t>(d.inputs.size()),
            ErrorKind::Value, "Loop: its body does not take ", d.inputs.size(), " inputs");
    for (size_t k = 0; k < d.inputs.size(); ++k) check_input(g, d.inputs[k], a, body.nodes[k], k);
    for (size_t k = 0; k < body.next.size(); ++k) {
      const BodyNode &now = body.nodes[k], &then = body.nodes[static_cast<size_t>(body.next[k])];
      if (now.dtype != then.dtype || !equal(now.dims, then.dims))
        fail(ErrorKind::Value,
             "Loop: what is carried from step to step must keep dtype and shape: ", k, " is ",
             gradcell::name(now.dtype), to_string(now.dims), " before a step and ",
             gradcell::name(then.dtype), to_string(then.dims), " after it");
    }
    const auto limit = a.last ? a.carried : static_cast<int64_t>(body.nodes.size());
    require(a.result >= 0 && a.result < limit, ErrorKind::Value, "Loop: there is no result ",
            a.result);
    const BodyNode& of = body.nodes[static_cast<size_t>(a.result)];
    return {of.dtype, a.last ? Dims(of.dims.begin(), of.dims.end()) : over_steps(a.steps, of.dims)};
  }

  NodeId simplify(Graph& g, Draft& d, const Type& type) const override {
    const auto a = decode<LoopAttributes>(d.attributes);
    const auto result = static_cast<size_t>(a.result);
    if (a.last) {
      const bool kept = a.steps == 0 || view_body(a.body).next[result] == a.result;
      return kept ? d.inputs[result] : kNoNode;
    }
    if (a.steps == 0) return constant(g, type.dtype, type.dims, 0);
    if (a.result < a.carried || result >= d.inputs.size()) return kNoNode;
    return a.result < a.carried + a.sliced ? d.inputs[result]
                                           : broadcast_to(g, d.inputs[result], type.dims);
  }

  // What differentiates or batches takes all results of a loop together: ad/loops.cpp.
  NodeId adjoint(Graph&, NodeId, int, NodeId) const override { lacks("adjoint by itself"); }
  NodeId tangent(Graph&, NodeId, std::span<const NodeId>) const override {
    lacks("tangent by itself");
  }
  NodeId batch(Graph&, NodeId, const Batch&) const override { lacks("batching rule by itself"); }
  Law law() const override { return Law::Smooth; }

 private:
  static void check_input(const Graph& g, NodeId x, const LoopAttributes& a, const BodyNode& taken,
                          size_t k) {
    const auto at = static_cast<int64_t>(k);
    const bool sliced = at >= a.carried && at < a.carried + a.sliced;
    const bool fits =
        sliced ? g.dims(x) == over_steps(a.steps, taken.dims) : equal(g.dims(x), taken.dims);
    if (!fits || g.dtype(x) != taken.dtype)
      fail(ErrorKind::Value, "Loop of ", a.steps, " steps: input ", k, " is ",
           gradcell::name(g.dtype(x)), to_string(g.dims(x)), ", of which its body takes ",
           gradcell::name(taken.dtype), to_string(taken.dims), sliced ? " in each step" : "");
  }
};

}  // namespace

SPEC(Recurrence, Looping)

NodeId loop_result(Graph& g, std::span<const NodeId> inputs, const LoopAttributes& a) {
  const Dims attributes = encode(a);
  return make(g, Op::Recurrence, {inputs, attributes});
}

Dims loop_identity(const Graph& g, NodeId id) {
  auto a = attributes<LoopAttributes>(g, id);
  a.result = 0, a.last = false;
  return encode(a);
}

NodeId unrolled(Graph& to, const Graph& from, NodeId id, std::span<const NodeId> inputs,
                bool marks) {
  const auto a = attributes<LoopAttributes>(from, id);
  require(a.steps < 65536, ErrorKind::NotImplemented, "a loop of ", a.steps,
          " steps can be taken apart where it has at most 65535");
  const BodyView body = view_body(a.body);
  Stamp stamp(to);
  stamp.like(from[id]);
  const auto carried = static_cast<size_t>(a.carried), sliced = static_cast<size_t>(a.sliced);
  std::vector<NodeId> state(inputs.begin(), inputs.begin() + a.carried), now(body.nodes.size()), in;
  std::vector<NodeId> slots(static_cast<size_t>(a.steps));
  for (int64_t n = 0; n < a.steps; ++n) {
    const int64_t t = a.reverse ? a.steps - 1 - n : n;
    for (size_t k = 0; k < body.nodes.size(); ++k) {
      const BodyNode& b = body.nodes[k];
      if (k < body.inputs) {
        now[k] = k < carried            ? state[k]
                 : k < carried + sliced ? step_of(to, inputs[k], t)
                                        : inputs[k];
        continue;
      }
      in.clear();
      for (int64_t i : b.inputs) in.push_back(now[static_cast<size_t>(i)]);
      const bool mark = spec(b.op).form == Form::Marker;
      now[k] = mark && !marks ? in[0] : to.intern(b.op, b.dtype, b.dims, in, b.attributes);
    }
    for (size_t k = 0; k < carried; ++k) state[k] = now[static_cast<size_t>(body.next[k])];
    if (a.last) continue;
    slots[static_cast<size_t>(t)] = now[static_cast<size_t>(a.result)];
  }
  if (a.last) return state[static_cast<size_t>(a.result)];
  return from_steps(to, slots);
}

}  // namespace gradcell

#include "ir/spec.h"

#include "ir/op_info.h"

namespace gradcell {

const char* Spec::name() const { return info(op).name; }

void Spec::lacks(const char* what) const {
  fail(ErrorKind::NotImplemented, name(), " has no ", what);
}

size_t Spec::input_count() const {
  size_t n = 0;
  for (const Parameter& p : parameters) {
    if (p.kind == Parameter::Kind::Tensors) return kMany;
    n += p.kind == Parameter::Kind::Tensor;
  }
  return n;
}

size_t Spec::problem_rank(std::span<const int64_t>, size_t) const { lacks("problems"); }
NodeId Spec::apart(Graph&, const Graph&, NodeId, std::span<const NodeId>) const {
  lacks("other ops that it is made of");
}

Movement Spec::movement(const Graph&, NodeId) const { lacks("movement"); }

std::optional<View> Spec::lay(const View&, std::span<const int64_t>, const Dims&) const {
  lacks("layout");
}

NodeId Spec::put(Graph&, NodeId, std::span<const int64_t>, NodeId) const { lacks("inverse"); }

size_t Spec::rank(const Graph& g, const Draft& draft) const {
  return draft.inputs.empty() ? draft.asked.dims.size() : g.dims(draft.inputs[0]).size();
}

NodeId make(Graph& g, Op op, Draft draft) {
  const Spec& s = spec(op);
  if (s.form != Form::Marker) {
    bool complex = info(s.form).parts == PartsRule::Converted && is_complex(draft.asked.dtype);
    const bool by_order = s.combine == Combine::Max || s.combine == Combine::Min;
    bool in_order = false;
    for (NodeId x : draft.inputs) {
      complex |= is_complex(g.dtype(x));
      in_order |= by_order && g.dtype(x) == DType::UInt64;
    }
    if (complex) return make_of_parts(g, s, draft);
    if (in_order) return make_in_order(g, s, draft);
  }
  const Type type = s.infer(g, draft);
  const NodeId simple = s.simplify(g, draft, type);
  if (simple != kNoNode) return simple;
  if (s.effect()) return g.effect(op, type.dtype, type.dims, draft.inputs, draft.attributes);
  return g.intern(op, type.dtype, type.dims, draft.inputs, draft.attributes);
}

NodeId rebuild(Graph& to, const Graph& from, NodeId id, std::span<const NodeId> inputs) {
  const Node n = from[id];
  Stamp stamp(to);
  stamp.like(n);
  if (spec(n.op).unique()) return to.unique(n.op, n.dtype, from.dims(id), inputs);
  if (spec(n.op).effect())
    return to.effect(n.op, n.dtype, Dims(from.dims(id)), inputs, from.attrs(id), n.bits);
  return to.intern(n.op, n.dtype, from.dims(id), inputs, from.attrs(id), n.bits);
}

}  // namespace gradcell

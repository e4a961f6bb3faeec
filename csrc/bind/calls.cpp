// Calls with a derivative of their own, whose rules are Python objects: for
// python/gradcell/derivatives/own_derivatives.py.
#include "ad/calls.h"
#include "bind/bind.h"
#include "ops/ops.h"

namespace gradcell::bind {

namespace {

/// An object with name, and adjoint(inputs, outputs, cotangents, wanted, kept) or
/// tangent(inputs, outputs, tangents, kept), or None in a method's place. In lists of tensors None
/// stands for what is not there, or zero; what comes back has the shapes and dtypes of what it
/// belongs to. What it keeps of the call are nodes, not tensors, so that nothing else keeps them.
class PythonRule : public Rule {
 public:
  PythonRule(py::object rule, std::vector<NodeId> kept)
      : rule_(rule.release().ptr()), kept_(std::move(kept)) {}
  ~PythonRule() override {
    with_gil([rule = rule_] { Py_DECREF(rule); });
  }
  void add_output(NodeId id) { outputs_.push_back(id); }

  std::string name() const override { return py::str(py::handle(rule_).attr("name")); }
  bool has_adjoint() const override { return has("adjoint"); }
  bool has_tangent() const override { return has("tangent"); }
  std::vector<NodeId> reads() const override {
    std::vector<NodeId> all(kept_);
    all.insert(all.end(), outputs_.begin(), outputs_.end());
    return all;
  }

  std::vector<NodeId> adjoint(Graph& g, const Call& call, std::span<const NodeId> cotangents,
                              const std::vector<bool>& wanted) const override {
    const std::vector<NodeId> outputs = all_outputs(call);
    std::vector<NodeId> dy(cotangents.begin(), cotangents.end());
    dy.resize(outputs.size(), kNoNode);
    return ask(g, call.inputs, "adjoint", list(call.inputs), list(outputs), list(dy), wanted,
               list(kept_));
  }
  std::vector<NodeId> tangent(Graph& g, const Call& call,
                              std::span<const NodeId> tangents) const override {
    const std::vector<NodeId> outputs = all_outputs(call);
    std::vector<NodeId> dy =
        ask(g, outputs, "tangent", list(call.inputs), list(outputs), list(tangents), list(kept_));
    dy.resize(call.outputs.size());
    return dy;
  }

 private:
  bool has(const char* method) const { return !py::handle(rule_).attr(method).is_none(); }

  /// Those, too, that nothing else refers to.
  std::vector<NodeId> all_outputs(const Call& call) const {
    std::vector<NodeId> ids(call.outputs.begin(), call.outputs.end());
    if (ids.size() < outputs_.size()) ids.resize(outputs_.size(), kNoNode);
    for (size_t k = 0; k < outputs_.size(); ++k)
      if (ids[k] == kNoNode) ids[k] = outputs_[k];
    return ids;
  }

  static py::list list(std::span<const NodeId> ids) {
    py::list tensors;
    for (NodeId id : ids)
      tensors.append(id == kNoNode ? py::none() : py::cast(wrap(required_trace(), id)));
    return tensors;
  }

  template <class... Args>
  std::vector<NodeId> ask(Graph& g, std::span<const NodeId> like, const char* method,
                          const Args&... args) const {
    const py::object answer =
        calling_python([&]() -> py::object { return py::handle(rule_).attr(method)(args...); });
    std::vector<NodeId> ids;
    for (py::handle x : answer)
      ids.push_back(x.is_none() ? kNoNode : x.cast<TensorPtr>()->in(required_trace()));
    require(ids.size() == like.size(), ErrorKind::Runtime, name(), ": ", method, " gave ",
            ids.size(), " tensors for ", like.size());
    for (size_t k = 0; k < ids.size(); ++k)
      require(ids[k] == kNoNode || like[k] == kNoNode ||
                  (g.dtype(ids[k]) == g.dtype(like[k]) && g.dims(ids[k]) == g.dims(like[k])),
              ErrorKind::Runtime, name(), ": ", method, "'s tensor ", k, " does not fit");
    return ids;
  }

  PyObject* rule_;
  std::vector<NodeId> kept_, outputs_;
};

std::vector<TensorPtr> call_outputs(const std::vector<TensorPtr>& values,
                                    const std::vector<TensorPtr>& inputs, const py::object& rule,
                                    const std::vector<TensorPtr>& kept) {
  Trace& t = required_trace();
  const std::vector<NodeId> in = nodes(t, inputs), inner = nodes(t, values);
  Stamp stamp(t.graph);
  stamp.at(t.here());
  const auto made = std::make_shared<PythonRule>(rule, nodes(t, kept));
  const int64_t call = t.graph.add_rule(made);
  std::vector<TensorPtr> outputs;
  for (NodeId id : inner) {
    const auto number = static_cast<int64_t>(outputs.size());
    outputs.push_back(wrap(t, call_output(t.graph, id, in, {call, number})));
    made->add_output(outputs.back()->node());
  }
  return outputs;
}

}  // namespace

void bind_calls(py::module_& m) {
  m.def("call_outputs", &call_outputs, py::arg("values"), py::arg("inputs"), py::arg("rule"),
        py::arg("kept") = std::vector<TensorPtr>(),
        "The values as outputs of a call whose derivatives by the inputs are the rule's.");
  m.def(
      "further_outputs",
      [](const TensorPtr& output, const std::vector<TensorPtr>& values, int64_t first) {
        Trace& t = required_trace();
        const NodeId id = output->in(t);
        const int64_t call = attributes<CallAttributes>(t.graph, id).call;
        const auto in = t.graph.inputs(id).subspan(1);
        const std::vector<NodeId> inputs(in.begin(), in.end());
        std::vector<TensorPtr> outputs;
        for (NodeId x : nodes(t, values))
          outputs.push_back(wrap(t, call_output(t.graph, x, inputs, {call, first++})));
        return outputs;
      },
      "The values as more outputs, numbered from `first` on, of the call that made `output`.");
  m.def(
      "insert_call",
      [](const TensorPtr& x, const py::object& rule) {
        Trace& t = required_trace();
        const NodeId from = x->in(t);
        const TensorPtr marked = call_outputs({x}, {x}, rule, {})[0];
        t.insert(from, marked->node());
        if (x->window() != nullptr)
          x->stand_for(marked->node());
        else
          x->become(t, marked->node());
      },
      "Makes x the output of a call on itself, for what has been computed with it too.");
  m.def(
      "set_hooked", [](const TensorPtr& x, bool hooked) { x->set_hooked(hooked); },
      "Says whether there are hooks on the gradient by x, a tensor outside of traces.");
  m.def(
      "recomputed",
      [](size_t begin, const std::vector<TensorPtr>& outputs) {
        Trace& t = required_trace();
        Stamp stamp(t.graph);
        stamp.at(t.here());
        std::vector<TensorPtr> again;
        for (NodeId id : ad::recomputed(t.graph, narrow<NodeId>(begin), nodes(t, outputs)))
          again.push_back(wrap(t, id));
        return again;
      },
      "The outputs of what has been recorded since `begin`, which derivatives compute again.");
  m.def(
      "trace_size", [] { return required_trace().graph.size(); },
      "How many nodes the trace has by now.");
  m.def(
      "differentiated",
      [](const std::vector<TensorPtr>& xs, const std::vector<TensorPtr>& stops) {
        Trace* t = current_trace();
        return t && t->differentiated(nodes(*t, xs), nodes(*t, stops));
      },
      py::arg("xs"), py::arg("stops") = std::vector<TensorPtr>(),
      "Whether tensors depend on what a transform differentiates by now, otherwise than through "
      "stops.");
  m.def("records_constants", &records_constants, "Whether no_grad is in force.");
  m.def("record_constants", &record_constants,
        "From now on what this thread records is a constant of derivatives, or is not.");
}

}  // namespace gradcell::bind

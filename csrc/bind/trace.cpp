// Traces and differentiation, for python/gradcell/transform.py.
#include "ad/transform.h"
#include "base/interrupt.h"
#include "bind/bind.h"
#include "cpu/engine.h"
#include "ir/print.h"
#include "ops/ops.h"

namespace gradcell::bind {

namespace {

Trace& required_trace() {
  Trace* t = current_trace();
  require(t != nullptr, ErrorKind::Runtime, "no trace is active");
  return *t;
}

std::vector<NodeId> nodes(Trace& trace, const std::vector<TensorPtr>& tensors) {
  std::vector<NodeId> ids;
  for (const TensorPtr& t : tensors) ids.push_back(t->in(trace));
  return ids;
}

TensorPtr wrap(Trace& trace, NodeId id) {
  return std::make_shared<Tensor>(trace.shared_from_this(), id);
}

/// Cotangents (or tangents) as nodes of the right shape and dtype; None: ones.
std::vector<NodeId> seeds(Trace& trace, const std::vector<NodeId>& of, const py::list& given) {
  std::vector<NodeId> ids;
  Graph& g = trace.graph;
  for (size_t i = 0; i < of.size(); ++i) {
    if (!is_floating(g.dtype(of[i])))
      ids.push_back(kNoNode);
    else if (given[i].is_none()) {
      Stamp stamp(g);
      stamp.at(g[of[i]].location);
      ids.push_back(constant(g, g.dtype(of[i]), Dims(g.dims(of[i])), 1));
    } else
      ids.push_back(given[i].cast<TensorPtr>()->in(trace));
  }
  return ids;
}

std::vector<TensorPtr> with_zeros(Trace& trace, const std::vector<NodeId>& ids,
                                  const std::vector<NodeId>& like) {
  Graph& g = trace.graph;
  std::vector<TensorPtr> out;
  for (size_t i = 0; i < ids.size(); ++i)
    out.push_back(wrap(trace, ids[i] != kNoNode
                                  ? ids[i]
                                  : constant(g, g.dtype(like[i]), Dims(g.dims(like[i])), 0)));
  return out;
}

/// What a finish would compute: the outputs, then what variables were assigned.
std::vector<NodeId> roots(Trace& trace, const std::vector<TensorPtr>& outputs) {
  std::vector<NodeId> ids = nodes(trace, outputs), assigned = trace.assigned_nodes();
  ids.insert(ids.end(), assigned.begin(), assigned.end());
  return ids;
}

using VariableNames = std::unordered_map<uintptr_t, std::string>;

std::string leaf_text(const Trace& trace, NodeId id, const VariableNames& names) {
  Trace::Origin o = trace.origin(id);
  if (o.argument >= 0) return "argument " + std::to_string(o.argument);
  if (!o.variable) return "captured";
  auto it = names.find(reinterpret_cast<uintptr_t>(o.variable));
  return it == names.end() ? "variable" : it->second;
}

/// "net.py:12", without the folders.
std::string short_location(const Location& l) {
  std::string text = location_text(l);
  return text.substr(text.rfind('/') + 1);
}

std::string plan_text(const Graph& g, const std::vector<NodeId>& roots) {
  return to_text(cpu::Executable(make_plan(g, live_nodes(g, roots), roots, {})).plan());
}

/// Answers Ctrl-C as Python does between two lines: by the handler that is set, which may raise.
void answer_interrupt() {
  if (!PyGILState_Check() || !PyOS_InterruptOccurred()) return;
  PyErr_SetInterrupt();  // asking has taken it away
  NoTrace outside;
  if (calling_python([] { return PyErr_CheckSignals(); }) != 0) throw py::error_already_set();
}

}  // namespace

void bind_trace(py::module_& m) {
  interrupt_check = answer_interrupt;
  py::class_<Compiled, std::shared_ptr<Compiled>>(m, "Compiled",
                                                  "A trace that runs again without Python.")
      .def("run",
           [](const Compiled& c, const std::vector<TensorPtr>& arguments) {
             std::vector<Array> in;
             in.reserve(arguments.size());
             for (const TensorPtr& t : arguments) in.push_back(t->value());
             std::vector<Array> out;
             {
               WithoutGil nogil;
               out = c.run(in);
             }
             std::vector<TensorPtr> result;
             for (Array& a : out) result.push_back(std::make_shared<Tensor>(std::move(a)));
             return result;
           })
      .def(
          "plan_text", [](const Compiled& c) { return c.executable->text(); },
          "The plan: stages of regions and calls, an instruction a line.");

  py::class_<Trace, TracePtr>(m, "Trace")
      .def("argument",
           [](Trace& t, const Tensor& value) { return wrap(t, t.argument(value.value())); })
      .def(
          "finish",
          [](Trace& t, const std::vector<TensorPtr>& outputs) { t.finish(nodes(t, outputs)); },
          "Gives every live tensor of the trace its value, and writes the assigned variables.")
      .def("finish_compiled",
           [](Trace& t, const std::vector<TensorPtr>& outputs) {
             std::shared_ptr<Compiled> compiled;
             t.finish(nodes(t, outputs), &compiled);
             return compiled;
           })
      .def("abandon", &Trace::abandon)
      .def("mark_unrepeatable", &Trace::mark_unrepeatable)
      .def_property_readonly("asked", &Trace::asked)
      .def_property_readonly("asked_at", [](const Trace& t) { return location_text(t.asked_at()); })
      .def(
          "graph_text",
          [](Trace& t, const std::vector<TensorPtr>& outputs, const VariableNames& names) {
            return to_text(t.graph, roots(t, outputs), [&](NodeId id) {
              return is_leaf(t.graph, id) ? leaf_text(t, id, names)
                                          : short_location(t.graph[id].location);
            });
          },
          py::arg("outputs"), py::arg("names") = VariableNames(),
          "The graph that the outputs and the assigned variables need, a node a line.")
      .def(
          "graph_dot",
          [](Trace& t, const std::vector<TensorPtr>& outputs, const VariableNames& names) {
            return to_dot(t.graph, roots(t, outputs), [&](NodeId id) {
              return is_leaf(t.graph, id) ? leaf_text(t, id, names) : "";
            });
          },
          py::arg("outputs"), py::arg("names") = VariableNames(), "The same for Graphviz.")
      .def(
          "plan_text",
          [](Trace& t, const std::vector<TensorPtr>& outputs) {
            return plan_text(t.graph, roots(t, outputs));
          },
          py::arg("outputs"), "The plan of the same, which is not run.")
      .def_property_readonly("node_count", [](const Trace& t) { return t.graph.size(); });

  m.def("in_trace", [] { return current_trace() != nullptr; });
  m.def(
      "with_trace",
      [](const py::function& body) {
        // One call of C++ around the whole: an interrupt cannot come between the trace and its end.
        struct Active {
          TracePtr trace = begin_trace();
          ~Active() { end_trace(); }
        } active;
        try {
          return calling_python([&] { return body(active.trace); });
        } catch (...) {
          active.trace->abandon();
          throw;
        }
      },
      "body(trace) with a new trace as the current one; abandoned if body raises.");
  m.def("begin_trace", &begin_trace);
  m.def("end_trace", &end_trace);

  m.def(
      "record",
      [](const TensorPtr& x) {
        Trace& t = required_trace();
        return wrap(t, x->in(t));
      },
      "The tensor as a node of the current trace.");
  m.def(
      "alias",
      [](const TensorPtr& x) {
        Trace& t = required_trace();
        return wrap(t, t.alias(x->in(t)));
      },
      "A new node equal to x, to differentiate by.");
  m.def(
      "push_alias",
      [](const TensorPtr& p) {
        Trace& t = required_trace();
        return wrap(t, t.push_alias(p->variable()));
      },
      "Makes a new node stand for a parameter, to differentiate by; returns it.");
  m.def(
      "dissolve",
      [](const std::vector<TensorPtr>& aliases) {
        Trace& t = required_trace();
        t.dissolve(nodes(t, aliases));
      },
      "Ends aliases: what was computed with them is from now on computed with what they stood "
      "for.");
  m.def(
      "lifted_variables", [] { return required_trace().lifted_variables(); },
      "The variables that the trace has read so far, by their addresses.");
  m.def(
      "mark_unrepeatable",
      [] {
        if (Trace* t = current_trace()) t->mark_unrepeatable();
      },
      "What the trace does next may depend on something that a compiled form would not see.");
  m.def(
      "is_plain", [](Tensor& x) { return is_plain(x); },
      "Whether its value is fixed: neither traced nor a parameter, nor a view of one.");
  m.def(
      "settled",
      [](const py::list& results, bool by_value) {
        std::vector<TensorPtr> given;
        for (py::handle x : results) given.push_back(x.cast<TensorPtr>());
        const std::vector<TensorPtr> out = settled(given, by_value);
        py::list tensors;  // those that stay are the objects that they were
        for (size_t i = 0; i < out.size(); ++i)
          tensors.append(out[i] == given[i] ? py::object(results[i]) : py::cast(out[i]));
        return tensors;
      },
      py::arg("results"), py::arg("by_value"),
      "What a function hands out of its trace: views of what is the function's own alone become "
      "tensors; by_value: nothing that shares elements with anything.");

  m.def(
      "adjoint",
      [](const std::vector<TensorPtr>& outputs, const py::list& cotangents,
         const std::vector<TensorPtr>& wrt) {
        Trace& t = required_trace();
        std::vector<NodeId> out = nodes(t, outputs), in = nodes(t, wrt);
        std::vector<NodeId> cot = seeds(t, out, cotangents);
        return with_zeros(t, ad::adjoint(t.graph, out, cot, in), in);
      },
      "Vector-Jacobian product; a cotangent of None is ones.");
  m.def(
      "tangent",
      [](const std::vector<TensorPtr>& outputs, const std::vector<TensorPtr>& wrt,
         const py::list& tangents) {
        Trace& t = required_trace();
        std::vector<NodeId> out = nodes(t, outputs), in = nodes(t, wrt);
        std::vector<NodeId> tan = seeds(t, in, tangents);
        return with_zeros(t, ad::tangent(t.graph, out, in, tan), out);
      },
      "Jacobian-vector product; a tangent of None is ones.");
}

}  // namespace gradcell::bind

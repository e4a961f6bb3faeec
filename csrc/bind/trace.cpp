// Traces and differentiation, for python/gradcell/derivatives/transform.py.
#include "ad/batching.h"
#include "ad/calls.h"
#include "ad/loops.h"
#include "ad/rows.h"
#include "ad/series.h"
#include "ad/transform.h"
#include "base/interrupt.h"
#include "base/waiting.h"
#include "bind/bind.h"
#include "ir/print.h"
#include "ops/ops.h"

#include <numeric>
#include <optional>

namespace gradcell::bind {

namespace {

/// Cotangents (or tangents) as nodes of the right shape and dtype; None: ones.
std::vector<NodeId> seeds(Trace& trace, const std::vector<NodeId>& of, const py::list& given) {
  std::vector<NodeId> ids;
  Graph& g = trace.graph;
  for (size_t i = 0; i < of.size(); ++i) {
    if (given[i].is_none()) {
      Stamp stamp(g);
      stamp.at(g[of[i]].location);
      ids.push_back(constant(g, g.dtype(of[i]), g.dims(of[i]), 1));
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
    out.push_back(wrap(
        trace, ids[i] != kNoNode ? ids[i] : constant(g, g.dtype(like[i]), g.dims(like[i]), 0)));
  return out;
}

/// Several for each output.
std::vector<std::vector<TensorPtr>> with_zeros(Trace& trace,
                                               const std::vector<std::vector<NodeId>>& ids,
                                               const std::vector<NodeId>& outputs) {
  std::vector<std::vector<TensorPtr>> out;
  for (size_t i = 0; i < outputs.size(); ++i)
    out.push_back(with_zeros(trace, ids[i], std::vector<NodeId>(ids[i].size(), outputs[i])));
  return out;
}

/// Derivatives of the outputs by the elements of `wrt` (by row: of a row of it), each of which is a
/// variable of the algebra.
std::vector<std::vector<NodeId>> by_elements(Graph& g, const std::vector<NodeId>& outputs,
                                             const std::vector<NodeId>& wrt, bool rows,
                                             const ad::Algebra& algebra,
                                             std::span<const int> elements,
                                             std::span<const int> wanted) {
  std::vector<std::vector<NodeId>> given;
  size_t variable = 0;
  for (NodeId x : wrt) {
    std::vector<NodeId>& of = given.emplace_back();
    for (NodeId direction : ad::unit_directions(g, x, rows)) {
      const int element = variable < elements.size() ? elements[variable] : 0;
      ++variable;
      if (element == 0) continue;
      of.resize(std::max<size_t>(of.size(), element), kNoNode);
      of[element - 1] = direction;
    }
  }
  return ad::series(g, outputs, wrt, given, algebra, wanted);
}

/// What a finish would compute: the outputs, then what variables were assigned.
std::vector<NodeId> roots(Trace& trace, const std::vector<TensorPtr>& outputs) {
  std::vector<NodeId> ids = nodes(trace, outputs), assigned = trace.assigned();
  ids.insert(ids.end(), assigned.begin(), assigned.end());
  return ids;
}

using VariableNames = std::unordered_map<uint64_t, std::string>;

std::string leaf_text(const Trace& trace, NodeId id, const VariableNames& names) {
  Trace::Origin o = trace.origin(id);
  if (o.argument >= 0) return "argument " + std::to_string(o.argument);
  if (!o.variable) return "captured";
  auto it = names.find(o.variable->number());
  return it == names.end() ? "variable" : it->second;
}

/// "net.py:12", without the folders.
std::string short_location(const Location& l) {
  std::string text = l.text();
  return text.substr(text.rfind('/') + 1);
}

/// Answers Ctrl-C as Python does between two lines: by the handler that is set, which may raise.
void answer_interrupt() {
  with_gil([] {
    if (!PyOS_InterruptOccurred()) return;
    PyErr_SetInterrupt();  // asking has taken it away
    answer_signals();
  });
}

void without_gil(FunctionRef<void()> f) {
  if (!PyGILState_Check()) return f();
  WithoutGil nogil;
  f();
}

void bind_compiled(py::module_& m) {
  py::class_<Compiled, std::shared_ptr<Compiled>>(m, "Compiled",
                                                  "A trace that runs again without Python.")
      .def("run",
           [](const Compiled& c, const std::vector<TensorPtr>& arguments) {
             std::vector<Array> in;
             in.reserve(arguments.size());
             for (const TensorPtr& t : arguments) in.push_back(t->value());
             std::vector<Array> out = c.run(in);
             answer_signals();
             std::vector<TensorPtr> result;
             for (Array& a : out) result.push_back(std::make_shared<Tensor>(std::move(a)));
             return result;
           })
      .def(
          "same_as",
          [](const Compiled& a, const Compiled& b) {
            auto same = [](const Compiled::Source& x, const Compiled::Source& y) {
              return x.argument == y.argument && x.variable == y.variable && x.type == y.type;
            };
            return a.executable == b.executable && a.constants == b.constants &&
                   a.result_count == b.result_count && std::ranges::equal(a.inputs, b.inputs, same);
          },
          "Whether both compute the same of the same, but for arrays that they hold.")
      .def_property_readonly(
          "captured_bytes",
          [](const Compiled& c) {
            size_t bytes = 0;
            for (const Compiled::Source& s : c.inputs)
              if (s.argument < 0 && !s.variable) bytes += s.captured.bytes();
            return bytes;
          },
          "What it holds besides its plan.");
}

void bind_trace_class(py::module_& m) {
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
      .def("remember_decisions", &Trace::remember_decisions,
           "From now on what bool() is asked of does not keep it from being repeated.")
      .def_property_readonly(
          "steps",
          [](const Trace& t) {
            py::list steps;
            for (const Trace::Decided& d : t.steps())
              steps.append(py::make_tuple(d.compiled, d.answer));
            return steps;
          },
          "What was compiled for its decisions: (what computes it and what is used later, the "
          "answer); each has the results of those before it as further arguments.")
      .def("abandon", &Trace::abandon)
      .def("mark_unrepeatable", &Trace::mark_unrepeatable)
      .def_property_readonly("asked", &Trace::asked)
      .def_property_readonly("asked_at", [](const Trace& t) { return t.asked_at().text(); })
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
            const std::vector<NodeId> ids = roots(t, outputs);
            return to_text(make_plan(t.graph, live_until(t.graph, ids, {}), ids, {}));
          },
          py::arg("outputs"), "The plan of the same, which is not run.")
      .def_property_readonly("node_count", [](const Trace& t) { return t.graph.size(); });
}

void bind_current_trace(py::module_& m) {
  m.def("in_trace", [] { return current_trace() != nullptr; });
  m.def(
      "with_trace",
      [](const py::function& body,
         std::optional<std::tuple<uint64_t, uint64_t, uint64_t, size_t>> structure) {
        // One call of C++ around the whole: an interrupt cannot come between the trace and its end.
        struct Active {
          TracePtr trace;
          ~Active() { end_trace(); }
        } active{begin_trace(structure ? settings_of(std::get<3>(*structure)) : settings(),
                             python_location)};
        try {
          return calling_python([&] { return body(active.trace); });
        } catch (...) {
          active.trace->abandon();
          throw;
        }
      },
      py::arg("body"), py::arg("structure") = py::none(),
      "body(trace) with a new trace as the current one; abandoned if body raises. structure: of "
      "structure_version(), whose settings it has in the place of those now.");
  m.def(
      "begin_trace",
      [](bool for_gpu) {
        const Settings& now = settings();
        auto changed = [](Settings& s) { s.written_attention = false; };
        return begin_trace(for_gpu ? settings_with(now, changed) : now, python_location);
      },
      py::arg("for_gpu") = false, "for_gpu: to be looked at as what runs on a GPU.");
  m.def("end_trace", &end_trace);
  m.def(
      "trace_clock", &trace_clock,
      "Goes on when a trace begins or ends: what is made and changed between, no trace has read.");
}

/// Nodes of the current trace: made, replaced, ended, compared.
void bind_nodes(py::module_& m) {
  m.def("record", in_trace(+[](Trace& t, const TensorPtr& x) { return wrap(t, x->in(t)); }),
        "The tensor as a node of the current trace.");
  m.def("has_value", in_trace(+[](Trace& t, const TensorPtr& x) { return t.has_value(x->in(t)); }),
        "Whether the tensor has one value here: not one for each example, or any.");
  m.def("decide", in_trace(+[](Trace& t, const TensorPtr& x) { return t.decide(x->in(t)); }),
        "Whether a bool tensor of one element is true.");
  m.def("alias", in_trace(+[](Trace& t, const TensorPtr& x) { return wrap(t, t.alias(x->in(t))); }),
        "A new node equal to x, to differentiate by.");
  m.def("push_alias", in_trace(+[](Trace& t, const TensorPtr& p) {
          return wrap(t, t.push_alias(p->variable()));
        }),
        "Makes a new node stand for a parameter, to differentiate by; returns it.");
  m.def("dissolve", in_trace(+[](Trace& t, const std::vector<TensorPtr>& aliases) {
          t.dissolve(nodes(t, aliases));
        }),
        "Ends aliases: what was computed with them is from now on computed with what they stood "
        "for.");
  m.def("unknown", in_trace(+[](Trace& t, const TensorPtr& like) {
          return wrap(t, t.graph.unknown(like->dtype(), like->dims()));
        }),
        "A tensor of this one's dtype and shape that stands for any such: it has no value.");
  m.def("asked_for_unknown", in_trace(+[](Trace& t) { return t.asked_for_unknown(); }),
        "Whether a value was asked for that depends on one that is unknown.");
  m.def("remainder",
        in_trace(+[](Trace& t, const std::vector<TensorPtr>& outputs,
                     const std::vector<TensorPtr>& arguments) {
          Trace::Remainder found = t.remainder(nodes(t, outputs), nodes(t, arguments));
          std::vector<TensorPtr> factors;
          for (NodeId id : found.factors) factors.push_back(wrap(t, id));
          return std::pair(std::move(found.rest), std::move(factors));
        }),
        py::arg("outputs"), py::arg("arguments"),
        "(what computes the outputs from other arguments and, behind them, factors; the factors): "
        "what depends on the arguments runs, and nothing else.");
  m.def("apart", in_trace(+[](Trace& t, const TensorPtr& x) { return t.apart(x->in(t)); }),
        "Whether a tensor is a node that no other computation can be, to differentiate by.");
  m.def("example", in_trace(+[](Trace& t, const TensorPtr& batch) {
          return wrap(t, t.example(batch->in(t)));
        }),
        "A new node for one example of a batch [N, ...], without a value.");
}

/// What is recorded for one example, or one step, and done for all.
void bind_examples(py::module_& m) {
  m.def(
      "batch",
      in_trace(+[](Trace& t, const std::vector<TensorPtr>& outputs,
                   const std::vector<TensorPtr>& examples, const std::vector<TensorPtr>& batches) {
        std::vector<std::optional<TensorPtr>> result;
        for (NodeId id :
             ad::batch(t.graph, nodes(t, outputs), nodes(t, examples), nodes(t, batches))) {
          if (id == kNoNode)
            result.emplace_back();
          else
            result.emplace_back(wrap(t, id));
        }
        return result;
      }),
      "The outputs of one example over the batches, [N, ...]; None for what no example enters.");
  m.def(
      "loop",
      in_trace(+[](Trace& t, const std::vector<TensorPtr>& states,
                   const std::vector<TensorPtr>& first, const std::vector<TensorPtr>& next,
                   const std::vector<TensorPtr>& slices, const std::vector<TensorPtr>& sliced,
                   const std::vector<TensorPtr>& kept, int64_t steps, bool reverse, bool again) {
        ad::LoopParts p{.steps = steps, .reverse = reverse, .again = again};
        for (size_t k = 0; k < states.size(); ++k)
          p.carried.push_back({states[k]->in(t), next[k]->in(t), first[k]->in(t)});
        for (size_t k = 0; k < slices.size(); ++k)
          p.sliced.push_back({slices[k]->in(t), sliced[k]->in(t)});
        p.kept = nodes(t, kept);
        const ad::MadeLoop loop(t.graph, t.graph, p);
        std::vector<TensorPtr> last, all;
        for (size_t k = 0; k < states.size(); ++k) last.push_back(wrap(t, loop.last(k)));
        for (NodeId id : p.kept) all.push_back(wrap(t, loop.all(id)));
        return std::pair(last, all);
      }),
      py::arg("states"), py::arg("first"), py::arg("next"), py::arg("slices"), py::arg("sliced"),
      py::arg("kept"), py::arg("steps"), py::arg("reverse"), py::arg("again"),
      "What was recorded for one step, as a loop: examples that stand for the state before a step, "
      "what the first step gets, what a step makes of the state; examples that stand for slices, "
      "and what they are slices of. Returns the last state, and what is kept of each step, "
      "[steps, ...]. again: derivatives keep the states alone, and compute the rest again.");
  m.def("without_loops", in_trace(+[](Trace& t, const std::vector<TensorPtr>& outputs) {
          std::vector<NodeId> ids = nodes(t, outputs), leaves;
          for (NodeId id : live_nodes(t.graph, ids))
            if (is_leaf(t.graph, id)) leaves.push_back(id);
          std::vector<TensorPtr> result;
          for (NodeId id : ad::without_loops(t.graph, ids, leaves)) result.push_back(wrap(t, id));
          return result;
        }),
        "The same tensors, with the steps of loops as nodes of the trace.");
  m.def("end_examples", in_trace(+[](Trace& t, const std::vector<TensorPtr>& examples) {
          t.end_examples(nodes(t, examples));
        }),
        "Ends examples: what depends on them is of no use from now on.");
}

/// Tensors as the current trace sees them.
void bind_tensors(py::module_& m) {
  m.def(
      "same_base", [](Tensor& a, Tensor& b) { return &a.root() == &b.root(); },
      "Whether a write to one of them is a write to the other.");
  m.def("same_node", in_trace(+[](Trace& t, const TensorPtr& a, const TensorPtr& b) {
          return a->in(t) == b->in(t);
        }),
        "Whether two tensors are one node of the current trace.");
  m.def("stand_in", in_trace(+[](Trace& t, const TensorPtr& parameter, const TensorPtr& x) {
          const NodeId before = t.lift(parameter->variable());
          t.assign(parameter->variable(), x->in(t));
          return wrap(t, before);
        }),
        "Makes x stand for a parameter from now on; returns what stood for it.");
  m.def(
      "lifted_variables", [] { return required_trace().lifted_variables(); },
      "The variables that the trace has read so far, by their numbers.");
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
}

void bind_derivatives(py::module_& m) {
  m.def("adjoint",
        in_trace(+[](Trace& t, const std::vector<TensorPtr>& outputs, const py::list& cotangents,
                     const std::vector<TensorPtr>& wrt) {
          std::vector<NodeId> out = nodes(t, outputs), in = nodes(t, wrt);
          std::vector<NodeId> cot = seeds(t, out, cotangents);
          return with_zeros(t, ad::adjoint(t.graph, out, cot, in), in);
        }),
        "Vector-Jacobian product; a cotangent of None is ones.");
  m.def(
      "all_floating",
      [](const std::vector<TensorPtr>& tensors) {
        return std::ranges::all_of(tensors,
                                   [](const TensorPtr& x) { return is_floating(x->dtype()); });
      },
      "Whether each of the tensors is of a floating dtype.");
  m.def("require_rules_for_integers",
        in_trace(+[](Trace& t, const std::vector<TensorPtr>& outputs,
                     const std::vector<TensorPtr>& wrt) {
          ad::require_rules_for_integers(t.graph, nodes(t, outputs), nodes(t, wrt));
        }),
        "Raises TypeError if the outputs depend on these integers through a loop or a call.");
  m.def("tangent",
        in_trace(+[](Trace& t, const std::vector<TensorPtr>& outputs,
                     const std::vector<TensorPtr>& wrt, const py::list& tangents) {
          std::vector<NodeId> out = nodes(t, outputs), in = nodes(t, wrt);
          std::vector<NodeId> tan = seeds(t, in, tangents);
          return with_zeros(t, ad::tangent(t.graph, out, in, tan), out);
        }),
        "Jacobian-vector product; a tangent of None is ones.");
}

/// Derivatives of higher orders in one pass.
void bind_series(py::module_& m) {
  m.def("taylor",
        in_trace(+[](Trace& t, const std::vector<TensorPtr>& outputs,
                     const std::vector<TensorPtr>& wrt,
                     const std::vector<std::vector<std::optional<TensorPtr>>>& given, int order,
                     const std::vector<int>& wanted) {
          std::vector<NodeId> out = nodes(t, outputs), in = nodes(t, wrt);
          std::vector<std::vector<NodeId>> derivatives;
          for (const auto& of : given) {
            derivatives.emplace_back();
            for (const auto& d : of) derivatives.back().push_back(d ? (*d)->in(t) : kNoNode);
          }
          return with_zeros(t, ad::series(t.graph, out, in, derivatives, ad::line(order), wanted),
                            out);
        }),
        "The derivatives of orders `wanted` along a curve, for each output, given those of `wrt` "
        "from the first on (None: zero).");
  m.def("laplacian",
        in_trace(+[](Trace& t, const std::vector<TensorPtr>& outputs,
                     const std::vector<TensorPtr>& wrt, bool rows, bool twice) {
          std::vector<NodeId> out = nodes(t, outputs), in = nodes(t, wrt);
          int64_t d = 0;
          for (NodeId x : in)
            d += rows ? product(t.graph.dims(x), 1, t.graph.dims(x).size()) : t.graph.count(x);
          const ad::Algebra algebra =
              twice ? ad::biharmonic(narrow<int>(d)) : ad::laplacian(narrow<int>(d));
          std::vector<int> variables(d);
          std::iota(variables.begin(), variables.end(), 1);
          const int wanted[] = {algebra.size() - 1};
          std::vector<NodeId> sums;
          for (const auto& of : by_elements(t.graph, out, in, rows, algebra, variables, wanted))
            sums.push_back(of[0]);
          return with_zeros(t, sums, out);
        }),
        "The sum of second derivatives by all elements of `wrt`, for each output; `twice`: the "
        "Laplacian of that. `rows`: elements of the outputs depend on a row of `wrt` each.");
  m.def("partials",
        in_trace(+[](Trace& t, const std::vector<TensorPtr>& outputs,
                     const std::vector<TensorPtr>& wrt, bool rows,
                     const std::vector<std::vector<int>>& wanted) {
          std::vector<NodeId> out = nodes(t, outputs), in = nodes(t, wrt);
          std::vector<std::vector<int>> made;
          const ad::Algebra algebra = ad::partial_derivatives(wanted, made);
          std::vector<int> elements, variables;
          for (const auto& m : wanted)
            elements.push_back(narrow<int>(std::find(made.begin(), made.end(), m) - made.begin()) +
                               1);
          for (size_t i = 0; !wanted.empty() && i < wanted[0].size(); ++i) {
            std::vector<int> first(wanted[0].size(), 0);
            first[i] = 1;
            const auto at = std::find(made.begin(), made.end(), first);
            variables.push_back(at == made.end() ? 0 : narrow<int>(at - made.begin()) + 1);
          }
          return with_zeros(t, by_elements(t.graph, out, in, rows, algebra, variables, elements),
                            out);
        }),
        "The partial derivatives by multi-indices over the elements of `wrt` (of a row of it), for "
        "each output.");
  m.def(
      "first_mixing_rows",
      in_trace(+[](Trace& t, const std::vector<TensorPtr>& outputs,
                   const std::vector<TensorPtr>& wrt, int order,
                   bool in_place) -> std::optional<std::string> {
        const std::vector<NodeId> in = nodes(t, wrt);
        const std::vector<NodeId> out = ad::without_loops(t.graph, nodes(t, outputs), in);
        const NodeId id = ad::first_mixing_rows(t.graph, out, in, order, in_place);
        if (id == kNoNode) return {};
        const std::string at = t.graph[id].location.text();
        const std::string name = is_call_output(t.graph, id) ? ad::call_of(t.graph, id).rule->name()
                                                             : info(t.graph[id].op).name;
        return name + (at.empty() ? "" : " (" + at + ")");
      }),
      py::arg("outputs"), py::arg("wrt"), py::arg("order"), py::arg("in_place"),
      "The op, with its line, that first combines rows of `wrt`, or whose derivatives up to "
      "`order` do; None: rows stay apart. in_place: outputs' rows must be their first axis, too.");
}

}  // namespace

void answer_signals() {
  NoTrace outside;  // the handlers' ops are no part of what is recorded
  if (calling_python([] { return PyErr_CheckSignals(); }) != 0) throw py::error_already_set();
}

void bind_trace(py::module_& m) {
  interrupt_check = answer_interrupt;
  wait_hook = without_gil;
  bind_compiled(m);
  bind_trace_class(m);
  bind_current_trace(m);
  bind_nodes(m);
  bind_examples(m);
  bind_tensors(m);
  bind_derivatives(m);
  bind_series(m);
}

}  // namespace gradcell::bind

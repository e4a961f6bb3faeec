// What one can ask about the package and the machine.
#include "base/thread_pool.h"
#include "bind/bind.h"
#include "cpu/kernels/isa_level.h"
#include "cpu/products/blas.h"
#include "ir/fold.h"
#include "runtime/plan_cache.h"

namespace gradcell::bind {

namespace {

const char* kind_name(OpKind k) {
  static constexpr const char* kNames[] = {"unary",     "binary",  "compare",
                                           "predicate", "ternary", "structured"};
  return kNames[narrow<int>(k)];
}

/// A node's attributes by name; a constant's is its value.
py::dict attributes(const Graph& g, NodeId id) {
  py::dict d;
  if (form(g, id) == Form::Constant) d["value"] = number(g.dtype(id), g[id].bits);
  for_each_attribute(spec(g, id).attributes, g.attrs(id),
                     [&](const Attribute& a, std::span<const int64_t> values) {
                       if (is_list(a.kind))
                         d[a.name] = Dims(values.begin(), values.end());
                       else if (a.kind == AttributeKind::Flag)
                         d[a.name] = values[0] != 0;
                       else
                         d[a.name] = values[0];
                     });
  return d;
}

py::dict node_dict(const Graph& g, NodeId id) {
  py::dict d;
  d["id"] = id;
  d["op"] = info(g[id].op).name;
  d["order"] = g[id].order;
  d["attributes"] = attributes(g, id);
  d["inputs"] = std::vector<NodeId>(g.inputs(id).begin(), g.inputs(id).end());
  d["shape"] = Dims(g.dims(id));
  d["dtype"] = dtype_object(g.dtype(id));
  d["location"] = g[id].location.text();
  return d;
}

const char* operands(OpKind kind) {
  switch (kind) {
    case OpKind::Unary:
    case OpKind::Predicate:
      return "input: a tensor; the result has its shape.";
    case OpKind::Ternary:
      return "condition: a bool tensor; input, other: tensors or numbers. All broadcast; "
             "ValueError "
             "if they cannot.";
    default:
      return "input, other: tensors or numbers, broadcast against each other; ValueError if they "
             "cannot be.";
  }
}

const char* dtypes(const OpInfo& row) {
  if (row.kind == OpKind::Compare || row.kind == OpKind::Predicate) return "The result is bool.";
  switch (row.cls) {
    case OpClass::Float:
      return "Integers and bools count as float32.";
    case OpClass::Bool:
      return "Operands count as bools, and the result is bool.";
    default:
      return "bool counts as int32.";
  }
}

}  // namespace

py::object number(DType t, uint64_t bits) {
  if (is_floating(t)) return py::float_(from_bits<double>(t, bits));
  return py::int_(from_bits<int64_t>(t, bits));
}

std::string row_text(Op op) {
  const OpInfo& row = info(op);
  std::string text = std::string(row.name) + ": " + row.forward + ", elementwise.\n\n";
  text += operands(row.kind);
  if (row.kind != OpKind::Ternary) text += std::string(" ") + dtypes(row);
  return text + " Raises TypeError for anything other than tensors and numbers.";
}

void bind_inspect(py::module_& m) {
  m.def(
      "op_table",
      [] {
        py::list rows;
        for (uint16_t i = 0; i < narrow<uint16_t>(Op::Count); ++i) {
          const OpInfo& row = info(static_cast<Op>(i));
          py::dict d;
          d["name"] = row.name;
          d["function"] = row.function;
          d["kind"] = kind_name(row.kind);
          d["differentiable"] = spec(static_cast<Op>(i)).differentiable();
          d["not_in_onnx"] = spec(static_cast<Op>(i)).not_in_onnx();
          d["forward"] = row.forward;
          if (row.kind != OpKind::Structured) d["text"] = row_text(static_cast<Op>(i));
          rows.append(d);
        }
        return rows;
      },
      "One dict for each row of the op table.");
  m.def("plan_cache_info", [] {
    PlanCacheInfo i = plan_cache_info();
    return py::dict(py::arg("size") = i.size, py::arg("hits") = i.hits,
                    py::arg("misses") = i.misses, py::arg("runs") = i.runs);
  });
  m.def(
      "node_id", [](const Tensor& t) { return t.in(required_trace()); },
      "The node of the current trace that stands for a tensor.");
  m.def(
      "assigned_nodes", [] { return required_trace().assigned(); },
      "The nodes that stand for the parameters assigned so far in the current trace.");
  m.def(
      "live_nodes",
      [](const std::vector<NodeId>& roots) {
        const Graph& g = required_trace().graph;
        py::list nodes;
        for (NodeId id : live_nodes(g, roots)) nodes.append(node_dict(g, id));
        return nodes;
      },
      "One dict for each node of the current trace that the roots need, in order of execution.");
  m.def(
      "node_values",
      [](const std::vector<NodeId>& ids) {
        std::vector<TensorPtr> values;
        for (Array& a : required_trace().values(ids))
          values.push_back(std::make_shared<Tensor>(std::move(a)));
        return values;
      },
      "The values of nodes of the current trace, computed in one plan.");
  m.def("memory_info", [] {
    MemoryInfo i = memory_info();
    return py::dict(py::arg("in_use") = i.in_use, py::arg("cached") = i.cached);
  });
  m.def("release_cached_memory", &release_cached_memory);
  m.def("set_blas_path", &cpu::set_blas_path);
  m.def("isa_level", [] { return std::string(cpu::name(cpu::isa_level())); });
  m.def("machine_isa_level", [] { return std::string(cpu::name(cpu::machine_isa_level())); });
  m.def("runnable_isa_levels", [] {
    std::vector<std::string> names;
    for (cpu::IsaLevel level : cpu::runnable_isa_levels()) names.emplace_back(cpu::name(level));
    return names;
  });
  m.def("set_max_threads", &set_max_threads);
  m.def("max_threads", &max_threads);
}

}  // namespace gradcell::bind

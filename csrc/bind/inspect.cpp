// What one can ask about the package and the machine.
#include "bind/bind.h"
#include "cpu/blas.h"
#include "cpu/isa_level.h"
#include "runtime/thread_pool.h"

namespace gradcell::bind {

namespace {

const char* kind_name(OpKind k) {
  switch (k) {
    case OpKind::Unary: return "unary";
    case OpKind::Binary: return "binary";
    case OpKind::Compare: return "compare";
    case OpKind::Predicate: return "predicate";
    case OpKind::Ternary: return "ternary";
    default: return "structured";
  }
}

}  // namespace

void bind_inspect(py::module_& m) {
  m.def("op_table", [] {
    py::list rows;
    for (uint16_t i = 0; i < static_cast<uint16_t>(Op::Count); ++i) {
      const OpInfo& row = info(static_cast<Op>(i));
      py::dict d;
      d["name"] = row.name;
      d["function"] = row.function;
      d["kind"] = kind_name(row.kind);
      d["differentiable"] = row.differentiable;
      d["forward"] = row.forward;
      rows.append(d);
    }
    return rows;
  }, "One dict for each row of the op table.");
  m.def("plan_cache_info", [] {
    PlanCacheInfo i = plan_cache_info();
    return py::dict(py::arg("size") = i.size, py::arg("hits") = i.hits, py::arg("misses") = i.misses,
                    py::arg("runs") = i.runs);
  });
  m.def("clear_plan_cache", &clear_plan_cache);
  m.def("memory_info", [] {
    MemoryInfo i = memory_info();
    return py::dict(py::arg("in_use") = i.in_use, py::arg("cached") = i.cached);
  });
  m.def("release_cached_memory", &release_cached_memory);
  m.def("set_blas_path", &cpu::set_blas_path);
  m.def("isa_level", [] { return std::string(cpu::name(cpu::isa_level())); });
  m.def("set_max_threads", &set_max_threads);
  m.def("max_threads", &max_threads);
}

}  // namespace gradcell::bind

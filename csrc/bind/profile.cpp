// Where the time of runs goes, for gradcell.profiler.
#include "cpu/run/profile.h"

#include "bind/bind.h"

namespace gradcell::bind {

namespace {

py::dict as_dict(const cpu::ProfiledOp& op) {
  return py::dict(py::arg("name") = op.name, py::arg("location") = op.location.text(),
                  py::arg("operations") = op.operations, py::arg("elements") = op.elements,
                  py::arg("bytes") = op.bytes, py::arg("seconds") = op.seconds);
}

py::dict as_dict(const cpu::ProfiledStep& step) {
  py::list ops;
  for (const cpu::ProfiledOp& op : step.ops) ops.append(as_dict(op));
  return py::dict(py::arg("name") = step.name, py::arg("stage") = step.stage,
                  py::arg("rows") = step.rows, py::arg("seconds") = step.seconds,
                  py::arg("ops") = ops);
}

py::dict as_dict(const cpu::ProfiledPlan& plan) {
  py::list steps, spans;
  for (const cpu::ProfiledStep& step : plan.steps()) steps.append(as_dict(step));
  for (const cpu::ProfiledSpan& s : plan.spans())
    spans.append(py::make_tuple(s.step, s.worker, s.begin, s.end));
  return py::dict(py::arg("runs") = plan.runs(), py::arg("seconds") = plan.seconds(),
                  py::arg("steps") = steps, py::arg("spans") = spans);
}

}  // namespace

void bind_profile(py::module_& m) {
  m.def("start_profile", &cpu::start_profile,
        "Begins measuring the CPU's runs of plans; what was measured before is forgotten.");
  m.def(
      "stop_profile",
      [] {
        py::list plans;
        for (const auto& plan : cpu::stop_profile()) plans.append(as_dict(*plan));
        return plans;
      },
      "Ends measuring. One dict for each plan that ran: runs, seconds, steps, spans (step, thread, "
      "begin, end).");
  m.def(
      "machine_peaks",
      [] {
        const cpu::MachinePeaks p = cpu::machine_peaks();
        return py::make_tuple(p.operations, p.bytes);
      },
      "What the machine can do, measured: float32 operations of products and bytes, a second.");
}

}  // namespace gradcell::bind

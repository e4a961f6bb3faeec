// MPI's addresses and handles, from python/gradcell/communication/engine.py.
#include "bind/bind.h"
#include "cpu/run/communicator.h"

namespace gradcell::bind {

namespace {

using cpu::Communicator;
using cpu::MpiHandle;

template <class F>
void take(F*& function, const py::dict& addresses, const char* name) {
  function = reinterpret_cast<F*>(addresses[name].cast<uintptr_t>());
}

cpu::Mpi mpi_of(const py::dict& addresses, const py::dict& handles) {
  cpu::Mpi m{};
  take(m.Iallreduce, addresses, "MPI_Iallreduce");
  take(m.Ireduce, addresses, "MPI_Ireduce");
  take(m.Ireduce_scatter_block, addresses, "MPI_Ireduce_scatter_block");
  take(m.Iallgather, addresses, "MPI_Iallgather");
  take(m.Ialltoall, addresses, "MPI_Ialltoall");
  take(m.Ibcast, addresses, "MPI_Ibcast");
  take(m.Ibarrier, addresses, "MPI_Ibarrier");
  take(m.Isend, addresses, "MPI_Isend");
  take(m.Irecv, addresses, "MPI_Irecv");
  take(m.Test, addresses, "MPI_Test");
  take(m.Cancel, addresses, "MPI_Cancel");
  take(m.Request_free, addresses, "MPI_Request_free");
  take(m.Op_create, addresses, "MPI_Op_create");
  take(m.Error_string, addresses, "MPI_Error_string");
  const auto dtypes = handles["dtypes"].cast<std::vector<MpiHandle>>();
  std::copy_n(dtypes.begin(), std::min<size_t>(dtypes.size(), kDTypeCount), m.dtypes);
  const auto reductions = handles["reductions"].cast<std::vector<MpiHandle>>();
  std::copy_n(reductions.begin(), std::min<size_t>(reductions.size(), 4), m.reductions);
  m.bytes = handles["bytes"].cast<MpiHandle>();
  m.world = handles["world"].cast<MpiHandle>();
  m.alarms = handles["alarms"].cast<MpiHandle>();
  m.any_source = handles["any_source"].cast<int>();
  m.size = handles["size"].cast<int>();
  m.rank = handles["rank"].cast<int>();
  return m;
}

}  // namespace

void bind_communication(py::module_& m) {
  py::module_ c = m.def_submodule("communication", "The processes that work together.");
  c.def("open", [](const py::dict& addresses, const py::dict& handles) {
    Communicator::get().open(mpi_of(addresses, handles));
  });
  c.def("is_open", [] { return Communicator::get().is_open(); });
  c.def(
      "close", [] { Communicator::get().close(); },
      "Leaves, once all processes are here. Raises RuntimeError where one is somewhere else.");
  c.def("add_group", [](MpiHandle communicator, MpiHandle agreements, int size, int rank,
                        std::string name) {
    return Communicator::get().add_group(communicator, agreements, size, rank, std::move(name));
  });
  c.def("remove_group", [](int group) { Communicator::get().remove_group(group); });
  c.def("set_patience", [](double seconds) { Communicator::get().set_patience(seconds); });
  c.def("set_neighbours", [](std::map<int, int> process_of) {
    Communicator::get().set_neighbours(std::move(process_of));
  });
  c.def("alarm", [](const std::string& why, int only) { Communicator::get().alarm(why, only); });
  c.def("alarms", [] { return Communicator::get().alarms(); });
  c.def("first_alarm", [] { return Communicator::get().first_alarm(); });
  c.def("left_behind", [] { return cpu::left_behind(); });
  c.def(
      "traffic",
      [] {
        const cpu::Traffic t = Communicator::get().traffic();
        py::dict d;
        d["exchanges"] = t.exchanges, d["bytes"] = t.bytes;
        d["in_flight"] = t.in_flight, d["waited"] = t.waited, d["agreeing"] = t.agreeing;
        return d;
      },
      "Exchanges so far, bytes given to them, seconds in flight and waited for.");
}

}  // namespace gradcell::bind

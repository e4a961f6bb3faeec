#include "bind/bind.h"

PYBIND11_MODULE(_core, m) {
  using namespace gradcell::bind;
  m.doc() = "gradcell's core: graph, adjoints, kernels.";
  bind_location(m);
  bind_tensor(m);
  bind_ops(m);
  bind_trace(m);
  bind_dispatch(m);
  bind_inspect(m);
  bind_cuda(m);
  bind_exchange(m);
}

#include "ops/routine.h"

#include "ops/moving/movement.h"

namespace gradcell {

NodeId Routine::batch(Graph& g, NodeId id, const Batch& b) const {
  std::vector<NodeId> in;
  for (size_t k = 0; k < b.inputs.size(); ++k) in.push_back(over_batch(g, b, k));
  const Dims attributes(g.attrs(id).begin(), g.attrs(id).end());
  return make(g, op, {in, attributes, {g.dtype(id), behind_batch(b.size, g.dims(id))}});
}

Dims Routine::problems(const Graph& g, const Draft& d) const {
  auto lead = [&](size_t k) {
    const Dims& dims = g.dims(d.inputs[k]);
    return Dims(dims.begin(), dims.end() - static_cast<ptrdiff_t>(problem(g, d, k).size()));
  };
  const Dims all = lead(0);
  for (size_t k = 1; k < d.inputs.size(); ++k)
    require(lead(k) == all, ErrorKind::Value, name(), ": leading dimensions differ: ", listed(all),
            " and ", listed(lead(k)));
  return all;
}

Dims Routine::problem(const Graph& g, const Draft& d, size_t k) const {
  const Dims& dims = g.dims(d.inputs[k]);
  const size_t rank = problem_rank(d.attributes, k);
  require(dims.size() >= rank, ErrorKind::Value, name(), ": needs ", rank,
          " dimensions, got shape ", listed(dims));
  return {dims.end() - static_cast<ptrdiff_t>(rank), dims.end()};
}

}  // namespace gradcell

#include "ad/batching.h"

#include <algorithm>

#include "ir/spec.h"
#include "ir/verify.h"

namespace gradcell::ad {

std::vector<uint8_t> dependents(const Graph& g, std::span<const NodeId> of) {
  std::vector<uint8_t> depends(g.size(), 0);
  if (of.empty()) return depends;
  for (NodeId id : of) depends[id] = 1;
  const auto end = static_cast<NodeId>(g.size());
  for (NodeId id = *std::ranges::min_element(of); id < end; ++id)
    for (NodeId i : g.inputs(id)) depends[id] |= depends[i];
  return depends;
}

std::vector<NodeId> batch(Graph& g, std::span<const NodeId> outputs,
                          std::span<const NodeId> examples, std::span<const NodeId> batches) {
  const auto made = static_cast<NodeId>(g.size());
  const std::vector<uint8_t> depends = dependents(g, examples);
  std::vector<NodeId> over(made, kNoNode);
  for (size_t i = 0; i < examples.size(); ++i) over[examples[i]] = batches[i];

  std::vector<NodeId> in;
  std::vector<uint8_t> batched;
  for (NodeId id : live_nodes(g, outputs)) {
    if (!depends[id] || over[id] != kNoNode) continue;
    in.clear(), batched.clear();
    for (NodeId i : g.inputs(id)) {
      batched.push_back(depends[i]);
      in.push_back(depends[i] ? over[i] : i);
    }
    Stamp stamp(g);
    stamp.like(g[id]);
    over[id] = spec(g, id).batch(g, id, {g.dims(batches[0])[0], in, batched});
  }
  if constexpr (kVerify) verify(g, "batch", made);
  std::vector<NodeId> result;
  for (NodeId id : outputs) result.push_back(over[id]);
  return result;
}

}  // namespace gradcell::ad

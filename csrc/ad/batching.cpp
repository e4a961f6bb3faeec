#include "ad/batching.h"

#include <algorithm>

#include "ad/calls.h"
#include "ad/loops.h"
#include "ad/transform.h"
#include "ir/verify.h"
#include "ops/families.h"
#include "ops/ops.h"

namespace gradcell::ad {

std::vector<uint8_t> dependents(const Graph& g, std::span<const NodeId> of) {
  std::vector<uint8_t> depends(g.size(), 0);
  if (of.empty()) return depends;
  for (NodeId id : of) depends[id] = 1;
  const auto end = narrow<NodeId>(g.size());
  for (NodeId id = *std::ranges::min_element(of); id < end; ++id)
    for (NodeId i : g.inputs(id)) depends[id] |= depends[i];
  return depends;
}

std::vector<NodeId> batch(Graph& g, std::span<const NodeId> outputs,
                          std::span<const NodeId> examples, std::span<const NodeId> batches) {
  const auto made = narrow<NodeId>(g.size());
  const std::vector<uint8_t> depends = dependents(g, examples);
  std::vector<NodeId> over(made, kNoNode);
  for (size_t i = 0; i < examples.size(); ++i) over[examples[i]] = batches[i];

  std::vector<NodeId> in;
  std::vector<uint8_t> batched;
  const Calls calls(g, depends);
  std::unordered_map<const Call*, int64_t> numbers;  // under which the graph keeps batched rules
  const NodeId first = examples.empty() ? made : std::ranges::min(examples);
  for (NodeId id : live_from(g, outputs, first)) {
    if (!depends[id] || over[id] != kNoNode) continue;
    in.clear(), batched.clear();
    for (NodeId i : g.inputs(id)) {
      batched.push_back(depends[i]);
      in.push_back(depends[i] ? over[i] : i);
    }
    Stamp stamp(g);
    stamp.like(g[id]);
    const Batch b{g.dims(batches[0])[0], in, batched};
    if (is_loop(g, id)) {
      over[id] = batched_loop(g, id, b);
      continue;
    }
    if (const Call* call = calls.of(id)) {
      auto [it, fresh] = numbers.try_emplace(call, 0);
      if (fresh)
        it->second = g.add_rule(
            batched_rule(*call, b.size, std::span(batched).subspan(1), examples, batches));
      const int64_t output = attributes<CallAttributes>(g, id).output;
      over[id] =
          call_output(g, over_batch(g, b, 0), std::span(in).subspan(1), {it->second, output});
      continue;
    }
    over[id] = spec(g, id).batch(g, id, b);
  }
  if constexpr (kVerify) verify(g, "batch", made);
  std::vector<NodeId> result;
  for (NodeId id : outputs) result.push_back(over[id]);
  return result;
}

}  // namespace gradcell::ad

#include "cuda/tiles/tile_regions.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "cuda/cuda_plan.h"
#include "cuda/tiles/feature_maps.h"
#include "ops/ops.h"
#include "plan/region/region_builder.h"

namespace gradcell::cuda {

namespace {

/// Products of wider matrices are the library's: they keep its tiles busy, and 16 rows of their
/// values would not fit into a multiprocessor.
constexpr int32_t kMostFeatures = 128;
constexpr size_t kMostRowBytes = 12 << 10;
constexpr int64_t kFewestRows = 32;
/// Compiling takes long beyond this.
constexpr size_t kMostInstructions = 4096;

class Finder {
 public:
  Finder(const PlanGraph& c, const Target& target, const std::set<int64_t>& others)
      : c_(c),
        g_(c.graph),
        labels_(label(g_, c.roots)),
        constant_of_(constant_numbers(c)),
        target_(target),
        others_(others) {
    itself_.resize(g_.size());
    std::iota(itself_.begin(), itself_.end(), 0);
  }

  TileRegions run() {
    found_.of.assign(g_.size(), -1);
    found_.order = itself_;
    if (target_.weights.tiles == Tiles::Never) return std::move(found_);
    if (!g_.effects().empty()) return std::move(found_);  // collectives stay in their order
    std::map<std::pair<int32_t, int32_t>, std::vector<NodeId>> groups;  // by stage and component
    for (NodeId id = 0; id < g_.size(); ++id) {
      const NodeLabel& l = labels_.node[id];
      if (l.in_region && labels_.storage[id] == id && l.block == 1 && l.rows >= kFewestRows &&
          !others_.contains(l.rows))
        groups[{l.stage, l.component}].push_back(id);
    }
    for (auto& [key, nodes] : groups)
      if (all_narrow(nodes)) consider(nodes);
    if (!found_.all.empty())
      std::ranges::stable_sort(found_.order, {}, [&](NodeId id) { return labels_.node[id].stage; });
    return std::move(found_);
  }

 private:
  /// Whether there are products that have something between them, and all are narrow.
  bool all_narrow(const std::vector<NodeId>& nodes) const {
    int products = 0;
    for (NodeId id : nodes) {
      if (g_.count(id) > labels_.node[id].rows * kMostFeatures && !labels_.node[id].reducing)
        return false;
      if (!is_product(g_, id)) continue;
      if (!is_floating(g_.dtype(id)) || is_complex(g_.dtype(id))) return false;
      for (NodeId i : g_.inputs(id))
        for (int64_t d : g_.dims(i))
          if (d > kMostFeatures && d != labels_.node[id].rows) return false;
      products += g_[id].input_count / 2;
    }
    return products > 1;
  }

  void consider(const std::vector<NodeId>& nodes) {
    const RegionInputs in{g_, labels_, itself_, constant_of_};
    TileRegion t{build_region(in, nodes, false), {}, {}, nodes, {}, {}};
    if (t.region.program.size() > kMostInstructions) return;
    t.layout = lay_out(t.region, target_.tf32, target_.shared_bytes);
    if (t.layout.row_bytes > kMostRowBytes || !can_write_tile(t.region)) return;
    t.cost = tile_cost(t.region, t.layout, target_);
    std::set<NodeId> reads, writes;
    for (const Uniform& u : t.region.uniforms)
      if (u.constant < 0) reads.insert(u.buffer);
    for (const PackedWeights& w : t.region.weights) reads.insert(w.buffer);
    for (const RowLoad& l : t.region.loads) reads.insert(l.buffer);
    for (const RowStore& s : t.region.stores) writes.insert(s.buffer);
    for (const Accumulator& a : t.region.accumulators) writes.insert(a.buffer);
    t.reads.assign(reads.begin(), reads.end());
    t.writes.assign(writes.begin(), writes.end());
    for (NodeId id : nodes) found_.of[id] = narrow<int32_t>(found_.all.size());
    found_.all.push_back(std::move(t));
  }

  const PlanGraph& c_;
  const Graph& g_;
  const Labels labels_;
  const std::vector<int> constant_of_;
  const Target& target_;
  const std::set<int64_t>& others_;
  std::vector<NodeId> itself_;  ///< stands for each node's buffer
  TileRegions found_;
};

}  // namespace

TileRegions find_tile_regions(const PlanGraph& c, const Target& target,
                              const std::set<int64_t>& others) {
  return Finder(c, target, others).run();
}

}  // namespace gradcell::cuda

#include "cuda/join/reduction_joins.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "cuda/fuse/product_joins.h"
#include "ops/ops.h"

namespace gradcell::cuda {

namespace {

class ReductionJoiner {
 public:
  ReductionJoiner(const Graph& g, Fusion& f) : g_(g), f_(f), users_(g.size()) {
    for (NodeId id = 0; id < g_.size(); ++id)
      if (f_.node[id].role != Role::View)
        for (NodeId input : g_.inputs(id)) users_[f_.storage[input]].push_back(id);
  }

  std::vector<std::vector<NodeId>> run() {
    using Kind = std::tuple<DType, Dims, Dims, Combine>;
    std::map<Kind, std::vector<NodeId>> alike;
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (!reduces_a_buffer(id)) continue;
      const auto axes = g_.attrs(id);
      alike[{g_.dtype(id), g_.dims(g_.input(id, 0)), Dims(axes.begin(), axes.end()),
             spec(g_, id).combine}]
          .push_back(id);
    }
    for (auto& [kind, nodes] : alike) join(nodes);
    return std::move(found_);
  }

 private:
  NodeId source(NodeId id) const { return f_.storage[g_.input(id, 0)]; }
  size_t bytes(NodeId id) const {
    return static_cast<size_t>(g_.count(id)) * item_size(g_.dtype(id));
  }

  bool reduces_a_buffer(NodeId id) const {
    const Fused& me = f_.node[id];
    if (me.role != Role::Alone || form(g_, id) != Form::Reduce || g_.count(id) == 0) return false;
    const NodeId from = source(id);
    return !is_constant(g_, from) &&
           (is_leaf(g_, from) || (f_.node[from].stored && f_.node[from].stage < me.stage));
  }

  /// The last stage in which a node is early enough for what reads it.
  int32_t last_stage(NodeId id) const {
    int32_t last = f_.stage_count - 1;
    std::vector<NodeId> open{id};
    std::vector<uint8_t> seen(g_.size(), 0);
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      for (NodeId user : users_[at]) {
        if (seen[user]) continue;
        seen[user] = 1;
        const Fused& n = f_.node[user];
        if (n.stored || n.role != Role::Map) last = std::min(last, n.stage - 1);
        // What is stored may be computed in earlier kernels too.
        if (n.role == Role::Map) open.push_back(user);
      }
    }
    return last;
  }

  /// The latest that are in time for each other, and so on with those that are left.
  void join(std::vector<NodeId> nodes) {
    std::map<NodeId, int32_t> last;
    for (NodeId id : nodes) last[id] = last_stage(id);
    std::ranges::stable_sort(nodes, std::greater{}, [&](NodeId id) { return f_.node[id].stage; });
    while (nodes.size() > 1) {
      const int32_t stage = f_.node[nodes[0]].stage;
      size_t kept = 0;
      std::vector<NodeId> group, left;
      for (NodeId id : nodes) {
        const size_t more = f_.node[id].stage < stage ? bytes(source(id)) : 0;
        const bool fits = group.size() < kMost && kept + more <= kMostJoinedBytes;
        const bool joins = group.empty() || (fits && last[id] >= stage);
        (joins ? group : left).push_back(id);
        if (joins) kept += more;
      }
      for (NodeId id : group) f_.node[id].stage = stage;
      std::ranges::sort(group);
      if (group.size() > 1) found_.push_back(std::move(group));
      nodes = std::move(left);
    }
  }

  /// There is room for the parameters of so many.
  static constexpr size_t kMost = 32;

  const Graph& g_;
  Fusion& f_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<std::vector<NodeId>> found_;
};

}  // namespace

std::vector<std::vector<NodeId>> join_reductions(const Graph& g, Fusion& fusion) {
  return ReductionJoiner(g, fusion).run();
}

}  // namespace gradcell::cuda

#include "cuda/join/reduction_joins.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "cuda/fuse/product_joins.h"
#include "ops/ops.h"

namespace gradcell::cuda {

namespace {

class ReductionJoiner {
 public:
  ReductionJoiner(const Graph& g, Fusion& f) : g_(g), f_(f) { look_at_readers(); }

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
    int looks = 1;
    for (auto& [kind, nodes] : alike)
      if (nodes.size() > 1 && join(nodes) && looks < kMostLooks) look_at_readers(), ++looks;
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

  void look_at_readers() {
    last_.assign(g_.size(), f_.stage_count - 1);
    for (NodeId id = narrow<NodeId>(g_.size()); id-- > 0;) {
      const Fused& n = f_.node[id];
      if (n.role == Role::View) continue;
      int32_t last = n.stored || n.role != Role::Map ? n.stage - 1 : INT32_MAX;
      // What is stored may be computed in earlier kernels too.
      if (n.role == Role::Map) last = std::min(last, last_[id]);
      for (NodeId input : g_.inputs(id)) {
        int32_t& of = last_[f_.storage[input]];
        of = std::min(of, last);
      }
    }
  }

  /// The latest that are in time for each other, and so on with those that are left. All are of as
  /// many bytes. Returns whether any waits for others.
  bool join(std::vector<NodeId> nodes) {
    const auto stage_of = [&](NodeId id) { return f_.node[id].stage; };
    std::ranges::stable_sort(nodes, std::greater{}, stage_of);
    std::vector<size_t> by_last(nodes.size());
    std::iota(by_last.begin(), by_last.end(), size_t{0});
    std::ranges::stable_sort(by_last, std::greater{}, [&](size_t k) { return last_[nodes[k]]; });
    auto next = by_last.begin();
    std::set<size_t> in_time;  // of those that are left, by their places among `nodes`
    std::vector<uint8_t> joined(nodes.size(), 0);
    bool waits = false;
    for (size_t first = 0; first < nodes.size(); ++first) {
      if (joined[first]) continue;
      const int32_t stage = stage_of(nodes[first]);
      for (; next != by_last.end() && last_[nodes[*next]] >= stage; ++next) in_time.insert(*next);
      in_time.erase(first);
      std::vector<NodeId> group{nodes[first]};
      size_t kept = 0;
      while (!in_time.empty() && group.size() < kMost) {
        const NodeId id = nodes[*in_time.begin()];
        if (stage_of(id) < stage) kept += bytes(source(id));
        if (kept > kMostJoinedBytes) break;
        joined[*in_time.begin()] = 1;
        in_time.erase(in_time.begin());
        group.push_back(id);
      }
      for (NodeId id : group) waits |= stage_of(id) < stage, f_.node[id].stage = stage;
      std::ranges::sort(group);
      if (group.size() > 1) found_.push_back(std::move(group));
    }
    return waits;
  }

  /// There is room for the parameters of so many.
  static constexpr size_t kMost = 32;
  /// How often readers are looked at again where some wait now: what was seen before holds, but may
  /// be earlier than it has to be.
  static constexpr int kMostLooks = 16;

  const Graph& g_;
  Fusion& f_;
  std::vector<int32_t> last_;  ///< by node: the last stage that is early enough for what reads it
  std::vector<std::vector<NodeId>> found_;
};

}  // namespace

std::vector<std::vector<NodeId>> join_reductions(const Graph& g, Fusion& fusion) {
  return ReductionJoiner(g, fusion).run();
}

}  // namespace gradcell::cuda

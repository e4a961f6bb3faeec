#include "plan/rewrite.h"

#include <algorithm>
#include <map>

namespace gradcell {

namespace {

class SumMerger {
 public:
  explicit SumMerger(const PlanGraph& from) : from_(from), g_(from.graph) {}

  PlanGraph run() {
    count_uses();
    to_.assign(g_.size(), kNoNode);
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (absorbed_[id]) continue;
      to_[id] = is_sum_root(id) ? merged(id) : copied(id);
    }
    PlanGraph out;
    for (NodeId id : from_.roots) out.roots.push_back(to_[id]);
    for (NodeId id : from_.inputs) out.inputs.push_back(to_[id]);
    for (NodeId id : from_.constants) out.constants.push_back(to_[id]);
    out.graph = std::move(out_);
    return out;
  }

 private:
  void count_uses() {
    uses_.assign(g_.size(), 0);
    for (NodeId id = 0; id < g_.size(); ++id)
      for (NodeId i : g_.inputs(id)) ++uses_[i];
    for (NodeId r : from_.roots) ++uses_[r];
    // Terms of a sum that nothing else needs are made when the sum is.
    absorbed_.assign(g_.size(), 0);
    for (NodeId id = static_cast<NodeId>(g_.size()); id-- > 0;) {
      if (g_[id].op != Op::Add || !is_floating(g_.dtype(id))) continue;
      for (NodeId i : g_.inputs(id))
        if (uses_[i] == 1 && is_term(i)) absorbed_[i] = 1;
    }
  }

  bool is_term(NodeId id) const {
    Op op = g_[id].op;
    return op == Op::Add || op == Op::MatMul || op == Op::ReduceSum;
  }

  bool is_sum_root(NodeId id) const {
    if (g_[id].op != Op::Add || !is_floating(g_.dtype(id))) return false;
    return std::any_of(g_.inputs(id).begin(), g_.inputs(id).end(),
                       [&](NodeId i) { return absorbed_[i]; });
  }

  NodeId copied(NodeId id) {
    std::vector<NodeId> in;
    for (NodeId i : g_.inputs(id)) in.push_back(to_[i]);
    return rebuild(out_, g_, id, in);
  }

  void collect(NodeId id, std::vector<NodeId>& terms) {
    for (NodeId i : g_.inputs(id)) {
      if (absorbed_[i] && g_[i].op == Op::Add)
        collect(i, terms);
      else
        terms.push_back(i);
    }
  }

  NodeId add(NodeId a, NodeId b) { return a == kNoNode ? b : binary(out_, Op::Add, a, b); }

  struct Pair {
    NodeId a, b;
  };

  /// Replaces pairs with equal `key` factors by one pair with the sum of the others.
  void factor(std::vector<Pair>& pairs, NodeId Pair::* key, NodeId Pair::* other) {
    std::vector<Pair> out;
    for (const Pair& p : pairs) {
      auto same = std::find_if(out.begin(), out.end(), [&](const Pair& q) {
        return q.*key == p.*key && out_.dims(q.*other) == out_.dims(p.*other);
      });
      if (same == out.end())
        out.push_back(p);
      else
        (*same).*other = binary(out_, Op::Add, (*same).*other, p.*other);
    }
    pairs = std::move(out);
  }

  NodeId merged(NodeId id) {
    std::vector<NodeId> terms;
    collect(id, terms);
    out_.location = g_[id].location;
    out_.order = g_[id].order;
    NodeId sum = kNoNode;
    std::map<std::pair<bool, bool>, std::vector<Pair>> products;
    std::map<std::pair<Dims, Dims>, NodeId> reductions;  // (axes, shape) -> what is summed
    for (NodeId t : terms) {
      if (!absorbed_[t]) {
        sum = add(sum, to_[t]);
      } else if (g_[t].op == Op::MatMul) {
        products[{g_.attrs(t)[0], g_.attrs(t)[1]}].push_back(
            {to_[g_.input(t, 0)], to_[g_.input(t, 1)]});
      } else {
        Dims axes(g_.attrs(t).begin(), g_.attrs(t).end());
        NodeId x = g_.input(t, 0);
        NodeId& all = reductions.emplace(std::pair(axes, g_.dims(x)), kNoNode).first->second;
        all = add(all, to_[x]);
      }
    }
    for (auto& [key, x] : reductions) sum = add(sum, reduce(out_, Op::ReduceSum, x, key.first));
    for (auto& [flags, pairs] : products) {
      factor(pairs, &Pair::a, &Pair::b);
      factor(pairs, &Pair::b, &Pair::a);
      // Only products over equally many rows can share an accumulation.
      std::map<Dims, std::vector<NodeId>> by_shape;
      for (const Pair& p : pairs) {
        auto& in = by_shape[flags.first ? Dims{out_.dims(p.a)[out_.dims(p.a).size() - 2]} : Dims{}];
        in.push_back(p.a);
        in.push_back(p.b);
      }
      int64_t attrs[] = {flags.first, flags.second};
      for (auto& [shape, in] : by_shape)
        sum = add(sum, out_.intern(Op::MatMul, g_.dtype(id), Dims(g_.dims(id)), in, attrs));
    }
    return sum;
  }

  const PlanGraph& from_;
  const Graph& g_;
  Graph out_;
  std::vector<NodeId> to_;
  std::vector<uint32_t> uses_;
  std::vector<uint8_t> absorbed_;
};

}  // namespace

PlanGraph merge_sums(const PlanGraph& from) { return SumMerger(from).run(); }

}  // namespace gradcell

#include "plan/rewrite/rewrite.h"

#include <algorithm>
#include <map>

#include "ops/ops.h"
#include "plan/rewrite/taken_over.h"

namespace gradcell {

namespace {

class SumMerger {
 public:
  explicit SumMerger(const PlanGraph& from) : from_(from), g_(from.graph), out_(g_.settings()) {}

  PlanGraph run() {
    count_uses();
    to_.assign(g_.size(), kNoNode);
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (absorbed_[id]) continue;
      to_[id] = is_sum_root(id) ? merged(id) : copied(id);
    }
    PlanGraph out;
    take_over(out, from_, to_);
    out.graph = std::move(out_);
    return out;
  }

 private:
  struct Term {
    NodeId id;
    bool negative;
  };
  struct Pair {
    NodeId a, b;
    bool negative;
  };

  void count_uses() {
    uses_.assign(g_.size(), 0);
    for (NodeId id = 0; id < g_.size(); ++id)
      for (NodeId i : g_.inputs(id)) ++uses_[i];
    for (NodeId r : from_.roots) ++uses_[r];
    is_part_.assign(g_.size(), 0);
    for (NodeId id = 0; id < g_.size(); ++id)
      is_part_[id] = uses_[id] == 1 && is_sum(id) &&
                     has(g_.inputs(id), [&](NodeId i) { return is_mergeable(i) || is_part_[i]; });
    std::vector<uint8_t> inside(g_.size(), 0);  // parts of a larger sum
    for (NodeId id = 0; id < g_.size(); ++id)
      if (is_sum(id))
        for (NodeId i : g_.inputs(id)) inside[i] |= is_part_[i];
    // Terms of a sum that nothing else needs are made when the sum is.
    absorbed_.assign(g_.size(), 0);
    for (NodeId id = 0; id < g_.size(); ++id)
      if (is_sum(id) && !inside[id] && worth_merging(collect(id))) absorb(id);
  }

  bool is_sum(NodeId id) const {
    const Op op = g_[id].op;
    return (op == Op::Add || op == Op::Sub || op == Op::Neg) && is_floating(g_.dtype(id));
  }
  template <class Test>
  static bool has(std::span<const NodeId> nodes, Test test) {
    return std::any_of(nodes.begin(), nodes.end(), test);
  }
  bool is_mergeable(NodeId id) const {
    return uses_[id] == 1 && (is_product(g_, id) || gradcell::is_sum(g_, id));
  }

  /// A sum that has nothing to merge stays as it is written: another order rounds differently.
  bool worth_merging(const std::vector<Term>& terms) const {
    return std::count_if(terms.begin(), terms.end(),
                         [&](const Term& t) { return is_mergeable(t.id); }) > 1;
  }

  void absorb(NodeId root) {
    std::vector<NodeId> sums{root};
    while (!sums.empty()) {
      const NodeId id = sums.back();
      sums.pop_back();
      for (NodeId i : g_.inputs(id)) {
        if (is_part_[i]) sums.push_back(i);
        absorbed_[i] |= is_part_[i] || is_mergeable(i);
      }
    }
  }

  bool is_sum_root(NodeId id) const {
    return is_sum(id) && has(g_.inputs(id), [&](NodeId i) { return absorbed_[i] != 0; });
  }

  NodeId copied(NodeId id) {
    std::vector<NodeId> in;
    for (NodeId i : g_.inputs(id)) in.push_back(to_[i]);
    // What is subtracted where it is spread: its cotangent is read once for both sides.
    if (gradcell::is_sum(g_, id) && is_floating(g_.dtype(id)) && out_[in[0]].op == Op::Neg) {
      Stamp stamp(out_);
      stamp.like(g_[id]);
      return negated(summed(out_.input(in[0], 0), id));
    }
    return rebuild(out_, g_, id, in);
  }

  /// The terms of a sum and of its parts, in the order in which they are written. (No recursion: a
  /// loop may have made a very long sum.)
  std::vector<Term> collect(NodeId root) const {
    std::vector<Term> terms, open{{root, false}};
    while (!open.empty()) {
      const Term t = open.back();
      open.pop_back();
      if (t.id != root && !is_part_[t.id]) {
        terms.push_back(t);
        continue;
      }
      for (int k = g_[t.id].input_count; k-- > 0;) {
        const bool flips = g_[t.id].op == Op::Neg || (g_[t.id].op == Op::Sub && k == 1);
        open.push_back({g_.input(t.id, k), t.negative != flips});
      }
    }
    return terms;
  }

  // Not the builder's nodes: a plan is kept for all values of its constants, which the builder
  // would look at, and has no others than the graph's.

  NodeId negated(NodeId x) {
    if (out_[x].op == Op::Neg) return out_.input(x, 0);
    const NodeId in[] = {x};
    return out_.intern(Op::Neg, out_.dtype(x), Dims(out_.dims(x)), in);
  }

  NodeId add(NodeId sum, NodeId term, bool negative) {
    if (out_[term].op == Op::Neg) return add(sum, out_.input(term, 0), !negative);
    if (sum == kNoNode) return negative ? negated(term) : term;
    if (out_[sum].op == Op::Neg && !negative) return add(term, out_.input(sum, 0), true);
    if (!negative && (is_constant(out_, sum) || (!is_constant(out_, term) && sum > term)))
      std::swap(sum, term);
    const NodeId in[] = {sum, term};
    return out_.intern(negative ? Op::Sub : Op::Add, out_.dtype(sum), Dims(out_.dims(sum)), in);
  }

  NodeId summed(NodeId x, NodeId like) {
    const NodeId in[] = {x};
    return out_.intern(g_[like].op, out_.dtype(x), g_.dims(like), in, g_.attrs(like));
  }

  /// Replaces pairs with equal `key` factors by one pair with the sum of the others.
  void factor(std::vector<Pair>& pairs, NodeId Pair::* key, NodeId Pair::* other) {
    std::vector<Pair> out;
    std::map<std::pair<NodeId, uint32_t>, size_t> found;  // key, shape of the other
    for (const Pair& p : pairs) {
      const uint32_t shape = out_[p.*other].shape->number;
      const auto [at, fresh] = found.try_emplace({p.*key, shape}, out.size());
      if (fresh) {
        out.push_back(p);
        continue;
      }
      Pair& same = out[at->second];
      same.*other = add(same.*other, p.*other, p.negative != same.negative);
    }
    pairs = std::move(out);
  }

  /// Adds products over equally many rows, which share an accumulation.
  NodeId add_products(NodeId sum, const std::vector<Pair>& pairs,
                      std::pair<bool, bool> transposed) {
    const bool negative =
        std::all_of(pairs.begin(), pairs.end(), [](const Pair& p) { return p.negative; });
    std::vector<NodeId> in;
    for (const Pair& p : pairs) {
      in.push_back(p.negative && !negative ? negated(p.a) : p.a);
      in.push_back(p.b);
    }
    return add(sum, sum_of_products(out_, in, {transposed.first, transposed.second}), negative);
  }

  NodeId merged(NodeId id) {
    const std::vector<Term> terms = collect(id);
    Stamp stamp(out_);
    stamp.like(g_[id]);
    NodeId sum = kNoNode;
    std::map<std::pair<bool, bool>, std::vector<Pair>> products;
    struct Reduction {
      NodeId sum = kNoNode, like = kNoNode;
      bool negative = false;
    };
    std::map<std::pair<Dims, Dims>, Reduction> reductions;  // (axes, shape) -> what is summed
    for (const Term& t : terms) {
      if (!is_mergeable(t.id)) {
        sum = add(sum, to_[t.id], t.negative);
      } else if (is_product(g_, t.id)) {
        const auto p = attributes<ProductAttributes>(g_, t.id);
        products[{p.transpose_a, p.transpose_b}].push_back(
            {to_[g_.input(t.id, 0)], to_[g_.input(t.id, 1)], t.negative});
      } else {
        Dims axes(g_.attrs(t.id).begin(), g_.attrs(t.id).end());
        const NodeId x = g_.input(t.id, 0);
        Reduction& all = reductions[{axes, g_.dims(x)}];
        if (all.sum == kNoNode) all.negative = t.negative, all.like = t.id;
        all.sum = add(all.sum, to_[x], all.sum != kNoNode && t.negative != all.negative);
      }
    }
    for (auto& [what, all] : reductions) sum = add(sum, summed(all.sum, all.like), all.negative);
    for (auto& [transposed, pairs] : products) {
      factor(pairs, &Pair::a, &Pair::b);
      factor(pairs, &Pair::b, &Pair::a);
      std::map<Dims, std::vector<Pair>> by_rows;
      for (const Pair& p : pairs) {
        const Dims& a = out_.dims(p.a);
        by_rows[transposed.first ? Dims{a[a.size() - 2]} : Dims{}].push_back(p);
      }
      for (auto& [rows, same] : by_rows) sum = add_products(sum, same, transposed);
    }
    return sum;
  }

  const PlanGraph& from_;
  const Graph& g_;
  Graph out_;
  std::vector<NodeId> to_;
  std::vector<uint32_t> uses_;
  std::vector<uint8_t> is_part_;   ///< a sum for one other sum, with something to merge in it
  std::vector<uint8_t> absorbed_;  ///< is made where the sum is that it belongs to
};

}  // namespace

PlanGraph merge_sums(const PlanGraph& from) { return SumMerger(from).run(); }

}  // namespace gradcell

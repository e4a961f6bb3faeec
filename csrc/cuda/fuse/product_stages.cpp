#include "cuda/fuse/product_stages.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cuda/fuse/product_joins.h"
#include "ops/ops.h"

namespace gradcell::cuda {

namespace {

/// Of more than so many products none waits: finding out who may takes their number squared.
constexpr size_t kMostProducts = 512;

class Grouping {
 public:
  Grouping(const Graph& g, std::span<const NodeId> roots, const Fusion& f) : g_(g), f_(f) {
    for (NodeId r : roots) roots_.insert(f.storage[r]);
  }

  std::vector<std::vector<NodeId>> run() {
    for (NodeId id = 0; id < g_.size(); ++id)
      if (can_join(id)) products_.push_back(id);
    if (products_.size() < 2 || products_.size() > kMostProducts) return {};
    find_needs();
    join_same_stage();
    join_others();
    std::vector<std::vector<NodeId>> found;
    for (const Group& group : groups_)
      if (group.members.size() > 1) {
        found.emplace_back();
        for (size_t p : group.members) found.back().push_back(products_[p]);
      }
    return found;
  }

 private:
  using Bits = std::vector<uint64_t>;
  /// What products have to have in common.
  using Kind = std::tuple<NodeId, DType, bool, int64_t, int64_t>;
  struct Group {
    std::vector<size_t> members;
    Bits bits, needs;  ///< of products: which it has, which come before one of them
    int32_t stage = 0;
  };

  NodeId source(NodeId id, int k) const { return f_.storage[g_.input(id, k)]; }
  size_t bytes(NodeId id) const {
    return static_cast<size_t>(g_.count(id)) * item_size(g_.dtype(id));
  }

  /// Whether a buffer can be put beside others.
  bool movable(NodeId id) const {
    return !is_leaf(g_, id) && !is_constant(g_, id) && !roots_.contains(id) &&
           can_be_neighbour(bytes(id));
  }

  bool can_join(NodeId id) const {
    if (f_.node[id].role != Role::Alone || !is_product(g_, id) || g_[id].input_count != 2)
      return false;
    const auto p = attributes<ProductAttributes>(g_, id);
    const auto [m, n, k] = sizes_of(g_.dims(g_.input(id, 0)), g_.dims(id), p);
    return !p.transpose_a && is_floating(g_.dtype(id)) && k > 0 && g_.count(id) == m * n &&
           movable(source(id, 0)) && movable(id) && source(id, 0) != source(id, 1);
  }

  Kind kind(size_t product) const {
    const NodeId id = products_[product];
    const auto p = attributes<ProductAttributes>(g_, id);
    const auto sizes = sizes_of(g_.dims(g_.input(id, 0)), g_.dims(id), p);
    return {source(id, 1), g_.dtype(id), p.transpose_b, sizes.n, sizes.k};
  }

  static bool meet(const Bits& a, const Bits& b) {
    for (size_t k = 0; k < a.size(); ++k)
      if (a[k] & b[k]) return true;
    return false;
  }
  static void add(Bits& to, const Bits& from) {
    for (size_t k = 0; k < to.size(); ++k) to[k] |= from[k];
  }

  /// For each product a group, with all products that it needs.
  void find_needs() {
    const size_t words = (products_.size() + 63) / 64;
    std::vector<Bits> before(g_.size(), Bits(words));
    groups_.resize(products_.size());
    size_t next = 0;
    for (NodeId id = 0; id < g_.size(); ++id) {
      for (NodeId input : g_.inputs(id)) add(before[id], before[input]);
      if (next == products_.size() || products_[next] != id) continue;
      Group& own = groups_[next];
      own.members = {next};
      own.needs = before[id];
      own.bits.assign(words, 0);
      own.bits[next / 64] |= uint64_t(1) << next % 64;
      own.stage = f_.node[id].stage;
      add(before[id], own.bits);
      ++next;
    }
  }

  /// Whether b has to wait for a, by way of other groups too.
  bool comes_before(size_t a, size_t b) const {
    std::vector<uint8_t> seen(groups_.size(), 0);
    std::vector<size_t> open{b};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (meet(groups_[at].needs, groups_[a].bits)) return true;
      for (size_t k = 0; k < groups_.size(); ++k)
        if (!seen[k] && k != at && !groups_[k].members.empty() &&
            meet(groups_[at].needs, groups_[k].bits))
          seen[k] = 1, open.push_back(k);
    }
    return false;
  }

  bool fit(const Group& a, const Group& b) const {
    size_t from = 0, to = 0;
    std::set<NodeId> left;
    for (const Group* group : {&a, &b})
      for (size_t p : group->members) {
        if (!left.insert(source(products_[p], 0)).second) return false;
        from += bytes(source(products_[p], 0)), to += bytes(products_[p]);
      }
    return std::max(from, to) <= kMostJoinedBytes;
  }

  void join(size_t a, size_t b) {
    Group &to = groups_[a], &from = groups_[b];
    to.members.insert(to.members.end(), from.members.begin(), from.members.end());
    std::ranges::sort(to.members);
    add(to.bits, from.bits), add(to.needs, from.needs);
    to.stage = std::max(to.stage, from.stage);
    from.members.clear();
  }

  /// Products of one stage do not need each other.
  void join_same_stage() {
    std::map<std::pair<Kind, int32_t>, size_t> first;
    for (size_t p = 0; p < products_.size(); ++p) {
      auto [it, fresh] = first.emplace(std::pair{kind(p), groups_[p].stage}, p);
      if (!fresh && fit(groups_[it->second], groups_[p])) join(it->second, p);
    }
  }

  /// Those that have to wait least first.
  void join_others() {
    std::map<Kind, std::vector<size_t>> alike;
    for (size_t p = 0; p < groups_.size(); ++p)
      if (!groups_[p].members.empty()) alike[kind(groups_[p].members[0])].push_back(p);
    std::vector<std::tuple<int32_t, int32_t, size_t, size_t>> pairs;
    for (const auto& [of, all] : alike)
      for (size_t a : all)
        for (size_t b : all)
          if (groups_[a].stage < groups_[b].stage)
            pairs.push_back({groups_[b].stage - groups_[a].stage, groups_[a].stage, a, b});
    std::ranges::sort(pairs);
    for (const auto& [wait, stage, a, b] : pairs) {
      if (groups_[a].members.empty() || groups_[b].members.empty()) continue;
      if (fit(groups_[a], groups_[b]) && !comes_before(a, b) && !comes_before(b, a)) join(b, a);
    }
  }

  const Graph& g_;
  const Fusion& f_;
  std::set<NodeId> roots_;
  std::vector<NodeId> products_;  ///< ascending
  std::vector<Group> groups_;     ///< those that became part of others are empty
};

}  // namespace

std::vector<std::vector<NodeId>> products_to_join(const Graph& g, std::span<const NodeId> roots,
                                                  const Fusion& f) {
  return Grouping(g, roots, f).run();
}

}  // namespace gradcell::cuda

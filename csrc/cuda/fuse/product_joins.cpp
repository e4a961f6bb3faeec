#include "cuda/fuse/product_joins.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace gradcell::cuda {

namespace {

/// Of so many terms all orders are tried, of more the one in which they stand.
constexpr size_t kMostTried = 4, kMostTerms = 8;

class Joiner {
 public:
  explicit Joiner(CudaPlan& plan)
      : plan_(plan), group_(plan.buffers.size(), -1), writers_(plan.buffers.size(), 0) {
    for (const Step& s : plan_.steps)
      if (is_product(s)) ++writers_[s.product.out];
  }

  std::vector<Neighbours> run(bool rows_first) {
    dropped_.assign(plan_.steps.size(), 0);
    if (rows_first) join_rows();
    join_terms();
    if (!rows_first) join_rows();
    size_t kept = 0;
    for (size_t at = 0; at < plan_.steps.size(); ++at)
      if (!dropped_[at]) {
        if (kept != at) plan_.steps[kept] = std::move(plan_.steps[at]);
        ++kept;
      }
    plan_.steps.resize(kept);
    std::vector<Neighbours> found;
    for (Neighbours& g : groups_)
      if (!g.empty()) found.push_back(std::move(g));
    return found;
  }

 private:
  static bool is_product(const Step& s) { return s.is_product(); }

  bool movable(BufferId b) const {
    const Buffer& buffer = plan_.buffers[b];
    return buffer.place == Place::Temp && can_be_neighbour(buffer.bytes);
  }

  // Neighbours -----------------------------------------------------------------------------------

  /// Whether buffers can be made neighbours in this order: what is in a group already is there with
  /// all of it.
  bool possible(const Neighbours& wanted) const {
    size_t bytes = 0;
    std::set<BufferId> seen;
    for (BufferId b : wanted) {
      if (!movable(b) || !seen.insert(b).second) return false;
      bytes += plan_.buffers[b].bytes;
    }
    if (bytes > kMostJoinedBytes) return false;
    if (inside(wanted)) return true;
    for (size_t k = 0; k < wanted.size();) {
      if (group_[wanted[k]] < 0) {
        ++k;
        continue;
      }
      const Neighbours& g = groups_[static_cast<size_t>(group_[wanted[k]])];
      if (k + g.size() > wanted.size() ||
          !std::equal(g.begin(), g.end(), wanted.begin() + static_cast<ptrdiff_t>(k)))
        return false;
      k += g.size();
    }
    return true;
  }

  /// Whether they are neighbours already.
  bool inside(const Neighbours& wanted) const {
    if (group_[wanted[0]] < 0) return false;
    return !std::ranges::search(groups_[static_cast<size_t>(group_[wanted[0]])], wanted).empty();
  }

  void make(const Neighbours& wanted) {
    if (inside(wanted)) return;
    for (BufferId b : wanted) {
      if (group_[b] >= 0) groups_[static_cast<size_t>(group_[b])].clear();
      group_[b] = narrow<int>(groups_.size());
    }
    groups_.push_back(wanted);
  }

  static bool disjoint(const Neighbours& a, const Neighbours& b) {
    const std::set<BufferId> all(b.begin(), b.end());
    return std::ranges::none_of(a, [&](BufferId x) { return all.contains(x); });
  }

  // Rows -----------------------------------------------------------------------------------------

  /// What buffers meet in gradients of weights.
  std::map<BufferId, BufferId> partners() const {
    std::map<BufferId, BufferId> partner;
    for (const Step& s : plan_.steps)
      if (is_product(s) && s.product.transpose_a) {
        partner.emplace(s.product.a, s.product.b);
        partner.emplace(s.product.b, s.product.a);
      }
    return partner;
  }

  /// Products in the order of what their left factors meet there, where that lies side by side
  /// already: then that gradient can be one product too.
  std::vector<size_t> like_their_partners(std::vector<size_t> steps,
                                          const std::map<BufferId, BufferId>& partner) const {
    std::map<size_t, std::pair<int, ptrdiff_t>> place;  // by step: which group, where in it
    for (size_t at : steps) {
      const auto met = partner.find(plan_.steps[at].product.a);
      const int group = met == partner.end() ? -1 : group_[met->second];
      ptrdiff_t where = 0;
      if (group >= 0) {
        const Neighbours& of = groups_[static_cast<size_t>(group)];
        where = std::ranges::find(of, met->second) - of.begin();
      }
      place[at] = {group, where};
    }
    std::ranges::stable_sort(steps, {}, [&](size_t at) { return place[at]; });
    return steps;
  }

  /// Products of a stage by the same matrix.
  void join_rows() {
    using Key = std::tuple<int32_t, BufferId, DType, bool, bool, int64_t, int64_t>;
    std::map<Key, std::vector<size_t>> alike;
    for (size_t at = 0; at < plan_.steps.size(); ++at) {
      const Step& s = plan_.steps[at];
      if (!is_product(s)) continue;
      const Gemm& p = s.product;
      const bool plain =
          !p.transpose_a && !p.accumulate && !p.adds && !p.has_bias && p.batch == 1 && p.k > 0;
      if (plain && !dropped_[at] && writers_[p.out] == 1 && movable(p.a) && movable(p.out))
        alike[{s.stage, p.b, p.dtype, p.transpose_b, p.tf32, p.n, p.k}].push_back(at);
    }
    const std::map<BufferId, BufferId> met = partners();
    for (const auto& [key, all] : alike) {
      if (all.size() < 2) continue;
      std::vector<size_t> steps;
      Neighbours from, to;
      std::set<BufferId> factors{std::get<BufferId>(key)};
      for (size_t at : like_their_partners(all, met)) {
        const Gemm& p = plan_.steps[at].product;
        if (!factors.insert(p.a).second) continue;
        steps.push_back(at), from.push_back(p.a), to.push_back(p.out);
      }
      if (steps.size() < 2 || !possible(from) || !possible(to) || !disjoint(from, to)) continue;
      make(from), make(to);
      Step& first = join(steps);
      first.product.m = 0;
      for (size_t at : steps) first.product.m += rows_[at];
      first.product.a_parts = from, first.product.out_parts = to;
      first.product.a = from[0], first.product.out = to[0];
    }
  }

  // Terms ----------------------------------------------------------------------------------------

  /// The terms of a sum of products that contract rows.
  void join_terms() {
    for (size_t at = 0; at < plan_.steps.size(); ++at) {
      if (dropped_[at] || !is_product(plan_.steps[at]) || plan_.steps[at].product.accumulate)
        continue;
      std::vector<size_t> steps;
      for (size_t k = at; k < plan_.steps.size() && same_sum(at, k); ++k) {
        const Gemm& p = plan_.steps[k].product;
        if (movable(p.a) && movable(p.b)) steps.push_back(k);
      }
      join_most(at, steps);
    }
  }

  bool same_sum(size_t first, size_t k) const {
    if (!is_product(plan_.steps[k]) || dropped_[k]) return false;
    const Gemm &p = plan_.steps[first].product, &q = plan_.steps[k].product;
    return q.out == p.out && q.transpose_a && !q.transpose_b && q.batch == 1 && q.k > 0 &&
           !q.has_bias && q.accumulate == (k > first) && q.a_parts.empty();
  }

  /// Joins as many terms of a sum as can be, in whatever order.
  void join_most(size_t first, const std::vector<size_t>& steps) {
    const size_t n = std::min(steps.size(), kMostTerms);
    for (size_t size = n; size > 1; --size) {
      std::vector<uint8_t> chosen(n, 0);
      std::fill(chosen.begin(), chosen.begin() + static_cast<ptrdiff_t>(size), 1);
      do {
        std::vector<size_t> some;
        for (size_t k = 0; k < n; ++k)
          if (chosen[k]) some.push_back(steps[k]);
        do {
          if (join_terms(first, some)) return;
        } while (size <= kMostTried && std::ranges::next_permutation(some).found);
      } while (std::ranges::prev_permutation(chosen).found);
    }
  }

  bool join_terms(size_t first, std::vector<size_t> steps) {
    Neighbours a, b;
    for (size_t k : steps)
      a.push_back(plan_.steps[k].product.a), b.push_back(plan_.steps[k].product.b);
    if (!possible(a) || !possible(b) || !disjoint(a, b)) return false;
    make(a), make(b);
    int64_t terms = 0;
    for (size_t k : steps) terms += plan_.steps[k].product.k;
    // What is left of the sum is added to what the joined ones come to, and these to its addend.
    std::ranges::sort(steps);
    if (steps[0] != first) {
      std::swap(plan_.steps[first], plan_.steps[steps[0]]);
      plan_.steps[first].product.accumulate = false;
      plan_.steps[steps[0]].product.accumulate = true;
      move_addend(plan_.steps[steps[0]], plan_.steps[first]);
      steps[0] = first;
    }
    Step& joined = join(steps);
    joined.product.k = terms;
    joined.product.a_parts = a, joined.product.b_parts = b;
    joined.product.a = a[0], joined.product.b = b[0];
    return true;
  }

  static void move_addend(Step& from, Step& to) {
    if (!std::exchange(from.product.adds, false)) return;
    to.product.adds = true, to.product.addend = from.product.addend;
  }

  /// Drops all but the first of some steps, which then does what they all do.
  Step& join(const std::vector<size_t>& steps) {
    Step& first = plan_.steps[steps[0]];
    for (size_t at : steps) rows_[at] = plan_.steps[at].product.m;
    for (size_t k = 1; k < steps.size(); ++k) {
      const Step& s = plan_.steps[steps[k]];
      first.nodes += s.nodes;
      first.flops += s.flops;
      const size_t sum = s.product.accumulate ? s.bytes_written : 0;  // which it would read
      const size_t shared = s.product.b == first.product.b ? plan_.buffers[s.product.b].bytes : 0;
      first.bytes_read += s.bytes_read - sum - shared;
      if (!s.product.accumulate) first.bytes_written += s.bytes_written;
      dropped_[steps[k]] = 1;
    }
    return first;
  }

  CudaPlan& plan_;
  std::vector<int> group_;          ///< by buffer; -1: in none
  std::vector<Neighbours> groups_;  ///< those that became part of others are empty
  std::vector<int> writers_;        ///< products that write a buffer
  std::vector<uint8_t> dropped_;    ///< by step
  std::map<size_t, int64_t> rows_;  ///< by step
};

}  // namespace

std::vector<Neighbours> join_products(CudaPlan& plan) {
  // What is joined first keeps some of the others from it.
  const std::vector<Step> steps = plan.steps;
  std::vector<Neighbours> found = Joiner(plan).run(true);
  std::vector<Step> joined = std::exchange(plan.steps, steps);
  std::vector<Neighbours> others = Joiner(plan).run(false);
  if (plan.steps.size() < joined.size()) return others;
  plan.steps = std::move(joined);
  return found;
}

}  // namespace gradcell::cuda

#include "cuda/join/late_stores.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "cuda/fuse/far_reads.h"
#include "cuda/write/kernel_writers.h"
#include "ops/ops.h"
#include "plan/costs.h"

namespace gradcell::cuda {

namespace {

/// Elements that do not come in fours take longer.
constexpr double kSingly = 1.25;
/// So many take longer still.
constexpr size_t kMostArrays = 128;
/// A longer text takes long to compile.
constexpr double kMostValues = 200;
/// Nodes looked at before it is enough: in small graphs, in all, and for each that there is.
constexpr size_t kLeastWork = 1 << 18, kMostWork = 4 << 20, kWorkPerNode = 64;
constexpr int kSweeps = 3;

/// About how many instructions an element takes.
int instructions(const Graph& g, NodeId id) {
  if (is_product(g, id)) return narrow<int>(4 * few_terms(g, id));
  return is_broadcast(g, id) ? 1 : element_cost(g, id).gpu_instructions;
}

class LateStores {
 public:
  LateStores(const Graph& g, std::span<const NodeId> fixed, const Weights& weights, Fusion& f)
      : g_(g),
        f_(f),
        weights_(weights),
        fixed_(g.size(), 0),
        limit_(g.size(), kNever),
        needed_(g.size()),
        seen_(g.size(), 0),
        times_(g.size(), 0),
        same_(g.size(), 0),
        moved_(g.size(), 0),
        sectors_(g.size(), 1) {
    for (NodeId id : fixed) fixed_[f.storage[id]] = 1;
    most_work_ = std::clamp(kWorkPerNode * g.size(), kLeastWork, kMostWork);
  }

  /// What all kernels cost then.
  double run() {
    for (NodeId id = 0; id < g_.size(); ++id) look_at(id);
    for (size_t k = 0; k < kernels_.size(); ++k) {
      std::optional<Cost> found = cost_of(kernels_[k]);
      require(found.has_value(), ErrorKind::Runtime,
              "planning: a kernel needs what is not in memory before it");
      take(k, std::move(*found));
    }
    for (size_t k = 0, n = kernels_.size(); k < n && work_ < most_work_; ++k) part(k);
    for (int sweep = 0; sweep < kSweeps && work_ < most_work_; ++sweep) {
      bool better = false;
      for (size_t k = 0, n = kernels_.size(); k < n && work_ < most_work_; ++k)
        better |= improve_kernel(k);
      for (NodeId id = narrow<NodeId>(g_.size()); id-- > 0 && work_ < most_work_;)
        better |= improve(id);
      if (!better) break;
    }
    double cost = 0;
    for (const Kernel& k : kernels_) cost += k.cost;
    return cost;
  }

 private:
  static constexpr int32_t kNever = INT32_MAX;
  /// Stage, size, whether it takes rows; and of a node with a kernel of its own, which.
  using Key = std::tuple<int32_t, int64_t, bool, NodeId>;
  struct Kernel {
    Key key;
    std::vector<NodeId> outputs;
    double cost = 0;
    std::vector<NodeId> needs = {};  ///< what it reads or computes
  };
  struct Cost {
    double bytes;
    std::vector<NodeId> needs;
  };
  struct Place {
    bool stored;
    int32_t stage;
    int64_t rows;
    bool by_rows;
  };

  size_t bytes(NodeId id) const {
    return static_cast<size_t>(g_.count(id)) * item_size(g_.dtype(id));
  }
  static bool fused(const Fused& n) { return n.role == Role::Map || n.role == Role::RowReduce; }

  // The kernels that there are --------------------------------------------------------------------

  void look_at(NodeId id) {
    const Fused& me = f_.node[id];
    if (f_.storage[id] != id || g_.count(id) == 0) return;
    if (fused(me) && me.stored) add(kernel(key_of(id)), id);
    if (me.role == Role::Tile)
      for (NodeId input : g_.inputs(id)) fixed_[f_.storage[input]] = 1;
    if (me.role != Role::Alone) return;
    if (folds(form(g_, id))) {
      add(kernel({me.stage, g_.count(id), false, id}), id);
      return;
    }
    for (NodeId input : g_.inputs(id)) {
      int32_t& limit = limit_[f_.storage[input]];
      limit = std::min(limit, me.stage - 1);
    }
  }

  Key key_of(NodeId id) const {
    const Fused& n = f_.node[id];
    return {n.stage, n.by_rows ? n.rows : g_.count(id), n.by_rows, kNoNode};
  }

  size_t kernel(const Key& key) {
    auto [it, fresh] = number_.emplace(key, kernels_.size());
    if (fresh) kernels_.push_back({key, {}});
    return it->second;
  }

  void add(size_t k, NodeId id) { kernels_[k].outputs.push_back(id); }
  void remove(size_t k, NodeId id) { std::erase(kernels_[k].outputs, id); }

  // What a kernel costs ---------------------------------------------------------------------------

  bool in_memory(NodeId id, int32_t stage) const {
    const Fused& n = f_.node[id];
    return n.role == Role::Source || (n.stored && n.stage < stage);
  }

  /// None: it would need what is not there in its stage; `missing_` are reductions that could be.
  std::optional<Cost> cost_of(const Kernel& kernel) {
    if (kernel.outputs.empty()) return Cost{0, {}};
    const auto& [stage, size, by_rows, alone] = kernel.key;
    missing_.clear();
    std::vector<NodeId> found, open;
    const uint32_t mark = ++mark_;
    auto visit = [&](NodeId id) {
      id = f_.storage[id];
      if (seen_[id] == mark) return;
      seen_[id] = mark, times_[id] = 0, same_[id] = moved_[id] = 0, sectors_[id] = 1;
      found.push_back(id);
      open.push_back(id);
    };
    for (NodeId id : kernel.outputs) visit(id);
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      const Fused& n = f_.node[id];
      if (in_memory(id, stage)) continue;
      if (is_constant(g_, id)) continue;
      if (n.role == Role::RowReduce && !n.stored && n.stage < stage) {
        missing_.push_back(id);
        continue;
      }
      if (n.role == Role::RowReduce && (!by_rows || n.stage != stage)) return std::nullopt;
      if (!fused(n) && id != alone) return std::nullopt;
      for (NodeId input : g_.inputs(id)) visit(input);
    }
    work_ += found.size();
    if (!missing_.empty()) return std::nullopt;
    return weigh(kernel, std::move(found));
  }

  /// Whether an element needs its inputs at its own place; at each other one they are computed
  /// anew.
  bool keeps_place(NodeId id) const {
    const KernelForm k = info(form(g_, id)).kernel;
    return k != KernelForm::Elsewhere && k != KernelForm::Terms;
  }

  Cost weigh(const Kernel& kernel, std::vector<NodeId> found) {
    const auto& [stage, size, by_rows, alone] = kernel.key;
    std::ranges::sort(found, std::greater{});  // users before what they use
    double moved = 0, computed = 0, values = 0;
    int64_t longest = 1;
    size_t arrays = 0;
    for (NodeId id : kernel.outputs) {
      times_[id] = g_.count(id), same_[id] = 1;
      moved += static_cast<double>(bytes(id));
      longest = std::max(longest, g_.count(id));
    }
    for (NodeId id : found) {
      if (is_constant(g_, id)) continue;
      if (in_memory(id, stage)) {
        const int64_t read = std::min(g_.count(id), times_[id]);
        moved +=
            sectors_[id] * static_cast<double>(read) * static_cast<double>(item_size(g_.dtype(id)));
        arrays += g_.count(id) == longest;
        continue;
      }
      int64_t times = times_[id];
      if (by_rows && g_.count(id) == size) times = size;  // once a row
      const bool reduces = f_.node[id].role == Role::RowReduce || id == alone;
      const double places = same_[id] + moved_[id];
      values += places;
      computed += static_cast<double>(times) * places * instructions(g_, id);
      if (by_rows || alone != kNoNode)
        sectors_[id] = std::max(sectors_[id], sectors_read(g_, id, by_rows ? size : 0));
      for (NodeId input : g_.inputs(id)) {
        const NodeId p = f_.storage[input];
        sectors_[p] = std::max(sectors_[p], sectors_[id]);
        const bool once = by_rows && input == row_factor(g_, id, size);  // each element once a row
        times_[p] = std::max(times_[p], reduces || once ? g_.count(p) : times);
        if (keeps_place(id) || once)
          same_[p] = std::max(same_[p], places);
        else
          moved_[p] += places * static_cast<double>(std::max<int64_t>(1, few_terms(g_, id)));
      }
    }
    arrays += static_cast<size_t>(
        std::ranges::count(kernel.outputs, longest, [&](NodeId id) { return g_.count(id); }));
    if (by_rows ? arrays > kMostRowPacks || longest / size % 4 != 0 : arrays > kMostPacks)
      moved *= kSingly;
    if (arrays > kMostArrays) moved *= 4;
    if (values > kMostValues) moved += (values - kMostValues) * weights_.launch;
    const double launches =
        static_cast<double>((kernel.outputs.size() + kMaxOutputs - 1) / kMaxOutputs);
    return {moved + computed / weights_.instructions + launches * weights_.launch,
            std::move(found)};
  }

  void take(size_t k, Cost&& c) {
    for (NodeId id : kernels_[k].needs) needed_[id].erase(k);
    for (NodeId id : c.needs) needed_[id].insert(k);
    kernels_[k].cost = c.bytes, kernels_[k].needs = std::move(c.needs);
  }

  /// Whether the plan is cheaper with some kernels as they are now; then they are taken so.
  bool accept(const std::set<size_t>& changed, double least) {
    double before = 0, after = 0;
    missing_.clear();
    std::vector<Cost> costs;
    for (size_t k : changed) {
      std::optional<Cost> c = cost_of(kernels_[k]);
      if (!c) return false;
      before += kernels_[k].cost, after += c->bytes;
      costs.push_back(std::move(*c));
    }
    if (before - after < least) return false;
    size_t at = 0;
    for (size_t k : changed) take(k, std::move(costs[at++]));
    return true;
  }

  // Changes ---------------------------------------------------------------------------------------

  Place place(NodeId id) const {
    const Fused& n = f_.node[id];
    return {n.stored, n.stage, n.rows, n.by_rows};
  }

  void put(NodeId id, const Place& at) {
    Fused& n = f_.node[id];
    if (n.stored) remove(kernel(key_of(id)), id);
    n.stored = at.stored, n.stage = at.stage, n.rows = at.rows, n.by_rows = at.by_rows;
    if (n.stored) add(kernel(key_of(id)), id);
  }

  /// Reductions of rows, which are not done again, are stored where that makes the change possible.
  /// None: they are not stored.
  bool attempt(const std::vector<NodeId>& nodes, std::optional<Place> to) {
    std::vector<std::pair<NodeId, Place>> moved;
    std::set<size_t> changed;
    auto move = [&](NodeId node, const Place& there) {
      moved.emplace_back(node, place(node));
      changed.insert(needed_[node].begin(), needed_[node].end());
      if (f_.node[node].stored) changed.insert(kernel(key_of(node)));
      put(node, there);
      if (there.stored) changed.insert(kernel(key_of(node)));
    };
    for (NodeId id : nodes) {
      Place there = to.value_or(place(id));
      there.stored = to.has_value();
      move(id, there);
    }
    while (!accept(changed, 1)) {
      if (missing_.empty()) {
        for (auto it = moved.rbegin(); it != moved.rend(); ++it) put(it->first, it->second);
        return false;
      }
      for (NodeId row : std::vector(missing_)) {
        const Fused& n = f_.node[row];
        move(row, {true, n.stage, n.rows, true});
      }
    }
    return true;
  }

  bool improve(NodeId id) {
    const Fused& me = f_.node[id];
    if (me.role != Role::Map || f_.storage[id] != id || fixed_[id] || g_.count(id) == 0 ||
        is_constant(g_, id))
      return false;
    bool better = false;
    if (me.stored && !me.anchored) better |= attempt({id}, std::nullopt);
    std::set<std::pair<int32_t, int64_t>> places;  // a stage; rows of a kernel there, or 0
    for (size_t k : needed_[id]) {
      const auto& [stage, size, by_rows, alone] = kernels_[k].key;
      places.insert({stage, 0});
      if (by_rows && g_.count(id) % size == 0) places.insert({stage, size});
    }
    if (limit_[id] != kNever) places.insert({limit_[id], 0});
    for (const auto& [stage, rows] : places) {
      const bool later = stage > me.stage || (stage == me.stage && (!me.stored || rows > 0));
      if (!later || stage > limit_[id]) continue;
      better |= attempt({id}, Place{true, stage, rows > 0 ? rows : g_.count(id), rows > 0});
    }
    return better;
  }

  /// What a kernel stores for a later one costs less together: computed again, several values come
  /// from the same few.
  bool improve_kernel(size_t k) {
    std::map<size_t, std::vector<NodeId>> given;
    std::vector<NodeId> all;
    for (NodeId id : kernels_[k].outputs) {
      if (!f_.node[id].stored || f_.node[id].anchored || f_.node[id].role != Role::Map ||
          fixed_[id])
        continue;
      all.push_back(id);
      for (size_t to : needed_[id])
        if (std::get<0>(kernels_[to].key) > std::get<0>(kernels_[k].key)) given[to].push_back(id);
    }
    bool better = attempt_together(all);
    for (auto& [to, nodes] : given) {
      std::erase_if(nodes, [&](NodeId id) { return !f_.node[id].stored; });
      better |= attempt_together(nodes);
    }
    return better;
  }

  bool attempt_together(const std::vector<NodeId>& nodes) {
    if (nodes.size() < 2) return false;
    return attempt(nodes, std::nullopt);
  }

  /// Of a kernel that takes rows, what does without them becomes a flat one, if that is no loss.
  void part(size_t k) {
    if (!std::get<2>(kernels_[k].key)) return;
    std::vector<std::pair<NodeId, Place>> moved;
    for (NodeId id : kernels_[k].outputs)
      if (f_.node[id].role == Role::Map && !fixed_[id] && work_ < most_work_ && needs_no_rows(id))
        moved.emplace_back(id, place(id));
    if (moved.empty()) return;
    std::set<size_t> changed{k};
    for (auto& [id, from] : moved) {
      put(id, {true, from.stage, g_.count(id), false});
      changed.insert(kernel(key_of(id)));
    }
    if (accept(changed, 0)) return;
    for (auto& [id, from] : moved) put(id, from);
  }

  bool needs_no_rows(NodeId id) {
    return cost_of({{f_.node[id].stage, g_.count(id), false, kNoNode}, {id}}).has_value();
  }

  const Graph& g_;
  Fusion& f_;
  const Weights& weights_;
  std::vector<uint8_t> fixed_;
  std::vector<int32_t> limit_;  ///< the last stage in which it is in time for a library call
  std::vector<Kernel> kernels_;
  std::map<Key, size_t> number_;
  std::vector<std::set<size_t>> needed_;  ///< by node: kernels
  std::vector<NodeId> missing_;
  std::vector<uint32_t> seen_;
  std::vector<int64_t> times_;        ///< of a kernel: how many elements of it are computed
  std::vector<double> same_, moved_;  ///< at how many places: the kernel's own, others
  std::vector<double> sectors_;       ///< memory that is moved for each byte that is needed
  uint32_t mark_ = 0;
  size_t work_ = 0, most_work_;
};

}  // namespace

double store_late(const Graph& g, std::span<const NodeId> fixed, const Weights& weights,
                  Fusion& fusion) {
  return LateStores(g, fixed, weights, fusion).run();
}

}  // namespace gradcell::cuda

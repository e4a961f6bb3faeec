#include "plan/recomputation.h"

#include <map>
#include <set>
#include <tuple>

#include "ops/ops.h"
#include "plan/costs.h"

namespace gradcell {

namespace {

/// What takes less time than to store a value and to load it, in additions.
constexpr int kMostWork = 10;

/// A region before it is built.
using RegionKey = std::tuple<int32_t, int64_t, int64_t>;  // stage, rows, block

class Recomputation {
 public:
  Recomputation(const Graph& g, Labels& l, std::span<const NodeId> roots)
      : g_(g), l_(l), readers_(g.size()), root_(g.size(), 0) {
    for (NodeId r : roots) root_[l.storage[r]] = 1;
    for (NodeId id = 0; id < g.size(); ++id) {
      if (!is_made(g, l, id)) continue;
      for (int k = 0; k < g[id].input_count; ++k) {
        const NodeId p = l.storage[g.input(id, k)];
        readers_[p].push_back({id, k});
        if (l.node[id].in_region && !is_constant(g, p) && access(g, l, id, k) == Access::Rows &&
            !flows_in_tile(g, l, p, id, k))
          loaded_[key(id)].insert(p);
      }
    }
  }

  void run() {
    for (NodeId id = 0; id < g_.size(); ++id)
      if (is_made(g_, l_, id)) consider(id);
    for (NodeId id = narrow<NodeId>(g_.size()); id-- > 0;)
      if (is_made(g_, l_, id)) l_.node[id].elsewhere = !needed_in_place(id);
  }

 private:
  struct Reader {
    NodeId id;
    int k;
  };
  /// What a node is computed from again.
  struct Cone {
    int work = 0;
    std::set<NodeId> rows, uniforms;
  };

  RegionKey key(NodeId id) const {
    const NodeLabel& n = l_.node[id];
    return {n.stage, n.rows, n.block};
  }

  bool stored(NodeId p) const { return is_leaf(g_, p) || l_.node[p].materialised; }

  /// The work of a node: arithmetic, a short function, a view of features or of what all rows
  /// share. Of others, more than is worth it.
  int work(NodeId p) const {
    const NodeLabel& n = l_.node[p];
    if (!n.in_region || n.reducing) return kMostWork + 1;
    switch (info(form(g_, p)).tile) {
      case TileForm::Element:
        return work(g_[p].op, compute_type(g_.dtype(p)));
      case TileForm::Convert:
        return 1;
      case TileForm::Move:
        return !loads_view(g_, l_, p) && is_view(spec(g_, p).movement(g_, p)) ? 1 : kMostWork + 1;
      case TileForm::Reduce:
      case TileForm::Product:
      case TileForm::Call:
        return kMostWork + 1;
    }
    return kMostWork + 1;
  }
  static int work(Op op, Compute type) {
    const int additions = element_cost(op).cpu_additions;
    return additions == 1 || type == Compute::F32 ? additions : 2 * additions;
  }

  /// Adds what p takes to the cone, for a region with the rows of `like`; false: it is too much.
  bool add(NodeId p, NodeId like, Cone& cone) const {
    const NodeLabel &n = l_.node[p], &m = l_.node[like];
    cone.work += work(p);
    if (cone.work > kMostWork || n.rows != m.rows || n.block != m.block) return false;
    for (int k = 0; k < g_[p].input_count; ++k) {
      const NodeId q = l_.storage[g_.input(p, k)];
      if (access(g_, l_, p, k) == Access::Uniform) {
        if (!stored(q)) return false;
        cone.uniforms.insert(q);
      } else if (is_constant(g_, q)) {
        continue;
      } else if (stored(q)) {
        if (g_.count(q) % m.rows != 0) return false;
        cone.rows.insert(q);
      } else if (!add(q, like, cone)) {
        return false;
      }
    }
    return true;
  }

  void consider(NodeId id) {
    NodeLabel& me = l_.node[id];
    if (!me.materialised || root_[id] || me.wait >= 0) return;
    Cone cone;
    if (!add(id, id, cone)) return;
    std::set<RegionKey> others;
    for (const Reader& r : readers_[id]) {
      if (flows_in_tile(g_, l_, id, r.id, r.k)) continue;
      const NodeLabel& to = l_.node[r.id];
      if (!to.in_region || access(g_, l_, r.id, r.k) != Access::Rows || to.rows != me.rows ||
          to.block != me.block || loads_view(g_, l_, r.id))
        return;
      others.insert(key(r.id));
    }
    // What a region has to load instead takes no longer to load.
    for (const RegionKey& at : others) {
      size_t bytes = 0;
      for (NodeId p : cone.rows)
        if (!loaded_[at].contains(p)) bytes += size(p);
      if (bytes > size(id)) return;
    }
    me.materialised = false;
    for (const RegionKey& at : others) {
      loaded_[at].erase(id);
      loaded_[at].insert(cone.rows.begin(), cone.rows.end());
      for (const auto* of : {&cone.rows, &cone.uniforms})
        for (NodeId p : *of) l_.reread.push_back({p, std::get<0>(at)});
    }
  }

  size_t size(NodeId id) const {
    return static_cast<size_t>(g_.count(id)) * item_size(g_.dtype(id));
  }

  bool needed_in_place(NodeId id) const {
    const NodeLabel& me = l_.node[id];
    if (!me.in_region || me.reducing || me.materialised) return true;
    for (const Reader& r : readers_[id])
      if (!l_.node[r.id].elsewhere && flows_in_tile(g_, l_, id, r.id, r.k)) return true;
    return false;
  }

  const Graph& g_;
  Labels& l_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<uint8_t> root_;
  std::map<RegionKey, std::set<NodeId>> loaded_;  ///< by rows
};

}  // namespace

void recompute_cheap(const Graph& g, Labels& l, std::span<const NodeId> roots) {
  Recomputation(g, l, roots).run();
}

}  // namespace gradcell

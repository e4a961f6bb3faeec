#include "cuda/fuse/epilogues.h"

#include "ops/ops.h"

namespace gradcell::cuda {

namespace {

/// Whether a product has one matrix as its result, and something to add up.
bool is_plain_product(const Graph& g, NodeId id) {
  if (!is_product(g, id) || !is_floating(g.dtype(id))) return false;
  const Dims& d = g.dims(id);
  if (g.count(id) == 0 || g.count(id) != d[d.size() - 2] * d.back()) return false;
  for (NodeId input : g.inputs(id))
    if (g.count(input) == 0) return false;
  return true;
}

/// Whether an operand is a vector, one element for each column of a matrix, and in memory before
/// `stage`.
bool is_bias(const Graph& g, const Fusion& f, NodeId id, int64_t columns, int32_t stage) {
  if (!is_broadcast(g, id) || g.dims(id).back() != columns) return false;
  const Dims& from = g.dims(g.input(id, 0));
  if (from.empty() || from.back() != columns || g.count(g.input(id, 0)) != columns) return false;
  NodeId vector = f.storage[g.input(id, 0)];
  const Fused& node = f.node[vector];
  return is_leaf(g, vector) || (node.stored && node.stage < stage);
}

/// Whether an operand is a matrix that is in memory before `stage`, or could be: then a kernel that
/// reads what it is made of stores it, in place of the one that would add the product to it.
bool is_matrix(const Graph& g, const Fusion& f, NodeId sum, NodeId id, int32_t stage) {
  const Fused& node = f.node[id];
  if (is_constant(g, id) || g.count(id) != g.count(sum) || g.dtype(id) != g.dtype(sum))
    return false;
  if (is_leaf(g, id)) return true;
  const bool can_be = node.stored || node.role == Role::Map || node.role == Role::RowReduce;
  return can_be && node.role != Role::Tile && node.stage < stage;
}

}  // namespace

std::map<NodeId, ProductSum> sums_of_products(const Graph& g, std::span<const NodeId> roots,
                                              Fusion& f) {
  std::vector<int> uses(g.size(), 0);
  for (NodeId id = 0; id < g.size(); ++id)
    if (f.node[id].role != Role::View)
      for (NodeId input : g.inputs(id)) ++uses[f.storage[input]];
  for (NodeId root : roots) ++uses[f.storage[root]];
  std::map<NodeId, ProductSum> found;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (g[id].op != Op::Add || !f.node[id].stored) continue;
    for (int k = 0; k < 2; ++k) {
      const NodeId product = f.storage[g.input(id, k)], other = f.storage[g.input(id, 1 - k)];
      if (!is_plain_product(g, product) || uses[product] != 1) continue;
      if (f.node[product].role != Role::Alone || f.node[id].role == Role::Tile) continue;
      const int32_t stage = f.node[product].stage;
      if (is_bias(g, f, other, g.dims(product).back(), stage)) {
        found[id] = {product, f.storage[g.input(other, 0)], kNoNode};
      } else if (is_matrix(g, f, id, other, stage)) {
        found[id] = {product, kNoNode, other};
        f.node[other].stored = true;
      } else {
        continue;
      }
      f.node[id] = f.node[product];
      f.node[product].stored = false;
      break;
    }
  }
  return found;
}

}  // namespace gradcell::cuda

#include "cuda/fuse/narrow_products.h"

#include <algorithm>
#include <map>

#include "cuda/fuse/fusion.h"
#include "ops/ops.h"
#include "plan/rewrite/taken_over.h"

namespace gradcell::cuda {

namespace {

constexpr int64_t kNarrow = 2;

/// A product of one matrix by so few columns of `b` (or rows of `a`).
struct Narrow {
  bool by_columns;  ///< the wide factor is a, the result has few columns
  bool along;       ///< the wide factor's rows are contracted: dot products
  int64_t wide, narrow, terms;
};

std::optional<Narrow> narrow_product(const Graph& g, NodeId id) {
  if (!is_product(g, id) || !is_floating(g.dtype(id)) || few_terms(g, id) > 0) return {};
  const auto p = attributes<ProductAttributes>(g, id);
  const auto [m, n, k] = sizes_of(g.dims(g.input(id, 0)), g.dims(id), p);
  if (g.count(id) != m * n || m * n == 0 || std::min(m, n) > kNarrow) return {};
  for (NodeId input : g.inputs(id))
    if (g.count(input) == 0 || is_constant(g, input)) return {};
  const bool by_columns = n <= m;
  return Narrow{by_columns, by_columns ? !p.transpose_a : p.transpose_b, by_columns ? m : n,
                by_columns ? n : m, k};
}

class Rewriter {
 public:
  Rewriter(const PlanGraph& from, const TileRegions& tiles, NarrowWays ways)
      : from_(from), g_(from.graph), tiles_(tiles), ways_(ways), out_(g_.settings()) {}

  std::optional<PlanGraph> run() {
    std::vector<NodeId> to(g_.size());
    std::vector<NodeId> in;
    for (NodeId id = 0; id < g_.size(); ++id) {
      in.clear();
      for (NodeId i : g_.inputs(id)) in.push_back(to[i]);
      const auto narrow = tiles_.of[id] >= 0 ? std::nullopt : narrow_product(g_, id);
      const bool taken = narrow && (narrow->along ? ways_.along : ways_.over);
      to[id] = taken ? reduced(id, in, *narrow) : rebuild(out_, g_, id, in);
    }
    // A plan is kept for all values of its constants, and has no others than the graph's.
    for (NodeId id = 0; id < out_.size(); ++id) constants_ += is_constant(out_, id);
    if (constants_ != from_.constants.size()) return {};
    PlanGraph all;
    take_over(all, from_, to);
    all.graph = std::move(out_);
    return all;
  }

 private:
  NodeId both(Op op, NodeId x, NodeId y) {
    if (x > y) std::swap(x, y);
    const NodeId in[] = {x, y};
    return out_.intern(op, out_.dtype(x), Dims(out_.dims(x)), in);
  }

  /// One of a factor's columns (of its rows, if these are contracted) as a vector.
  NodeId vector(NodeId x, const Narrow& of, bool lies, int64_t which) {
    if (of.narrow > 1) {
      Dims start{0, which}, size{of.terms, 1};
      x = reshape(out_, x, lies ? Dims{of.narrow, of.terms} : Dims{of.terms, of.narrow});
      if (lies) std::swap(start[0], start[1]), std::swap(size[0], size[1]);
      x = slice(out_, x, {start, size, Dims{1, 1}});
    }
    return reshape(out_, x, of.along ? Dims{of.terms} : Dims{of.terms, 1});
  }

  NodeId reduced(NodeId id, const std::vector<NodeId>& in, const Narrow& first) {
    Stamp stamp(out_);
    stamp.like(g_[id]);
    const auto p = attributes<ProductAttributes>(g_, id);
    const DType dtype = g_.dtype(id);
    const DType exact = dtype == DType::Float64 ? dtype : DType::Float32;
    std::vector<NodeId> results;
    for (int64_t which = 0; which < first.narrow; ++which) {
      NodeId result = kNoNode;
      for (const auto& [terms, sum] : sums(id, in, first, p, exact, which)) {
        const Dims axes{first.along ? 1 : 0};
        const NodeId part = gradcell::sum(out_, sum, axes);
        result = result == kNoNode ? part : both(Op::Add, result, part);
      }
      results.push_back(reshape(out_, cast(out_, result, dtype),
                                first.by_columns ? Dims{first.wide, 1} : Dims{1, first.wide}));
    }
    const NodeId all =
        results.size() == 1 ? results[0] : concat(out_, results, first.by_columns ? 1 : 0);
    return reshape(out_, all, g_.dims(id));
  }

  /// What is to be reduced, by the number of terms: pairs with equally many are added up before.
  std::map<int64_t, NodeId> sums(NodeId id, const std::vector<NodeId>& in, Narrow of,
                                 ProductAttributes p, DType exact, int64_t which) {
    std::map<int64_t, NodeId> found;
    for (size_t pair = 0; pair < in.size(); pair += 2) {
      of.terms = sizes_of(g_.dims(g_.input(id, narrow<int>(pair))), g_.dims(id), p).k;
      const NodeId wide = in[pair + !of.by_columns], narrow = in[pair + of.by_columns];
      const Dims box = of.along ? Dims{of.wide, of.terms} : Dims{of.terms, of.wide};
      const bool lies = of.by_columns ? p.transpose_b : !p.transpose_a;
      const NodeId factor =
          broadcast_to(out_, cast(out_, vector(narrow, of, lies, which), exact), box);
      const NodeId term = both(Op::Mul, cast(out_, reshape(out_, wide, box), exact), factor);
      auto [it, fresh] = found.emplace(of.terms, term);
      if (!fresh) it->second = both(Op::Add, it->second, term);
    }
    return found;
  }

  const PlanGraph& from_;
  const Graph& g_;
  const TileRegions& tiles_;
  NarrowWays ways_;
  Graph out_;
  size_t constants_ = 0;
};

}  // namespace

NarrowWays narrow_ways(const Graph& g, const TileRegions& tiles) {
  NarrowWays found;
  for (NodeId id = 0; id < g.size(); ++id)
    if (const auto narrow = tiles.of[id] >= 0 ? std::nullopt : narrow_product(g, id))
      (narrow->along ? found.along : found.over) = true;
  return found;
}

std::optional<PlanGraph> without_narrow_products(const PlanGraph& from, const TileRegions& tiles,
                                                 NarrowWays ways) {
  return Rewriter(from, tiles, ways).run();
}

}  // namespace gradcell::cuda

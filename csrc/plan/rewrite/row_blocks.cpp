// Rows that only parts of a program need. Programs compute something of all points, then take the
// first rows for one condition, the others for an equation: derivatives that only the equation
// needs are computed of all rows, and every slice waits for all of them. Here each part of the rows
// becomes a tensor of its own, and of what it does not need nothing is computed.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "ops/moving/rows.h"
#include "ops/ops.h"
#include "plan/rewrite/rewrite.h"
#include "plan/rewrite/taken_over.h"

namespace gradcell {

namespace {

/// Fewer rows are not worth a region of their own.
constexpr int64_t kLeastRows = 64;
/// So many places of cuts at most.
constexpr size_t kMostCuts = 24;
/// The least share of the products' operations that has to be saved.
constexpr double kWorth = 0.05;

/// Parts of the rows, a bit each.
using Parts = uint32_t;

/// How a node goes over the rows of its operands.
enum class Way : uint8_t {
  Whole,   ///< in no way that is known here
  Along,   ///< row by row
  Spread,  ///< in none: rows are made of what is whole
  Placed,  ///< some rows, among zeros
  Joined,  ///< rows of several tensors
  Cut,     ///< takes some rows
  Summed,  ///< adds up what it makes of each
};

class RowSplitter {
 public:
  RowSplitter(const PlanGraph& from, int64_t rows, Dims cuts)
      : from_(from), g_(from.graph), rows_(rows), bounds_(std::move(cuts)), out_(g_.settings()) {}

  /// Nothing if there is not enough to gain.
  std::optional<PlanGraph> run() {
    way_.resize(g_.size());
    for (NodeId id = 0; id < g_.size(); ++id) way_[id] = way_of(id);
    find_needs();
    if (!choose()) return std::nullopt;
    find_needs();
    return rewritten();
  }

 private:
  // What each node does with rows. ---------------------------------------------------------------

  bool has_rows(NodeId id) const { return !g_.dims(id).empty() && g_.dims(id)[0] == rows_; }
  bool all_have_rows(NodeId id) const {
    return std::ranges::all_of(g_.inputs(id), [&](NodeId i) { return has_rows(i); });
  }

  Way way_of(NodeId id) const {
    const Form f = form(g_, id);
    if (f == Form::Move) return way_of_move(id);
    if (f == Form::Product) return way_of_product(id);
    bool along = has_rows(id);
    if (f == Form::Elementwise || f == Form::Convert) {
      for (NodeId i : g_.inputs(id)) along &= g_.dims(i) == g_.dims(id);
    } else if (f == Form::Same) {  // not one that waits for another
      along &= g_[id].input_count == 1 && all_have_rows(id);
    } else if (f == Form::Reduce) {
      const auto axes = attributes<ReduceAttributes>(g_, id).axes;
      along = all_have_rows(id);
      if (along && std::ranges::find(axes, 0) != axes.end())
        return spec(g_, id).combine == Combine::Sum ? Way::Summed : Way::Whole;
    } else {
      return along && f == Form::Constant ? Way::Spread : Way::Whole;
    }
    return along ? Way::Along : Way::Whole;
  }

  Way way_of_product(NodeId id) const {
    if (g_[id].input_count != 2) return Way::Whole;
    const auto p = attributes<ProductAttributes>(g_, id);
    if (g_.dims(id).size() > 2) return all_have_rows(id) ? Way::Along : Way::Whole;
    if (p.transpose_a) return !p.transpose_b && all_have_rows(id) ? Way::Summed : Way::Whole;
    return has_rows(g_.input(id, 0)) ? Way::Along : Way::Whole;
  }

  Way way_of_move(NodeId id) const {
    if (g_.count(id) == 0) return Way::Whole;
    if (has_rows(id)) {
      const Movement m = spec(g_, id).movement(g_, id);
      const auto all = [&](auto test) { return std::ranges::all_of(m.pieces, test); };
      if (all([&](const Piece& p) { return is_full(p) && goes_by_rows(p, g_.input(id, p.input)); }))
        return Way::Along;
      if (all([&](const Piece& p) { return is_full(p) && p.from.strides[0] == 0; }))
        return Way::Spread;
      if (const auto block = placement(g_, id))
        return block->step[0] == 1 && g_.count(block->from) > 0 ? Way::Placed : Way::Whole;
      return !m.zeros && is_stack(id, m) ? Way::Joined : Way::Whole;
    }
    const bool cut = has_rows(g_.input(id, 0)) && first_row(g_, id);
    return cut ? Way::Cut : Way::Whole;
  }

  /// Whether a movement has its inputs one below the other.
  bool is_stack(NodeId id, const Movement& m) const {
    int64_t row = 0;
    for (const Piece& p : m.pieces) {
      const NodeId x = g_.input(id, p.input);
      const bool all = p.from.offset == 0 && p.from.strides == row_major(g_.dims(x)) &&
                       p.from.dims == g_.dims(x);
      if (!all || p.start[0] != row || p.step[0] != 1) return false;
      row += p.from.dims[0];
    }
    return m.pieces.size() == g_.inputs(id).size() && row == rows_;
  }
  bool is_full(const Piece& p) const {
    return p.start[0] == 0 && p.step[0] == 1 && p.from.dims[0] == rows_;
  }
  /// Whether each row of a piece is made of the same row of its input.
  bool goes_by_rows(const Piece& p, NodeId x) const {
    if (!has_rows(x)) return false;
    const int64_t apart = g_.count(x) / rows_;
    int64_t low = p.from.offset, high = low;
    for (size_t k = 1; k < p.from.dims.size(); ++k)
      (p.from.strides[k] < 0 ? low : high) += p.from.strides[k] * (p.from.dims[k] - 1);
    return p.from.strides[0] == apart && low >= 0 && high < apart;
  }
  /// Whether a node's rows come from those of input k. (The others it needs whole.)
  bool by_rows(NodeId id, int k) const {
    if (way_[id] == Way::Along && is_product(g_, id) && g_.dims(id).size() == 2) return k == 0;
    return way_[id] == Way::Along || way_[id] == Way::Summed;
  }

  /// Whether it can be made whole or in parts as one likes, of what is whole.
  bool is_loose(NodeId id) const {
    return way_[id] == Way::Spread || way_[id] == Way::Placed || way_[id] == Way::Joined;
  }
  /// Whether it can be made part by part.
  bool is_split(NodeId id) const { return way_[id] == Way::Along || is_loose(id); }

  // Which parts of each node are needed. ---------------------------------------------------------

  size_t parts() const { return bounds_.size() - 1; }
  Parts all() const { return static_cast<Parts>((uint64_t{1} << parts()) - 1); }
  int64_t size(size_t part) const { return bounds_[part + 1] - bounds_[part]; }

  /// The parts that have some of these rows.
  Parts covering(int64_t begin, int64_t end) const {
    Parts found = 0;
    for (size_t p = 0; p < parts(); ++p)
      if (bounds_[p] < end && begin < bounds_[p + 1]) found |= Parts{1} << p;
    return found;
  }
  /// Of a Cut or Placed node.
  Parts covering(NodeId id) const {
    const int64_t begin = attributes<SliceAttributes>(g_, id).start[0];
    const NodeId few = way_[id] == Way::Cut ? id : g_.input(id, 0);
    return covering(begin, begin + g_.dims(few)[0]);
  }

  /// The parts in which a node may be other than zero, given its inputs'.
  Parts support_of(NodeId id) const {
    if (way_[id] == Way::Placed) return covering(id);
    if (way_[id] != Way::Along) return all();
    auto of = [&](int k) { return by_rows(id, k) ? support_[g_.input(id, k)] : all(); };
    const Spec& op = spec(g_, id);
    const int inputs = g_[id].input_count;
    Parts found = 0;
    switch (op.law()) {
      case Law::Linear:
        for (int k = 0; k < inputs; ++k)
          if (op.computes_with(k)) found |= of(k);
        return found;
      case Law::Bilinear:
        return of(0) & of(inputs - 1);
      case Law::Quotient:
        return of(0);
      case Law::Constant:
      case Law::Smooth:
        return all();
    }
    return all();
  }

  void find_needs() {
    support_.assign(g_.size(), 0);
    need_.assign(g_.size(), 0);
    summed_.assign(g_.size(), 0);
    for (NodeId id = 0; id < g_.size(); ++id) support_[id] = support_of(id);
    for (NodeId r : from_.roots) want(r, all());
    for (NodeId id = narrow<NodeId>(g_.size()); id-- > 0;) {
      need_[id] &= support_[id];
      switch (way_[id]) {
        case Way::Cut:
          want(g_.input(id, 0), covering(id));
          break;
        case Way::Summed: {
          Parts some = all();
          for (NodeId i : g_.inputs(id)) some &= support_[i];
          summed_[id] = some != 0 ? some : all();
          for (NodeId i : g_.inputs(id)) want(i, summed_[id]);
          break;
        }
        case Way::Along:
          want_along(id);
          break;
        default:
          for (NodeId i : g_.inputs(id)) want(i, all());
      }
    }
  }

  /// These parts of a node, zero or not.
  void want(NodeId id, Parts some) {
    need_[id] |= some;
    support_[id] |= some;
  }

  void want_along(NodeId id) {
    const bool sum = g_[id].op == Op::Add || g_[id].op == Op::Sub;
    for (int k = 0; k < g_[id].input_count; ++k) {
      const NodeId x = g_.input(id, k);
      if (!by_rows(id, k))
        want(x, all());
      else if (!sum)
        want(x, need_[id]);
      else
        need_[x] |= need_[id];
    }
    if (sum) {  // where both terms are zero one of them says so
      const NodeId a = g_.input(id, 0), b = g_.input(id, 1);
      want(a, need_[id] & ~(support_[a] | support_[b]));
    }
  }

  // Where to cut. --------------------------------------------------------------------------------

  /// Nodes whose rows hang together, by a node that stands for them.
  std::vector<NodeId> groups() const {
    std::vector<NodeId> leader(g_.size());
    for (NodeId id = 0; id < g_.size(); ++id) leader[id] = id;
    auto find = [&](NodeId id) {
      while (leader[id] != id) id = leader[id] = leader[leader[id]];
      return id;
    };
    for (NodeId id = 0; id < g_.size(); ++id)
      if (way_[id] == Way::Along)
        for (int k = 0; k < g_[id].input_count; ++k) {
          const NodeId x = g_.input(id, k);
          if (by_rows(id, k) && is_split(x) && way_[x] != Way::Spread) leader[find(x)] = find(id);
        }
    for (NodeId id = 0; id < g_.size(); ++id) leader[id] = find(id);
    return leader;
  }

  double operations(NodeId id) const {
    const auto s =
        sizes_of(g_.dims(g_.input(id, 0)), g_.dims(id), attributes<ProductAttributes>(g_, id));
    return static_cast<double>(g_.count(id)) * static_cast<double>(s.k);
  }

  int64_t rows_of(Parts some) const {
    int64_t n = 0;
    for (size_t p = 0; p < parts(); ++p)
      if (some >> p & 1) n += size(p);
    return n;
  }

  /// Keeps the groups of nodes in which cutting saves products, and the cuts that do. Whether there
  /// are any.
  bool choose() {
    const std::vector<NodeId> group = groups();
    std::vector<double> total(g_.size(), 0), saved(g_.size(), 0);
    auto each_product = [&](auto f) {
      for (NodeId id = 0; id < g_.size(); ++id)
        if (is_product(g_, id) && way_[id] == Way::Along)
          f(id, group[id], need_[id]);
        else if (is_product(g_, id) && way_[id] == Way::Summed && is_split(g_.input(id, 0)))
          f(id, group[g_.input(id, 0)], summed_[id]);
    };
    each_product([&](NodeId id, NodeId in, Parts needed) {
      total[in] += operations(id);
      saved[in] +=
          operations(id) * (1 - static_cast<double>(rows_of(needed)) / static_cast<double>(rows_));
    });
    auto worth = [&](NodeId in) { return saved[in] > 0 && saved[in] >= kWorth * total[in]; };
    std::vector<uint8_t> parted(parts() + 1, 0);  // at which bounds something begins or ends
    bool any = false;
    each_product([&](NodeId, NodeId in, Parts needed) {
      if (!worth(in)) return;
      any = true;
      for (size_t p = 1; p < parts(); ++p) parted[p] |= ((needed >> p ^ needed >> (p - 1)) & 1);
    });
    if (!any) return false;
    for (NodeId id = 0; id < g_.size(); ++id)
      if (way_[id] == Way::Along && !worth(group[id])) way_[id] = Way::Whole;
    Dims kept{0};
    for (size_t p = 1; p < parts(); ++p)
      if (parted[p]) kept.push_back(bounds_[p]);
    kept.push_back(rows_);
    bounds_ = std::move(kept);
    return parts() > 1;
  }

  // The graph in parts. --------------------------------------------------------------------------

  PlanGraph rewritten() {
    whole_.assign(g_.size(), kNoNode);
    part_.assign(g_.size() * parts(), kNoNode);
    for (NodeId id = 0; id < g_.size(); ++id)  // before constants of other shapes
      if (is_source(g_, id)) whole_[id] = rebuild(out_.graph, g_, id, {});
    for (size_t i = 0; i < from_.constants.size(); ++i)
      constant_[from_.constants[i]] = narrow<int>(i);
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (whole_[id] != kNoNode || is_loose(id)) continue;
      Stamp stamp(out_.graph);
      stamp.like(g_[id]);
      if (way_[id] == Way::Along)
        for (size_t p = 0; p < parts(); ++p) {
          if (need_[id] >> p & 1) part_[id * parts() + p] = along(id, p);
        }
      else if (way_[id] == Way::Summed)
        whole_[id] = summed(id);
      else
        whole_[id] = way_[id] == Way::Cut ? cut(id) : copied(id);
    }
    for (NodeId id : from_.roots) whole(id);
    take_over(out_, from_, whole_);
    return std::move(out_);
  }

  NodeId copied(NodeId id) {
    std::vector<NodeId> in;
    for (NodeId i : g_.inputs(id)) in.push_back(whole(i));
    return rebuild(out_.graph, g_, id, in);
  }

  NodeId whole(NodeId id) {
    if (whole_[id] != kNoNode) return whole_[id];
    if (is_loose(id)) return whole_[id] = copied(id);
    std::vector<NodeId> xs;
    for (size_t p = 0; p < parts(); ++p) xs.push_back(part(id, p));
    return whole_[id] = joined_rows(out_.graph, xs);
  }

  NodeId part(NodeId id, size_t p) {
    NodeId& found = part_[id * parts() + p];
    if (found != kNoNode) return found;
    Stamp stamp(out_.graph);
    stamp.like(g_[id]);
    if (way_[id] == Way::Placed) return found = placed(id, p);
    if (way_[id] == Way::Joined) return found = pieces(id, p);
    if (is_constant(g_, id)) return found = constant(id, p);
    if (is_split(id)) return found = along(id, p);
    return found = some_rows(whole(id), bounds_[p], size(p));
  }

  NodeId some_rows(NodeId x, int64_t begin, int64_t count) {
    return count == out_.graph.dims(x)[0] ? x : rows(out_.graph, x, begin, count);
  }

  NodeId node(Op op, DType dtype, const Dims& dims, std::span<const NodeId> in,
              std::span<const int64_t> attrs = {}) {
    return out_.graph.intern(op, dtype, dims, in, attrs);
  }

  Dims dims_of_part(NodeId id, size_t p) const {
    Dims dims = g_.dims(id);
    dims[0] = size(p);
    return dims;
  }

  NodeId along(NodeId id, size_t p) {
    std::vector<NodeId> in;
    const bool sum = g_[id].op == Op::Add || g_[id].op == Op::Sub;
    for (int k = 0; k < g_[id].input_count; ++k) {
      const NodeId x = g_.input(id, k);
      const bool zero = sum && !(support_[x] >> p & 1);
      in.push_back(zero ? kNoNode : by_rows(id, k) ? part(x, p) : whole(x));
    }
    if (sum && in[1] == kNoNode) return in[0];
    if (sum && in[0] == kNoNode)
      return g_[id].op == Op::Add ? in[1]
                                  : node(Op::Neg, g_.dtype(id), dims_of_part(id, p), {&in[1], 1});
    return node(g_[id].op, g_.dtype(id), dims_of_part(id, p), in, g_.attrs(id));
  }

  /// A constant of the part's shape. Another of the graph's constants is not it, even if it has
  /// this value now: the next graph that the plan is for may have another one there.
  NodeId constant(NodeId id, size_t p) {
    const Dims dims = dims_of_part(id, p);
    if (const NodeId found = constant(id, dims); found != kNoNode) return found;
    for (Dims ones; ones.size() <= dims.size(); ones.push_back(1))
      if (const NodeId one = constant(id, ones); one != kNoNode)
        return spread(out_.graph, one, dims);
    return some_rows(whole_[id], bounds_[p], size(p));
  }

  /// One that is only this constant; kNoNode: another one has that shape and value.
  NodeId constant(NodeId id, const Dims& dims) {
    const Node& n = g_[id];
    const std::pair like(out_.graph.find(n.op, n.dtype, dims, {}, g_.attrs(id), n.bits),
                         constant_.at(id));
    if (like.first != kNoNode) return reshaped_.contains(like) ? like.first : kNoNode;
    const NodeId made = out_.graph.intern(n.op, n.dtype, dims, {}, g_.attrs(id), n.bits);
    out_.reshaped.emplace_back(made, constant_.at(id));
    reshaped_.insert(out_.reshaped.back());
    return made;
  }

  /// What of a block among zeros lies in the part.
  NodeId placed(NodeId id, size_t p) {
    const Placement at = *placement(g_, id);
    const int64_t count = g_.dims(at.from)[0];
    const int64_t begin = std::max(at.start[0], bounds_[p]);
    const int64_t end = std::min(at.start[0] + count, bounds_[p + 1]);
    if (begin >= end) return some_rows(whole(id), bounds_[p], size(p));  // zeros
    const NodeId x = some_rows(whole(at.from), begin - at.start[0], end - begin);
    const Dims dims = dims_of_part(id, p);
    Dims start = at.start;
    start[0] = begin - bounds_[p];
    if (is_all(x, dims, start, at.step)) return x;
    return node(g_[id].op, g_.dtype(id), dims, {&x, 1}, encode(SliceAttributes{start, at.step}));
  }

  /// Whether a box of x is x as it lies.
  bool is_all(NodeId x, const Dims& dims, const Dims& start, std::span<const int64_t> step) const {
    return out_.graph.dims(x) == dims &&
           std::ranges::all_of(start, [](int64_t n) { return n == 0; }) &&
           std::ranges::all_of(step, [](int64_t n) { return n == 1; });
  }

  NodeId pieces(NodeId id, size_t p) {
    std::vector<NodeId> xs;
    int64_t first = 0;
    for (NodeId i : g_.inputs(id)) {
      const int64_t next = first + g_.dims(i)[0];
      const int64_t begin = std::max(first, bounds_[p]), end = std::min(next, bounds_[p + 1]);
      if (begin < end) xs.push_back(some_rows(whole(i), begin - first, end - begin));
      first = next;
    }
    return xs.size() == 1 ? xs[0] : joined_rows(out_.graph, xs);
  }

  NodeId cut(NodeId id) {
    const NodeId x = g_.input(id, 0);
    const auto a = attributes<SliceAttributes>(g_, id);
    const Parts some = covering(id);
    if (whole_[x] != kNoNode || std::popcount(some) != 1) return copied(id);
    const auto p = static_cast<size_t>(std::countr_zero(some));
    const NodeId from = part(x, p);
    Dims start(a.start.begin(), a.start.end());
    start[0] -= bounds_[p];
    if (is_all(from, g_.dims(id), start, a.step)) return from;
    return node(g_[id].op, g_.dtype(id), g_.dims(id), {&from, 1},
                encode(SliceAttributes{start, a.step}));
  }

  NodeId summed(NodeId id) {
    NodeId sum = kNoNode;
    for (size_t p = 0; p < parts(); ++p) {
      if (!(summed_[id] >> p & 1)) continue;
      std::vector<NodeId> in;
      for (NodeId i : g_.inputs(id)) in.push_back(part(i, p));
      const NodeId term = node(g_[id].op, g_.dtype(id), g_.dims(id), in, g_.attrs(id));
      const NodeId both[] = {sum, term};
      sum = sum == kNoNode ? term : node(Op::Add, g_.dtype(id), g_.dims(id), both);
    }
    return sum;
  }

  const PlanGraph& from_;
  const Graph& g_;
  const int64_t rows_;
  Dims bounds_;  ///< where the parts begin, and the end
  std::vector<Way> way_;
  std::vector<Parts> support_;  ///< the parts that may be other than zero, or are made anyway
  std::vector<Parts> need_;     ///< the parts that have to be made
  std::vector<Parts> summed_;   ///< of a sum over rows: the parts that are added
  PlanGraph out_;
  std::vector<NodeId> whole_, part_;  ///< in the new graph, if they are made
  std::map<NodeId, int> constant_;
  std::set<std::pair<NodeId, int>> reshaped_;  ///< those of out_
};

/// Where slices and blocks among zeros cut tensors of so many rows.
std::map<int64_t, Dims> cuts_of(const Graph& g) {
  std::map<int64_t, Dims> cuts;
  auto cut = [&](NodeId many, NodeId few, int64_t begin) {
    const int64_t rows = g.dims(many)[0], count = g.dims(few)[0];
    if (rows < kLeastRows || count == rows || g.count(few) == 0) return;
    cuts[rows].push_back(begin);
    cuts[rows].push_back(begin + count);
  };
  for (NodeId id = 0; id < g.size(); ++id) {
    if (const auto begin = first_row(g, id); begin && !is_source(g, g.input(id, 0)))
      cut(g.input(id, 0), id, *begin);
    if (const auto block = placement(g, id); block && !g.dims(id).empty() && block->step[0] == 1)
      cut(id, block->from, block->start[0]);
  }
  for (auto& [rows, at] : cuts) {
    at.push_back(0), at.push_back(rows);
    std::ranges::sort(at);
    at.erase(std::unique(at.begin(), at.end()), at.end());
  }
  return cuts;
}

/// How many rows products go over: cutting others saves nothing.
std::set<int64_t> rows_of_products(const Graph& g) {
  std::set<int64_t> found;
  for (NodeId id = 0; id < g.size(); ++id)
    if (is_product(g, id)) found.insert(g.dims(g.input(id, 0))[0]);
  return found;
}

}  // namespace

PlanGraph split_rows(PlanGraph from) {
  std::set<int64_t> multiplied = rows_of_products(from.graph);
  for (const auto& [rows, cuts] : cuts_of(from.graph)) {
    if (cuts.size() > kMostCuts || !multiplied.contains(rows)) continue;
    auto split = RowSplitter(from, rows, cuts).run();
    if (!split) continue;
    from = std::move(*split);
    multiplied = rows_of_products(from.graph);
  }
  return from;
}

}  // namespace gradcell

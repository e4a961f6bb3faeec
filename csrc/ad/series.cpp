#include "ad/series.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>

#include "ad/calls.h"
#include "ad/loops.h"
#include "ad/transform.h"
#include "ir/verify.h"
#include "ops/ops.h"

namespace gradcell::ad {

namespace {

/// A node times a number, which is multiplied when there is no way around it; or zero.
struct Coefficient {
  NodeId node = kNoNode;
  double scale = 1;
  explicit operator bool() const { return node != kNoNode; }
  Coefficient operator*(double s) const { return {node, scale * s}; }
};

// Arithmetic of coefficients ----------------------------------------------------------------------
//
// Blocks among zeros stay that: a direction touches one input, and what is made of that input alone
// need not be computed for the others.

bool same_block(const Placement& a, const Placement& b, const Graph& g) {
  return a.start == b.start && a.step == b.step && g.dims(a.from) == g.dims(b.from);
}

/// f(blocks) among zeros again where a (and b) are blocks; else f(a, b).
template <class F>
NodeId blockwise(Graph& g, NodeId a, F f) {
  const auto box = placement(g, a);
  if (!box) return f(a);
  const Dims dims = g.dims(a);
  return slice_scatter(g, f(box->from), dims, box->start, box->step);
}

NodeId add(Graph& g, Op op, NodeId a, NodeId b) {
  const auto box = placement(g, a), other = placement(g, b);
  if (!box || !other || !same_block(*box, *other, g)) return binary(g, op, a, b);
  const Dims dims = g.dims(a);
  return slice_scatter(g, binary(g, op, box->from, other->from), dims, box->start, box->step);
}

NodeId scaled(Graph& g, Coefficient c) {
  if (c.scale == 1) return c.node;
  return blockwise(g, c.node, [&](NodeId x) {
    if (c.scale == -1) return unary(g, Op::Neg, x);
    return binary(g, Op::Mul, x, constant(g, g.dtype(x), Dims(g.dims(x)), c.scale));
  });
}

/// The part of b that stands where the block does.
NodeId part(Graph& g, NodeId b, const Placement& box) {
  return slice(g, b, {box.start, Dims(g.dims(box.from)), box.step});
}

bool disjoint(const Graph& g, const Placement& a, const Placement& b) {
  const Dims &m = g.dims(a.from), &n = g.dims(b.from);
  for (size_t k = 0; k < m.size(); ++k)
    if (a.step[k] == 1 && b.step[k] == 1 &&
        (a.start[k] + m[k] <= b.start[k] || b.start[k] + n[k] <= a.start[k]))
      return true;
  return false;
}

/// a b by elements; kNoNode where that is structurally zero.
NodeId times(Graph& g, NodeId a, NodeId b) {
  const auto box = placement(g, a), other = placement(g, b);
  if (!box && !other) return binary(g, Op::Mul, a, b);
  if (!box) return times(g, b, a);
  const Dims dims = g.dims(a);
  if (other && disjoint(g, *box, *other)) return kNoNode;
  const bool same = other && same_block(*box, *other, g);
  const NodeId y = binary(g, Op::Mul, box->from, same ? other->from : part(g, b, *box));
  return slice_scatter(g, y, dims, box->start, box->step);
}

NodeId over(Graph& g, NodeId a, NodeId b) {
  const auto box = placement(g, a);
  if (!box) return binary(g, Op::Div, a, b);
  const Dims dims = g.dims(a);
  const NodeId y = binary(g, Op::Div, box->from, part(g, b, *box));
  return slice_scatter(g, y, dims, box->start, box->step);
}

/// Numbers in a coefficient's scale meet there, not in the graph; a zero is a structural one.
Coefficient normal(Graph& g, Coefficient c) {
  if (!c || !is_constant(g, c.node) || !is_floating(g.dtype(c.node))) return c;
  const double v = constant_value(g, c.node);
  if (v == 0) return {};
  if (v == 1 || !std::isfinite(v)) return c;
  return {constant(g, g.dtype(c.node), Dims(g.dims(c.node)), 1), c.scale * v};
}

struct Factors {
  Coefficient a, b;
  double weight;
};

class Series {
 public:
  Series(Graph& g, const Algebra& algebra) : g_(g), algebra_(algebra) {}

  /// Derivatives of x that belong to elements 1, 2, ...
  void give(NodeId x, std::span<const NodeId> derivatives) {
    Entry& e = new_entry(x, true);
    for (size_t i = 0; i < derivatives.size(); ++i)
      e.is[i + 1] = normal(g_, {derivatives[i], 1 / algebra_.unit[i + 1]});
    std::ranges::fill(e.known, kKnown);
    first_ = std::min(first_, x);
  }

  Coefficient at(NodeId id, int element) {
    Entry& e = entry(id);
    if (element == 0) return e.slope ? Coefficient{} : Coefficient{id, 1};
    if (!e.active) return {};
    if (e.known[element] != kKnown) {
      require(e.known[element] == kUnknown, ErrorKind::Runtime, info(g_[id].op).name,
              ": its coefficient depends on itself");
      e.known[element] = kBegun;
      e.is[element] = normal(g_, computed(id, e, element));
      e.known[element] = kKnown;
    }
    return e.is[element];
  }

  NodeId derivative(NodeId id, int element) {
    const Coefficient c = at(id, element);
    return c ? scaled(g_, c * algebra_.unit[element]) : kNoNode;
  }

 private:
  enum : uint8_t { kUnknown, kBegun, kKnown };
  struct Entry {
    bool active = false;         ///< some coefficient but the value's is not zero
    bool slope = false;          ///< made of E x of some x: its value is zero
    NodeId slope_of = kNoNode;   ///< is E of that node
    NodeId own_slope = kNoNode;  ///< stands for E of this one
    NodeId tangent = kNoNode;    ///< of a smooth node: its E in terms of its inputs'
    NodeId steps = kNoNode;      ///< of a loop: the same as the nodes of its steps
    std::vector<Coefficient> is;
    std::vector<uint8_t> known;                    ///< of each: kUnknown, kBegun or kKnown
    std::vector<Coefficient> taylor;               ///< of a function of one input, by order
    std::vector<std::vector<Coefficient>> powers;  ///< of the input's change, likewise
  };

  Entry& new_entry(NodeId id, bool active) {
    Entry& e = entries_[id];
    e.active = active;
    if (active) {
      e.is.assign(algebra_.size(), {});
      e.known.assign(algebra_.size(), 0);
    }
    return e;
  }

  Entry& entry(NodeId id) {
    if (auto it = entries_.find(id); it != entries_.end()) return it->second;
    bool active = false, slope = false;
    if (id > first_)
      for (int k = 0; k < g_[id].input_count; ++k) {
        if (!passes(g_, id, k)) continue;
        const Entry& x = entry(g_.input(id, k));
        active |= x.active;
        slope |= x.slope;
      }
    Entry& e = new_entry(id, active);
    e.slope = slope;
    return e;
  }

  Coefficient computed(NodeId id, Entry& e, int element) {
    if (e.slope_of != kNoNode) return at(e.slope_of, element) * algebra_.degree[element];
    if (is_loop(g_, id)) {  // what a call keeps of the function may still be one
      if (e.steps == kNoNode) e.steps = unrolled(g_, g_, id, g_.inputs(id), true);
      return at(e.steps, element);
    }
    switch (spec(g_, id).law()) {
      case Law::Constant:
        return {};
      case Law::Linear:
        return linear(id, element);
      case Law::Bilinear:
        return product(id, element);
      case Law::Quotient:
        return quotient(id, element);
      case Law::Smooth:
        break;
    }
    if (e.slope) {
      std::vector<Coefficient> terms;
      for (int k = 0; k < g_[id].input_count; ++k)
        if (passes(g_, id, k) && entry(g_.input(id, k)).slope)
          terms.push_back(peeled(id, k, element));
      return sum(terms);
    }
    if (algebra_.degree[element] == 1) return linear(id, element);
    if (!algebra_.univariate() && info(g_[id].op).kind == OpKind::Unary)
      return composed(id, e, element);
    return by_slope(id, e, element);
  }

  bool is_zero(NodeId id) const { return is_constant(g_, id) && g_[id].bits == 0; }

  /// The tangent of the inputs' coefficients.
  Coefficient linear(NodeId id, int element) {
    const auto n = static_cast<size_t>(g_[id].input_count);
    std::vector<Coefficient> in(n);
    size_t count = 0, last = 0;
    for (size_t k = 0; k < n; ++k)
      if (passes(g_, id, narrow<int>(k))) {
        in[k] = at(g_.input(id, narrow<int>(k)), element);
        if (in[k]) ++count, last = k;
      }
    if (count == 0) return {};
    const Op op = g_[id].op;
    if (op == Op::Neg) return in[0] * -1;
    if (op == Op::Add || op == Op::Sub) {
      if (op == Op::Sub) in[1] = in[1] * -1;
      return sum(in);
    }
    std::vector<NodeId> dx(n, kNoNode);
    for (size_t k = 0; k < n; ++k)
      if (in[k]) dx[k] = count == 1 ? in[k].node : scaled(g_, in[k]);
    const NodeId y = tangent_of(id, dx);
    if (y == kNoNode || is_zero(y)) return {};
    return {y, count == 1 ? in[last].scale : 1};
  }

  Coefficient product(NodeId id, int element) {
    const NodeId a = g_.input(id, 0), b = g_.input(id, g_[id].input_count - 1);
    const bool square = a == b && is_elementwise(g_[id].op);
    std::vector<Factors> terms;
    auto add_term = [&](int i, int j, double weight) {
      // A coefficient may only be asked for if the one that it meets is there: others may not be
      // known yet.
      const bool second_first = algebra_.degree[i] > algebra_.degree[j];
      Coefficient x, y;
      auto lacks = [&](Coefficient& c, NodeId of, int k) {
        c = at(of, k);
        return !c || is_zero(c.node);
      };
      if (second_first && lacks(y, b, j)) return;
      if (lacks(x, a, i)) return;
      if (!second_first && lacks(y, b, j)) return;
      terms.push_back({x, y, weight});
    };
    for (const Algebra::Pair& p : algebra_.products[element]) {
      const bool one = p.a == p.b;
      add_term(p.a, p.b, square && !one ? 2 * p.weight : p.weight);
      if (!square && !one) add_term(p.b, p.a, p.weight);
    }
    return sum_of_products(id, terms);
  }

  /// y = a / b from y b = a.
  Coefficient quotient(NodeId id, int element) {
    const NodeId a = g_.input(id, 0), b = g_.input(id, 1);
    const Coefficient own = at(a, element);
    std::vector<Factors> terms;
    auto add_term = [&](int i, int j, double weight) {
      if (algebra_.degree[i] == 0) return;
      if (const Coefficient y = at(id, j); y)  // (b's may wait for y's)
        if (const Coefficient x = at(b, i); x) terms.push_back({x, y, -weight});
    };
    for (const Algebra::Pair& p : algebra_.products[element]) {
      add_term(p.a, p.b, p.weight);
      if (p.a != p.b) add_term(p.b, p.a, p.weight);
    }
    Coefficient total = sum_of_products(kNoNode, terms);
    total = sum({own, total});
    return total ? Coefficient{over(g_, total.node, b), total.scale} : total;
  }

  /// The part that a slope among its inputs has in a smooth op, as in some tangents: linear in that
  /// one, it is the sum of what the op is with each of the slope's coefficients in its place, all
  /// of which are of a degree of their own.
  Coefficient peeled(NodeId id, int input, int element) {
    std::vector<Coefficient> terms;
    auto add_term = [&](int i, int j, double weight) {
      if (algebra_.degree[j] == 0) return;
      const Coefficient x = at(g_.input(id, input), j);
      if (!x) return;
      const NodeId fixed = alias(g_, x.node);  // its own dependence on the variables is in x
      new_entry(fixed, false);
      const NodeId y = replaced(id, input, fixed);
      if (y == kNoNode) return;
      const Coefficient c = i == 0 ? Coefficient{y, 1} : at(y, i);
      if (c) terms.push_back(c * (x.scale * weight));
    };
    for (const Algebra::Pair& p : algebra_.products[element]) {
      add_term(p.a, p.b, p.weight);
      if (p.a != p.b) add_term(p.b, p.a, p.weight);
    }
    return sum(terms);
  }

  /// A node with another input in the place of one that it is linear in. The value of a call was
  /// computed with the old one: there the derivative says what it is.
  NodeId replaced(NodeId id, int input, NodeId x) {
    const auto k = static_cast<size_t>(input);
    if (is_call_output(g_, id)) {
      std::vector<NodeId> dx(static_cast<size_t>(g_[id].input_count), kNoNode);
      dx[k] = x;
      return tangent_of(id, dx);
    }
    std::vector<NodeId> in(g_.inputs(id).begin(), g_.inputs(id).end());
    in[k] = x;
    const Dims attributes(g_.attrs(id).begin(), g_.attrs(id).end());
    return make(g_, g_[id].op, {in, attributes, {g_.dtype(id), Dims(g_.dims(id))}});
  }

  /// E y is the tangent at E x.
  Coefficient by_slope(NodeId id, Entry& e, int element) {
    if (e.tangent == kNoNode) {
      std::vector<NodeId> dx;
      for (int k = 0; k < g_[id].input_count; ++k)
        dx.push_back(passes(g_, id, k) ? slope_of(g_.input(id, k)) : kNoNode);
      e.tangent = tangent_of(id, dx);
      if (e.tangent == kNoNode) e.active = false;
    }
    if (e.tangent == kNoNode) return {};
    return at(e.tangent, element) * (1.0 / algebra_.degree[element]);
  }

  /// A node's tangent; that of a call with a derivative of its own is the call's.
  NodeId tangent_of(NodeId id, std::span<const NodeId> dx) {
    if (!is_call_output(g_, id)) return spec(g_, id).tangent(g_, id, dx);
    dx = dx.subspan(1);
    std::vector<bool> wanted;
    for (NodeId x : dx) wanted.push_back(x != kNoNode);
    const std::vector<NodeId> dy = call_tangent(g_, call_of(g_, id), dx, wanted);
    return dy.empty() ? kNoNode : dy.back();
  }

  /// A node that stands for E x; kNoNode where x has no coefficients.
  NodeId slope_of(NodeId x) {
    Entry& e = entry(x);
    if (!e.active) return kNoNode;
    if (e.own_slope == kNoNode) {
      e.own_slope = g_.unknown(g_.dtype(x), Dims(g_.dims(x)));
      Entry& slope = new_entry(e.own_slope, true);
      slope.slope = true;
      slope.slope_of = x;
    }
    return e.own_slope;
  }

  /// f(x + h) = f(x) + f'(x) h + f''(x)/2 h h + ..., where h is what x has beside its value: the
  /// derivatives of f are needed once, whatever the number of directions.
  Coefficient composed(NodeId id, Entry& e, int element) {
    const NodeId x = g_.input(id, 0);
    const int order = algebra_.order();
    if (e.taylor.empty()) {
      e.taylor.resize(order + 1);
      e.powers.assign(order + 1, std::vector<Coefficient>(algebra_.size()));
      const Algebra along = line(order);
      Series local(g_, along);
      const NodeId one[] = {constant(g_, g_.dtype(x), Dims(g_.dims(x)), 1)};
      local.give(x, one);
      for (int k = 1; k <= order; ++k) e.taylor[k] = local.at(id, k);
      for (int i = 1; i < algebra_.size(); ++i) e.powers[1][i] = at(x, i);
      for (int k = 2; k <= order; ++k)
        for (int i = 1; i < algebra_.size(); ++i)
          if (algebra_.degree[i] >= k) e.powers[k][i] = power(e, k, i);
    }
    bool straight = true;
    for (int k = 2; k <= order; ++k) straight &= !e.taylor[k];
    if (straight) return linear(id, element);
    std::vector<Factors> terms;
    for (int k = 1; k <= algebra_.degree[element]; ++k)
      if (e.taylor[k] && e.powers[k][element])
        terms.push_back({e.taylor[k], e.powers[k][element], 1});
    return sum_of_products(kNoNode, terms);
  }

  /// h h^(k - 1).
  Coefficient power(const Entry& e, int k, int element) {
    std::vector<Factors> terms;
    const auto &h = e.powers[1], &rest = e.powers[k - 1];
    for (const Algebra::Pair& p : algebra_.products[element]) {
      if (p.a == 0) continue;
      const bool twice = p.a != p.b;
      if (k == 2) {
        if (h[p.a] && h[p.b]) terms.push_back({h[p.a], h[p.b], twice ? 2 * p.weight : p.weight});
        continue;
      }
      if (h[p.a] && rest[p.b]) terms.push_back({h[p.a], rest[p.b], p.weight});
      if (twice && h[p.b] && rest[p.a]) terms.push_back({h[p.b], rest[p.a], p.weight});
    }
    return sum_of_products(kNoNode, terms);
  }

  /// What the node `id` does to two factors; kNoNode: multiplies them by elements.
  NodeId multiplied(NodeId id, NodeId a, NodeId b) {
    if (id == kNoNode || is_elementwise(g_[id].op)) return times(g_, a, b);
    if (is_product(g_, id))
      return product_of_placed(g_, a, b, attributes<ProductAttributes>(g_, id));
    std::vector<NodeId> in(g_.inputs(id).begin(), g_.inputs(id).end());
    in.front() = a, in.back() = b;
    return make(g_, g_[id].op, {in, g_.attrs(id), {g_.dtype(id), g_.dims(id)}});
  }

  /// Factors' scales go into the sum's if they are the same for all terms; else each factor is
  /// scaled, once for all sums that it stands in.
  Coefficient sum_of_products(NodeId id, const std::vector<Factors>& terms) {
    if (terms.empty()) return {};
    auto scale = [](const Factors& f) { return f.a.scale * f.b.scale * f.weight; };
    const bool alike = std::ranges::all_of(
        terms, [&](const Factors& f) { return std::abs(scale(f)) == std::abs(scale(terms[0])); });
    std::vector<Coefficient> products;
    for (const Factors& f : terms) {
      const bool plain = alike || std::abs(scale(f)) == 1;
      const NodeId y = plain ? multiplied(id, f.a.node, f.b.node)
                             : multiplied(id, scaled(g_, f.a), scaled(g_, f.b));
      if (y != kNoNode) products.push_back({y, plain ? scale(f) : f.weight});
    }
    return sum(products);
  }

  Coefficient sum(const std::vector<Coefficient>& terms) {
    std::vector<Coefficient> there;
    for (const Coefficient& c : terms)
      if (c) there.push_back(c);
    if (there.empty()) return {};
    // A positive term first, so that the others are added or subtracted.
    auto positive = std::ranges::find_if(there, [](const Coefficient& c) { return c.scale > 0; });
    if (positive != there.end()) std::iter_swap(there.begin(), positive);
    const double first = there[0].scale;
    const bool alike = std::ranges::all_of(
        there, [&](const Coefficient& c) { return std::abs(c.scale) == std::abs(first); });
    const double common = alike ? first : 1;
    NodeId total = kNoNode;
    for (const Coefficient& c : there) {
      const bool minus = (c.scale < 0) != (common < 0);
      const NodeId term = alike ? c.node : scaled(g_, {c.node, std::abs(c.scale)});
      if (total == kNoNode)
        total = minus ? scaled(g_, {term, -1}) : term;
      else
        total = add(g_, minus ? Op::Sub : Op::Add, total, term);
    }
    return {total, common};
  }

  Graph& g_;
  const Algebra& algebra_;
  std::unordered_map<NodeId, Entry> entries_;
  NodeId first_ = kNoNode;  ///< nothing before it is active
};

}  // namespace

std::vector<std::vector<NodeId>> series(Graph& g, std::span<const NodeId> of,
                                        std::span<const NodeId> wrt,
                                        std::span<const std::vector<NodeId>> given,
                                        const Algebra& algebra, std::span<const int> wanted) {
  const auto made = narrow<NodeId>(g.size());
  const std::vector<NodeId> outputs = without_loops(g, of, wrt), live = live_nodes(g, outputs);
  Series s(g, algebra);
  for (size_t i = 0; i < wrt.size(); ++i) s.give(wrt[i], given[i]);
  Stamp stamp(g);
  stamp.order(next_order(g, live, wrt));
  // In order, so that no coefficient waits for a long row of others.
  for (NodeId id : live) {
    stamp.at(g[id].location);
    for (int e = 1; e < algebra.size(); ++e) s.at(id, e);
  }
  std::vector<std::vector<NodeId>> result;
  for (NodeId id : outputs) {
    stamp.at(g[id].location);
    std::vector<NodeId>& derivatives = result.emplace_back();
    for (int e : wanted) derivatives.push_back(e == 0 ? id : s.derivative(id, e));
  }
  if constexpr (kVerify) verify(g, "series", made);
  return result;
}

std::vector<NodeId> unit_directions(Graph& g, NodeId x, bool rows) {
  const Dims dims = g.dims(x);
  Dims each = dims, block(dims.size(), 1);
  if (rows) each[0] = 1, block[0] = dims[0];
  const NodeId ones = constant(g, g.dtype(x), block, 1);
  std::vector<NodeId> directions;
  for_each_index(each, [&](int64_t, const Dims& at) {
    directions.push_back(slice_scatter(g, ones, dims, at, Dims(dims.size(), 1)));
  });
  return directions;
}

}  // namespace gradcell::ad

#include "ops/combining/written_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "ops/combining/product.h"
#include "ops/combining/reduction.h"
#include "ops/elementwise.h"
#include "ops/moving/movement.h"

namespace gradcell {

namespace {

/// Scores of less stay in the caches, where it costs less to keep them than to find them again.
constexpr size_t kLeastBytes = 4 << 20;

bool is_reshape(const Graph& g, NodeId id) {
  return form(g, id) == Form::Same && g[id].input_count == 1;
}

bool same_matrices(const Dims& a, const Dims& b) {
  return a.size() >= 2 && b.size() >= 2 && std::equal(a.end() - 2, a.end(), b.end() - 2);
}

/// Whether a node may be such a product; most are not.
bool candidate(const Graph& g, NodeId id) {
  if (!is_product(g, id) || g[id].input_count != 2) return false;
  if (g.dtype(id) != DType::Float32 && g.dtype(id) != DType::Float64) return false;
  if (attributes<ProductAttributes>(g, id).transpose_a) return false;
  NodeId x = g.input(id, 0);
  while (is_reshape(g, x)) x = g.input(x, 0);
  if (g[x].op != Op::Div && g[x].op != Op::Select) return false;
  return g.dims(x).size() >= 2 &&
         static_cast<size_t>(g.count(x)) * item_size(g.dtype(x)) >= kLeastBytes;
}

class Finder {
 public:
  Finder(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
         std::span<const NodeId> cuts)
      : g_(g), uses_(g.size(), 0), stops_(g.size(), 0) {
    for (NodeId id : live)
      for (NodeId i : g.inputs(id)) ++uses_[i];
    for (NodeId id : roots) stops_[id] = 1;
    for (NodeId id : cuts) stops_[id] = 1;
  }

  std::optional<WrittenAttention> match(NodeId id) {
    w_ = {};
    w_.result = id, w_.fill = -INFINITY;
    const auto p = attributes<ProductAttributes>(g_, id);
    w_.v = g_.input(id, 1), w_.values_lie = p.transpose_b;
    NodeId x = through_reshapes(g_.input(id, 0));
    x = through_dropout(x);
    if (x == kNoNode || (x = through_softmax(x)) == kNoNode || !through_scores(x)) return {};
    if (!used_here_alone() || has_constants()) return {};
    return w_;
  }

 private:
  /// Goes on to an input; what is left behind lies between.
  NodeId on(NodeId x, int k) {
    w_.between.push_back(x);
    return g_.input(x, k);
  }
  NodeId through_reshapes(NodeId x) {
    while (is_reshape(g_, x) && same_matrices(g_.dims(x), g_.dims(g_.input(x, 0)))) x = on(x, 0);
    return x;
  }
  double value(NodeId constant) const {
    return is_constant(g_, constant) ? constant_value(g_, constant) : NAN;
  }

  /// select(u < keep, weights / keep, 0).
  NodeId through_dropout(NodeId x) {
    if (g_[x].op != Op::Select) return x;
    const NodeId kept = g_.input(x, 0), y = g_.input(x, 1);
    if (value(g_.input(x, 2)) != 0 || g_[kept].op != Op::Less || g_[y].op != Op::Mul)
      return kNoNode;
    const NodeId u = g_.input(kept, 0);
    w_.keep = value(g_.input(kept, 1));
    const double by = value(g_.input(y, 1));
    if (form(g_, u) != Form::Random || g_.dtype(u) != DType::Float32 ||
        !(w_.keep > 0 && w_.keep < 1) || !(std::abs(by * w_.keep - 1) < 1e-6))
      return kNoNode;
    // The kernel compares with a float, and multiplies by 1 / keep in the weights' type.
    const double below = w_.keep;
    auto same = [&](double keep) {
      const bool wide = g_.dtype(x) == DType::Float64;
      return static_cast<float>(keep) == static_cast<float>(below) &&
             (wide ? std::abs(1 / keep - by) <= 1e-15 * by
                   : static_cast<float>(1 / keep) == static_cast<float>(by));
    };
    for (double keep : {1 / by, below})
      if (same(keep)) w_.keep = keep;
    if (!same(w_.keep)) return kNoNode;
    w_.state = g_.input(u, 0);
    w_.between.push_back(x);
    return on(y, 0);
  }

  /// The node of which a row's number is spread over the row.
  NodeId through_spread(NodeId x) {
    const Dims& dims = g_.dims(x);
    bool spread = false;
    for (;; x = on(x, 0)) {
      if (is_broadcast(g_, x)) {
        const Dims& from = g_.dims(g_.input(x, 0));
        if (spread || from.size() != dims.size() || from.back() != 1 ||
            !std::equal(from.begin(), from.end() - 1, dims.begin()))
          return kNoNode;
        spread = true;
      } else if (is_reshape(g_, x)) {
        Dims rows(dims.begin(), dims.end() - 1);
        Dims from = g_.dims(g_.input(x, 0));
        if (!spread || (from != rows && from.size() != dims.size())) return kNoNode;
      } else if (form(g_, x) != Form::Marker || g_[x].input_count != 1) {
        break;
      }
    }
    return spread || dims.back() == 1 ? x : kNoNode;
  }
  bool reduces(NodeId x, Combine by, NodeId of) {
    if (x == kNoNode || form(g_, x) != Form::Reduce || spec(g_, x).combine != by ||
        g_.input(x, 0) != of)
      return false;
    const auto axes = g_.attrs(x);
    if (axes.size() != 1 || axes[0] + 1 != static_cast<int64_t>(g_.dims(of).size())) return false;
    w_.between.push_back(x);
    return true;
  }
  /// exp(s - max s) / sum: gives s.
  NodeId through_softmax(NodeId x) {
    if (g_[x].op != Op::Div) return kNoNode;
    const NodeId e = g_.input(x, 0), total = through_spread(g_.input(x, 1));
    if (g_[e].op != Op::Exp || !reduces(total, Combine::Sum, e)) return kNoNode;
    const NodeId above = g_.input(e, 0);
    if (g_[above].op != Op::Sub) return kNoNode;
    const NodeId s = g_.input(above, 0);
    if (!reduces(through_spread(g_.input(above, 1)), Combine::Max, s)) return kNoNode;
    w_.between.insert(w_.between.end(), {x, e, above});
    const Dims& dims = g_.dims(s);
    if (w_.state != kNoNode && g_.dims(x) != dims) return kNoNode;
    w_.lead.assign(dims.begin(), dims.end() - 2);
    dims_ = &dims;
    return s;
  }

  bool leads_to_product(NodeId x, int most = 8) const {
    if (most == 0 || stops_[x]) return false;
    auto next = [&](int k) { return leads_to_product(g_.input(x, k), most - 1); };
    if (is_reshape(g_, x)) return next(0);
    switch (g_[x].op) {
      case Op::Mul:
      case Op::Div:
        return next(0);
      case Op::Select:
        return next(1) || next(2);
      case Op::Add:
      case Op::Sub:
        return next(0) || (g_[x].op == Op::Add && next(1));
      default:
        return is_product(g_, x) && uses_[x] == 1;
    }
  }

  /// From the scores to the product of queries and keys.
  bool through_scores(NodeId x) {
    bool scaled = false;
    for (;;) {
      const bool here = g_.dims(x) == *dims_ && !scaled;  // where masks are
      if (is_reshape(g_, x)) {
        if (!same_matrices(g_.dims(x), g_.dims(g_.input(x, 0)))) return false;
        x = on(x, 0);
        continue;
      }
      switch (g_[x].op) {
        case Op::Select: {
          const bool hides = is_constant(g_, g_.input(x, 1));
          const double by = value(g_.input(x, hides ? 1 : 2));
          if (!here || w_.added != kNoNode || !(by < INFINITY) ||
              (!w_.hides.empty() && by != w_.fill))
            return false;
          w_.fill = by;
          w_.hides.push_back(g_.input(x, 0));
          w_.inverted.push_back(!hides);
          x = on(x, hides ? 2 : 1);
          break;
        }
        case Op::Add:
        case Op::Sub: {
          if (!here || w_.added != kNoNode || !w_.hides.empty()) return false;
          const int k = leads_to_product(g_.input(x, 0)) ? 0 : 1;
          if (k == 1 && (g_[x].op == Op::Sub || !leads_to_product(g_.input(x, 1)))) return false;
          w_.added = g_.input(x, 1 - k);
          w_.subtracted = g_[x].op == Op::Sub;
          x = on(x, k);
          break;
        }
        case Op::Mul:
        case Op::Div: {
          const double by = value(g_.input(x, 1));
          if (!(std::abs(by) > 1e-6 && std::abs(by) < 1e6)) return false;
          w_.scale = g_[x].op == Op::Mul ? w_.scale * by : w_.scale / by;
          scaled = true;
          x = on(x, 0);
          break;
        }
        default:
          return ends_at(x);
      }
    }
  }

  bool ends_at(NodeId x) {
    if (!is_product(g_, x) || g_[x].input_count != 2) return false;
    const auto p = attributes<ProductAttributes>(g_, x);
    if (p.transpose_a || !same_matrices(g_.dims(x), *dims_)) return false;
    w_.q = g_.input(x, 0), w_.k = g_.input(x, 1);
    w_.keys_stand = !p.transpose_b;
    w_.between.push_back(x);
    return true;
  }

  /// Whether nothing but each other and the result reads what lies between.
  bool used_here_alone() {
    std::ranges::sort(w_.between);
    const auto same = std::ranges::unique(w_.between);
    w_.between.erase(same.begin(), same.end());
    std::vector<uint32_t> here(w_.between.size(), 0);
    auto count = [&](NodeId id) {
      for (NodeId i : g_.inputs(id)) {
        const auto at = std::ranges::lower_bound(w_.between, i);
        if (at != w_.between.end() && *at == i)
          ++here[static_cast<size_t>(at - w_.between.begin())];
      }
    };
    count(w_.result);
    for (NodeId id : w_.between) count(id);
    for (size_t k = 0; k < here.size(); ++k)
      if (here[k] != uses_[w_.between[k]] || stops_[w_.between[k]]) return false;
    return true;
  }

  /// Builders look at constants' values, which a plan must not depend on.
  bool has_constants() const {
    return std::ranges::any_of(w_.sources(), [&](NodeId id) {
      while (is_broadcast(g_, id)) id = g_.input(id, 0);
      return is_constant(g_, id);
    });
  }

  const Graph& g_;
  std::vector<uint32_t> uses_;
  std::vector<uint8_t> stops_;
  WrittenAttention w_;
  const Dims* dims_ = nullptr;
};

/// A mask of the scores' rank, 1 where it is the same along an axis but the last.
NodeId narrow(Graph& to, NodeId mask, const Dims& scores) {
  while (is_broadcast(to, mask)) mask = to.input(mask, 0);
  Dims dims(scores.size() - to.dims(mask).size(), 1);
  dims.insert(dims.end(), to.dims(mask).begin(), to.dims(mask).end());
  mask = reshape(to, mask, dims);
  dims.back() = scores.back();
  return broadcast_to(to, mask, dims);
}

/// [..., rows, features] with other dimensions in front.
NodeId led(Graph& to, NodeId x, bool turned, const Dims& lead) {
  if (turned) x = move_axis(to, x, to.dims(x).size() - 1, to.dims(x).size() - 2);
  Dims dims = lead;
  dims.insert(dims.end(), to.dims(x).end() - 2, to.dims(x).end());
  return reshape(to, x, dims);
}

NodeId hidden_by_any(Graph& to, const WrittenAttention& w, std::span<const NodeId> at,
                     const Dims& scores) {
  NodeId all = kNoNode;
  for (size_t k = 0; k < w.hides.size(); ++k) {
    NodeId one = narrow(to, at[w.hides[k]], scores);
    if (w.inverted[k]) one = unary(to, Op::LogicalNot, one);
    if (all != kNoNode) {
      Dims dims = to.dims(all);
      for (size_t d = 0; d < dims.size(); ++d) dims[d] = std::max(dims[d], to.dims(one)[d]);
      one = binary(to, Op::LogicalOr, broadcast_to(to, all, dims), broadcast_to(to, one, dims));
    }
    all = one;
  }
  return all;
}

}  // namespace

std::vector<NodeId> WrittenAttention::sources() const {
  std::vector<NodeId> all{q, k, v};
  all.insert(all.end(), hides.begin(), hides.end());
  for (NodeId id : {added, state})
    if (id != kNoNode) all.push_back(id);
  return all;
}

std::vector<WrittenAttention> written_attention(const Graph& g, std::span<const NodeId> live,
                                                std::span<const NodeId> roots,
                                                std::span<const NodeId> cuts) {
  std::vector<WrittenAttention> found;
  if (!g.settings().written_attention) return found;
  std::optional<Finder> finder;
  for (NodeId id : live) {
    if (!candidate(g, id)) continue;
    if (!finder) finder.emplace(g, live, roots, cuts);
    if (auto w = finder->match(id)) found.push_back(std::move(*w));
  }
  return found;
}

NodeId as_attention(Graph& to, const Graph& from, const WrittenAttention& w,
                    std::span<const NodeId> at) {
  const NodeId q = led(to, at[w.q], false, w.lead), k = led(to, at[w.k], w.keys_stand, w.lead);
  const NodeId v = led(to, at[w.v], w.values_lie, w.lead);
  Dims scores = w.lead;
  scores.insert(scores.end(), {to.dims(q)[w.lead.size()], to.dims(k)[w.lead.size()]});
  std::vector<NodeId> in{q, k, v};
  if (!w.hides.empty()) in.push_back(hidden_by_any(to, w, at, scores));
  if (w.added != kNoNode) {
    const NodeId mask = narrow(to, at[w.added], scores);
    in.push_back(w.subtracted ? unary(to, Op::Neg, mask) : mask);
  }
  if (w.state != kNoNode) in.push_back(at[w.state]);
  constexpr int64_t kEvery = int64_t(1) << 62;
  const AttentionAttributes a{.masked = !w.hides.empty() || w.added != kNoNode,
                              .dropped = w.state != kNoNode,
                              .shifted = false,
                              .keep = std::bit_cast<int64_t>(w.keep),
                              .period = product(w.lead, 0, w.lead.size()),
                              .behind = kEvery,
                              .ahead = kEvery,
                              .inside = false,
                              .written = true,
                              .of_scores = false,
                              .scale = std::bit_cast<int64_t>(w.scale),
                              .fill = std::bit_cast<int64_t>(w.fill)};
  Stamp stamp(to);
  stamp.like(from[w.result]);
  return reshape(to, make(to, Op::Attention, {in, encode(a)}), Dims(from.dims(w.result)));
}

}  // namespace gradcell

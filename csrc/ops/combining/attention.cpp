#include "ops/combining/attention.h"

#include <algorithm>
#include <bit>

#include "ops/combining/product.h"
#include "ops/combining/reduction.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/identity.h"
#include "ops/moving/movement.h"

namespace gradcell {

namespace {

constexpr Parameter kInputs{Parameter::Kind::Tensors, "tensors"};
constexpr Parameter kCalled[] = {kInputs,
                                 {Parameter::Kind::Attribute, "masked"},
                                 {Parameter::Kind::Attribute, "dropped"},
                                 {Parameter::Kind::Attribute, "shifted"},
                                 {Parameter::Kind::Attribute, "keep"},
                                 {Parameter::Kind::Attribute, "period"},
                                 {Parameter::Kind::Attribute, "behind"},
                                 {Parameter::Kind::Attribute, "ahead"},
                                 {Parameter::Kind::Attribute, "inside", "False"},
                                 {Parameter::Kind::Attribute, "written", "False"},
                                 {Parameter::Kind::Attribute, "of_scores", "False"},
                                 {Parameter::Kind::Attribute, "scale"},
                                 {Parameter::Kind::Attribute, "fill"}};

constexpr bool is_sum(Op op) { return op == Op::AttentionRows || op == Op::AttentionColumns; }

/// A node's inputs and attributes by name; a node of the family is made of them again.
struct Parts {
  NodeId q, k, c = kNoNode, log_sum = kNoNode, mask = kNoNode, state = kNoNode, shift = kNoNode;
  std::vector<NodeId> factors;
  int64_t keep, period, behind, ahead;
  bool inside, written, of_scores;
  int64_t scale, fill;

  Parts with(NodeId a, NodeId b) const {
    Parts p = *this;
    p.factors.insert(p.factors.end(), {a, b});
    return p;
  }
  Parts without(size_t factor) const {
    Parts p = *this;
    const auto at = p.factors.begin() + static_cast<ptrdiff_t>(2 * factor);
    p.factors.erase(at, at + 2);
    return p;
  }
  /// What a derivative by the scores is a sum of.
  Parts scored() const {
    Parts p = *this;
    p.of_scores = true;
    return p;
  }
  Parts unshifted() const {
    Parts p = *this;
    p.shift = kNoNode;
    return p;
  }
  /// Of the plain exponentials.
  Parts plain() const {
    Parts p = unshifted();
    p.state = kNoNode;
    p.factors.clear();
    return p;
  }
};

Parts parts(const Graph& g, NodeId id) {
  const auto a = attributes<AttentionAttributes>(g, id);
  const AttentionInputs at = attention_inputs(g[id].op, a);
  auto input = [&](int k) { return k < 0 ? kNoNode : g.input(id, k); };
  Parts p{.q = g.input(id, 0),
          .k = g.input(id, 1),
          .factors = {},
          .keep = a.keep,
          .period = a.period,
          .behind = a.behind,
          .ahead = a.ahead,
          .inside = a.inside,
          .written = a.written,
          .of_scores = a.of_scores,
          .scale = a.scale,
          .fill = a.fill};
  p.c = input(at.c), p.log_sum = input(at.log_sum), p.mask = input(at.mask);
  p.state = input(at.state), p.shift = input(at.shift);
  for (int k = at.factors; k < g[id].input_count; ++k) p.factors.push_back(g.input(id, k));
  return p;
}

NodeId build(Graph& g, Op op, const Parts& p) {
  const bool of_scores = p.of_scores && is_sum(op);
  std::vector<NodeId> in{p.q, p.k};
  for (NodeId x : {p.c, p.log_sum, p.mask, p.state, p.shift})
    if (x != kNoNode) in.push_back(x);
  in.insert(in.end(), p.factors.begin(), p.factors.end());
  const AttentionAttributes a{
      p.mask != kNoNode, p.state != kNoNode, p.shift != kNoNode, p.keep,    p.period, p.behind,
      p.ahead,           p.inside,           p.written,          of_scores, p.scale,  p.fill};
  return make(g, op, {in, encode(a)});
}

NodeId log_sums(Graph& g, Parts p) {
  p = p.plain();
  p.c = p.log_sum = kNoNode;
  return build(g, Op::AttentionLogSum, p);
}

NodeId rows(Graph& g, Parts p, NodeId c) {
  p.c = c;
  return build(g, Op::AttentionRows, p);
}

NodeId columns(Graph& g, Parts p, NodeId c) {
  p.c = c;
  return build(g, Op::AttentionColumns, p);
}

NodeId sum_of(Graph& g, Op op, const Parts& p, NodeId c) {
  return attention_by_keys(op) ? columns(g, p, c) : rows(g, p, c);
}

NodeId plus(Graph& g, NodeId a, NodeId b) {
  return a == kNoNode ? b : b == kNoNode ? a : binary(g, Op::Add, a, b);
}
NodeId minus(Graph& g, NodeId x) { return unary(g, Op::Neg, x); }

/// x with each of its rows multiplied by that row's number.
NodeId times(Graph& g, NodeId column, NodeId x) {
  return binary(g, Op::Mul, broadcast_to(g, cast(g, column, g.dtype(x)), Dims(g.dims(x))), x);
}

/// The products of rows, [..., 1], as wide as normalisers are.
NodeId dots(Graph& g, NodeId a, NodeId b) {
  const DType t = wide(g.dtype(a));
  Dims to = g.dims(a);
  const int64_t last[] = {static_cast<int64_t>(to.size()) - 1};
  to.back() = 1;
  return reshape(g, sum(g, binary(g, Op::Mul, cast(g, a, t), cast(g, b, t)), last), to);
}

/// x with its heads in front of its rows, and back.
NodeId outside(Graph& g, NodeId x, bool inside) {
  if (!inside) return x;
  const size_t rank = g.dims(x).size();
  return move_axis(g, x, rank - 2, rank - 3);
}

/// A normaliser's only part, or the second of two, which derivatives go through; and back.
NodeId varying(Graph& g, const Parts& p, NodeId log_sum) {
  if (!p.written) return log_sum;
  SliceSpec s{Dims(g.dims(log_sum).size(), 0), g.dims(log_sum), Dims(g.dims(log_sum).size(), 1)};
  s.start.back() = s.size.back() = 1;
  return slice(g, log_sum, s);
}
NodeId as_normaliser(Graph& g, const Parts& p, NodeId x) {
  if (!p.written || x == kNoNode) return x;
  Dims dims = g.dims(x), start = dims;
  std::ranges::fill(start, 0);
  dims.back() = 2, start.back() = 1;
  return slice_scatter(g, x, dims, start, Dims(dims.size(), 1));
}

/// How a product q . k changes the scores.
NodeId scaled(Graph& g, const Parts& p, NodeId x) {
  const auto scale = std::bit_cast<double>(p.scale);
  return scale == 1 ? x : binary(g, Op::Mul, x, constant(g, g.dtype(x), Dims(g.dims(x)), scale));
}

/// w of the family's sums, whole, heads outside: what a derivative by the mask is.
NodeId matrix(Graph& g, const Parts& p) {
  const DType t = wide(g.dtype(p.q));
  auto scores = [&](NodeId a, NodeId b) {
    a = cast(g, outside(g, a, p.inside), t), b = cast(g, outside(g, b, p.inside), t);
    return matmul(g, a, b, false, true);
  };
  NodeId s = scaled(g, p, scores(p.q, p.k));
  const Dims dims = g.dims(s);
  auto full = [&](double v) { return constant(g, t, dims, v); };
  const NodeId none = full(-std::numeric_limits<double>::infinity()), zero = full(0);
  const NodeId mask = p.mask == kNoNode ? kNoNode : broadcast_to(g, p.mask, dims);
  const bool bools = mask != kNoNode && g.dtype(mask) == DType::Bool;
  if (bools)
    s = select(g, mask, full(std::bit_cast<double>(p.fill)), s);
  else if (mask != kNoNode)
    s = binary(g, Op::Add, s, cast(g, mask, t));
  const int last = narrow<int>(dims.size()) - 1;
  auto hide = [&](int64_t most, int from, int to) {
    if (most >= std::max(dims[last], dims[last - 1])) return;
    const NodeId by =
        binary(g, Op::Sub, iota(g, DType::Int64, dims, to), iota(g, DType::Int64, dims, from));
    s = select(g,
               binary(g, Op::Greater, by,
                      constant_bits(g, DType::Int64, dims, static_cast<uint64_t>(most))),
               none, s);
  };
  hide(p.ahead, last - 1, last);
  hide(p.behind, last, last - 1);
  const NodeId hidden = binary(g, Op::Equal, s, none);
  NodeId above = s;
  if (p.written) {
    SliceSpec first{Dims(dims.size(), 0), g.dims(p.log_sum), Dims(dims.size(), 1)};
    first.size.back() = 1;
    above = binary(g, Op::Sub, s, broadcast_to(g, slice(g, p.log_sum, first), dims));
  }
  above = binary(g, Op::Sub, above,
                 broadcast_to(g, outside(g, varying(g, p, p.log_sum), p.inside), dims));
  NodeId e = p.written ? unary(g, Op::Exp, above)
                       : select(g, hidden, zero, unary(g, Op::Exp, select(g, hidden, zero, above)));
  NodeId w = kNoNode;
  for (size_t k = 0; k < p.factors.size(); k += 2) {
    const NodeId factor = scores(p.factors[k], p.factors[k + 1]);
    w = w == kNoNode ? factor : binary(g, Op::Mul, w, factor);
  }
  if (p.state != kNoNode) {
    const auto keep = std::bit_cast<double>(p.keep);
    const int64_t heads = product(dims, 0, dims.size() - 2);
    const Dims drawn{1, p.period, dims[last - 1], dims[last]};
    const Dims again{heads / std::max<int64_t>(1, p.period), p.period, dims[last - 1], dims[last]};
    const NodeId u = reshape(g, broadcast_to(g, random_uniform(g, p.state, drawn), again), dims);
    const NodeId kept = binary(g, Op::Less, u, constant(g, DType::Float32, dims, keep));
    const NodeId z = select(g, kept, full(1 / keep), zero);
    w = w == kNoNode ? z : binary(g, Op::Mul, z, w);
  }
  if (p.shift != kNoNode) {
    const NodeId d = broadcast_to(g, outside(g, p.shift, p.inside), dims);
    w = binary(g, Op::Sub, w == kNoNode ? full(1) : w, d);
  }
  if (w != kNoNode) e = binary(g, Op::Mul, e, w);
  return bools && p.of_scores ? select(g, mask, zero, e) : e;
}

/// Summed over the axes along which the mask is broadcast.
NodeId like_mask(Graph& g, NodeId w, NodeId mask) {
  const Dims to = g.dims(mask), from = g.dims(w);
  Dims axes;
  for (size_t k = 0; k < to.size(); ++k)
    if (to[k] != from[k]) axes.push_back(static_cast<int64_t>(k));
  return cast(g, reshape(g, axes.empty() ? w : sum(g, w, axes), to), g.dtype(mask));
}

class AttentionFamily : public Spec {
 public:
  explicit AttentionFamily(Op op)
      : Spec(op, Form::Attend, kAttributes<AttentionAttributes>, kCalled) {}

  size_t input_count() const override { return kMany; }
  const char* not_in_onnx() const override {
    return "networks are recorded with products and a softmax instead";
  }

  Type infer(const Graph& g, const Draft& d) const override {
    const auto a = decode<AttentionAttributes>(d.attributes);
    const AttentionInputs at = attention_inputs(op, a);
    const auto n = narrow<int>(d.inputs.size());
    require(n >= at.factors && (n - at.factors) % 2 == 0 && (is_sum(op) || n == at.factors) &&
                (is_sum(op) || !a.shifted) && (op != Op::AttentionLogSum || !a.dropped),
            ErrorKind::Value, name(), ": ", n, " inputs are not what its attributes ask for");
    const NodeId q = d.inputs[0], k = d.inputs[1];
    const DType type = g.dtype(q);
    const size_t rank = g.dims(q).size();
    require(is_floating(type), ErrorKind::Type, name(), ": queries must be floating, got ",
            gradcell::name(type));
    auto dims_of = [&](NodeId x) {
      return g.dims(x).size() == rank ? heads_outside(g.dims(x), a.inside) : Dims();
    };
    auto refuse = [&](const char* what, NodeId x) {
      fail(ErrorKind::Value, name(), ": ", what, " of shape ", to_string(g.dims(x)),
           " do not fit queries of shape ", to_string(g.dims(q)), " and keys of shape ",
           to_string(g.dims(k)));
    };
    require(rank >= (a.inside ? 3 : 2), ErrorKind::Value, name(), ": queries of shape ",
            listed(g.dims(q)), " have too few dimensions");
    const Dims dq = dims_of(q), dk = dims_of(k);
    if (dk.empty() || dk.back() != dq.back() || !std::equal(dq.begin(), dq.end() - 2, dk.begin()))
      refuse("keys", k);
    check_same_dtype(name(), type, g.dtype(k));
    auto check = [&](const char* what, NodeId x, DType wanted, const Dims& like, int64_t width) {
      const Dims dims = dims_of(x);
      if (dims.empty() || !std::equal(dims.begin(), dims.end() - 1, like.begin()) ||
          (width >= 0 && dims.back() != width))
        refuse(what, x);
      check_same_dtype(name(), wanted, g.dtype(x));
    };
    if (at.c >= 0)
      check("values", d.inputs[static_cast<size_t>(at.c)], type, attention_by_keys(op) ? dq : dk,
            -1);
    for (int column : {at.log_sum, at.shift})
      if (column >= 0)
        check("numbers of rows", d.inputs[static_cast<size_t>(column)], wide(type), dq,
              a.written && column == at.log_sum ? 2 : 1);
    if (at.mask >= 0) check_mask(g, d.inputs[static_cast<size_t>(at.mask)], type, dq, dk);
    if (at.state >= 0) check_dropout(g, d.inputs[static_cast<size_t>(at.state)], a, dq);
    for (int f = at.factors; f < n; f += 2) {
      const NodeId x = d.inputs[static_cast<size_t>(f)], y = d.inputs[static_cast<size_t>(f) + 1];
      check("factors", x, type, dq, -1);
      check("factors", y, type, dk, g.dims(x).back());
    }
    Dims to = attention_by_keys(op) ? dk : dq;
    to.back() = at.c < 0 ? (a.written ? 2 : 1) : g.dims(d.inputs[static_cast<size_t>(at.c)]).back();
    return {at.c < 0 ? wide(type) : type, heads_outside(to, a.inside)};
  }

  NodeId adjoint(Graph& g, NodeId id, int k, NodeId dy) const override {
    const AttentionInputs at =
        attention_inputs(op, gradcell::attributes<AttentionAttributes>(g, id));
    Parts p = parts(g, id);
    if (k == at.state || (k == at.mask && !is_floating(g.dtype(p.mask)))) return kNoNode;
    if (op == Op::AttentionLogSum) {
      p.log_sum = id;
      dy = varying(g, p, dy);
      if (k == 0) return scaled(g, p, times(g, dy, rows(g, p.scored(), p.k)));
      if (k == 1) return scaled(g, p, columns(g, p.scored(), times(g, dy, p.q)));
      return like_mask(g, times(g, outside(g, dy, p.inside), matrix(g, p)), p.mask);
    }
    if (op == Op::Attention) {
      p.log_sum = log_sums(g, p);
      if (k == at.c) return columns(g, p, dy);
      p = p.with(dy, p.c);
      p.shift = dots(g, dy, id);
      if (k == 0) return scaled(g, p, rows(g, p.scored(), p.k));
      if (k == 1) return scaled(g, p, columns(g, p.scored(), p.q));
      return like_mask(g, matrix(g, p), p.mask);
    }
    return adjoint_of_sum(g, id, p, at, k, dy);
  }

  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    const AttentionInputs at =
        attention_inputs(op, gradcell::attributes<AttentionAttributes>(g, id));
    Parts p = parts(g, id);
    auto of = [&](int k) { return k < 0 || dx.empty() ? kNoNode : dx[static_cast<size_t>(k)]; };
    if (op == Op::AttentionLogSum) {
      p.log_sum = id;
      return as_normaliser(g, p, mean_change(g, p, of(0), of(1), of(at.mask)));
    }
    if (op == Op::Attention) {
      p.log_sum = log_sums(g, p);
      NodeId y = changed_scores(g, Op::AttentionRows, p, of(0), of(1), of(at.mask));
      if (const NodeId l = mean_change(g, p.plain(), of(0), of(1), of(at.mask)); l != kNoNode)
        y = plus(g, y, minus(g, times(g, l, id)));
      return of(at.c) == kNoNode ? y : plus(g, y, rows(g, p, of(at.c)));
    }
    return tangent_of_sum(g, id, p, at, dx);
  }

  Law law() const override { return Law::Smooth; }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    const auto a = gradcell::attributes<AttentionAttributes>(g, id);
    const AttentionInputs at = attention_inputs(op, a);
    std::vector<NodeId> in;
    for (size_t k = 0; k < b.inputs.size(); ++k) {
      const auto place = narrow<int>(k);
      const NodeId x = b.inputs[k];
      if (place == at.state) {
        require(!b.batched[k], ErrorKind::Value, name(),
                ": the state of random numbers cannot differ between examples");
        in.push_back(x);
      } else if (place == at.mask && !b.batched[k]) {
        in.push_back(reshape(g, x, behind_batch(1, g.dims(x))));
      } else {
        in.push_back(over_batch(g, b, k));
      }
    }
    return make(g, op, {in, Dims(g.attrs(id).begin(), g.attrs(id).end())});
  }

 private:
  void check_mask(const Graph& g, NodeId mask, DType type, const Dims& dq, const Dims& dk) const {
    const Dims& dims = g.dims(mask);
    const size_t rank = dq.size();
    bool fits = dims.size() == rank && dims.back() == dk[rank - 2];
    for (size_t k = 0; fits && k + 1 < rank; ++k) fits = dims[k] == 1 || dims[k] == dq[k];
    require(fits, ErrorKind::Value, name(), ": a mask of shape ", listed(dims),
            " does not fit queries of shape ", listed(dq), " and keys of shape ", listed(dk));
    if (g.dtype(mask) != DType::Bool) check_same_dtype(name(), type, g.dtype(mask));
  }

  void check_dropout(const Graph& g, NodeId state, const AttentionAttributes& a,
                     const Dims& dq) const {
    require(g.dtype(state) == DType::Int64 && g.dims(state) == Dims{2}, ErrorKind::Type, name(),
            ": the state must be int64 of shape [2]");
    const auto keep = std::bit_cast<double>(a.keep);
    require(keep > 0 && keep <= 1, ErrorKind::Value, name(), ": keys are kept with probability ",
            keep, ", which must be above 0 and at most 1");
    const int64_t heads = product(dq, 0, dq.size() - 2);
    require(a.period > 0 ? heads % a.period == 0 : heads == 0, ErrorKind::Value, name(), ": ",
            heads, " heads are no multiple of the ", a.period, " that draw random numbers");
  }

  /// sum_n exp(s - l) ds: how the normaliser changes with the scores. p: of the plain exponentials.
  static NodeId mean_change(Graph& g, const Parts& p, NodeId dq, NodeId dk, NodeId dmask) {
    NodeId l = kNoNode;
    if (dq != kNoNode) l = scaled(g, p, dots(g, dq, rows(g, p.scored(), p.k)));
    if (dk != kNoNode) l = plus(g, l, scaled(g, p, dots(g, p.q, rows(g, p.scored(), dk))));
    if (dmask != kNoNode) {
      const NodeId e = matrix(g, p);
      const NodeId change = cast(g, broadcast_to(g, dmask, Dims(g.dims(e))), g.dtype(e));
      l = plus(g, l, outside(g, dots(g, e, change), p.inside));
    }
    return l;
  }

  /// The sum p with each of its terms multiplied by ds. p has no shift.
  static NodeId changed_scores(Graph& g, Op op, const Parts& p, NodeId dq, NodeId dk,
                               NodeId dmask) {
    NodeId y = kNoNode;
    const Parts s = p.scored();
    if (dq != kNoNode) y = scaled(g, p, sum_of(g, op, s.with(dq, p.k), p.c));
    if (dk != kNoNode) y = plus(g, y, scaled(g, p, sum_of(g, op, s.with(p.q, dk), p.c)));
    if (dmask == kNoNode) return y;
    const NodeId w = matrix(g, p), c = cast(g, outside(g, p.c, p.inside), g.dtype(w));
    const NodeId change = cast(g, broadcast_to(g, dmask, Dims(g.dims(w))), g.dtype(w));
    const NodeId term = matmul(g, binary(g, Op::Mul, w, change), c, attention_by_keys(op), false);
    return plus(g, y, outside(g, cast(g, term, g.dtype(p.c)), p.inside));
  }

  /// What a sum with a shift has beside the same sum without: sums of plain exponentials, of
  /// minus d times the vectors that belong to queries.
  static NodeId less(Graph& g, const Parts& p, NodeId x) { return minus(g, times(g, p.shift, x)); }

  NodeId adjoint_of_sum(Graph& g, NodeId id, const Parts& p, const AttentionInputs& at, int k,
                        NodeId dy) const {
    // Per query and per key: what the terms' weights are multiplied with.
    const NodeId a = attention_by_keys(op) ? p.c : dy, b = attention_by_keys(op) ? dy : p.c;
    if (k == at.c) return attention_by_keys(op) ? rows(g, p, dy) : columns(g, p, dy);
    if (k == at.log_sum)
      return as_normaliser(
          g, p, minus(g, attention_by_keys(op) ? dots(g, p.c, rows(g, p, dy)) : dots(g, dy, id)));
    if (k == at.shift) return minus(g, dots(g, a, rows(g, p.plain(), b)));
    const Parts whole = p.unshifted().with(a, b);
    if (k >= at.factors) {
      const auto factor = static_cast<size_t>(k - at.factors) / 2;
      const Parts others = whole.without(factor);
      return (k - at.factors) % 2 == 0 ? rows(g, others, p.factors[2 * factor + 1])
                                       : columns(g, others, p.factors[2 * factor]);
    }
    auto by = [&](const Parts& of) {
      return k == 0   ? scaled(g, p, rows(g, of.scored(), p.k))
             : k == 1 ? scaled(g, p, columns(g, of.scored(), p.q))
                      : like_mask(g, matrix(g, of), p.mask);
    };
    const NodeId y = by(whole);
    return p.shift == kNoNode ? y : plus(g, y, by(p.plain().with(less(g, p, a), b)));
  }

  NodeId tangent_of_sum(Graph& g, NodeId id, const Parts& p, const AttentionInputs& at,
                        std::span<const NodeId> dx) const {
    auto of = [&](int k) { return k < 0 ? kNoNode : dx[static_cast<size_t>(k)]; };
    auto weighted = [&](NodeId column, const Parts& by, NodeId c) {  // minus the column's multiple
      return attention_by_keys(op) ? columns(g, by, minus(g, times(g, column, c)))
                                   : minus(g, times(g, column, rows(g, by, c)));
    };
    NodeId y = of(at.c) == kNoNode ? kNoNode : sum_of(g, op, p, of(at.c));
    if (of(at.log_sum) != kNoNode) {
      const NodeId l = varying(g, p, of(at.log_sum));
      y = plus(g, y, attention_by_keys(op) ? weighted(l, p, p.c) : minus(g, times(g, l, id)));
    }
    if (of(at.shift) != kNoNode) y = plus(g, y, weighted(of(at.shift), p.plain(), p.c));
    const Parts bare = p.unshifted();
    for (size_t f = 0; f < p.factors.size(); ++f) {
      const NodeId change = of(at.factors + narrow<int>(f));
      if (change == kNoNode) continue;
      Parts changed = bare;
      changed.factors[f] = change;
      y = plus(g, y, sum_of(g, op, changed, p.c));
    }
    const NodeId dq = of(0), dk = of(1), dmask = of(at.mask);
    if (dq == kNoNode && dk == kNoNode && dmask == kNoNode) return y;
    y = plus(g, y, changed_scores(g, op, bare, dq, dk, dmask));
    if (p.shift == kNoNode) return y;
    Parts rest = p.plain();
    if (attention_by_keys(op)) {
      rest.c = less(g, p, p.c);
      return plus(g, y, changed_scores(g, op, rest, dq, dk, dmask));
    }
    return plus(g, y, less(g, p, changed_scores(g, op, rest, dq, dk, dmask)));
  }
};

}  // namespace

SPEC(Attention, AttentionFamily)
SPEC(AttentionLogSum, AttentionFamily)
SPEC(AttentionRows, AttentionFamily)
SPEC(AttentionColumns, AttentionFamily)

bool attention_by_keys(Op op) { return op == Op::AttentionColumns; }

AttentionInputs attention_inputs(Op op, const AttentionAttributes& a) {
  AttentionInputs in;
  int next = 2;
  if (op != Op::AttentionLogSum) in.c = next++;
  if (is_sum(op)) in.log_sum = next++;
  if (a.masked) in.mask = next++;
  if (a.dropped) in.state = next++;
  if (a.shifted) in.shift = next++;
  in.factors = next;
  return in;
}

Dims heads_outside(const Dims& dims, bool inside) {
  Dims to = dims;
  if (inside) std::swap(to[to.size() - 2], to[to.size() - 3]);
  return to;
}

}  // namespace gradcell

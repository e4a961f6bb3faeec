// A loop's derivatives. Both are linear in what is given: the tangent's loop runs as the loop does,
// the adjoint's the other way, and both read nodes of the body in all steps, which the loop keeps
// for them. A cotangent of what is the same in all steps is a sum over steps: where that is a
// matrix product, or a sum, it takes place outside of the loop, all steps at once.
#include <functional>

#include "ad/batching.h"
#include "ad/loops.h"
#include "ad/transform.h"
#include "ops/families.h"
#include "ops/ops.h"

namespace gradcell::ad {

namespace {

/// A loop that is differentiated: its body, and what passes add to that. The derivative is linear
/// in what is added; of what was there it reads nodes in all steps, which the loop keeps for it.
class Derived {
 public:
  Derived(Graph& g, const Rule::Call& call) : g_(g), call_(call) {
    for (NodeId id : call.outputs)
      if (id != kNoNode) any_ = id;
    numbers_.assign(g.attrs(any_).begin(), g.attrs(any_).end());
    a_ = decode<LoopAttributes>(numbers_);
    renew();
  }

  /// The body as it is, without what was added.
  void renew() {
    body_ = read_body(a_.body, g_.settings());
    own_ = narrow<NodeId>(body_.graph.size());
    parts_ = {};
    parts_.steps = a_.steps;
    std::vector<NodeId> entered(body_.inputs.begin(),
                                body_.inputs.begin() + a_.carried + a_.sliced);
    varied_ = dependents(body_.graph, entered);
    depends_.clear();
  }

  size_t carried() const { return static_cast<size_t>(a_.carried); }
  size_t sliced() const { return static_cast<size_t>(a_.sliced); }
  bool is_carried(size_t input) const { return input < carried(); }
  bool is_sliced(size_t input) const { return !is_carried(input) && input < carried() + sliced(); }

  /// Carried inputs that something of `active` (by input) reaches, too.
  std::vector<uint8_t> reached(std::vector<uint8_t> active) const {
    for (bool more = true; more;) {
      more = false;
      std::vector<NodeId> entered;
      for (size_t k = 0; k < active.size(); ++k)
        if (active[k]) entered.push_back(body_.inputs[k]);
      const std::vector<uint8_t> depends = dependents(body_.graph, entered);
      for (size_t k = 0; k < carried(); ++k)
        if (!active[k] && floating(k) && !depends.empty() && depends[body_.next[k]])
          active[k] = more = true;
    }
    return active;
  }

  bool floating(size_t input) const { return is_floating(body_.graph.dtype(body_.inputs[input])); }

  NodeId zeros(Graph& g, NodeId like) const {
    return constant(g, body_.graph.dtype(like), Dims(body_.graph.dims(like)), 0);
  }
  /// A new node of the body, like one that is there.
  NodeId added_like(NodeId like) {
    return leaf(body_.graph, body_.graph.dtype(like), Dims(body_.graph.dims(like)));
  }

  /// A node that the body had, in all steps.
  NodeId in_all_steps(NodeId id) {
    auto a = a_;
    a.result = id, a.last = false;
    return loop_result(g_, call_.inputs, a);
  }

  /// The loop of what was added.
  MadeLoop made() {
    std::vector<NodeId> roots = parts_.kept;
    for (const auto& c : parts_.carried) roots.push_back(c.next);
    keep(std::move(roots));
    return MadeLoop(g_, body_.graph, parts_);
  }

  /// x summed over all steps, once the loop is there: products and sums over steps take place
  /// outside, all steps at once.
  std::function<NodeId(const MadeLoop&)> total(NodeId x);

  Graph& g_;
  const Rule::Call& call_;
  NodeId any_ = kNoNode;
  Dims numbers_;
  LoopAttributes a_{};
  Body body_;
  NodeId own_ = 0;  ///< nodes from here on were added
  LoopParts parts_{};

 private:
  using Later = std::function<NodeId(const MadeLoop&)>;

  /// Whether a node is the same in all steps.
  bool is_same(NodeId id) {
    if (id < own_) return !varied_[id];
    if (depends_.size() != body_.graph.size()) {
      std::vector<NodeId> entered;
      for (NodeId k = 0; k < own_; ++k)
        if (varied_[k]) entered.push_back(k);
      for (const auto& c : parts_.carried) entered.push_back(c.input);
      for (const auto& s : parts_.sliced) entered.push_back(s.input);
      depends_ = dependents(body_.graph, entered);
      depends_.resize(body_.graph.size(), 0);
    }
    return !depends_[id];
  }

  /// The value of what is the same in all steps.
  NodeId outside(NodeId id) {
    for (size_t k = carried() + sliced(); k < body_.inputs.size(); ++k)
      if (body_.inputs[k] == id) return call_.inputs[k];
    for (const auto& s : parts_.same)
      if (s.input == id) return s.value;
    std::vector<NodeId> in;
    for (NodeId i : body_.graph.inputs(id)) in.push_back(outside(i));
    return rebuild(g_, body_.graph, id, in);
  }

  /// x in all steps, once the loop is there.
  Later steps_of(NodeId x) {
    if (x < own_) return [v = in_all_steps(x)](const MadeLoop&) { return v; };
    for (const auto& s : parts_.sliced)
      if (s.input == x) return [v = s.value](const MadeLoop&) { return v; };
    parts_.kept.push_back(x);
    return [x](const MadeLoop& loop) { return loop.all(x); };
  }

  /// Makes inputs of what the roots read of the body's own nodes. A broadcast is read before it is
  /// one, a conversion to a wider type likewise.
  void keep(std::vector<NodeId> roots) {
    std::vector<uint8_t> seen(body_.graph.size(), 0);
    for (const auto& c : parts_.carried) seen[c.input] = 1;
    for (const auto& s : parts_.sliced) seen[s.input] = 1;
    for (const auto& s : parts_.same) seen[s.input] = 1;
    while (!roots.empty()) {
      const NodeId id = roots.back();
      roots.pop_back();
      if (seen[id]) continue;
      seen[id] = 1;
      const auto input = std::ranges::find(body_.inputs, id);
      const bool is_input = input != body_.inputs.end();
      if (id < own_ && varied_[id] && !(computed_again(id) && !is_input)) {
        parts_.sliced.push_back({id, in_all_steps(id)});
      } else if (is_input) {
        parts_.same.push_back(
            {id, call_.inputs[static_cast<size_t>(input - body_.inputs.begin())]});
      } else {
        for (NodeId i : body_.graph.inputs(id)) roots.push_back(i);
      }
    }
  }

  bool computed_again(NodeId id) const {
    const Graph& b = body_.graph;
    if (is_broadcast(b, id) || form(b, id) == Form::Same) return true;
    return form(b, id) == Form::Convert &&
           item_size(b.dtype(b.input(id, 0))) < item_size(b.dtype(id));
  }

  /// Axis 0 of all steps, one behind the other, as one.
  NodeId rows_of_all(NodeId x) { return join_axes(g_, x, 0); }

  Later summed_product(NodeId x);
  Later carried_sum(NodeId x);

  std::vector<uint8_t> varied_;   ///< by node that the body had
  std::vector<uint8_t> depends_;  ///< by node: whether it differs from step to step
};

Derived::Later Derived::summed_product(NodeId x) {
  const Graph& b = body_.graph;
  const auto p = attributes<ProductAttributes>(b, x);
  const NodeId left = b.input(x, 0), right = b.input(x, 1);
  if (b.dims(x).size() != 2 || !is_floating(b.dtype(x))) return {};
  if (is_same(left))
    return [this, p, v = outside(left), r = total(right)](const MadeLoop& loop) {
      return matmul(g_, v, r(loop), p.transpose_a, p.transpose_b);
    };
  if (is_same(right))
    return [this, p, v = outside(right), l = total(left)](const MadeLoop& loop) {
      return matmul(g_, l(loop), v, p.transpose_a, p.transpose_b);
    };
  if (!p.transpose_a || p.transpose_b) return {};
  return [this, l = steps_of(left), r = steps_of(right)](const MadeLoop& loop) {
    return matmul(g_, rows_of_all(l(loop)), rows_of_all(r(loop)), true, false);
  };
}

Derived::Later Derived::carried_sum(NodeId x) {
  Graph& b = body_.graph;
  const DType type = b.dtype(x), sums = wide(type);
  const Dims dims = b.dims(x);
  const NodeId input = leaf(b, sums, dims);
  const NodeId next = binary(b, Op::Add, input, cast(b, x, sums));
  const size_t place = parts_.carried.size();
  parts_.carried.push_back({input, next, constant(g_, sums, dims, 0)});
  return [this, type, place](const MadeLoop& loop) { return cast(g_, loop.last(place), type); };
}

Derived::Later Derived::total(NodeId x) {
  const Graph& b = body_.graph;
  const Dims dims = b.dims(x);
  if (is_same(x))
    return [this, v = outside(x), dims](const MadeLoop&) {
      const auto n = static_cast<double>(a_.steps);
      return binary(g_, Op::Mul, v, constant(g_, g_.dtype(v), dims, n));
    };
  if (form(b, x) == Form::Same && b[x].input_count == 1)  // with more it waits for others
    return [this, dims, t = total(b.input(x, 0))](const MadeLoop& loop) {
      return reshape(g_, t(loop), dims);
    };
  switch (info(form(b, x)).tile) {
    case TileForm::Element: {
      const Op op = b[x].op;
      if (op == Op::Neg)
        return [this, t = total(b.input(x, 0))](const MadeLoop& loop) {
          return unary(g_, Op::Neg, t(loop));
        };
      if (op != Op::Add && op != Op::Sub) break;
      const NodeId left = b.input(x, 0), right = b.input(x, 1);
      return [this, op, l = total(left), r = total(right)](const MadeLoop& loop) {
        return binary(g_, op, l(loop), r(loop));
      };
    }
    case TileForm::Move:
      if (const auto perm = permutation(b, x))
        return [this, perm, t = total(b.input(x, 0))](const MadeLoop& loop) {
          return transpose(g_, t(loop), *perm);
        };
      if (const auto box = placement(b, x))
        return [this, dims, box, t = total(box->from)](const MadeLoop& loop) {
          return slice_scatter(g_, t(loop), dims, box->start, box->step);
        };
      break;
    case TileForm::Convert: {
      const NodeId from = b.input(x, 0);
      if (!is_floating(b.dtype(from))) break;
      return [this, type = b.dtype(x), t = total(from)](const MadeLoop& loop) {
        return cast(g_, t(loop), type);
      };
    }
    case TileForm::Reduce: {
      if (!is_sum(b, x)) break;
      Dims axes{0};
      for (int64_t axis : b.attrs(x)) axes.push_back(axis + 1);
      return [this, axes, s = steps_of(b.input(x, 0))](const MadeLoop& loop) {
        return sum(g_, s(loop), axes);
      };
    }
    case TileForm::Product:
      if (Later later = summed_product(x)) return later;
      break;
    case TileForm::Call:
      break;
  }
  return carried_sum(x);
}

class LoopRule : public Rule {
 public:
  std::string name() const override { return "Loop"; }
  bool has_adjoint() const override { return true; }
  bool has_tangent() const override { return true; }

  std::vector<NodeId> adjoint(Graph& g, const Call& call, std::span<const NodeId> dy,
                              const std::vector<bool>& wanted) const override {
    Derived d(g, call);
    const std::vector<uint8_t> active = d.reached({wanted.begin(), wanted.end()});
    const size_t carried = d.carried();
    // Which carried ones have a cotangent: those that some result is made of.
    std::vector<uint8_t> has(carried, 0);
    std::vector<NodeId> last(carried, kNoNode);
    for (size_t o = 0; o < call.outputs.size(); ++o) {
      if (call.outputs[o] == kNoNode || dy[o] == kNoNode) continue;
      const auto a = attributes<LoopAttributes>(g, call.outputs[o]);
      if (!a.last) continue;
      const auto k = static_cast<size_t>(a.result);
      last[k] = accumulate(g, last[k], dy[o]);
      has[k] = active[k];
    }
    std::vector<NodeId> wrt, dx, dnext;
    std::vector<size_t> inputs;
    for (bool more = true; more;) {
      more = false;
      d.renew();
      d.parts_.reverse = !d.a_.reverse;
      wrt.clear(), inputs.clear(), dnext.assign(carried, kNoNode);
      std::vector<NodeId> outputs, cotangents;
      for (size_t k = 0; k < carried; ++k) {
        if (!has[k]) continue;
        dnext[k] = d.added_like(d.body_.inputs[k]);
        outputs.push_back(d.body_.next[k]), cotangents.push_back(dnext[k]);
      }
      for (size_t o = 0; o < call.outputs.size(); ++o) {
        if (call.outputs[o] == kNoNode || dy[o] == kNoNode) continue;
        const auto a = attributes<LoopAttributes>(g, call.outputs[o]);
        if (a.last) continue;
        const auto node = narrow<NodeId>(a.result);
        const NodeId given = d.added_like(node);
        d.parts_.sliced.push_back({given, dy[o]});
        outputs.push_back(node), cotangents.push_back(given);
      }
      for (size_t k = 0; k < d.body_.inputs.size(); ++k)
        if (active[k] && d.floating(k)) wrt.push_back(d.body_.inputs[k]), inputs.push_back(k);
      dx = ad::adjoint(d.body_.graph, outputs, cotangents, wrt);
      for (size_t i = 0; i < inputs.size(); ++i)
        if (const size_t k = inputs[i]; k < carried && dx[i] != kNoNode && !has[k])
          has[k] = more = true;
    }

    std::vector<std::function<NodeId(const MadeLoop&)>> later(call.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t k = inputs[i];
      if (!d.is_carried(k) || !has[k]) continue;
      const NodeId of = d.body_.inputs[k];
      const NodeId first = last[k] != kNoNode ? last[k] : d.zeros(g, of);
      const NodeId next = dx[i] != kNoNode ? dx[i] : d.zeros(d.body_.graph, of);
      const size_t place = d.parts_.carried.size();
      d.parts_.carried.push_back({dnext[k], next, first});
      if (wanted[k]) later[k] = [place](const MadeLoop& loop) { return loop.last(place); };
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t k = inputs[i];
      if (d.is_carried(k) || dx[i] == kNoNode || !wanted[k]) continue;
      if (!d.is_sliced(k)) {
        later[k] = d.total(dx[i]);
        continue;
      }
      d.parts_.kept.push_back(dx[i]);
      later[k] = [x = dx[i]](const MadeLoop& loop) { return loop.all(x); };
    }
    const MadeLoop loop = d.made();
    std::vector<NodeId> found;
    for (const auto& f : later) found.push_back(f ? f(loop) : kNoNode);
    return found;
  }

  std::vector<NodeId> tangent(Graph& g, const Call& call,
                              std::span<const NodeId> dx) const override {
    Derived d(g, call);
    const size_t carried = d.carried();
    std::vector<uint8_t> has(call.inputs.size(), 0);
    for (size_t k = 0; k < dx.size(); ++k) has[k] = dx[k] != kNoNode;
    std::vector<NodeId> outputs, found;
    for (bool more = true; more;) {
      more = false;
      d.renew();
      d.parts_.reverse = d.a_.reverse;
      std::vector<NodeId> wrt, tangents;
      outputs = d.body_.next;
      for (NodeId id : call.outputs) {
        if (id == kNoNode) continue;
        const auto a = attributes<LoopAttributes>(g, id);
        if (!a.last) outputs.push_back(narrow<NodeId>(a.result));
      }
      for (size_t k = 0; k < has.size(); ++k) {
        if (!has[k]) continue;
        wrt.push_back(d.body_.inputs[k]), tangents.push_back(d.added_like(wrt.back()));
      }
      found = ad::tangent(d.body_.graph, outputs, wrt, tangents);
      for (size_t k = 0; k < carried; ++k)
        if (!has[k] && found[k] != kNoNode) has[k] = more = true;
      if (more) continue;
      for (size_t k = 0, at = 0; k < has.size(); ++k) {
        if (!has[k]) continue;
        const NodeId input = tangents[at++];
        if (d.is_carried(k)) {
          const NodeId first = dx[k] != kNoNode ? dx[k] : d.zeros(g, d.body_.inputs[k]);
          const NodeId next =
              found[k] != kNoNode ? found[k] : d.zeros(d.body_.graph, d.body_.inputs[k]);
          d.parts_.carried.push_back({input, next, first});
        } else {
          (d.is_sliced(k) ? d.parts_.sliced : d.parts_.same).push_back({input, dx[k]});
        }
      }
    }
    std::vector<size_t> place(carried, 0);
    for (size_t k = 1; k < carried; ++k) place[k] = place[k - 1] + has[k - 1];
    for (size_t i = carried; i < found.size(); ++i)
      if (found[i] != kNoNode) d.parts_.kept.push_back(found[i]);
    const MadeLoop loop = d.made();
    std::vector<NodeId> dy;
    size_t at = carried;
    for (NodeId id : call.outputs) {
      dy.push_back(kNoNode);
      if (id == kNoNode) continue;
      const auto a = attributes<LoopAttributes>(g, id);
      const auto k = static_cast<size_t>(a.result);
      if (a.last)
        dy.back() = has[k] ? loop.last(place[k]) : kNoNode;
      else if (const NodeId t = found[at++]; t != kNoNode)
        dy.back() = loop.all(t);
    }
    return dy;
  }
};

}  // namespace

std::shared_ptr<const Rule> loop_rule() {
  static const auto rule = std::make_shared<const LoopRule>();
  return rule;
}

}  // namespace gradcell::ad

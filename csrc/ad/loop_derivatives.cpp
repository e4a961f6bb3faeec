// A loop's derivatives. Both are linear in what is given: the tangent's loop runs as the loop does,
// the adjoint's the other way, and both read nodes of the body in all steps, which the loop keeps
// for them. A cotangent of what is the same in all steps is a sum over steps: where that is a
// matrix product, or a sum, it takes place outside of the loop, all steps at once.
#include <algorithm>
#include <functional>
#include <unordered_set>

#include "ad/batching.h"
#include "ad/loops.h"
#include "ad/transform.h"
#include "ops/families.h"
#include "ops/ops.h"

namespace gradcell::ad {

namespace {

/// A loop that is differentiated: its body, and what passes add to that. The derivative is linear
/// in what is added; of what was there it reads nodes in all steps, which the loop keeps for it.
/// The body is read from the loop's node, or, if the loop is a recorded one, is where it was made.
class Derived {
 public:
  Derived(Graph& g, const Rule::Call& call, const RecordedLoop* recorded)
      : g_(g), call_(call), recorded_(recorded) {
    if (recorded) {
      numbers_ = recorded->attributes;
    } else {
      const NodeId any =
          *std::ranges::find_if(call.outputs, [](NodeId id) { return id != kNoNode; });
      numbers_.assign(g.attrs(any).begin(), g.attrs(any).end());
    }
    a_ = decode<LoopAttributes>(numbers_);
    renew();
  }

  /// The body as it is, without what was added.
  void renew() {
    if (recorded_) {
      inputs_.clear(), next_.clear();
      for (const auto& c : recorded_->parts.carried)
        inputs_.push_back(c.input), next_.push_back(c.next);
      for (const auto& s : recorded_->parts.sliced) inputs_.push_back(s.input);
      inputs_.insert(inputs_.end(), recorded_->same.begin(), recorded_->same.end());
    } else {
      read_ = read_body(a_.body, g_.settings());
      inputs_ = read_.inputs, next_ = read_.next;
    }
    own_ = narrow<NodeId>(graph().size());
    parts_ = {};
    parts_.steps = a_.steps;
    parts_.again = a_.again;
    const std::vector<NodeId> entered(inputs_.begin(), inputs_.begin() + a_.carried + a_.sliced);
    depends_ = dependents(graph(), entered);
    depends_.resize(own_, 0);
    if (!recorded_) return;
    std::vector<NodeId> replaced;
    for (size_t k = carried() + sliced(); k < inputs_.size(); ++k) {
      if (inputs_[k] == call_.inputs[k]) continue;
      replaced.push_back(inputs_[k]);
      parts_.same.push_back({inputs_[k], call_.inputs[k]});
    }
    replaced_ = dependents(graph(), replaced);
  }

  Graph& graph() { return recorded_ ? g_ : read_.graph; }
  const Graph& graph() const { return recorded_ ? g_ : read_.graph; }
  size_t carried() const { return static_cast<size_t>(a_.carried); }
  size_t sliced() const { return static_cast<size_t>(a_.sliced); }
  bool is_carried(size_t input) const { return input < carried(); }
  bool is_sliced(size_t input) const { return !is_carried(input) && input < carried() + sliced(); }

  /// What an output of the call is: what is carried, or a node of the body in all steps.
  struct Result {
    bool last;
    size_t carried;
    NodeId node;
  };
  Result result(size_t output) const {
    if (recorded_) {
      if (is_carried(output)) return {true, output, kNoNode};
      return {false, 0, recorded_->node.at(static_cast<int64_t>(output - carried()))};
    }
    const auto a = attributes<LoopAttributes>(g_, call_.outputs[output]);
    return {a.last, static_cast<size_t>(a.result), a.last ? kNoNode : narrow<NodeId>(a.result)};
  }

  /// Carried inputs that something of `active` (by input) reaches, too.
  std::vector<uint8_t> reached(std::vector<uint8_t> active) const {
    for (bool more = true; more;) {
      more = false;
      std::vector<NodeId> entered;
      for (size_t k = 0; k < active.size(); ++k)
        if (active[k]) entered.push_back(inputs_[k]);
      const std::vector<uint8_t> depends = dependents(graph(), entered);
      for (size_t k = 0; k < carried(); ++k)
        if (!active[k] && floating(k) && !depends.empty() && depends[next_[k]])
          active[k] = more = true;
    }
    return active;
  }

  bool floating(size_t input) const { return is_floating(graph().dtype(inputs_[input])); }

  /// Whether derivatives end at an input: at those asked for, and in a recorded loop at all, since
  /// there one may be made of another.
  bool stops(bool asked, size_t input) const { return floating(input) && (asked || recorded_); }

  NodeId zeros(Graph& g, NodeId like) const {
    return constant(g, graph().dtype(like), Dims(graph().dims(like)), 0);
  }
  /// A new node of the body.
  NodeId added(DType dtype, const Dims& dims) {
    return recorded_ ? g_.unknown(dtype, dims) : leaf(read_.graph, dtype, dims);
  }
  NodeId added_like(NodeId like) { return added(graph().dtype(like), Dims(graph().dims(like))); }

  /// The loop of what was added.
  MadeLoop made() {
    std::vector<NodeId> roots = parts_.kept;
    for (const auto& c : parts_.carried) roots.push_back(c.next);
    keep(std::move(roots));
    return MadeLoop(g_, graph(), parts_);
  }

  /// x summed over all steps, once the loop is there: products and sums over steps take place
  /// outside, all steps at once.
  std::function<NodeId(const MadeLoop&)> total(NodeId x);

  Graph& g_;
  const Rule::Call& call_;
  const RecordedLoop* recorded_;
  Dims numbers_;
  LoopAttributes a_{};
  std::vector<NodeId> inputs_, next_;
  LoopParts parts_{};

 private:
  using Later = std::function<NodeId(const MadeLoop&)>;

  /// Whether the loop can be asked for a node in all steps.
  bool is_in_loop(NodeId id) const {
    return recorded_ ? recorded_->number.contains(id) : id < own_;
  }
  NodeId in_all_steps(NodeId id) {
    if (recorded_) return recorded_result(g_, *recorded_, recorded_->number.at(id), false);
    auto a = a_;
    a.result = id, a.last = false;
    return loop_result(g_, call_.inputs, a);
  }

  /// Whether a node is the same in all steps.
  bool is_same(NodeId id) {
    if (id >= depends_.size()) {
      std::unordered_set<NodeId> entered;
      for (const auto& c : parts_.carried) entered.insert(c.input);
      for (const auto& s : parts_.sliced) entered.insert(s.input);
      for (auto k = narrow<NodeId>(depends_.size()); k < graph().size(); ++k)
        depends_.push_back(
            entered.contains(k) ||
            std::ranges::any_of(graph().inputs(k), [&](NodeId i) { return depends_[i] != 0; }));
    }
    return !depends_[id];
  }

  /// The value of what is the same in all steps.
  NodeId outside(NodeId id) {
    for (size_t k = carried() + sliced(); k < inputs_.size(); ++k)
      if (inputs_[k] == id) return call_.inputs[k];
    if (recorded_ && id < own_ && !replaced_[id]) return id;
    for (const auto& s : parts_.same)
      if (s.input == id) return s.value;
    std::vector<NodeId> in;
    for (NodeId i : graph().inputs(id)) in.push_back(outside(i));
    return rebuild(g_, graph(), id, in);
  }

  /// x in all steps, once the loop is there.
  Later steps_of(NodeId x) {
    if (is_in_loop(x)) return [v = in_all_steps(x)](const MadeLoop&) { return v; };
    for (const auto& s : parts_.sliced)
      if (s.input == x) return [v = s.value](const MadeLoop&) { return v; };
    parts_.kept.push_back(x);
    return [x](const MadeLoop& loop) { return loop.all(x); };
  }

  /// Makes inputs of what the roots read of the body's own nodes. A broadcast is read before it is
  /// one, a conversion to a wider type likewise; a loop that is computed again has nothing read but
  /// what entered its steps.
  void keep(std::vector<NodeId> roots) {
    std::vector<uint8_t> seen(graph().size(), 0);
    for (const auto& c : parts_.carried) seen[c.input] = 1;
    for (const auto& s : parts_.sliced) seen[s.input] = 1;
    for (const auto& s : parts_.same) seen[s.input] = 1;
    const auto entered = std::span(inputs_).first(carried() + sliced());
    while (!roots.empty()) {
      const NodeId id = roots.back();
      roots.pop_back();
      if (seen[id]) continue;
      seen[id] = 1;
      const bool varied = id < own_ && depends_[id];
      const bool is_input = std::ranges::find(entered, id) != entered.end();
      if (varied && is_in_loop(id) && (is_input || !computed_again(id))) {
        parts_.sliced.push_back({id, in_all_steps(id)});
        continue;
      }
      if (id < own_ && !varied) {
        if (recorded_) continue;  // outside of the body already
        const auto input = std::ranges::find(inputs_, id);
        if (input != inputs_.end()) {
          parts_.same.push_back({id, call_.inputs[static_cast<size_t>(input - inputs_.begin())]});
          continue;
        }
      }
      const auto in = graph().inputs(id);
      roots.insert(roots.end(), in.begin(), in.end());
      if (!is_call_output(graph(), id)) continue;
      const auto read = graph().rule(attributes<CallAttributes>(graph(), id).call)->reads();
      roots.insert(roots.end(), read.begin(), read.end());
    }
  }

  bool computed_again(NodeId id) const {
    const Graph& b = graph();
    if (a_.again) return true;
    if (is_broadcast(b, id) || form(b, id) == Form::Same) return true;
    return form(b, id) == Form::Convert &&
           item_size(b.dtype(b.input(id, 0))) < item_size(b.dtype(id));
  }

  /// Axis 0 of all steps, one behind the other, as one.
  NodeId rows_of_all(NodeId x) { return join_axes(g_, x, 0); }

  Later summed_product(NodeId x);
  Later carried_sum(NodeId x);

  Body read_;                      ///< of a loop that is not a recorded one
  NodeId own_ = 0;                 ///< nodes from here on were added
  std::vector<uint8_t> depends_;   ///< by node: whether it differs from step to step
  std::vector<uint8_t> replaced_;  ///< by node of a recorded loop's: what stands for another value
};

Derived::Later Derived::summed_product(NodeId x) {
  const Graph& b = graph();
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
  if (!p.transpose_a || p.transpose_b || a_.again) return {};
  return [this, l = steps_of(left), r = steps_of(right)](const MadeLoop& loop) {
    return matmul(g_, rows_of_all(l(loop)), rows_of_all(r(loop)), true, false);
  };
}

Derived::Later Derived::carried_sum(NodeId x) {
  Graph& b = graph();
  const DType type = b.dtype(x), sums = wide(type);
  const Dims dims(b.dims(x));
  const NodeId input = added(sums, dims);
  const NodeId next = binary(b, Op::Add, input, cast(b, x, sums));
  const size_t place = parts_.carried.size();
  parts_.carried.push_back({input, next, constant(g_, sums, dims, 0)});
  return [this, type, place](const MadeLoop& loop) { return cast(g_, loop.last(place), type); };
}

Derived::Later Derived::total(NodeId x) {
  const Graph& b = graph();
  const Dims dims(b.dims(x));
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
      if (!is_sum(b, x) || a_.again) break;
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
  explicit LoopRule(std::shared_ptr<const RecordedLoop> recorded)
      : recorded_(std::move(recorded)) {}
  std::string name() const override { return "Loop"; }
  bool has_adjoint() const override { return true; }
  bool has_tangent() const override { return true; }

  std::vector<NodeId> adjoint(Graph& g, const Call& call, std::span<const NodeId> dy,
                              const std::vector<bool>& wanted) const override {
    Derived d(g, call, recorded_.get());
    const std::vector<uint8_t> active = d.reached({wanted.begin(), wanted.end()});
    const size_t carried = d.carried();
    // Which carried ones have a cotangent: those that some result is made of.
    std::vector<uint8_t> has(carried, 0);
    std::vector<NodeId> last(carried, kNoNode);
    for (size_t o = 0; o < call.outputs.size(); ++o) {
      if (call.outputs[o] == kNoNode || dy[o] == kNoNode) continue;
      const auto [is_last, k, node] = d.result(o);
      if (!is_last) continue;
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
        dnext[k] = d.added_like(d.inputs_[k]);
        outputs.push_back(d.next_[k]), cotangents.push_back(dnext[k]);
      }
      for (size_t o = 0; o < call.outputs.size(); ++o) {
        if (call.outputs[o] == kNoNode || dy[o] == kNoNode) continue;
        const auto [is_last, k, node] = d.result(o);
        if (is_last) continue;
        const NodeId given = d.added_like(node);
        d.parts_.sliced.push_back({given, dy[o]});
        outputs.push_back(node), cotangents.push_back(given);
      }
      for (size_t k = 0; k < d.inputs_.size(); ++k)
        if (d.stops(active[k], k)) wrt.push_back(d.inputs_[k]), inputs.push_back(k);
      dx = ad::adjoint(d.graph(), outputs, cotangents, wrt);
      for (size_t i = 0; i < inputs.size(); ++i)
        if (const size_t k = inputs[i]; k < carried && dx[i] != kNoNode && !has[k] && active[k])
          has[k] = more = true;
    }

    std::vector<std::function<NodeId(const MadeLoop&)>> later(call.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t k = inputs[i];
      if (!d.is_carried(k) || !has[k]) continue;
      const NodeId of = d.inputs_[k];
      const NodeId first = last[k] != kNoNode ? last[k] : d.zeros(g, of);
      const NodeId next = dx[i] != kNoNode ? dx[i] : d.zeros(d.graph(), of);
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
    Derived d(g, call, recorded_.get());
    const size_t carried = d.carried();
    std::vector<uint8_t> has(call.inputs.size(), 0);
    for (size_t k = 0; k < dx.size(); ++k) has[k] = dx[k] != kNoNode;
    std::vector<NodeId> outputs, found;
    for (bool more = true; more;) {
      more = false;
      d.renew();
      d.parts_.reverse = d.a_.reverse;
      std::vector<NodeId> wrt, tangents;
      outputs = d.next_;
      for (size_t o = 0; o < call.outputs.size(); ++o)
        if (call.outputs[o] != kNoNode && !d.result(o).last) outputs.push_back(d.result(o).node);
      for (size_t k = 0; k < has.size(); ++k) {
        if (!has[k]) continue;
        wrt.push_back(d.inputs_[k]), tangents.push_back(d.added_like(wrt.back()));
      }
      std::vector<NodeId> given(tangents);
      for (size_t k = 0; k < has.size(); ++k)
        if (!has[k] && d.stops(false, k)) wrt.push_back(d.inputs_[k]), given.push_back(kNoNode);
      found = ad::tangent(d.graph(), outputs, wrt, given);
      for (size_t k = 0; k < carried; ++k)
        if (!has[k] && found[k] != kNoNode) has[k] = more = true;
      if (more) continue;
      for (size_t k = 0, at = 0; k < has.size(); ++k) {
        if (!has[k]) continue;
        const NodeId input = tangents[at++];
        if (d.is_carried(k)) {
          const NodeId first = dx[k] != kNoNode ? dx[k] : d.zeros(g, d.inputs_[k]);
          const NodeId next = found[k] != kNoNode ? found[k] : d.zeros(d.graph(), d.inputs_[k]);
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
    for (size_t o = 0; o < call.outputs.size(); ++o) {
      dy.push_back(kNoNode);
      if (call.outputs[o] == kNoNode) continue;
      const auto [is_last, k, node] = d.result(o);
      if (is_last)
        dy.back() = has[k] ? loop.last(place[k]) : kNoNode;
      else if (const NodeId t = found[at++]; t != kNoNode)
        dy.back() = loop.all(t);
    }
    return dy;
  }

  std::vector<NodeId> reads() const override {
    std::vector<NodeId> all;
    if (!recorded_) return all;
    for (const auto& c : recorded_->parts.carried) all.push_back(c.next);
    for (auto [node, number] : recorded_->number) all.push_back(node);
    return all;
  }

 private:
  std::shared_ptr<const RecordedLoop> recorded_;
};

}  // namespace

std::shared_ptr<const Rule> loop_rule() {
  static const auto rule = std::make_shared<const LoopRule>(nullptr);
  return rule;
}

std::shared_ptr<const Rule> recorded_loop_rule(std::shared_ptr<const RecordedLoop> loop) {
  return std::make_shared<const LoopRule>(std::move(loop));
}

}  // namespace gradcell::ad

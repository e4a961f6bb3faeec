#include "ad/loops.h"

#include <map>
#include <unordered_map>

#include "ad/batching.h"
#include "ad/transform.h"
#include "ops/families.h"
#include "ops/ops.h"

namespace gradcell::ad {

namespace {

/// Builds a loop's body, and the nodes around it.
class LoopMaker {
 public:
  LoopMaker(Graph& g, const Graph& from, const LoopParts& p)
      : g_(g), from_(from), p_(p), outside_(from.size(), kNoNode), to_(from.size(), kNoNode) {
    std::vector<NodeId> entered;
    for (const auto& c : p.carried) entered.push_back(c.input), roots_.push_back(c.next);
    for (const auto& s : p.sliced) entered.push_back(s.input);
    roots_.insert(roots_.end(), p.kept.begin(), p.kept.end());
    varies_ = dependents(from, entered);
    varies_.resize(from.size(), 0);
  }

  bool varies(NodeId id) const { return varies_[id]; }

  void run() {
    for (const auto& c : p_.carried) add_input(c.input, c.first);
    for (const auto& s : p_.sliced) add_input(s.input, s.value);
    for (const auto& s : p_.same) outside_[s.input] = s.value, given_.push_back(s.input);
    if (&g_ == &from_) replaced_ = dependents(from_, given_);
    for (NodeId id : needed()) copy(id);
    for (const auto& c : p_.carried) next_.push_back(inside(c.next));
    for (NodeId id : p_.kept) check_real(id);
  }

  /// A node of the body in the loop's own.
  NodeId inside(NodeId id) { return varies(id) || to_[id] != kNoNode ? to_[id] : same(id); }

  /// What is the same in all steps, outside.
  NodeId outside(NodeId id) {
    if (outside_[id] != kNoNode) return outside_[id];
    if (&g_ == &from_ && !replaced_[id]) return id;
    std::vector<NodeId> in;
    for (NodeId i : from_.inputs(id)) in.push_back(outside(i));
    return outside_[id] = rebuild(g_, from_, id, in);
  }

  /// What the graph must know to differentiate the body that it has itself; null where no call in
  /// it has a rule. number: by node of the loop's own body.
  std::shared_ptr<RecordedLoop> recorded(const std::vector<NodeId>& number) {
    if (!has_rules_) return nullptr;
    auto loop = std::make_shared<RecordedLoop>();
    loop->parts = p_;
    for (auto id = narrow<NodeId>(0); id < to_.size(); ++id) {
      if (!varies(id) || to_[id] == kNoNode || number[to_[id]] == kNoNode) continue;
      loop->number[id] = number[to_[id]];
      loop->node[number[to_[id]]] = id;  // a call's output comes after its value
    }
    for (const auto& c : p_.carried) loop->sources.push_back(c.first);
    for (const auto& s : p_.sliced) loop->sources.push_back(s.value);
    std::vector<uint8_t> seen(from_.size(), 0);
    for (const auto& c : p_.carried) seen[c.input] = 1;
    for (const auto& s : p_.sliced) seen[s.input] = 1;
    std::vector<NodeId> open(roots_);
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (seen[id]) continue;
      seen[id] = 1;
      if (varies(id)) {
        const auto in = from_.inputs(id).subspan(is_call_output(from_, id) ? 1 : 0);
        open.insert(open.end(), in.begin(), in.end());
      } else if (!is_constant(from_, id)) {
        require(!is_complex(from_.dtype(id)), ErrorKind::NotImplemented,
                "a loop over a function with a derivative of its own cannot read complex numbers "
                "that are the same in all steps; give their parts (view_as_real)");
        if (!is_floating(from_.dtype(id))) continue;
        loop->same.push_back(id);
        loop->sources.push_back(outside(id));
      }
    }
    return loop;
  }

  Graph body_;
  std::vector<NodeId> inputs_;  ///< of the body
  std::vector<NodeId> values_;  ///< outside, of the same
  std::vector<NodeId> next_;

 private:
  /// The body's nodes that vary from step to step, ascending; those that stand for inputs left out.
  std::vector<NodeId> needed() const {
    std::vector<uint8_t> live(from_.size(), 0);
    for (NodeId id : roots_) live[id] = 1;
    std::vector<NodeId> found;
    for (auto id = narrow<NodeId>(from_.size()); id-- > 0;) {
      if (!live[id] || !varies(id) || to_[id] != kNoNode) continue;
      found.push_back(id);
      for (NodeId i : is_call_output(from_, id) ? from_.inputs(id).first(1) : from_.inputs(id))
        live[i] = 1;
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

  NodeId add_input(NodeId of, NodeId value) {
    check_real(of);
    const NodeId x = leaf(body_, from_.dtype(of), from_.dims(of));
    inputs_.push_back(x), values_.push_back(value);
    return to_[of] = x;
  }

  void check_real(NodeId id) const {
    require(
        !is_complex(from_.dtype(id)), ErrorKind::Type,
        "Loop: complex numbers cannot be carried, sliced or kept; give their real and imaginary "
        "parts (view_as_real)");
  }

  void copy(NodeId id) {
    const Spec& s = spec(from_, id);
    const bool has_rule = is_call_output(from_, id);
    if (has_rule || (s.form == Form::Marker && s.unique())) {  // or a transform's, which has ended
      to_[id] = inside(from_.input(id, 0));
      has_rules_ |= has_rule;
      return;
    }
    require(!s.effect(), ErrorKind::NotImplemented, info(s.op).name,
            " exchanges data with other processes and cannot stand in a loop's body");
    std::vector<NodeId> in;
    for (NodeId i : from_.inputs(id)) in.push_back(inside(i));
    if (commutes(s.op) && in[0] > in[1]) std::swap(in[0], in[1]);
    to_[id] = rebuild(body_, from_, id, in);
  }

  /// An input for what is the same in all steps. Broadcasts stay inside, where they cost nothing;
  /// numbers stay numbers.
  NodeId same(NodeId id) {
    if (is_constant(from_, id) && !from_.dims(id).empty()) {
      const NodeId one = number(from_.dtype(id), from_[id].bits);
      return to_[id] = broadcast_to(body_, one, Dims(from_.dims(id)));
    }
    if (is_constant(from_, id)) return to_[id] = number(from_.dtype(id), from_[id].bits);
    if (is_broadcast(from_, id)) {
      const NodeId source = from_.input(id, 0);
      return to_[id] = broadcast_to(body_, inside(source), Dims(from_.dims(id)));
    }
    if (is_complex(from_.dtype(id))) {  // which loops take as pairs
      const NodeId pairs = view_as_real(g_, outside(id));
      const NodeId x = leaf(body_, g_.dtype(pairs), Dims(g_.dims(pairs)));
      inputs_.push_back(x), values_.push_back(pairs);
      return to_[id] = view_as_complex(body_, x);
    }
    const NodeId value = outside(id);
    if (auto known = inputs_of_.find(value); known != inputs_of_.end())
      return to_[id] = known->second;
    return to_[id] = inputs_of_[value] = add_input(id, value);
  }

  NodeId number(DType dtype, uint64_t bits) {
    auto [it, fresh] = numbers_.try_emplace({dtype, bits}, kNoNode);
    if (fresh) {
      it->second = leaf(body_, dtype, Dims{});
      inputs_.push_back(it->second);
      values_.push_back(constant_bits(g_, dtype, Dims{}, bits));
    }
    return it->second;
  }

  Graph& g_;
  const Graph& from_;
  const LoopParts& p_;
  std::vector<uint8_t> varies_;
  std::vector<NodeId> given_;      ///< what stands for something else that is the same in all steps
  std::vector<uint8_t> replaced_;  ///< by node of the graph itself: whether it depends on those
  bool has_rules_ = false;         ///< whether a call in the body has a derivative of its own
  std::vector<NodeId> roots_;
  std::vector<NodeId> outside_;  ///< by node of the body given
  std::vector<NodeId> to_;       ///< likewise: in the loop's own body
  std::unordered_map<NodeId, NodeId> inputs_of_;
  std::map<std::pair<DType, uint64_t>, NodeId> numbers_;
};

}  // namespace

MadeLoop::MadeLoop(Graph& g, const Graph& body, const LoopParts& p)
    : g_(g), steps_(p.steps), number_(body.size(), kNoNode) {
  LoopMaker made(g, body, p);
  made.run();
  std::vector<NodeId> kept;
  for (NodeId id : p.kept) {
    if (made.varies(id))
      kept.push_back(made.inside(id));
    else
      outside_.emplace_back(id, made.outside(id));
  }
  std::vector<NodeId> number;
  const Dims numbers = write_body(made.body_, made.inputs_, made.next_, kept, number);
  size_t at = 0;
  for (NodeId id : p.kept)
    if (made.varies(id)) number_[id] = number[kept[at++]];
  inputs_ = made.values_;
  attributes_ = encode(LoopAttributes{p.steps, static_cast<int64_t>(p.carried.size()),
                                      static_cast<int64_t>(p.sliced.size()), 0, false, p.reverse,
                                      p.again, numbers});
  if (const auto loop = made.recorded(number)) {
    loop->inputs = inputs_, loop->attributes = attributes_, loop->call = g.next_rule();
    recorded_ = loop;
    g.add_rule(recorded_loop_rule(loop));
  }
}

NodeId recorded_result(Graph& g, const RecordedLoop& loop, int64_t number, bool last) {
  auto a = decode<LoopAttributes>(loop.attributes);
  a.result = number, a.last = last;
  return call_output(g, loop_result(g, loop.inputs, a), loop.sources,
                     {loop.call, last ? number : a.carried + number});
}

NodeId MadeLoop::result(int64_t number, bool last) const {
  if (recorded_) return recorded_result(g_, *recorded_, number, last);
  auto a = decode<LoopAttributes>(attributes_);
  a.result = number, a.last = last;
  return loop_result(g_, inputs_, a);
}

NodeId MadeLoop::last(size_t carried) const { return result(static_cast<int64_t>(carried), true); }

NodeId MadeLoop::all(NodeId kept) const {
  if (number_[kept] != kNoNode) return result(number_[kept], false);
  for (auto [id, value] : outside_)
    if (id == kept) return broadcast_to(g_, value, behind_batch(steps_, g_.dims(value)));
  fail(ErrorKind::Runtime, "a loop was asked for a node that it does not keep");
}

NodeId batched_loop(Graph& g, NodeId id, const Batch& b) {
  const Dims numbers(g.attrs(id).begin(), g.attrs(id).end());
  const auto a = decode<LoopAttributes>(numbers);
  Body body = read_body(a.body, g.settings());
  const auto carried = static_cast<size_t>(a.carried), sliced = static_cast<size_t>(a.sliced);
  std::vector<uint8_t> batched(b.batched.begin(), b.batched.end());
  for (bool more = true; more;) {
    more = false;
    std::vector<NodeId> entered;
    for (size_t k = 0; k < batched.size(); ++k)
      if (batched[k]) entered.push_back(body.inputs[k]);
    const std::vector<uint8_t> depends = dependents(body.graph, entered);
    for (size_t k = 0; k < carried; ++k)
      if (!batched[k] && depends[body.next[k]]) batched[k] = more = true;
  }
  const auto own = narrow<NodeId>(body.graph.size());
  std::vector<NodeId> all, examples, batches;
  for (NodeId k = 0; k < own; ++k) all.push_back(k);
  for (size_t k = 0; k < batched.size(); ++k) {
    if (!batched[k]) continue;
    const NodeId one = body.inputs[k];
    examples.push_back(one);
    batches.push_back(
        leaf(body.graph, body.graph.dtype(one), behind_batch(b.size, body.graph.dims(one))));
  }
  std::vector<NodeId> over = ad::batch(body.graph, all, examples, batches);
  auto image = [&](NodeId node) { return over[node] != kNoNode ? over[node] : node; };
  LoopParts p{.steps = a.steps, .reverse = a.reverse, .again = a.again};
  for (size_t k = 0; k < batched.size(); ++k) {
    NodeId value = b.inputs[k];
    const NodeId input = image(body.inputs[k]);
    if (k < carried) {
      NodeId next = body.next[k];
      if (batched[k])
        next = over[next] != kNoNode ? over[next]
                                     : broadcast_to(body.graph, next, Dims(body.graph.dims(input)));
      p.carried.push_back({input, next, batched[k] ? over_batch(g, b, k) : value});
    } else if (k < carried + sliced) {
      p.sliced.push_back({input, batched[k] ? move_axis(g, value, 0, 1) : value});
    } else {
      p.same.push_back({input, value});
    }
  }
  for (NodeId node : all) p.kept.push_back(image(node));
  const MadeLoop loop(g, body.graph, p);
  const auto result = static_cast<size_t>(a.result);
  if (a.last) {
    const NodeId y = loop.last(result);
    return batched[result] ? y : broadcast_to(g, y, behind_batch(b.size, g.dims(y)));
  }
  const NodeId y = loop.all(image(narrow<NodeId>(result)));
  return over[result] != kNoNode ? move_axis(g, y, 1, 0)
                                 : broadcast_to(g, y, behind_batch(b.size, g.dims(y)));
}

std::vector<NodeId> without_loops(Graph& g, std::span<const NodeId> outputs,
                                  std::span<const NodeId> wrt) {
  const std::vector<uint8_t> depends = dependents(g, wrt);
  const std::vector<NodeId> live = live_nodes(g, outputs);
  const bool any =
      std::ranges::any_of(live, [&](NodeId id) { return depends[id] && is_loop(g, id); });
  if (!any) return {outputs.begin(), outputs.end()};
  std::unordered_map<NodeId, NodeId> to;
  std::vector<NodeId> in;
  for (NodeId id : live) {
    in.clear();
    bool moved = false;
    for (NodeId i : g.inputs(id)) {
      const auto it = to.find(i);
      in.push_back(it == to.end() ? i : it->second);
      moved |= it != to.end();
    }
    const bool stands = std::ranges::find(wrt, id) != wrt.end();
    if (stands || !depends[id]) continue;
    if (is_loop(g, id))
      to[id] = unrolled(g, g, id, in, true);
    else if (moved)
      to[id] = rebuild(g, g, id, in);
  }
  std::vector<NodeId> result;
  for (NodeId id : outputs) result.push_back(to.contains(id) ? to[id] : id);
  return result;
}

}  // namespace gradcell::ad

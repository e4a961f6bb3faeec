#include "plan/planner.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "base/interrupt.h"
#include "ops/ops.h"
#include "plan/arena.h"
#include "plan/labels.h"
#include "plan/layouts.h"
#include "plan/loop_plan.h"
#include "plan/moves.h"
#include "plan/parts.h"
#include "plan/recomputation.h"
#include "plan/region/region_builder.h"
#include "plan/rewrite/rewrite.h"
#include "plan/rewrite/taken_over.h"
#include "plan/verify.h"

namespace gradcell {

namespace {

inline uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 32);
}

struct Hasher {
  uint64_t a = 0x243F6A8885A308D3ull, b = 0x13198A2E03707344ull;
  void add(uint64_t v) {
    a = mix(a, v);
    b = mix(b, v ^ (a << 17 | a >> 47));
  }
};

/// By node, whether it is among these.
std::vector<uint8_t> marks(const Graph& g, std::span<const NodeId> nodes) {
  std::vector<uint8_t> marked(g.size(), 0);
  for (NodeId id : nodes) marked[id] = 1;
  return marked;
}

/// Live nodes in an order in which effects come by their places. (What a transform's end has built
/// again lies behind effects that come after it.)
std::vector<NodeId> in_order(const Graph& g, std::span<const NodeId> live,
                             const std::vector<uint8_t>& cut) {
  auto known = [&](NodeId id) { return is_source(g, id) || cut[id]; };
  std::vector<NodeId> before(g.size(), kNoNode);  // of an effect: the one before it
  NodeId last = kNoNode;
  bool ascending = true;
  for (const Graph::Effect& e : g.effects()) {
    if (known(e.id) || !std::binary_search(live.begin(), live.end(), e.id)) continue;
    ascending &= last == kNoNode || last < e.id;
    before[e.id] = last;
    last = e.id;
  }
  if (ascending) return {live.begin(), live.end()};
  std::vector<uint8_t> wanted(g.size(), 0), placed(g.size(), 0);
  for (NodeId id : live) wanted[id] = 1;
  std::vector<NodeId> order, open;
  for (NodeId id : live)  // inputs and constants stay in the order in which a run brings them
    if (known(id)) order.push_back(id), placed[id] = 1;
  for (NodeId root : live) {
    open.push_back(root);
    while (!open.empty()) {
      const NodeId id = open.back();
      const size_t depth = open.size();
      auto need = [&](NodeId i) {
        if (i != kNoNode && wanted[i] && !placed[i]) open.push_back(i);
      };
      if (!placed[id]) {
        for (NodeId i : g.inputs(id)) need(i);
        need(before[id]);
      }
      if (open.size() > depth) continue;
      open.pop_back();
      if (!placed[id]) order.push_back(id), placed[id] = 1;
    }
  }
  return order;
}

/// What stands for a leaf in a cleaned graph: complex numbers are pairs there.
NodeId clean_leaf(Graph& to, DType dtype, Dims dims) {
  if (is_complex(dtype)) dims.push_back(2);
  return leaf(to, part_dtype(dtype), dims);
}

/// The live part without aliases and gradient stops, hash-consed again (what differed only by an
/// alias becomes one node), with known values as leaves.
PlanGraph clean(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
                std::span<const NodeId> cuts, bool apart) {
  PlanGraph c(g.settings());
  std::vector<NodeId> to(g.size(), kNoNode);
  std::vector<NodeId> in;
  const std::vector<uint8_t> cut = marks(g, cuts);
  const std::vector<WrittenAttention> written =
      apart ? std::vector<WrittenAttention>() : written_attention(g, live, roots, cuts);
  std::unordered_map<NodeId, const WrittenAttention*> written_of;
  for (const WrittenAttention& w : written) written_of[w.result] = &w;
  for (NodeId id : in_order(g, live, cut)) {
    if (cut[id] || is_leaf(g, id)) {
      Stamp stamp(c.graph);
      stamp.at(g[id].location);
      to[id] = clean_leaf(c.graph, g.dtype(id), g.dims(id));
      c.inputs.push_back(to[id]);
      continue;
    }
    if (form(g, id) == Form::Marker) {
      to[id] = to[g.input(id, 0)];
      continue;
    }
    if (const auto w = written_of.find(id); w != written_of.end()) {
      to[id] = as_attention(c.graph, g, *w->second, to);
      continue;
    }
    in.clear();
    for (NodeId i : g.inputs(id)) in.push_back(to[i]);
    const bool absent = info(form(g, id)).kernel == KernelForm::Absent;
    const bool one_step = is_loop(g, id) && attributes<LoopAttributes>(g, id).steps == 1;
    if (apart && (absent || one_step)) {
      // A plan is kept for all values of its constants, and has no others than the graph's.
      for (NodeId& i : in)
        if (is_constant(c.graph, i)) i = unseen(c.graph, i);
      to[id] = absent ? spec(g, id).apart(c.graph, g, id, in) : unrolled(c.graph, g, id, in, false);
      continue;
    }
    // Aliases hid equal inputs from the builder, which orders those of commutative ops.
    if (commutes(g[id].op) && !is_constant(c.graph, in[1]) && in[0] > in[1])
      std::swap(in[0], in[1]);
    to[id] = rebuild(c.graph, g, id, in);
    if (is_constant(g, id)) c.constants.push_back(to[id]);
  }
  for (NodeId r : roots) c.roots.push_back(to[r]);
  return c;
}

/// The nodes whose values the roots need. What is computed after a node does not need its value.
std::vector<uint8_t> needed(const PlanGraph& c) {
  const Graph& g = c.graph;
  std::vector<uint8_t> found(g.size(), 0);
  for (NodeId r : c.roots) found[r] = 1;
  for (NodeId id = narrow<NodeId>(g.size()); id-- > 0;) {
    if (!found[id]) continue;
    for (NodeId i : g[id].op == Op::After ? g.inputs(id).first(1) : g.inputs(id)) found[i] = 1;
  }
  return found;
}

/// A source, or what a root needs: anything else would have no buffer to be written to.
void verify_needed(const PlanGraph& c) {
  const std::vector<uint8_t> wanted = needed(c);
  for (NodeId id = 0; id < c.graph.size(); ++id)
    require(wanted[id] || is_source(c.graph, id), ErrorKind::Runtime,
            "invalid plan: no root needs node %", id);
}

/// Without what no root needs: what is there to be waited for alone, or what a pass has written in
/// another way, and what that is made of.
PlanGraph without_idle(PlanGraph c) {
  const Graph& g = c.graph;
  const std::vector<uint8_t> wanted = needed(c);
  auto stays = [&](NodeId id) { return wanted[id] || is_source(g, id); };
  bool all = true;
  for (NodeId id = 0; id < g.size(); ++id) all &= stays(id);
  if (all) return c;
  PlanGraph out(g.settings());
  std::vector<NodeId> to(g.size(), kNoNode), in;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!stays(id)) continue;
    in.clear();
    for (NodeId i : g.inputs(id))
      if (stays(i)) in.push_back(to[i]);
    to[id] = g[id].op == Op::After && in.size() == 1 ? in[0] : rebuild(out.graph, g, id, in);
  }
  take_over(out, c, to);
  return out;
}

class Planner {
 public:
  explicit Planner(PlanGraph c, bool whole = false, std::span<const uint8_t> fixed = {})
      : c_(std::move(c)), g_(c_.graph), labels_(label(g_, c_.roots, whole)) {
    for (size_t i = 0; i < fixed.size(); ++i)
      if (fixed[i]) fixed_.add(c_.inputs[i]);
    recompute_cheap(g_, labels_, c_.roots);
    moves_ = join_moves(g_, labels_, c_.roots);
  }

  Plan run() {
    if constexpr (kVerify) verify_needed(c_);
    buffer_of_ = frame(c_, labels_.storage, plan_);
    constant_of_ = constant_numbers(c_);
    place_temporaries();
    check_interrupt();
    make_stages();
    check_interrupt();
    choose_layouts(plan_);
    check_interrupt();
    if constexpr (kVerify) verify(plan_);
    return std::move(plan_);
  }

 private:
  void place_temporaries() {
    std::vector<int32_t> last(g_.size(), 0);
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (!is_made(g_, labels_, id)) continue;
      NodeId reader = id;  // what a movement reads that another one takes in, that one reads
      while (moves_.absorbed[reader] != kNoNode) reader = moves_.absorbed[reader];
      const NodeLabel& me = labels_.node[reader];
      const int32_t until = std::max(me.stage, me.wait - 1);  // a collective reads until it ends
      for (NodeId i : g_.inputs(id)) {
        NodeId p = labels_.storage[i];
        last[p] = std::max(last[p], until);
      }
      last[id] = std::max(last[id], until);
    }
    for (const Labels::Reread& r : labels_.reread) last[r.id] = std::max(last[r.id], r.stage);
    std::vector<uint8_t> free(g_.size(), 0);
    for (NodeId id = 0; id < g_.size(); ++id)
      free[id] = labels_.storage[id] == id && !is_leaf(g_, id) && labels_.node[id].materialised &&
                 buffer_of_[id] == UINT32_MAX && moves_.absorbed[id] == kNoNode;
    const MadeWithin parts = find_parts(g_, labels_, moves_, free);
    std::vector<int32_t> first(g_.size());
    for (NodeId id = 0; id < g_.size(); ++id) first[id] = labels_.node[id].stage;
    for (NodeId id = 0; id < g_.size(); ++id)  // parts come before what they are parts of
      if (const NodeId whole = parts.whole[id]; whole != kNoNode) {
        first[whole] = std::min(first[whole], first[id]);
        last[whole] = std::max(last[whole], last[id]);
      }
    std::vector<NodeId> placed;
    for (NodeId id = 0; id < g_.size(); ++id)
      if (free[id] && parts.whole[id] == kNoNode) placed.push_back(id);
    std::ranges::stable_sort(placed, {}, [&](NodeId id) { return first[id]; });
    Arena arena(64);
    for (NodeId id : placed) {
      const size_t bytes = describe(g_, id).bytes();
      const size_t at = arena.place(bytes, first[id], std::max(first[id], last[id]));
      buffer_of_[id] = add_buffer(plan_, {Place::Temp, 0, at, bytes});
    }
    for (NodeId id = narrow<NodeId>(g_.size()); id-- > 0;)
      if (const NodeId whole = parts.whole[id]; whole != kNoNode) {
        const BufferId b = buffer_of_[whole];
        const size_t at = plan_.buffers[b].offset + parts.at[id];
        buffer_of_[id] = add_buffer(plan_, {Place::Temp, 0, at, describe(g_, id).bytes(), b});
      }
    plan_.arena_bytes = arena.size();
  }

  void make_stages() {
    plan_.stages.resize(static_cast<size_t>(labels_.stage_count));
    using Split = std::pair<int64_t, int64_t>;  // rows and block
    std::vector<std::map<Split, std::vector<NodeId>>> regions(plan_.stages.size());
    using Loop = std::tuple<size_t, Dims, std::vector<NodeId>>;  // stage, what it does, inputs
    std::map<Loop, std::vector<NodeId>> loops;
    std::map<std::pair<size_t, SameScores>, std::vector<NodeId>> sums;
    for (NodeId id = 0; id < g_.size(); ++id) {
      const NodeLabel& l = labels_.node[id];
      if (labels_.storage[id] != id || is_leaf(g_, id) || l.elsewhere) continue;
      if (moves_.absorbed[id] != kNoNode) continue;
      if (is_constant(g_, id) && !l.materialised) continue;
      auto stage = static_cast<size_t>(l.stage);
      if (l.in_region)
        regions[stage][{l.rows, l.block}].push_back(id);
      else if (is_loop(g_, id))
        loops[{stage, loop_identity(g_, id), in_storage(id)}].push_back(id);
      else if (const auto scores = scores_of(g_, labels_.storage, id))
        sums[{stage, *scores}].push_back(id);
      else
        plan_.stages[stage].calls.push_back(make_call(id));
    }
    for (const auto& [scores, nodes] : sums) add_sums(plan_.stages[scores.first], nodes);
    for (const auto& [loop, results] : loops)
      plan_.stages[std::get<0>(loop)].calls.push_back(make_loop(results));
    order_collectives();
    RegionInputs in{g_, labels_, buffer_of_, constant_of_, fixed_};
    for (size_t s = 0; s < regions.size(); ++s)
      for (auto& [split, nodes] : regions[s]) {
        if constexpr (kVerify) verify_region_nodes(in, nodes);
        plan_.stages[s].regions.push_back(build_region(in, nodes));
      }
  }

  /// Puts each stage's collectives first, in their order, and has each waited for in time.
  void order_collectives() {
    std::unordered_map<BufferId, int32_t> sequence;  // of what a collective makes
    for (const Graph::Effect& e : g_.effects()) {
      const NodeLabel& l = labels_.node[e.id];
      sequence[buffer_of_[e.id]] = plan_.collectives;
      if (l.wait < labels_.stage_count)
        plan_.stages[static_cast<size_t>(l.wait)].waits.push_back(plan_.collectives);
      ++plan_.collectives;
    }
    if (plan_.collectives == 0) return;
    for (Stage& s : plan_.stages)
      for (Call& c : s.calls)
        if (const auto at = sequence.find(c.output); at != sequence.end()) c.sequence = at->second;
    for (Stage& s : plan_.stages)
      std::ranges::stable_sort(s.calls, {},
                               [](const Call& c) { return low_bits<unsigned>(c.sequence); });
  }

  Call make_call(NodeId id) {
    Call call;
    const Spec& s = spec(g_, id);
    call.op = s.op, call.form = s.form, call.combine = s.combine;
    if (const auto move = moves_.by_node.find(id); move != moves_.by_node.end()) {
      call.movement = move->second.movement;
      for (NodeId i : move->second.inputs) add_input(call, i);
    } else {
      if (s.form == Form::Move) call.movement = s.movement(g_, id);
      for (NodeId i : g_.inputs(id)) add_input(call, i);
    }
    call.output = buffer_of_[id];
    call.out = describe(g_, id);
    call.attributes.assign(g_.attrs(id).begin(), g_.attrs(id).end());
    call.constant = constant_of_[id];
    call.location = g_[id].location;
    return call;
  }

  void add_input(Call& call, NodeId i) const {
    call.inputs.push_back(buffer_of_[labels_.storage[i]]);
    call.in.push_back(describe(g_, i));
  }

  std::vector<NodeId> in_storage(NodeId id) const {
    std::vector<NodeId> in;
    for (NodeId i : g_.inputs(id)) in.push_back(labels_.storage[i]);
    return in;
  }

  /// One call for all results of a loop.
  Call make_loop(std::span<const NodeId> results) {
    Call call = make_call(results[0]);
    call.loop = std::make_shared<const LoopPlan>(plan_loop(g_, results));
    for (NodeId id : results.subspan(1)) {
      call.more.push_back(buffer_of_[id]);
      call.more_out.push_back(describe(g_, id));
    }
    return call;
  }

  /// Sums over the same scores. Of those without known normalisers only two have a call in common.
  void add_sums(Stage& stage, std::span<const NodeId> nodes) {
    const auto of = [&](NodeId id) {
      return attention_inputs(g_[id].op, attributes<AttentionAttributes>(g_, id));
    };
    const bool known = of(nodes[0]).log_sum >= 0;
    const auto values = std::ranges::count_if(nodes, [&](NodeId id) { return of(id).c >= 0; });
    if (nodes.size() == 1 || (!known && (nodes.size() != 2 || values != 1))) {
      for (NodeId id : nodes) stage.calls.push_back(make_call(id));
      return;
    }
    Call all = make_call(nodes[0]);
    all.joined.push_back(all);
    for (NodeId id : nodes.subspan(1)) {
      Call one = make_call(id);
      all.inputs.insert(all.inputs.end(), one.inputs.begin(), one.inputs.end());
      all.in.insert(all.in.end(), one.in.begin(), one.in.end());
      all.more.push_back(one.output);
      all.more_out.push_back(one.out);
      all.joined.push_back(std::move(one));
    }
    stage.calls.push_back(std::move(all));
  }

  PlanGraph c_;
  const Graph& g_;
  Labels labels_;
  NodeSet fixed_;
  JoinedMoves moves_;
  Plan plan_;
  std::vector<BufferId> buffer_of_;
  std::vector<int> constant_of_;
};

}  // namespace

std::span<const NodeId> planned_inputs(const Graph& g, NodeId id) {
  return form(g, id) == Form::Marker ? g.inputs(id).first(1) : g.inputs(id);
}

TensorDesc describe(const Graph& g, NodeId id) { return {g.dtype(id), g.dims(id), g.count(id)}; }

BufferId add_buffer(PlanFrame& plan, const Buffer& b) {
  plan.buffers.push_back(b);
  return narrow<BufferId>(plan.buffers.size() - 1);
}

std::vector<BufferId> frame(const PlanGraph& c, std::span<const NodeId> storage, PlanFrame& plan) {
  const Graph& g = c.graph;
  std::vector<BufferId> buffer_of(g.size(), UINT32_MAX);
  plan.node_count = g.size();
  for (NodeId id : c.constants) plan.constants.push_back(g.dtype(id));
  auto add = [&](NodeId id, Place place, size_t index) {
    buffer_of[id] = add_buffer(plan, {place, narrow<uint32_t>(index), 0, describe(g, id).bytes()});
  };
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    plan.inputs.push_back(describe(g, c.inputs[i]));
    add(c.inputs[i], Place::Input, i);
  }
  std::unordered_map<NodeId, int> first_output, first_input;
  for (size_t i = 0; i < c.inputs.size(); ++i) first_input.emplace(c.inputs[i], narrow<int>(i));
  for (size_t i = 0; i < c.roots.size(); ++i) {
    const NodeId s = storage[c.roots[i]];
    PlanOutput out{describe(g, c.roots[i])};
    auto [it, fresh] = first_output.emplace(s, narrow<int>(i));
    if (is_leaf(g, s))
      out.alias_input = first_input.at(s);
    else if (!fresh)
      out.alias_output = it->second;
    else
      add(s, Place::Output, i);
    plan.outputs.push_back(std::move(out));
  }
  return buffer_of;
}

std::vector<int> constant_numbers(const PlanGraph& c) {
  std::vector<int> number(c.graph.size(), -1);
  for (size_t i = 0; i < c.constants.size(); ++i) number[c.constants[i]] = narrow<int>(i);
  for (const auto& [id, like] : c.reshaped) number[id] = like;
  return number;
}

PlanKey structural_hash(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
                        std::span<const NodeId> cuts) {
  // By node; it has one before it is asked for. A small part of a large graph sets few of them.
  const auto number = std::make_unique_for_overwrite<uint32_t[]>(g.size());
  auto next_cut = cuts.begin();
  std::vector<Graph::Effect> effects;
  Hasher h;
  for (size_t i = 0; i < live.size(); ++i) {
    NodeId id = live[i];
    number[id] = narrow<uint32_t>(i);
    const Node& n = g[id];
    const bool cut = next_cut != cuts.end() && *next_cut == id;
    if (cut) ++next_cut;
    if (form(g, id) == Form::Collective) effects.push_back({n.bits, id});
    uint64_t rank = g.dims(id).size();
    const Op op = cut || is_leaf(g, id) ? Op::Count : n.op;  // a known value is an input
    h.add(static_cast<uint64_t>(op) | static_cast<uint64_t>(n.dtype) << 16 | rank << 32);
    h.add(static_cast<uint64_t>(cut ? 0 : n.input_count) << 32 | n.attr_count);
    for (int64_t d : g.dims(id)) h.add(static_cast<uint64_t>(d));
    if (cut) continue;
    for (NodeId in : planned_inputs(g, id)) h.add(number[in]);
    if (form(g, id) == Form::Marker) continue;
    for (int64_t a : g.attrs(id)) h.add(static_cast<uint64_t>(a));
  }
  h.add(live.size());
  std::ranges::sort(effects, {}, &Graph::Effect::place);
  for (const Graph::Effect& e : effects) {  // their order, and where they are, is in the plan
    h.add(number[e.id]);
    h.add(reinterpret_cast<uintptr_t>(g[e.id].location.code));
    h.add(static_cast<uint64_t>(g[e.id].location.offset));
  }
  for (NodeId r : roots) h.add(number[r]);
  for (const WrittenAttention& w : written_attention(g, live, roots, cuts)) {  // is in the plan
    h.add(number[w.result]);
    for (double x : {w.keep, w.scale, w.fill}) h.add(std::bit_cast<uint64_t>(x));
  }
  return {h.a, h.b, &g.settings()};
}

std::vector<NodeId> live_until(const Graph& g, std::span<const NodeId> roots, const NodeSet& cuts) {
  // A bit each: a small part of a large graph, as what is behind the last cut, takes next to
  // nothing.
  const size_t words = g.size() / 64 + 1;
  std::vector<uint64_t> live(words, 0);
  auto set = [&](NodeId id) { live[id / 64] |= uint64_t{1} << id % 64; };
  for (NodeId r : roots) set(r);
  std::vector<NodeId> result;
  for (size_t word = words; word-- > 0;)
    while (live[word] != 0) {
      const size_t bit = 63 - static_cast<size_t>(std::countl_zero(live[word]));
      const auto id = narrow<NodeId>(64 * word + bit);
      live[word] ^= uint64_t{1} << bit;  // its inputs come before it
      result.push_back(id);
      if (cuts.has(id)) continue;
      for (NodeId i : planned_inputs(g, id)) set(i);
    }
  std::reverse(result.begin(), result.end());
  return result;
}

PlanGraph plan_graph(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
                     std::span<const NodeId> cuts, bool apart) {
  PlanGraph cleaned = without_idle(clean(g, live, roots, cuts, apart));
  if constexpr (kVerify) verify(cleaned.graph, "clean", 0, GraphStage::Cleaned);
  if (!apart) {
    cleaned = split_rows(std::move(cleaned));
    if constexpr (kVerify) verify(cleaned.graph, "split_rows", 0, GraphStage::Cleaned);
    cleaned = without_idle(contract_sums(std::move(cleaned)));
    if constexpr (kVerify) verify(cleaned.graph, "contract_sums", 0, GraphStage::Cleaned);
  }
  PlanGraph merged = without_idle(merge_sums(cleaned));
  if constexpr (kVerify) verify(merged.graph, "merge_sums", 0, GraphStage::Cleaned);
  if (apart) return merged;
  PlanGraph joined = join_sums(std::move(merged));
  if constexpr (kVerify) verify(joined.graph, "join_sums", 0, GraphStage::Cleaned);
  return joined;
}

Plan make_plan(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
               std::span<const NodeId> cuts) {
  return Planner(plan_graph(g, live, roots, cuts)).run();
}

namespace {

size_t steps_of(const Plan& plan) {
  size_t n = 0;
  for (const Stage& s : plan.stages) n += s.regions.size() + s.calls.size();
  return n;
}

}  // namespace

Plan make_body_plan(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
                    std::span<const uint8_t> fixed) {
  PlanGraph body = plan_graph(g, live, roots, {});
  bool small = true;
  for (NodeId id = 0; id < body.graph.size(); ++id)
    small &= is_leaf(body.graph, id) || body.graph.count(id) <= kWholeRow;
  Plan by_axes = Planner(std::move(body)).run();
  if (!small || steps_of(by_axes) == 1) return by_axes;
  Plan whole = Planner(plan_graph(g, live, roots, {}), true, fixed).run();
  return steps_of(whole) < steps_of(by_axes) ? std::move(whole) : std::move(by_axes);
}

}  // namespace gradcell

#include "runtime/trace.h"

#include <algorithm>
#include <atomic>

#include "ad/batching.h"
#include "ir/verify.h"
#include "ops/ops.h"
#include "runtime/plan_cache.h"

namespace gradcell {

namespace {

thread_local TracePtr t_trace;
/// The same without an owner: asked for at every op, and needs no look at whether t_trace is made.
constinit thread_local Trace* t_current = nullptr;
thread_local bool t_constants = false;

std::vector<uint64_t> constants_of(const Graph& g, std::span<const NodeId> live) {
  std::vector<uint64_t> bits;
  for (NodeId id : live)
    if (is_constant(g, id)) bits.push_back(g[id].bits);
  return bits;
}

std::vector<NodeId> among(std::span<const NodeId> nodes, const NodeSet& set) {
  std::vector<NodeId> found;
  std::ranges::copy_if(nodes, std::back_inserter(found), [&](NodeId id) { return set.has(id); });
  return found;
}

/// Whether it has the elements of its input, and so costs nothing.
bool is_free(const Graph& g, NodeId id) {
  return form(g, id) == Form::Marker || form(g, id) == Form::Same;
}

}  // namespace

Trace* current_trace() { return t_current; }
Trace& required_trace() {
  require(t_current != nullptr, ErrorKind::Runtime, "no trace is active");
  return *t_current;
}

bool records_constants() { return t_constants; }
void record_constants(bool constants) { t_constants = constants; }

namespace {
std::atomic<uint64_t> g_begun{0}, g_ended{0};
}  // namespace

TracePtr begin_trace(const Settings& s, Locator locate) {
  require(!t_trace, ErrorKind::Runtime, "a trace is active already");
  t_trace = std::make_shared<Trace>(s, locate);
  t_trace->serial = ++g_begun;
  t_current = t_trace.get();
  return t_trace;
}

void end_trace() {
  t_current = nullptr;
  t_trace.reset();
  ++g_ended;
}

uint64_t trace_clock() { return g_begun + g_ended; }

NoTrace::NoTrace() : outer_(std::move(t_trace)) { t_current = nullptr; }
NoTrace::~NoTrace() {
  t_trace = std::move(outer_);
  t_current = t_trace.get();
}

NodeId Trace::add_leaf(DType dtype, const Dims& dims, Given l) {
  l.id = leaf(graph, dtype, dims);
  leaf_index_[l.id] = leaves_.size();
  leaves_.push_back(std::move(l));
  return leaves_.back().id;
}

const Trace::Given* Trace::given(NodeId id) const {
  if (graph[id].input_count > 0) return nullptr;  // no leaf: spares the search
  const auto l = leaf_index_.find(id);
  return l == leaf_index_.end() ? nullptr : &leaves_[l->second];
}

NodeId Trace::argument(const Array& value) {
  const NodeId id =
      add_leaf(value.dtype, value.dims, {kNoNode, value, nullptr, narrow<int>(arguments_.size())});
  arguments_.push_back(value);
  return id;
}

NodeId Trace::lift(const Array& value) {
  auto it = captured_.find(value.storage.get());
  if (it != captured_.end() && graph.dims(it->second) == value.dims &&
      graph.dtype(it->second) == value.dtype)
    return it->second;
  NodeId id = add_leaf(value.dtype, value.dims, {kNoNode, value, nullptr, -1});
  captured_[value.storage.get()] = id;
  return id;
}

NodeId Trace::lift(const VariablePtr& variable) {
  auto it = state_.find(variable.get());
  if (it != state_.end()) return it->second;
  const Type* type = variable->settled();
  NodeId id = add_leaf(type->dtype, type->dims, {kNoNode, {}, variable, -1, type});
  refer(state_.emplace(variable.get(), kNoNode).first->second, id);
  state_order_.push_back(variable);
  return id;
}

void Trace::assign(const VariablePtr& variable, NodeId node) {
  lift(variable);
  refer(state_.at(variable.get()), node);
  variable->touch();
}

VariablePtr Trace::born(VariablePtr variable, NodeId value, bool known) {
  born_[variable.get()] = {graph.size(), known};
  if (known) return lift(variable), variable;
  refer(state_.emplace(variable.get(), kNoNode).first->second, stop_gradient(graph, value));
  state_order_.push_back(variable);
  return variable;
}

NodeId Trace::example(NodeId batch) {
  const Dims& all = graph.dims(batch);
  return leaf(graph, graph.dtype(batch), Dims(all.begin() + 1, all.end()));
}

void Trace::end_tensors(const std::vector<uint8_t>& depends, const char* why) {
  auto ended = std::make_shared<Trace>();
  ended->ended_ = why;
  for (Tensor *next, *t = tensors_; t; t = next) {
    next = t->next_;
    if (!depends[t->node_]) continue;
    const NodeId left = leaf(ended->graph, graph.dtype(t->node_), graph.dims(t->node_));
    t->unlink();
    t->trace_ = ended;
    t->node_ = left;
    t->link();
  }
}

void Trace::end_examples(std::span<const NodeId> examples) {
  const std::vector<uint8_t> depends = ad::dependents(graph, examples);
  end_tensors(depends,
              "vmap: a tensor that differs from example to example is used after the function "
              "that was mapped has ended; return it from that function");
  // What the function made for itself is gone with it: its first value, if it is known, stays in
  // the graph.
  std::unordered_map<const Variable*, VariablePtr> gone;
  const NodeId first = examples.empty() ? kNoNode : std::ranges::min(examples);
  std::erase_if(state_order_, [&](const VariablePtr& v) {
    const auto b = born_.find(v.get());
    if (b == born_.end() || b->second.nodes <= static_cast<size_t>(first) ||
        !depends[state_.at(v.get())])
      return false;
    refer(state_.at(v.get()), kNoNode);
    state_.erase(v.get());
    born_.erase(b);
    gone.emplace(v.get(), v);
    return true;
  });
  for (Given& l : leaves_)
    if (gone.contains(l.variable.get())) l.array = l.variable->value(), l.variable = nullptr;
  for (auto& [_, variable] : gone) variable->lose();
  bool assigned = false;
  for (auto& [variable, node] : state_) {
    if (!depends[node]) continue;
    assigned = true;
    for (const Given& l : leaves_)
      if (l.variable.get() == variable) refer(node, l.id);
  }
  require(!assigned, ErrorKind::Value,
          "vmap: a parameter was assigned a value that differs from example to example; return the "
          "value and assign outside");
}

std::vector<Compiled::Source> Trace::sources(std::span<const NodeId> live,
                                             std::span<const NodeId> cuts,
                                             const Places* arguments) const {
  std::vector<Compiled::Source> sources;
  auto cut = cuts.begin();
  for (NodeId n : live) {
    if (cut != cuts.end() && *cut == n) {
      Compiled::Source& s = sources.emplace_back();
      if (arguments)
        s.argument = arguments->at(n);
      else
        s.captured = values_.at(n).value;
      ++cut;
      continue;
    }
    if (const Given* leaf = given(n)) {
      Compiled::Source& s = sources.emplace_back();
      s.argument = leaf->argument;
      s.variable = leaf->variable;
      if (leaf->variable)
        s.type = leaf->type;
      else if (leaf->argument < 0)
        s.captured = leaf->array;
      continue;
    }
    if (!is_leaf(graph, n)) continue;
    if (std::ranges::find(graph.unknowns(), n) != graph.unknowns().end()) {
      asked_for_unknown_ = true;
      fail(ErrorKind::Value,
           "the rule of a derivative asked for the value of a tangent or cotangent that stands for "
           "any: it is recorded once for all of them here, as derivatives of higher order and the "
           "other mode need it. Compute with ops instead of numbers, or take jvp for a rule of "
           "tangents and vjp for one of cotangents");
    }
    fail(ErrorKind::Value,
         "vmap: a value was asked for that differs from example to example, as by if, float() or "
         "print(): there is not one value. Choose by ops.where, or return the tensor");
  }
  return sources;
}

std::vector<NodeId> Trace::cuts() const {
  std::vector<NodeId> ids;
  for (const auto& [id, known] : values_) ids.push_back(id);
  std::ranges::sort(ids);
  return ids;
}

Compiled Trace::planned(std::span<const NodeId> roots, const NodeSet& known, size_t results,
                        std::vector<VariablePtr> updated, const Places* arguments) const {
  const std::vector<NodeId> live = live_until(graph, roots, known), cuts = among(live, known);
  Compiled c;
  c.inputs = sources(live, cuts, arguments);
  c.executable = executable_for(graph, live, roots, cuts);
  c.constants = constants_of(graph, live);
  c.result_count = results;
  std::vector<Type> types;
  for (size_t u = 0; u < updated.size(); ++u)
    types.push_back({graph.dtype(roots[results + u]), graph.dims(roots[results + u])});
  c.update(std::move(updated), types);
  return c;
}

NodeId Trace::alias(NodeId x) {
  NodeId a = gradcell::alias(graph, x);
  open_.insert(a);
  return a;
}

NodeId Trace::push_alias(const VariablePtr& variable) {
  NodeId a = alias(lift(variable));
  refer(state_.at(variable.get()), a);
  variable->touch();
  return a;
}

void Trace::refer(NodeId& from, NodeId to) {
  if (from != kNoNode) --held_[from];
  from = to;
  if (to == kNoNode) return;
  if (held_.size() <= to) held_.resize(to + 1, 0);
  ++held_[to];
}

template <class F>
void Trace::each_reference(F f) {
  auto of = [&](NodeId& node) { refer(node, f(node)); };
  for (Tensor* t = tensors_; t; t = t->next_) of(t->node_);
  for (auto& [variable, node] : state_) of(node);
}

void Trace::dissolve(std::span<const NodeId> aliases) {
  if (aliases.empty()) return;
  for (NodeId a : aliases) open_.erase(a);
  depend_.clear();
  const NodeId first = *std::min_element(aliases.begin(), aliases.end());
  std::vector<NodeId> now(graph.size() - first, kNoNode);  // what stands for first, first + 1, ...
  for (NodeId a : aliases) now[a - first] = graph.input(a, 0);
  for (const VariablePtr& v : state_order_)
    if (NodeId& node = state_.at(v.get()); node >= first && now[node - first] != kNoNode)
      refer(node, now[node - first]), v->touch();
  if (open_.empty()) return;
  rebuild_references(first, now);
  move_references(first, now);
}

bool Trace::apart(NodeId id) const {
  if (open_.contains(id)) return true;
  if (!is_leaf(graph, id)) return false;
  const Given* l = given(id);
  return !l || l->argument >= 0 || l->variable;  // an array may be captured as two tensors
}

void Trace::insert(NodeId from, NodeId to) {
  std::vector<NodeId> now(to - from, kNoNode);
  now[0] = to;
  rebuild_references(from, now);
  now[0] = kNoNode;
  move_references(from, now);
}

bool Trace::differentiated(std::span<const NodeId> ids, std::span<const NodeId> stops) const {
  if (open_.empty()) return false;
  struct Place {
    NodeId id;
    int next;  // of its inputs
  };
  std::vector<Place> path;
  std::unordered_set<NodeId> seen(stops.begin(), stops.end());
  auto depends = [&](NodeId id) {
    if (independent_.has(id) || !seen.insert(id).second) return false;
    if (open_.contains(id) || (stops.empty() && depend_.has(id))) return true;
    if (spec(graph, id).differentiable()) path.push_back({id, 0});
    return false;
  };
  for (NodeId root : ids) {
    bool found = depends(root);
    while (!found && !path.empty()) {
      auto& [id, next] = path.back();
      if (next < graph[id].input_count) {
        const int k = next++;
        found = spec(graph, id).computes_with(k) && depends(graph.input(id, k));
        continue;
      }
      if (stops.empty()) independent_.add(id);
      path.pop_back();
    }
    for (const Place& p : path) depend_.add(p.id);
    if (found) return true;
  }
  return false;
}

void Trace::rebuild_references(NodeId first, std::vector<NodeId>& now) {
  const auto end = narrow<NodeId>(first + now.size());
  const auto made = narrow<NodeId>(graph.size());
  std::vector<uint8_t> live(end - first, 0);
  each_reference([&](NodeId node) {
    if (node >= first && node < end) live[node - first] = 1;
    return node;
  });
  for (NodeId id = end; id-- > first;)
    if (live[id - first])
      for (NodeId i : graph.inputs(id))
        if (i >= first) live[i - first] = 1;

  std::vector<NodeId> in;
  for (NodeId id = first; id < end; ++id) {
    NodeId& to = now[id - first];
    if (!live[id - first] || to != kNoNode) continue;
    in.assign(graph.inputs(id).begin(), graph.inputs(id).end());
    bool moved = false;
    for (NodeId& i : in)
      if (i >= first && now[i - first] != kNoNode) i = now[i - first], moved = true;
    if (!moved) continue;
    if (commutes(graph[id].op) && !is_constant(graph, in[1]) && in[0] > in[1])
      std::swap(in[0], in[1]);
    to = rebuild(graph, graph, id, in);
    if (const auto v = values_.find(id); v != values_.end() && !known(to))
      keep(to, Array(v->second.value), v->second.asked);
  }
  if constexpr (kVerify) verify(graph, "rebuild_references", made);
}

void Trace::move_references(NodeId first, const std::vector<NodeId>& now) {
  auto moved = [&](NodeId node) {
    const bool among = node >= first && node - first < now.size();
    return among && now[node - first] != kNoNode ? now[node - first] : node;
  };
  each_reference(moved);
  std::unordered_set<NodeId> open;
  for (NodeId a : open_) open.insert(moved(a));
  open_ = std::move(open);
  depend_.clear();
}

std::vector<uint64_t> Trace::lifted_variables() const {
  std::vector<uint64_t> numbers;
  for (const VariablePtr& v : state_order_) numbers.push_back(v->number());
  return numbers;
}

Trace::Origin Trace::origin(NodeId leaf) const {
  const Given* l = given(leaf);
  return l ? Origin{l->argument, l->variable.get()} : Origin{};
}

Array Trace::at_hand(NodeId id) const {
  if (auto v = values_.find(id); v != values_.end()) return v->second.value;
  const Given* leaf = given(id);
  return leaf->variable ? leaf->variable->value() : leaf->array;
}

void Trace::mark_unrepeatable() {
  if (asked_) return;
  asked_ = true;
  asked_at_ = here();
}

bool Trace::add_effects(std::vector<NodeId>& roots, std::span<const NodeId> live, bool all) const {
  uint64_t last = all ? UINT64_MAX : 0;
  for (NodeId id : live)
    if (form(graph, id) == Form::Collective) last = std::max(last, graph[id].bits);
  const size_t before = roots.size();
  const auto effects = graph.effects();
  auto next = std::ranges::upper_bound(effects, done_, {}, &Graph::Effect::place);
  for (; next != effects.end() && next->place <= last; ++next) roots.push_back(next->id);
  return roots.size() > before;
}

std::vector<Array> Trace::run(std::vector<NodeId> roots) {
  const size_t asked = roots.size();
  std::vector<NodeId> live = live_until(graph, roots, known_);
  if (!graph.effects().empty() && add_effects(roots, live, false))
    live = live_until(graph, roots, known_);
  const size_t effects = roots.size();
  for (NodeId id : needed_again(live)) roots.push_back(id);
  std::vector<Array> values = planned(roots, known_, roots.size(), {}).run(arguments_);
  for (size_t i = asked; i < roots.size(); ++i) {
    // An effect does not take place again: its value is known from now on.
    keep(roots[i], values[i], i < effects);
    if (i < effects) done_ = graph[roots[i]].bits;
  }
  if (kept_ > most_kept_) forget();
  values.resize(asked);
  return values;
}

std::vector<NodeId> Trace::needed_again(std::span<const NodeId> live) {
  std::vector<NodeId> found, counted;
  bool again = false;
  for (NodeId id : live) {
    if (is_source(graph, id) || known_.has(id)) continue;
    again |= !is_free(graph, id) && computed_.has(id);
    computed_.add(id);
  }
  if (!again) return found;
  uses_.resize(graph.size(), 0);
  for (; counted_ < graph.size(); ++counted_)
    for (NodeId i : planned_inputs(graph, counted_)) ++uses_[i];
  for (auto at = live.rbegin(); at != live.rend(); ++at) {  // users before what they use
    const NodeId id = *at;
    if (is_source(graph, id) || known_.has(id)) continue;
    const bool used = uses_[id] > 0 || (id < held_.size() && held_[id] > 0);
    if (used && is_free(graph, id)) continue;  // its input is then
    if (used) found.push_back(id);
    counted.push_back(id);
    for (NodeId i : planned_inputs(graph, id)) --uses_[i];
  }
  for (NodeId id : counted)
    for (NodeId i : planned_inputs(graph, id)) ++uses_[i];
  return found;
}

void Trace::keep(NodeId id, const Array& value, bool asked) {
  if (is_constant(graph, id))
    return;  // plans take its value among their constants, not as an input
  const auto [at, fresh] = values_.try_emplace(id, Known{value, asked});
  known_.add(id);
  if (fresh && !asked) kept_ += value.bytes();
  if (!fresh && asked && !std::exchange(at->second.asked, true)) kept_ -= value.bytes();
}

void Trace::forget() {
  NodeSet seen;
  std::vector<NodeId> open;
  add_effects(open, {}, true);
  each_reference([&](NodeId node) {
    open.push_back(node);
    return node;
  });
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (seen.has(id)) continue;
    seen.add(id);
    if (known_.has(id)) continue;
    for (NodeId i : planned_inputs(graph, id)) open.push_back(i);
  }
  std::erase_if(values_, [&](const auto& entry) {
    const auto& [id, known] = entry;
    if (known.asked || seen.has(id)) return false;
    known_.remove(id);
    kept_ -= known.value.bytes();
    return true;
  });
  most_kept_ = std::max(kMostKept, 2 * kept_);
}

uint8_t Trace::traits(NodeId id) const {
  for (auto n = narrow<NodeId>(traits_.size()); n <= id; ++n) {
    uint8_t found = form(graph, n) == Form::Collective ? kVaries : 0;
    if (is_leaf(graph, n)) {
      const Given* leaf = given(n);
      if (!leaf)
        found = kVaries | kForAny;
      else if (leaf->argument >= 0 || leaf->variable)
        found = kVaries;
    }
    for (NodeId i : planned_inputs(graph, n)) found |= traits_[i];
    traits_.push_back(found);
  }
  return traits_[id];
}

Array Trace::value(NodeId id) {
  if (!is_fixed(id)) mark_unrepeatable();
  if (known(id)) return at_hand(id);
  Array result = run({id})[0];
  keep(id, result, true);
  return result;
}

std::vector<Array> Trace::values(std::span<const NodeId> ids) {
  if (!std::ranges::all_of(ids, [&](NodeId id) { return is_fixed(id); })) mark_unrepeatable();
  return run({ids.begin(), ids.end()});
}

bool Trace::decide(NodeId id) {
  auto answer = [&](const Array& value) { return *static_cast<const uint8_t*>(value.data()) != 0; };
  for (const Decision& d : decisions_)
    if (d.results[0] == id) return d.answer;
  // (An effect that has taken place for a decision would take place again for another answer.)
  if (!remembers_ || asked_ || is_fixed(id) || !has_value(id) || !graph.effects().empty() ||
      decisions_.size() == kMostDecisions)
    return answer(value(id));
  Decision d{{id}, false};
  NodeSet live, seen;
  for (NodeId n : live_until(graph, d.results, known_)) live.add(n);
  std::vector<NodeId> open;
  for (NodeId n = 0; n < held_.size(); ++n)
    if (held_[n] > 0) open.push_back(n);
  while (!open.empty()) {
    const NodeId n = open.back();
    open.pop_back();
    if (n == id || seen.has(n) || known_.has(n) || is_source(graph, n)) continue;
    seen.add(n);
    if (live.has(n) && !is_free(graph, n))
      d.results.push_back(n);
    else
      for (NodeId i : planned_inputs(graph, n)) open.push_back(i);
  }
  std::sort(d.results.begin() + 1, d.results.end());
  const std::vector<Array> values = run(d.results);
  for (size_t i = 0; i < values.size(); ++i) keep(d.results[i], values[i], true);
  d.answer = answer(values[0]);
  decisions_.push_back(std::move(d));
  return decisions_.back().answer;
}

NodeSet Trace::plan_steps(Places& arguments) {
  NodeSet before;
  for (const Decision& d : decisions_) {
    Compiled step = planned(d.results, before, d.results.size(), {}, &arguments);
    steps_.push_back({std::make_shared<Compiled>(std::move(step)), d.answer});
    for (NodeId n : d.results) {
      before.add(n);
      arguments.emplace(n, narrow<int>(arguments_.size() + arguments.size()));
    }
  }
  return before;
}

std::vector<VariablePtr> Trace::updated() const {
  std::vector<VariablePtr> variables;
  for (const VariablePtr& v : state_order_) {
    if (born_.contains(v.get()) && v.use_count() == 1) continue;
    const Given* leaf = given(state_.at(v.get()));
    if (!leaf || leaf->variable != v) variables.push_back(v);
  }
  return variables;
}

std::vector<NodeId> Trace::assigned() const {
  std::vector<NodeId> ids;
  for (const VariablePtr& v : updated()) ids.push_back(state_.at(v.get()));
  return ids;
}

Trace::Work Trace::work(std::span<const NodeId> outputs) const {
  Work w;
  w.roots.assign(outputs.begin(), outputs.end());
  for (NodeId id : assigned()) w.roots.push_back(id);
  add_effects(w.roots, {}, true);
  w.live = live_until(graph, w.roots, known_);
  w.constants = constants_of(graph, w.live);
  std::vector<VariablePtr> variables;
  const std::vector<Compiled::Source> from = sources(w.live, among(w.live, known_));
  for (const Compiled::Source& s : from)
    if (s.variable) variables.push_back(s.variable);
  std::vector<Array> values = values_of(variables);
  auto value = values.begin();
  for (const Compiled::Source& s : from)
    w.inputs.push_back(s.variable        ? *value++
                       : s.argument >= 0 ? arguments_[static_cast<size_t>(s.argument)]
                                         : s.captured);
  return w;
}

std::vector<Array> Trace::finish(std::span<const NodeId> outputs) {
  return finish(outputs, nullptr);
}

std::vector<Array> Trace::finish(std::span<const NodeId> outputs,
                                 std::shared_ptr<Compiled>* compiled) {
  graph.drop_rules();  // with the tensors that they kept
  if (!graph.unknowns().empty())
    end_tensors(ad::dependents(graph, graph.unknowns()),
                "a tangent or cotangent that stands for any is used after the rule that it was "
                "given to has ended");
  for (Tensor* t = tensors_; t; t = t->next_) t->in(*this);  // views of what has changed
  // What was made here and is held by the leaf and the list of states alone: a value, no variable.
  for (Given& l : leaves_) {
    const auto b = l.variable ? born_.find(l.variable.get()) : born_.end();
    if (b != born_.end() && l.variable.use_count() == 2)
      l.array = l.variable->value(), l.variable = nullptr;
  }
  std::vector<NodeId> roots(outputs.begin(), outputs.end());
  const std::vector<VariablePtr> updated = this->updated();
  for (const VariablePtr& v : updated) {
    roots.push_back(state_.at(v.get()));
    const auto b = born_.find(v.get());
    if (b != born_.end() && !b->second.known) mark_unrepeatable();
  }
  // Effects take place whether or not their values are used.
  add_effects(roots, {}, true);
  // A traced tensor that outlives its function (kept in a list or an attribute) gets its value too.
  size_t kept_count = roots.size();
  std::unordered_map<NodeId, size_t> value_of;
  for (size_t i = 0; i < outputs.size(); ++i) value_of.emplace(outputs[i], i);
  for (Tensor* t = tensors_; t; t = t->next_) {
    if (!value_of.emplace(t->node_, roots.size()).second) continue;
    mark_unrepeatable();
    roots.push_back(t->node_);
  }

  // All is planned before anything is written.
  Compiled now = planned(roots, known_, outputs.size(), updated);
  if (compiled) {
    Places arguments;
    const NodeSet before = plan_steps(arguments);
    const bool same = values_.empty() && kept_count == roots.size();
    const std::span<const NodeId> kept(roots.data(), kept_count);
    if (!asked_)
      *compiled = std::make_shared<Compiled>(
          same ? now : planned(kept, before, outputs.size(), updated, &arguments));
  }
  std::vector<Array> values = now.run_whole(arguments_);

  while (Tensor* t = tensors_) {  // (fewer than above, if an interrupt was answered meanwhile)
    t->array_ = values[value_of.at(t->node_)];
    t->unlink();
    t->trace_.reset();
    if (t->window_) t->window_->seen = t->window_->base->version();
  }
  values.resize(outputs.size());
  active_ = false;
  return values;
}

Trace::Remainder Trace::remainder(std::span<const NodeId> outputs,
                                  std::span<const NodeId> arguments) {
  const std::vector<uint8_t> depends = ad::dependents(graph, arguments);
  std::vector<NodeId> given;
  std::vector<uint8_t> seen(graph.size(), 0);
  auto need = [&](NodeId id) {
    if (depends[id] || is_constant(graph, id) || seen[id]) return;
    seen[id] = 1;
    given.push_back(id);
  };
  for (NodeId id : outputs) need(id);
  for (NodeId id : live_until(graph, outputs, {}))
    if (depends[id])
      for (NodeId i : graph.inputs(id)) need(i);
  std::ranges::sort(given);
  Remainder result;
  std::unordered_map<NodeId, Compiled::Source> sources;
  for (size_t i = 0; i < arguments.size(); ++i) sources[arguments[i]].argument = narrow<int>(i);
  for (NodeId id : given) {
    Compiled::Source& source = sources[id];
    if (const Given* leaf = this->given(id); leaf && leaf->argument < 0 && !leaf->variable) {
      source.captured = leaf->array;
      continue;
    }
    source.argument = narrow<int>(arguments.size() + result.factors.size());
    result.factors.push_back(id);
  }

  const std::vector<NodeId> live = live_until(graph, outputs, given);
  auto c = std::make_shared<Compiled>();
  c->executable = executable_for(graph, live, outputs, given);
  c->constants = constants_of(graph, live);
  for (NodeId id : live)
    if (auto s = sources.find(id); s != sources.end()) c->inputs.push_back(s->second);
  c->result_count = outputs.size();
  result.rest = std::move(c);
  return result;
}

void Trace::abandon() {
  graph.drop_rules();
  active_ = false;
  for (const VariablePtr& v : state_order_) v->touch();
  for (Tensor *t = tensors_, *next; t; t = next) {
    next = t->next_;
    if (t->window_ || !t->array_.storage) continue;
    t->unlink();
    t->trace_.reset();
    ++t->version_;
  }
}

}  // namespace gradcell

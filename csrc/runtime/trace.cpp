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
  return add_leaf(value.dtype, value.dims, {kNoNode, value, nullptr, arguments_++});
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
  state_[variable.get()] = id;
  state_order_.push_back(variable);
  return id;
}

void Trace::assign(const VariablePtr& variable, NodeId node) {
  lift(variable);
  state_[variable.get()] = node;
  variable->touch();
}

VariablePtr Trace::born(NodeId value) {
  auto variable = std::make_shared<Variable>(Type{graph.dtype(value), graph.dims(value)});
  born_[variable.get()] = graph.size();
  state_[variable.get()] = stop_gradient(graph, value);
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
  // What the function made for itself is gone with it.
  const NodeId first = examples.empty() ? kNoNode : std::ranges::min(examples);
  std::erase_if(state_order_, [&](const VariablePtr& v) {
    const auto b = born_.find(v.get());
    if (b == born_.end() || b->second <= static_cast<size_t>(first) || !depends[state_.at(v.get())])
      return false;
    state_.erase(v.get());
    born_.erase(b);
    return true;
  });
  bool assigned = false;
  for (auto& [variable, node] : state_) {
    if (!depends[node]) continue;
    assigned = true;
    for (const Given& l : leaves_)
      if (l.variable.get() == variable) node = l.id;
  }
  require(!assigned, ErrorKind::Value,
          "vmap: a parameter was assigned a value that differs from example to example; return the "
          "value and assign outside");
}

bool Trace::has_value(NodeId id) const {
  return std::ranges::none_of(live_nodes(graph, std::span(&id, 1)),
                              [&](NodeId n) { return is_leaf(graph, n) && !known(n); });
}

std::vector<Compiled::Source> Trace::sources(std::span<const NodeId> live,
                                             std::span<const NodeId> cuts) const {
  std::vector<Compiled::Source> sources;
  for (NodeId n : live) {
    if (!cuts.empty())
      if (const auto v = values_.find(n); v != values_.end()) {
        sources.emplace_back().captured = v->second;
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

Compiled Trace::planned(std::span<const NodeId> roots, std::span<const NodeId> cuts, size_t results,
                        std::vector<VariablePtr> updated) const {
  const std::vector<NodeId> live = live_until(graph, roots, cuts);
  Compiled c;
  c.inputs = sources(live, cuts);
  c.executable = executable_for(graph, live, roots, cuts);
  c.constants = constants_of(graph, live);
  c.result_count = results;
  std::vector<Type> types;
  for (size_t u = 0; u < updated.size(); ++u)
    types.push_back({graph.dtype(roots[results + u]), graph.dims(roots[results + u])});
  c.update(std::move(updated), types);
  return c;
}

std::vector<Array> Trace::arguments() const {
  std::vector<Array> arrays(static_cast<size_t>(arguments_));
  for (const Given& leaf : leaves_)
    if (leaf.argument >= 0) arrays[static_cast<size_t>(leaf.argument)] = leaf.array;
  return arrays;
}

NodeId Trace::alias(NodeId x) {
  NodeId a = gradcell::alias(graph, x);
  open_.insert(a);
  return a;
}

NodeId Trace::push_alias(const VariablePtr& variable) {
  NodeId a = alias(lift(variable));
  state_[variable.get()] = a;
  variable->touch();
  return a;
}

template <class F>
void Trace::each_reference(F f) {
  for (Tensor* t = tensors_; t; t = t->next_) f(t->node_);
  for (auto& [variable, node] : state_) f(node);
}

void Trace::dissolve(std::span<const NodeId> aliases) {
  if (aliases.empty()) return;
  for (NodeId a : aliases) open_.erase(a);
  const NodeId first = *std::min_element(aliases.begin(), aliases.end());
  std::vector<NodeId> now(graph.size() - first, kNoNode);  // what stands for first, first + 1, ...
  for (NodeId a : aliases) now[a - first] = graph.input(a, 0);
  for (const VariablePtr& v : state_order_)
    if (NodeId& node = state_[v.get()]; node >= first && now[node - first] != kNoNode)
      node = now[node - first], v->touch();
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
  std::unordered_set<NodeId> seen(stops.begin(), stops.end());
  std::vector<NodeId> next(ids.begin(), ids.end());
  while (!next.empty()) {
    const NodeId id = next.back();
    next.pop_back();
    if (!seen.insert(id).second) continue;
    if (open_.contains(id)) return true;
    const Spec& s = spec(graph, id);
    if (!s.differentiable()) continue;
    for (int k = 0; k < graph[id].input_count; ++k)
      if (s.computes_with(k)) next.push_back(graph.input(id, k));
  }
  return false;
}

void Trace::rebuild_references(NodeId first, std::vector<NodeId>& now) {
  const auto end = narrow<NodeId>(first + now.size());
  const auto made = narrow<NodeId>(graph.size());
  std::vector<uint8_t> live(end - first, 0);
  each_reference([&](NodeId& node) {
    if (node >= first && node < end) live[node - first] = 1;
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
    if (auto v = values_.find(id); v != values_.end() && !known(to) && !is_constant(graph, to)) {
      values_.emplace(to, Array(v->second));
      cuts_.push_back(to);
    }
  }
  if constexpr (kVerify) verify(graph, "rebuild_references", made);
}

void Trace::move_references(NodeId first, const std::vector<NodeId>& now) {
  auto moved = [&](NodeId node) {
    const bool among = node >= first && node - first < now.size();
    return among && now[node - first] != kNoNode ? now[node - first] : node;
  };
  each_reference([&](NodeId& node) { node = moved(node); });
  std::unordered_set<NodeId> open;
  for (NodeId a : open_) open.insert(moved(a));
  open_ = std::move(open);
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
  if (auto v = values_.find(id); v != values_.end()) return v->second;
  const Given* leaf = given(id);
  return leaf->variable ? leaf->variable->value() : leaf->array;
}

void Trace::mark_unrepeatable() {
  if (asked_) return;
  asked_ = true;
  asked_at_ = here();
}

bool Trace::add_effects(std::vector<NodeId>& roots, const std::vector<NodeId>& live,
                        bool all) const {
  auto is_live = [&](NodeId id) { return std::binary_search(live.begin(), live.end(), id); };
  size_t end = 0, begin = 0;
  const auto effects = graph.effects();
  while (begin < effects.size() && effects[begin].place <= done_) ++begin;
  for (size_t i = begin; i < effects.size(); ++i)
    if (all || is_live(effects[i].id)) end = i + 1;
  for (size_t i = begin; i < end; ++i) roots.push_back(effects[i].id);
  return end > begin;
}

std::vector<Array> Trace::run(std::vector<NodeId> roots) {
  const size_t count = roots.size();
  if (!graph.effects().empty()) add_effects(roots, live_until(graph, roots, cuts_), false);
  std::vector<Array> values = planned(roots, cuts_, roots.size(), {}).run(arguments());
  // An effect does not take place again: its value is known from now on.
  for (size_t i = count; i < roots.size(); ++i) {
    values_.insert_or_assign(roots[i], values[i]);
    cuts_.push_back(roots[i]);
    done_ = graph[roots[i]].bits;
  }
  values.resize(count);
  return values;
}

bool Trace::is_fixed(NodeId id) const {
  const NodeId roots[] = {id};
  return std::ranges::all_of(live_until(graph, roots, {}), [&](NodeId n) {
    if (!is_leaf(graph, n)) return spec(graph, n).form != Form::Collective;
    const Given* leaf = given(n);
    return leaf && leaf->argument < 0 && !leaf->variable;
  });
}

Array Trace::value(NodeId id) {
  if (!is_fixed(id)) mark_unrepeatable();
  if (known(id)) return at_hand(id);
  Array result = run({id})[0];
  // Plans take a constant's value among their constants, not as an input.
  if (is_constant(graph, id) || known(id)) return result;
  values_[id] = result;
  cuts_.push_back(id);
  return result;
}

std::vector<Array> Trace::values(std::span<const NodeId> ids) {
  if (!std::ranges::all_of(ids, [&](NodeId id) { return is_fixed(id); })) mark_unrepeatable();
  return run({ids.begin(), ids.end()});
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
  w.live = live_until(graph, w.roots, cuts_);
  w.constants = constants_of(graph, w.live);
  std::vector<VariablePtr> variables;
  const std::vector<Compiled::Source> from = sources(w.live, cuts_);
  for (const Compiled::Source& s : from)
    if (s.variable) variables.push_back(s.variable);
  std::vector<Array> values = values_of(variables), given = arguments();
  auto value = values.begin();
  for (const Compiled::Source& s : from)
    w.inputs.push_back(s.variable        ? *value++
                       : s.argument >= 0 ? given[static_cast<size_t>(s.argument)]
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
  std::vector<NodeId> roots(outputs.begin(), outputs.end());
  const std::vector<VariablePtr> updated = this->updated();
  for (const VariablePtr& v : updated) {
    roots.push_back(state_.at(v.get()));
    if (born_.contains(v.get())) mark_unrepeatable();
  }
  // Effects take place whether or not their values are used.
  if (graph.effects().size() > 0) add_effects(roots, {}, true);
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
  Compiled now = planned(roots, cuts_, outputs.size(), updated);
  if (compiled && !asked_) {
    const bool same = cuts_.empty() && kept_count == roots.size();
    const std::span<const NodeId> kept(roots.data(), kept_count);
    *compiled = std::make_shared<Compiled>(same ? now : planned(kept, {}, outputs.size(), updated));
  }
  std::vector<Array> values = now.run_whole(arguments());

  while (Tensor* t = tensors_) {  // (fewer than above, if an interrupt was answered meanwhile)
    t->unlink();
    t->array_ = values[value_of.at(t->node_)];
    t->trace_.reset();
    t->node_ = kNoNode;
    if (t->window_) t->window_->seen = t->window_->base->version();
  }
  values.resize(outputs.size());
  active_ = false;
  return values;
}

std::shared_ptr<Compiled> Trace::remainder(std::span<const NodeId> outputs,
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
  const std::vector<Array> arrays = given.empty() ? std::vector<Array>{} : values(given);
  std::unordered_map<NodeId, Compiled::Source> sources;
  for (size_t i = 0; i < given.size(); ++i) sources[given[i]].captured = arrays[i];
  for (size_t i = 0; i < arguments.size(); ++i) sources[arguments[i]].argument = narrow<int>(i);

  const std::vector<NodeId> live = live_until(graph, outputs, given);
  auto c = std::make_shared<Compiled>();
  c->executable = executable_for(graph, live, outputs, given);
  c->constants = constants_of(graph, live);
  for (NodeId id : live)
    if (auto s = sources.find(id); s != sources.end()) c->inputs.push_back(s->second);
  c->result_count = outputs.size();
  return c;
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
    t->node_ = kNoNode;
    ++t->version_;
  }
}

}  // namespace gradcell

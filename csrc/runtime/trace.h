// A trace: the graph of what a Python function does, recorded while it runs, with the values of its
// leaves. Any node's value can be had at any time; the sub-graph it needs is planned and run.
//
// Variables (parameters) are functional inside a trace: assignment changes which node stands for
// the variable, and only `finish` writes the variables, all at once, when everything has been
// computed.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plan/planner.h"
#include "runtime/compiled.h"

namespace gradcell {

class Tensor;
using TensorPtr = std::shared_ptr<Tensor>;

/// Says where the user's code is: asked for each op recorded.
using Locator = Location (*)();

class Trace : public std::enable_shared_from_this<Trace> {
 public:
  explicit Trace(const Settings& s = settings(), Locator locate = nullptr)
      : graph(s), default_float(s.default_float), locate_(locate) {}

  Graph graph;
  DType default_float;  ///< of its settings, unless the function itself sets another
  uint64_t serial = 0;  ///< its number among those that were current

  /// The nodes whose values are known, ascending.
  std::vector<NodeId> cuts() const;
  /// Where the user's code is now.
  Location here() const { return locate_ ? locate_() : Location{}; }

  /// A fresh leaf for an argument; never shared with another leaf.
  NodeId argument(const Array& value);
  /// The leaf for a captured value, one for each storage.
  NodeId lift(const Array& value);
  /// The node that stands for the variable now.
  NodeId lift(const VariablePtr& variable);
  void assign(const VariablePtr& variable, NodeId node);
  /// Takes over a variable made here: derivatives do not pass through its making. One that does not
  /// outlive the trace is new, with this value, at each run. Of others, one whose value was not
  /// known is written at the end; a repeated run makes no new one, so the trace can then not be
  /// repeated.
  VariablePtr born(VariablePtr variable, NodeId value, bool known);
  /// Stands for one example of a batch, [N, ...], that a function is mapped over: a node [...]
  /// without a value.
  NodeId example(NodeId batch);
  /// What depends on these examples is of no use from now on: tensors that still hold it say so
  /// when they are used. Throws Value for a variable that has been assigned such a thing.
  void end_examples(std::span<const NodeId> examples);
  /// Whether a value was asked for that depends on what stands for any value (Graph::unknown).
  bool asked_for_unknown() const { return asked_for_unknown_; }
  /// A node equal to x that is no other, to differentiate by.
  NodeId alias(NodeId x);
  /// Makes an alias stand for the variable, so that it can be differentiated by; returns it.
  NodeId push_alias(const VariablePtr& variable);
  /// Ends the aliases of a transform: tensors and variables go over to the same computation on what
  /// the aliases stood for. It is then one with what the function outside computes already, so an
  /// outer derivative walks through it once. (If no transform is around, there is nothing to gain:
  /// only the variables go over.)
  void dissolve(std::span<const NodeId> aliases);
  /// Whether no other computation can be this node: an open alias, an argument, an example, or what
  /// stands for a variable that has not been assigned. What is differentiated by has to be such.
  bool apart(NodeId id) const;
  /// From now on `to`, the newest node, stands for `from`, which it is made of, in all that has
  /// been computed with that. Tensors that are `from` itself stay.
  void insert(NodeId from, NodeId to);
  /// Whether the nodes depend on what a transform is differentiating by now, otherwise than through
  /// `stops`.
  bool differentiated(std::span<const NodeId> ids, std::span<const NodeId> stops = {}) const;

  /// The numbers of the variables that it has read.
  std::vector<uint64_t> lifted_variables() const;
  /// Where a leaf's value comes from: the argument's number, the variable, or neither.
  struct Origin {
    int argument = -1;
    const Variable* variable = nullptr;
  };
  Origin origin(NodeId leaf) const;

  /// Whether a node's value is the same at every call: it depends on no argument, variable, example
  /// or other process.
  bool is_fixed(NodeId id) const { return (traits(id) & kVaries) == 0; }
  /// Whether there is one value: it depends on nothing that stands for one example, or for any.
  bool has_value(NodeId id) const { return (traits(id) & kForAny) == 0; }
  /// Whether the value is at hand without running anything.
  bool known(NodeId id) const { return known_.has(id) || given(id); }
  Array value(NodeId id);
  /// The values of several nodes, from one plan.
  std::vector<Array> values(std::span<const NodeId> ids);
  /// Whether a node's element, a bool, is true. If decisions are remembered, and nothing else keeps
  /// the trace from being repeated, it can be repeated with this answer: what the node needs is a
  /// step of its own then, whose other results are what can be of use later.
  bool decide(NodeId id);
  /// From now on decisions are remembered.
  void remember_decisions() { remembers_ = true; }
  /// The nodes that stand for the variables assigned so far: what a finish computes besides its
  /// outputs.
  std::vector<NodeId> assigned() const;

  /// Runs what is left: the values of `outputs`, of every traced tensor still alive and of the
  /// assigned variables, which are then written. Afterwards no tensor refers to this trace.
  std::vector<Array> finish(std::span<const NodeId> outputs);
  /// The same, and something that does it again. Null if the trace cannot be repeated. Where there
  /// have been decisions, steps() come before it: each has the results of those before it as
  /// further arguments, and so has this.
  std::vector<Array> finish(std::span<const NodeId> outputs, std::shared_ptr<Compiled>* compiled);
  /// What a decision needs, whose first result is the answer; and the answer here.
  struct Decided {
    std::shared_ptr<Compiled> compiled;
    bool answer;
  };
  /// Of a trace that was finished to be repeated; all before what keeps it from that.
  const std::vector<Decided>& steps() const { return steps_; }
  /// What computes outputs from arguments and from factors, the nodes that it needs besides.
  struct Remainder {
    std::shared_ptr<Compiled> rest;
    std::vector<NodeId> factors;
  };
  /// Computes the outputs for other values of these arguments: only what depends on them.
  Remainder remainder(std::span<const NodeId> outputs, std::span<const NodeId> arguments);
  /// What `finish` would run, with its inputs' values: to look at, or for another engine.
  struct Work {
    std::vector<NodeId> roots;  ///< the outputs, then the assigned variables
    std::vector<NodeId> live;
    std::vector<Array> inputs;
    std::vector<uint64_t> constants;
  };
  Work work(std::span<const NodeId> outputs) const;
  /// Forgets everything: the function failed. Tensors from outside are what they were.
  void abandon();

  bool active() const { return active_; }
  bool asked() const { return asked_; }
  Location asked_at() const { return asked_at_; }
  void mark_unrepeatable();

 private:
  friend class Tensor;
  /// Bytes of values that nobody has asked for, before it is worth looking which are of use.
  static constexpr size_t kMostKept = 64 << 20;
  /// Decisions that are remembered in one trace.
  static constexpr size_t kMostDecisions = 64;
  /// What one is: its node, then what is kept with it.
  struct Decision {
    std::vector<NodeId> results;
    bool answer;
  };
  struct Given {
    NodeId id;
    Array array;
    VariablePtr variable;
    int argument = -1;
    const Type* type = nullptr;  ///< of the variable
  };
  /// What makes a node's value another at other calls, or leaves it open.
  enum Trait : uint8_t { kVaries = 1, kForAny = 2 };
  uint8_t traits(NodeId id) const;
  const Given* given(NodeId id) const;  ///< null for what is no leaf with a value
  /// The variables assigned so far, but for those made here that nobody holds any more.
  std::vector<VariablePtr> updated() const;
  /// Makes what refers to a node from outside of the graph refer to another; kNoNode: to none.
  void refer(NodeId& from, NodeId to);
  /// Calls f on each node that something outside of the graph refers to; f may change it.
  template <class F>
  void each_reference(F f);
  /// Makes what is referred to among the nodes from `first` on again where `now` (by distance from
  /// `first`) has others in the place of its inputs, and notes that there.
  void rebuild_references(NodeId first, std::vector<NodeId>& now);
  void move_references(NodeId first, const std::vector<NodeId>& now);
  /// Adds to the roots, which need the nodes `live`, the effects that have not taken place: all, or
  /// those up to the last one that is live. Returns whether there are any.
  bool add_effects(std::vector<NodeId>& roots, std::span<const NodeId> live, bool all) const;
  /// The values of nodes, from one plan, with the effects that come before them.
  std::vector<Array> run(std::vector<NodeId> roots);
  /// From now on a node's value is known. `asked`: as long as the trace lives.
  void keep(NodeId id, const Array& value, bool asked);
  /// Where nodes are to be computed of which some have been computed before: those among them whose
  /// values something else needs, or may, so that none is computed a third time for it.
  std::vector<NodeId> needed_again(std::span<const NodeId> live);
  /// Forgets values that nobody has asked for, if nothing that can still be used needs them.
  void forget();
  NodeId add_leaf(DType dtype, const Dims& dims, Given leaf);
  /// What is known, by itself.
  Array at_hand(NodeId id) const;
  /// Arguments by what they are: results of decisions.
  using Places = std::unordered_map<NodeId, int>;
  /// Where the inputs of a plan of these nodes come from; what is cut is captured, or an argument.
  /// Throws Value if one differs from example to example.
  std::vector<Compiled::Source> sources(std::span<const NodeId> live, std::span<const NodeId> cuts,
                                        const Places* arguments = nullptr) const;
  /// A plan of these roots for now, or with nothing known for later too.
  Compiled planned(std::span<const NodeId> roots, const NodeSet& known, size_t results,
                   std::vector<VariablePtr> updated, const Places* arguments = nullptr) const;
  /// Makes steps_. Returns what they compute, and adds which argument it is behind them.
  NodeSet plan_steps(Places& arguments);
  /// Tensors that depend on what stands for any value, or for one example, have none: what still
  /// holds them says so when it uses them.
  void end_tensors(const std::vector<uint8_t>& depends, const char* why);

  std::vector<Given> leaves_;
  std::unordered_map<NodeId, size_t> leaf_index_;
  std::unordered_map<const void*, NodeId> captured_;
  std::unordered_map<const Variable*, NodeId> state_;
  std::vector<VariablePtr> state_order_;
  struct Birth {
    size_t nodes;  ///< so many were there
    bool known;    ///< whether it had a value from the beginning
  };
  std::unordered_map<const Variable*, Birth> born_;
  struct Known {
    Array value;
    bool asked;
  };
  std::unordered_map<NodeId, Known> values_;
  NodeSet known_;     ///< those in values_
  NodeSet computed_;  ///< a run has computed it, whether or not its value is known
  size_t kept_ = 0;   ///< bytes of values that nobody has asked for
  size_t most_kept_ = kMostKept;
  std::vector<uint32_t> held_;  ///< by node: how often it is referred to from outside of the graph
  std::vector<uint32_t> uses_;  ///< by node: how often nodes need it, of those before `counted_`
  NodeId counted_ = 0;
  mutable std::vector<uint8_t> traits_;  ///< by node, of the first ones
  uint64_t done_ = 0;                    ///< the place of the last effect that has taken place
  std::unordered_set<NodeId> open_;      ///< aliases not dissolved yet
  mutable NodeSet depend_;               ///< some of those that depend on one of open_
  mutable NodeSet independent_;          ///< some of those that do not, and never will
  Locator locate_;
  Tensor* tensors_ = nullptr;  ///< intrusive list of the live tensors of this trace
  std::vector<Array> arguments_;
  std::vector<Decision> decisions_;
  std::vector<Decided> steps_;
  bool active_ = true, asked_ = false, remembers_ = false;
  mutable bool asked_for_unknown_ = false;
  const char* ended_ = nullptr;  ///< why the tensors that belong here have no value
  Location asked_at_;
};
using TracePtr = std::shared_ptr<Trace>;

/// The trace of this thread; null outside a transform.
Trace* current_trace();
/// The same; throws Runtime if there is none.
Trace& required_trace();
/// Makes a new trace current. Nested calls are errors: transforms nest in one trace.
TracePtr begin_trace(const Settings& s = settings(), Locator locate = nullptr);
void end_trace();
/// Goes on when a trace begins or ends: what is made and changed between, no trace has read.
uint64_t trace_clock();
/// While it lives no trace is current: what runs is none of the function being traced.
class NoTrace {
 public:
  NoTrace();
  ~NoTrace();
  NoTrace(const NoTrace&) = delete;
  NoTrace& operator=(const NoTrace&) = delete;

 private:
  TracePtr outer_;
};

/// While it is set in this thread, what is recorded is a constant of derivatives.
bool records_constants();
void record_constants(bool constants);

/// One of the movements that make a view, to be made again on what its base is by then.
struct Step {
  Op op;
  Dims attributes, dims;
};

/// What a view reads: its base's elements, by way of steps.
struct Window {
  TensorPtr base;  ///< no view itself
  std::vector<Step> steps;
  View layout;                         ///< where the elements lie in the base
  mutable uint64_t seen = UINT64_MAX;  ///< the base's version when they were read last
  mutable uint64_t lent = UINT64_MAX;  ///< that when a plan last read them where they lie
};

/// What the user's Tensor holds: a value, a node of a trace, or a variable; or it is a view of one
/// that does. A write changes what a tensor holds, never an array that something else may read.
class Tensor {
 public:
  explicit Tensor(Array array);
  explicit Tensor(VariablePtr variable) : variable_(std::move(variable)) {}
  Tensor(const TracePtr& trace, NodeId node);
  /// A view whose elements are read when they are asked for.
  Tensor(DType dtype, Window window);
  /// A view whose elements are this node of the trace, as long as the base stays as it is.
  Tensor(const TracePtr& trace, NodeId node, Window window);
  ~Tensor();
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  DType dtype() const;
  const Dims& dims() const;
  bool traced() const { return trace_ != nullptr; }
  NodeId node() const { return node_; }
  const TracePtr& trace() const { return trace_; }
  const VariablePtr& variable() const { return variable_; }
  /// The elements; runs the trace so far if they are not known yet. A variable's are its current
  /// ones, which a later update overwrites.
  Array value() const;
  /// This tensor as a node of the trace.
  NodeId in(Trace& trace) const;
  /// Null for what is no view.
  const Window* window() const { return window_.get(); }
  /// What a write to it changes: a view's base, else itself.
  Tensor& root() { return window_ ? *window_->base : *this; }
  /// Whether a function that was traced may have read these elements.
  bool captured() const { return captured_; }
  /// The trace that was active when it was made, by its number; 0: none.
  uint64_t born() const { return born_; }
  /// Whether the user has put hooks on the gradient by it, which no compiled function knows.
  bool hooked() const { return hooked_; }
  void set_hooked(bool hooked) { hooked_ = hooked; }

  /// Of what is no view: new contents.
  void become(Array array);
  void become(Trace& trace, NodeId node);
  /// Of a traced one, a view too: another node with the same value.
  void stand_for(NodeId node) { trace_->refer(node_, node); }
  /// Of what is no view, outside a trace: calls f with the elements, to which it writes, in memory
  /// of which nobody else knows.
  void overwrite(FunctionRef<void(const Array&)> f);
  /// The elements for a reader and writer who is not told of writes (NumPy): of a view that has all
  /// of its base's elements in order, the base's.
  Array shared_array();

 private:
  friend class Trace;
  void link();
  void unlink();
  uint64_t version() const { return variable_ ? variable_->version() : version_; }
  /// Whether others may write unseen to what it holds.
  bool exposed() const {
    return variable_ ? variable_->exposed() : !array_.storage || array_.storage->exposed();
  }
  /// Whether a view has read its base as it is.
  bool fresh() const;
  mutable Array array_;
  VariablePtr variable_;
  TracePtr trace_;
  mutable NodeId node_ = kNoNode;
  mutable bool captured_ = false;
  bool hooked_ = false;
  std::unique_ptr<Window> window_;
  uint64_t version_ = 0, born_ = 0;
  Tensor *previous_ = nullptr, *next_ = nullptr;
};

}  // namespace gradcell

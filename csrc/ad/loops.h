// Loops made of graphs, and what passes make of loops: the loop of a body's tangent, of its
// adjoint, of the body over a batch.
#pragma once

#include <memory>
#include <unordered_map>

#include "ir/rule.h"
#include "ir/spec.h"

namespace gradcell::ad {

/// What a loop is to be made of. `body` is a graph of its own, or the graph that the loop goes to.
/// Nodes of it stand for the inputs (any node does: what it is made of is not looked at); those
/// that no `carried` and no `sliced` one enters are the same in all steps, and computed once.
struct LoopParts {
  struct Carried {
    NodeId input, next;  ///< in the body
    NodeId first;        ///< outside: what the first step gets
  };
  struct Given {
    NodeId input;  ///< in the body
    NodeId value;  ///< outside
  };
  int64_t steps;
  bool reverse = false;
  bool again = false;  ///< derivatives keep what is carried alone
  std::vector<Carried> carried = {};
  std::vector<Given> sliced = {}, same = {};
  std::vector<NodeId> kept = {};  ///< nodes of the body that results may be asked of
};

/// A loop whose body, in the graph that the loop is in, has calls with derivatives of their own. A
/// loop's node has the body without them, so that the loop's results are a call in turn, whose rule
/// differentiates the nodes that the body was made of. Output k of it is what is carried; output
/// `carried + n` is node n of the loop's body in all steps.
struct RecordedLoop {
  LoopParts parts;
  std::vector<NodeId> inputs;  ///< of the loop's node
  Dims attributes;             ///< of the loop's node
  /// What derivatives pass to: what the first step gets, what is sliced, and what the body is made
  /// of besides, if calls are made of their inputs.
  std::vector<NodeId> sources;
  std::vector<NodeId> same;                    ///< those of the last sort, as the body reads them
  std::unordered_map<NodeId, int64_t> number;  ///< by node: what it is called in the loop's body
  std::unordered_map<int64_t, NodeId> node;  ///< the other way: an output of a call, not its value
  int64_t call = -1;                         ///< under which the graph keeps the rule
};

/// A loop: its results are made as they are asked for.
class MadeLoop {
 public:
  /// Throws NotImplemented where the body exchanges data with other processes.
  MadeLoop(Graph& g, const Graph& body, const LoopParts& parts);
  /// What is carried after the last step.
  NodeId last(size_t carried) const;
  /// A node of `kept` in all steps.
  NodeId all(NodeId kept) const;

 private:
  NodeId result(int64_t number, bool last) const;

  Graph& g_;
  int64_t steps_;
  std::vector<NodeId> inputs_;
  Dims attributes_;
  std::vector<NodeId> number_;  ///< by node of the body given: what it is called in the loop's
  std::vector<std::pair<NodeId, NodeId>> outside_;  ///< of `kept`, what is the same in all steps
  std::shared_ptr<const RecordedLoop> recorded_;    ///< if its body has calls with rules
};

/// The rule by which a loop, as a call whose outputs are its results, is differentiated.
std::shared_ptr<const Rule> loop_rule();
std::shared_ptr<const Rule> recorded_loop_rule(std::shared_ptr<const RecordedLoop> loop);
/// A result of a recorded loop: what is carried after the last step, or a node in all steps.
NodeId recorded_result(Graph& g, const RecordedLoop& loop, int64_t number, bool last);

/// A loop's result over a batch of examples.
NodeId batched_loop(Graph& g, NodeId id, const Batch& b);

/// The outputs, with loops that depend on `wrt` taken apart into steps.
std::vector<NodeId> without_loops(Graph& g, std::span<const NodeId> outputs,
                                  std::span<const NodeId> wrt);

}  // namespace gradcell::ad

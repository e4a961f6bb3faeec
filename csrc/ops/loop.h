// The family of loops. A loop runs a body, which is a graph of its own, for each of a number of
// steps t. The body's inputs are, in the order of the loop's own inputs,
//
//   carried   what the step before has made of them; the loop's input is what the first step gets
//   sliced    x[t] of an input x, [steps, ...]
//   the same  in every step
//
// A node is one of the loop's results: what is carried after the last step, or a node of the body
// in all steps, [steps, ...]. Nodes with the same inputs and the same body are one loop: engines
// run it once for all of them. Nothing about a loop but its tensors' sizes depends on the number of
// steps.
//
// The derivatives of a loop are loops: of the body's tangent, in the same order, and of its
// adjoint, in the opposite order, over nodes of the body in all steps (csrc/ad/loops.cpp, since it
// takes passes over the body to make them).
#pragma once

#include "ir/body.h"
#include "ir/spec.h"

namespace gradcell {

struct LoopAttributes {
  int64_t steps;
  int64_t carried, sliced;  ///< how many of the inputs, from the front
  int64_t result;           ///< last: of what is carried; else a node of the body
  bool last;                ///< after the last step alone
  bool reverse;             ///< from the last step to the first
  bool again;               ///< derivatives keep what is carried alone, and compute the rest again
  std::span<const int64_t> body;  ///< see ir/body.h
  static constexpr auto fields() {
    using A = LoopAttributes;
    return std::tuple{Field{"steps", AttributeKind::Size, &A::steps},
                      Field{"carried", AttributeKind::Size, &A::carried},
                      Field{"sliced", AttributeKind::Size, &A::sliced},
                      Field{"result", AttributeKind::Size, &A::result},
                      Field{"last", AttributeKind::Flag, &A::last},
                      Field{"reverse", AttributeKind::Flag, &A::reverse},
                      Field{"again", AttributeKind::Flag, &A::again},
                      Field{"body", AttributeKind::Body, &A::body}};
  }
};

inline bool is_loop(const Graph& g, NodeId id) { return form(g, id) == Form::Loop; }

/// A result of a loop. Throws Value or Type where inputs do not fit the body.
NodeId loop_result(Graph& g, std::span<const NodeId> inputs, const LoopAttributes& a);

/// The attributes of a loop's node but for which result it is: with the inputs, what makes nodes
/// one loop.
Dims loop_identity(const Graph& g, NodeId id);

/// A loop's result, made of as many copies of its body as there are steps. inputs: the loop's, in
/// `to`. marks: whether gradient stops stay. Nothing is simplified.
NodeId unrolled(Graph& to, const Graph& from, NodeId id, std::span<const NodeId> inputs,
                bool marks);

}  // namespace gradcell

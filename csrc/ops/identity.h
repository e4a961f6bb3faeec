// The family of ops that give their input: marks for differentiation, and other dtypes.
#pragma once

#include "ir/spec.h"

namespace gradcell {

/// A node equal to x that is no other, to differentiate by.
NodeId alias(Graph& g, NodeId x);
NodeId stop_gradient(Graph& g, NodeId x);

/// The attributes of a call's output: under which number the graph keeps the call's rule, and which
/// of its outputs it is.
struct CallAttributes {
  int64_t call, output;
  static constexpr auto fields() {
    return std::tuple{Field{"call", AttributeKind::Size, &CallAttributes::call},
                      Field{"output", AttributeKind::Size, &CallAttributes::output}};
  }
};
/// x as an output of a call, whose derivatives by the inputs are those of the call's rule.
NodeId call_output(Graph& g, NodeId x, std::span<const NodeId> inputs, const CallAttributes& a);
inline bool is_call_output(Op op) { return op == Op::CallOutput; }
inline bool is_call_output(const Graph& g, NodeId id) { return is_call_output(g[id].op); }
/// x, but a node of its own, and what is computed with it waits for the tokens: memory that they
/// free can be used again.
NodeId after(Graph& g, NodeId x, std::span<const NodeId> tokens);

NodeId cast(Graph& g, NodeId x, DType dtype);

/// x as a node of which the builder does not see that it is a constant.
NodeId unseen(Graph& g, NodeId x);

}  // namespace gradcell

// The family of nodes that come from nothing or from a state: inputs, constants, ranges, random
// numbers.
#pragma once

#include "ir/spec.h"

namespace gradcell {

NodeId leaf(Graph& g, DType dtype, std::span<const int64_t> dims);
NodeId constant(Graph& g, DType dtype, std::span<const int64_t> dims, double value);
NodeId constant_bits(Graph& g, DType dtype, std::span<const int64_t> dims, uint64_t bits);
/// The constant, if it is there.
NodeId find_constant(const Graph& g, DType dtype, std::span<const int64_t> dims, double value);
inline bool is_constant(const Graph& g, NodeId id) { return g[id].op == Op::Const; }
double constant_value(const Graph& g, NodeId id);
inline bool is_leaf(const Graph& g, NodeId id) { return form(g, id) == Form::Input; }
inline bool is_source(const Graph& g, NodeId id) { return is_leaf(g, id) || is_constant(g, id); }

NodeId iota(Graph& g, DType dtype, std::span<const int64_t> dims, int axis);
/// Uniform in [0, 1), float32, a function of `state` (int64 [2]: seed and offset) alone.
NodeId random_uniform(Graph& g, NodeId state, std::span<const int64_t> dims);

}  // namespace gradcell

// Makes nodes: checks and infers shapes and dtypes, folds constants, simplifies, hash-conses.
// Inputs of an elementwise op have one shape and (but for Select's condition) one dtype here; dtype
// promotion and implicit broadcasting belong to the front end (runtime/frontend.h).
#pragma once

#include "ir/graph.h"

namespace gradcell {

enum class OpKind : uint8_t { Unary, Binary, Compare, Predicate, Ternary, Structured };
enum class OpClass : uint8_t { Float, Number, Bool, None };
enum class TangentClass : uint8_t { Elementwise, Source, Linear, Bilinear, Own, NonDiff };

struct OpInfo {
  const char* name;      ///< "Sin"
  const char* function;  ///< "sin": the Python function, the CUDA symbol
  OpKind kind;
  OpClass cls;
  TangentClass tangent;
  bool differentiable;  ///< has a rule (zero included); false: explicitly NONDIFF
  const char* forward;  ///< the row's text
};

const OpInfo& info(Op op);
/// Whether a op b is b op a to the last bit (the builder then orders the inputs).
inline bool commutes(Op op) { return op == Op::Add || op == Op::Mul; }
/// Ops that fail when they run if an index is out of range.
inline bool reads_indices(Op op) {
  return op == Op::Gather || op == Op::ScatterAdd || op == Op::LastWriter;
}
inline bool is_elementwise(Op op) { return info(op).kind != OpKind::Structured; }

NodeId leaf(Graph& g, DType dtype, std::span<const int64_t> dims);
NodeId constant(Graph& g, DType dtype, std::span<const int64_t> dims, double value);
NodeId constant_bits(Graph& g, DType dtype, std::span<const int64_t> dims, uint64_t bits);
bool is_constant(const Graph& g, NodeId id);
double constant_value(const Graph& g, NodeId id);

NodeId unary(Graph& g, Op op, NodeId x);             // unary and predicate rows
NodeId binary(Graph& g, Op op, NodeId a, NodeId b);  // binary and compare rows
NodeId select(Graph& g, NodeId c, NodeId a, NodeId b);

NodeId alias(Graph& g, NodeId x);
NodeId stop_gradient(Graph& g, NodeId x);
NodeId cast(Graph& g, NodeId x, DType dtype);
NodeId iota(Graph& g, DType dtype, std::span<const int64_t> dims, int axis);
NodeId reshape(Graph& g, NodeId x, std::span<const int64_t> dims);
NodeId transpose(Graph& g, NodeId x, std::span<const int64_t> perm);
NodeId broadcast_to(Graph& g, NodeId x, std::span<const int64_t> dims);

/// y[i] = x[start + i * step] in each dimension; a step may be negative.
struct SliceSpec {
  Dims start, size, step;
};
NodeId slice(Graph& g, NodeId x, const SliceSpec& spec);
/// Zeros of shape `dims` with x placed at start + i * step: the adjoint of slice.
NodeId slice_scatter(Graph& g, NodeId x, std::span<const int64_t> dims,
                     std::span<const int64_t> start, std::span<const int64_t> step);
NodeId concat(Graph& g, std::span<const NodeId> xs, int axis);

/// [..., m, k] x [..., k, n] with equal batch dimensions; a flag reads that operand transposed.
NodeId matmul(Graph& g, NodeId a, NodeId b, bool transpose_a, bool transpose_b);
/// ReduceSum, ReduceMax, ReduceMin over sorted axes, which vanish from the shape.
NodeId reduce(Graph& g, Op op, NodeId x, std::span<const int64_t> axes);
NodeId arg_reduce(Graph& g, Op op, NodeId x, int axis);  // int32
NodeId cumsum(Graph& g, NodeId x, int axis, bool exclusive, bool reverse);
/// x's slices along `axis` at `indices` (int32 or int64, any shape, which stands in place of axis).
NodeId gather(Graph& g, NodeId x, NodeId indices, int axis);
/// Zeros with `updates` added at `indices` along `axis`, which has `size` places: gather's adjoint.
NodeId scatter_add(Graph& g, NodeId indices, NodeId updates, int axis, int64_t size);
/// For each of `size` places the last of the `indices` (int32 or int64, counted in row-major order)
/// that names it, -1 where none does; int64. Writing in order leaves what these indices write.
NodeId last_writer(Graph& g, NodeId indices, int64_t size);
/// Uniform in [0, 1), float32, a function of `state` (int64 [2]: seed and offset) alone.
NodeId random_uniform(Graph& g, NodeId state, std::span<const int64_t> dims);

/// The same op and attributes on other inputs, in this graph or another: no simplification.
NodeId rebuild(Graph& to, const Graph& from, NodeId id, std::span<const NodeId> inputs);

}  // namespace gradcell

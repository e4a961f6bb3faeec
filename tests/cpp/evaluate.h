// Runs small graphs in tests: through the planner and the engine, and by an interpreter that takes
// every node literally (csrc's kernels have no part in it but for the constant folder's functions).
#pragma once

#include <map>
#include <vector>

#include "runtime/storage.h"

namespace gradcell::testing {

Array make_array(DType dtype, const Dims& dims, const std::vector<double>& values);
std::vector<double> numbers(const Array& a);
/// The elements as a Const's bits would hold them.
std::vector<uint64_t> element_bits(const Array& a);

using Leaves = std::map<NodeId, Array>;

/// The roots' values by the engine. `leaves` may hold more than the roots need.
std::vector<Array> run(const Graph& g, std::span<const NodeId> roots, const Leaves& leaves);
Array run(const Graph& g, NodeId root, const Leaves& leaves);

/// A root's value by the interpreter. Sums are taken in double, in order.
Array interpret(const Graph& g, NodeId root, const Leaves& leaves);

/// Equal shape and dtype, elements within `tolerance` of each other relative to the larger of 1 and
/// the expected magnitude; 0: equal bits (any NaN equals any NaN).
void expect_close(const Array& got, const Array& expected, double tolerance);

/// Numbers in [low, high), the same on every machine.
std::vector<double> random_numbers(int64_t n, double low, double high, uint64_t seed);
/// A new leaf, and such numbers for it.
NodeId random_leaf(Graph& g, Leaves& leaves, DType dtype, const Dims& dims, double low = -1,
                   double high = 1);
/// The same with a few numbers that arithmetic treats specially among them (five rows at least).
NodeId odd_leaf(Graph& g, Leaves& leaves, DType dtype, int64_t rows, double low = -1,
                double high = 1);

}  // namespace gradcell::testing

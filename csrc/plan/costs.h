// What an element of each kind of elementwise op costs: the one table that both engines' planners
// read. An op's kind is a column of ops.def. `python bench/op_costs.py` measures the kinds again.
#pragma once

#include "ir/spec.h"

namespace gradcell {

struct ElementCost {
  /// Nanoseconds on one thread in float32; float64 takes twice as long. Measured in chains of 20
  /// ops on 200,000 elements, on one core of 2.6 GHz: with x86-64-v3 a maximum takes 0.04, a square
  /// root 0.14, exp 0.40, sin 0.51, log 1.0, pow 2.2; with v4 about half of that. The number of
  /// chunks follows from these, and with it the order of sums: they must not depend on the machine.
  double cpu_ns;
  /// What computing it again is worth, in additions of a CPU beside a value that is stored and
  /// loaded once more; in float64 twice as much.
  int cpu_additions;
  /// Instructions of a GPU's float32 units.
  int gpu_instructions;
  /// What computing it again in each kernel is worth, in additions of a GPU beside a value that
  /// goes through memory.
  int gpu_additions;
};

/// By OpCost. (Lookup and Random are calls on a CPU, and never computed again there.)
inline constexpr ElementCost kElementCosts[] = {
    {.cpu_ns = 0.1, .cpu_additions = 1, .gpu_instructions = 1, .gpu_additions = 1},   // Arithmetic
    {.cpu_ns = 0.1, .cpu_additions = 1, .gpu_instructions = 8, .gpu_additions = 1},   // Division
    {.cpu_ns = 0.6, .cpu_additions = 6, .gpu_instructions = 8, .gpu_additions = 1},   // InverseRoot
    {.cpu_ns = 0.6, .cpu_additions = 6, .gpu_instructions = 24, .gpu_additions = 8},  // Short
    {.cpu_ns = 0.6, .cpu_additions = 15, .gpu_instructions = 24, .gpu_additions = 8},   // Function
    {.cpu_ns = 2.0, .cpu_additions = 50, .gpu_instructions = 48, .gpu_additions = 16},  // Long
    {.cpu_ns = 0.1, .cpu_additions = 1, .gpu_instructions = 4, .gpu_additions = 1},     // Moved
    {.cpu_ns = 1.0, .cpu_additions = 15, .gpu_instructions = 4, .gpu_additions = 2},    // Lookup
    {.cpu_ns = 1.0, .cpu_additions = 25, .gpu_instructions = 48, .gpu_additions = 40},  // Random
};

// Of the rest of a region and of calls, nanoseconds on one thread in float32; in float64 twice as
// much. They decide how many threads and chunks a plan is worth, so they too are the same on all
// machines. bench/op_costs.py measures the first two again.
inline constexpr double kMultiplyAddNs = 0.02;    ///< of a product inside a tile
inline constexpr double kTransferredRowNs = 0.3;  ///< a load or store of one row of one feature
inline constexpr double kClearedByteNs = 0.15;    ///< of an accumulator: cleared, reduced, merged
inline constexpr double kCallElementNs = 1;       ///< of a call's result, whatever the call does

constexpr const ElementCost& element_cost(OpCost kind) {
  return kElementCosts[static_cast<size_t>(kind)];
}
inline const ElementCost& element_cost(Op op) { return element_cost(info(op).cost); }
/// Of a node's elements, where another kernel computes them on its way.
inline const ElementCost& element_cost(const Graph& g, NodeId id) {
  const Form f = form(g, id);
  return f == Form::Elementwise ? element_cost(g[id].op) : element_cost(info(f).cost);
}

}  // namespace gradcell

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

// Of a GPU: what decides whether a narrow network is one kernel or several products.

/// A multiprocessor. Bytes that memory moves for each in one of its cycles: 16.5 on an H200 (4.3
/// TB/s, what a copy reaches, 132 of them at 1.98 GHz), 12 on an A100 (1.8 TB/s, 108 at 1.41), 5 on
/// a T4 (0.28 TB/s, 40 at 1.59).
inline constexpr double kBytesPerCycle = 16;
/// Cycles of a launch in a graph, with the start and end of its kernel: 2 us at 1.98 GHz, of which
/// an H200 takes 2 to 3. tools/predict_gpu.py has the same.
inline constexpr double kLaunchCycles = 4000;
/// Multiply-adds a cycle of the library's products: three quarters of the data sheet of an H200
/// (67, 495 and 990 10^12 operations a second, 67 of float64 by tensor cores).
struct ProductRates {
  double float64 = 96, float32 = 96, tf32 = 700, half = 1400;
  /// What the shorter and the longer side of a result are rounded up to: smaller tiles of the
  /// library read more than they multiply.
  int64_t shorter = 64, longer = 32;
  /// A byte of a product beside one of an elementwise kernel: those of narrow networks move 1.1 to
  /// 1.2 TB/s on an H200, where elementwise kernels move 3.9.
  double bytes = 3.5;
};
inline constexpr ProductRates kProductRates;

/// The same of the engine's own products in tiles, of which a multiprocessor has one: a quarter of
/// what tensor cores can, a third of that where float32 takes three products, and multiply-adds by
/// `exact`. tools/predict_gpu.py has the same.
struct OwnProductRates {
  double exact = 32, float32 = 78, tf32 = 237, half = 474;
};
inline constexpr OwnProductRates kOwnProductRates;
/// Such a tile has so many rows and columns, and takes so many terms a step.
struct GroupTile {
  int64_t side = 64, terms = 32;
};
inline constexpr GroupTile kGroupTile;

/// The kernel of a narrow network, in cycles of one of its threads: fitted to what
/// tools/sass_cycles.py finds in 18 kernels for sm_90, of 8 to 128 columns, of first and second
/// order (it has 270 cycles for the L2 cache, where sums are, 38 for the L1, 30 for shared memory);
/// what tensor cores wait for is fitted to an H200's times of 4 x 64 and 128-128-10 (bench/results/
/// gpu.md). tests/python/cuda/test_cuda_prediction.py compares it with measured tiles.
struct TileCosts {
  double phase = 290;        ///< a barrier, and what waits on both sides of it
  double instruction = 2.6;  ///< of an element, with its loads and stores in shared memory
  double call = 60, term = 8, slot = 1.1;    ///< multiply-adds: each term, each of product_cost()
  double warp_call = 300, warp_slot = 1.35;  ///< by tensor cores: each of product_cost()
  double far_step = 200;  ///< a step of 8 or 16 terms, where these weights are in the L2 cache
  double sum = 500, sum_row = 68;               ///< a gradient: its sums once, each row
  double warp_sum = 290, warp_sum_slot = 4.75;  ///< by tensor cores: each of OuterJobs
  double row_sum = 320, row_sum_feature = 16;   ///< a sum over rows, and each column
  double copied = 160, cleared = 5;             ///< a weight or a sum of a block, by all threads
  double issuing = 0.4;  ///< of a warp's cycles it issues in: 0.2 to 0.45 in those kernels
  /// Registers of a multiprocessor, and about how many a thread has (139 to 236 of those kernels by
  /// NVRTC 13.5). Bytes of shared memory that each block takes for the driver.
  int64_t registers = 65536, thread_registers = 200, block_shared = 1024;
};
inline constexpr TileCosts kTileCosts;

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

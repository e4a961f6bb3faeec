// A plan with what this machine makes of it: tile heights, chunks of rows, kernels, and where
// things lie in a run's memory. It depends on the plan, the caches' size and the instruction set,
// not on the number of threads.
#pragma once

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/whole_kernels.h"
#include "cpu/program/bands.h"
#include "cpu/program/passes.h"
#include "plan/plan.h"
#include "plan/region/spread.h"

namespace gradcell::cpu {

/// A reduction over rows: its place among a thread's sums, and in the dense results of a chunk.
struct AccumulatorPlace {
  size_t sums = 0, result = 0;
};

/// What a sum does to its elements in place of the instruction before it; `number`: that one's
/// operand that is put in place of what is no number.
struct Taken {
  Mapped map = Mapped::Itself;
  int32_t number = -1;
  int32_t products = -1;  ///< of features: which of the program's sums of products it is
  bool dropped = false;   ///< the instruction is left to those behind it
};

/// A part of a map whose features are equally far apart: map[at + k] = first + k * step, k < n.
struct MapRun {
  int32_t at, first, step, n;
};
struct MapRuns : std::vector<MapRun> {
  bool repeats = false;  ///< all are the same
  bool is_long = false;  ///< they are, on the average
};

/// A value that a copy would have, of another value's features; n: 0 if no loop reads it where it
/// is.
struct Spread : Nested {
  uint32_t value = 0;
};

/// The factors of products that a sum over features adds up as it makes them, or the one that it
/// squares: term k of result f is feature base[f] + step[k] of each.
struct SumOfProducts {
  struct Factor {
    uint32_t value;
    std::vector<int32_t> base, step;
  };
  std::vector<Factor> factors;
};

/// What a region's tile program needs besides the region. Offsets are in bytes.
struct TileProgram {
  int32_t tile_rows = 0;
  int32_t chunks = 1;        ///< a fixed partition of the rows
  std::vector<Loop> loops;   ///< of each instruction; null: it is no plain loop
  std::vector<Pass> passes;  ///< of loops together, in their order
  /// A value that full tiles keep in a buffer, where its features are `pitch` elements apart.
  struct Direct {
    uint32_t value;
    BufferId buffer;
    int64_t pitch;
    int64_t offset = 0;  ///< where the buffer's rows begin, of a view
    /// Of what a loop carries (keep_carried): but in this step, whose rows lie as others want them.
    enum class But : uint8_t { NoStep, First, Last } but = But::NoStep;
  };
  std::vector<Direct> direct;
  std::vector<int32_t> loads_direct, stores_direct;  ///< of each load and store: which; -1: none
  std::vector<uint32_t> moving;                      ///< instructions that use direct values
  bool lines = false;                                ///< rows lie as in memory, see line_runner.h
  std::optional<Bands> bands;                        ///< views are read where they lie, see bands.h
  std::vector<size_t> places;  ///< of lines: where each value is in a thread's scratch
  /// Of each instruction: one that its sum takes in (of lines), mapping each element as it is read.
  std::vector<Taken> taken;
  std::vector<MapRuns> runs;    ///< of lines: of each map
  std::vector<Spread> spread;   ///< of each value
  std::vector<int32_t> nested;  ///< of features: of each loop, how many a spread value's part has
  std::vector<SumOfProducts> products;
  size_t value_bytes = 0;        ///< of lines: all values of a tile
  size_t slot_bytes = 0;         ///< of lines: one operand of a tile, made dense
  std::vector<size_t> uniforms;  ///< where each lies, converted
  std::vector<size_t> weights;   ///< where each lies, packed
  std::vector<AccumulatorPlace> accumulators;
  size_t uniform_bytes = 0, packed_bytes = 0;  ///< of a run
  size_t pair_bytes = 0;                       ///< of a thread: operands as pairs, see by_pairs
  size_t accumulator_bytes = 0;                ///< of a thread
  size_t result_bytes = 0;                     ///< of a chunk
  double work = 0;                             ///< estimated nanoseconds on one thread

  size_t side_bytes() const {
    return uniform_bytes + packed_bytes + result_bytes * static_cast<size_t>(chunks);
  }
};

struct Program {
  Plan plan;
  std::vector<std::vector<TileProgram>> stages;  ///< one for each region of the plan's stage
  size_t side_bytes = 64;                        ///< those of the largest stage
  double work = 0;                               ///< estimated nanoseconds on one thread
};

/// Whether products of a dtype are taken by pairs (pair_kernels.h) in regions.
bool by_pairs(DType dtype);

/// How many rows of a feature lie side by side in a buffer; 1: it is row-major.
inline int64_t block_of(const Plan& plan, const Region& r, BufferId buffer, int32_t features) {
  if (plan.buffers[buffer].feature_major) return r.rows;
  if (plan.buffers[buffer].tiled) return kTiledRows;
  return features > 1 ? r.block : 1;
}

/// Whether a loop is the whole of an instruction.
bool is_loop(const Instruction& i);
/// The loop that is the whole of an instruction; bit k of `uniform` says that its k-th operand is
/// one number for all rows. Null where there is none, or more is to be said.
Loop find_loop(const Instruction& i, unsigned uniform);

/// Throws NotImplemented where there is no kernel for an instruction.
Program prepare(Plan plan);

/// What a loop's step reads and the next one gets instead, in memory of the loop's own.
struct Carry {
  BufferId read, written;
};
/// Whole tiles of features keep what is carried there as it lies in tiles, from the first step's
/// end to the last one's begin. For a region whose tiles go through all steps.
void keep_carried(const Plan& plan, const Region& r, TileProgram& p, std::span<const Carry> all);

}  // namespace gradcell::cpu

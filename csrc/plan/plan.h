// What the planner makes of a graph and an engine runs: stages of steps over numbered buffers.
//
// Holds: steps of one stage do not depend on each other. A Call runs one structured op on whole
// tensors. A Region runs many ops at once, tile by tile: all its tensors share a row axis of N
// rows, and a tile holds some of those rows feature-major ([features][rows]), so that intermediates
// never leave the cache. What a region reads besides rows is uniform: the same for every row.
//
// Constants are not part of a plan: it holds their number, and a run brings the values. Nor is
// anything of the machine: an engine chooses kernels, tile heights and chunks of rows for itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/op_info.h"
#include "ir/spec.h"

namespace gradcell {

struct TensorDesc {
  DType dtype;
  Dims dims;
  int64_t count = 0;
  size_t bytes() const { return static_cast<size_t>(count) * item_size(dtype); }
};

enum class Place : uint8_t { Input, Output, Temp };

struct Buffer {
  Place place;
  uint32_t index = 0;  ///< of the plan's inputs or outputs
  size_t offset = 0;   ///< Temp: into the arena
  size_t bytes = 0;
  uint32_t within = UINT32_MAX;  ///< Temp: the buffer that it is a part of (plan/parts.h)
  bool feature_major = false;    ///< a matrix [rows, features] with a feature's rows side by side
  bool tiled = false;            ///< the same in blocks of kTiledRows rows, one behind the other
};

/// Tiles of the usual heights lie in one block.
inline constexpr int64_t kTiledRows = 128;

using BufferId = uint32_t;

struct LoopPlan;

/// One structured op on whole, row-major tensors.
struct Call {
  Op op;
  Form form;
  Combine combine;
  std::vector<BufferId> inputs;
  BufferId output;
  std::vector<TensorDesc> in;
  TensorDesc out;
  Dims attributes;    ///< as the op's family has them
  Movement movement;  ///< Form::Move
  int constant = -1;  ///< Form::Constant: index into the run's constants
  int sequence = -1;  ///< Form::Collective: started so many of the plan's are before it
  Location location;
  std::shared_ptr<const LoopPlan> loop;  ///< Form::Loop, which may have more results than one
  std::vector<BufferId> more;
  std::vector<TensorDesc> more_out;
  /// Form::Attend: the calls that this one makes together, one for each result. Its inputs are
  /// theirs, one behind the other.
  std::vector<Call> joined;
};

/// An operand of an instruction: features base, base + stride, ... of a value, or of the uniforms.
struct Operand {
  bool uniform = false;
  uint32_t value = 0;  ///< index into Region::values, or into Region::uniforms
  int32_t base = 0;    ///< first feature
  int32_t stride = 1;  ///< features between neighbours; 0: the same feature again
};

/// A [features][rows] block of a region's scratch, or rows of a buffer that need no transposing.
struct TileValue {
  int32_t features;
  Compute type;
  size_t offset = 0;           ///< bytes per row into the scratch: multiply by the tile's rows
  int32_t direct_in = -1;      ///< index into loads: full tiles are read in place
  int32_t direct_out = -1;     ///< index into stores: full tiles are written in place
  int32_t head = 0, tail = 0;  ///< zeros before the first feature and behind the last one

  /// Where its scratch begins and ends, in bytes per row.
  size_t begin() const { return offset - static_cast<size_t>(head) * compute_size(type); }
  size_t end() const { return offset + static_cast<size_t>(features + tail) * compute_size(type); }
};

/// A row-invariant tensor or constant, converted to the compute type once a run.
struct Uniform {
  BufferId buffer = 0;
  int constant = -1;  ///< >= 0: an immediate instead of a buffer
  DType dtype;
  Compute type;
  int64_t count = 1;         ///< elements once mapped
  std::vector<int32_t> map;  ///< element of the buffer for each feature; empty: in order
};

struct RowLoad {
  BufferId buffer;
  DType dtype;
  uint32_t value;
  View view = {};  ///< where rows begin, their features side by side; without dimensions: in order
  bool viewed() const { return !view.dims.empty(); }
};

struct RowStore {
  BufferId buffer;
  DType dtype;
  Operand from;
  int32_t features;
  Compute type;
};

/// A matrix that rows are multiplied with, packed once a run.
struct PackedWeights {
  BufferId buffer;
  DType dtype;
  Compute type;
  int32_t k, m;
  int64_t k_stride, m_stride;
};

inline constexpr int kMaxChain = 4;
inline constexpr int kMaxOperands = 6;

/// How a chain goes on from what it has so far, t, with its next operand, b.
enum class Link : uint8_t { Add, Sub, ReverseSub, Mul };  // t + b, t - b, b - t, t * b

/// An expression of several ops that is one instruction, see formulas.def.
enum class Formula : uint8_t {
#define FORMULA(Name, expression) Name,
#include "plan/region/formulas.def"
#undef FORMULA
};
/// Their text.
inline constexpr const char* kFormulas[] = {
#define FORMULA(Name, expression) #expression,
#include "plan/region/formulas.def"
#undef FORMULA
};

/// What an instruction of a region does: the table tile_ops.def.
enum class TileOp : uint8_t {
#define TILE_OP(Name, ...) Name,
#include "plan/region/tile_ops.def"
};

struct TileOpInfo {
  const char *text, *profiled;
  enum class Runs : uint8_t { Loop, MapLoop, Runner } runs;
  enum class Work : uint8_t { Once, Op, Formula, Sum, Product } work;
};
inline constexpr TileOpInfo kTileOps[] = {
#define TILE_OP(Name, text, profiled, runs, work) \
  {text, profiled, TileOpInfo::Runs::runs, TileOpInfo::Work::work},
#include "plan/region/tile_ops.def"
};
constexpr const TileOpInfo& info(TileOp op) { return kTileOps[static_cast<size_t>(op)]; }

struct Instruction {
  TileOp kind;
  Op op = Op::Count;               ///< Elementwise, Choose
  Combine combine = Combine::Sum;  ///< FeatureReduce, RowReduce
  DType dtype = DType::Float32;    ///< Narrow: the target; Elementwise: the node's dtype
  Compute type = Compute::F32;     ///< of the inputs
  uint8_t operand_count = 0;
  bool zero = false;        ///< Scatter: clear dst first
  bool accumulate = false;  ///< Product: add to dst
  uint32_t dst = 0;         ///< value, or accumulator of RowReduce and WeightGrad
  int32_t features = 0;     ///< of dst; WeightGrad: of a
  int32_t inner = 0;        ///< Product: k; WeightGrad: features of b; FeatureReduce: k count
  Operand operand[kMaxOperands];
  Link links[kMaxChain - 1] = {};  ///< Chain
  gradcell::Formula formula = {};  ///< Formula
  int32_t map = -1, map2 = -1;     ///< indices into Region::maps
  uint32_t weights = 0;            ///< Product: index into Region::weights
  Location location;
};

/// Whether dst is an accumulator rather than a value.
inline bool accumulates(const Instruction& i) {
  return i.kind == TileOp::RowReduce || i.kind == TileOp::WeightGrad;
}

/// Takes the instructions out that have a mark.
inline void erase_marked(std::vector<Instruction>& program, const std::vector<uint8_t>& marks) {
  size_t kept = 0;
  for (size_t at = 0; at < program.size(); ++at)
    if (!marks[at]) program[kept++] = program[at];
  program.resize(kept);
}

/// A reduction over rows: one dense result a chunk of rows, merged in a fixed order at the end.
struct Accumulator {
  TileOp kind;  ///< RowReduce or WeightGrad
  Combine combine;
  Compute type;
  int32_t features, inner;  ///< RowReduce: inner is 1
  BufferId buffer;
  DType dtype;
  size_t count() const { return static_cast<size_t>(features) * static_cast<size_t>(inner); }
};

struct Region {
  int64_t rows = 0;  ///< N
  /// How many rows lie side by side before the next feature does: element (row, feature) of a
  /// tensor of F features is at ((row / block) * F + feature) * block + row % block. 1: row-major;
  /// the positions of an image: its channels are features.
  int64_t block = 1;
  std::vector<TileValue> values;
  std::vector<Uniform> uniforms;
  std::vector<PackedWeights> weights;
  std::vector<RowLoad> loads;
  std::vector<Instruction> program;
  std::vector<RowStore> stores;
  std::vector<Accumulator> accumulators;
  std::vector<std::vector<int32_t>> maps;
  size_t row_bytes = 0;  ///< scratch bytes a row
};

struct Stage {
  std::vector<Region> regions;
  std::vector<Call> calls;     ///< collectives first, in their order
  std::vector<int32_t> waits;  ///< collectives that have to have ended before this stage
};

struct PlanOutput {
  TensorDesc desc;
  int alias_input = -1;   ///< >= 0: the value of this input, unchanged
  int alias_output = -1;  ///< >= 0: shares the buffer of an earlier output
};

/// What plans have, whatever engine they are for: what goes in and out, and the memory between.
struct PlanFrame {
  std::vector<TensorDesc> inputs;
  std::vector<DType> constants;
  std::vector<PlanOutput> outputs;
  std::vector<Buffer> buffers;
  int32_t collectives = 0;
  size_t arena_bytes = 0;
  size_t node_count = 0;
};

struct Plan : PlanFrame {
  std::vector<Stage> stages;
};

/// A readable listing: stages, regions, instructions.
std::string to_text(const Plan& plan);

}  // namespace gradcell

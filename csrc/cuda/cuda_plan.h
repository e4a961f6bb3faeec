// What the CUDA planner makes of a graph: kernels as text, and steps that launch them or call a
// library, over numbered buffers. Pure data: it can be made, read and tested with no GPU.
//
// Sizes are arguments of the kernels: their text depends on a graph's structure, on which of its
// sizes are equal and on which are 1, not on the sizes; only the kernel of a narrow network has the
// widths of its layers in it (tile_writer.h). Constants are arguments too. How many steps a loop
// has is a number beside its body's plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/combining/convolution.h"
#include "ops/moving/order.h"
#include "plan/loop_steps.h"

namespace gradcell::cuda {

/// Bits of the status word: what went wrong in a run since a value was read last.
inline constexpr int kOutOfRange = 1;  ///< an index
constexpr int64_t flag_of(IntegerLimit limit) { return int64_t{2} << static_cast<int64_t>(limit); }

/// An argument of a kernel, in the order of its parameters.
struct Argument {
  enum class Kind : uint8_t {
    Buffer,    ///< pointer to buffers[index]
    Size,      ///< gc_index: `value`
    Divisor,   ///< gc_divisor: `value`, above 1, and what multiplies in place of dividing by it
    Packs,     ///< gc_index: `value` if the launch's buffers are 16-byte aligned, else 0
    Constant,  ///< constants[index] in `type`
    Status,    ///< pointer to the status word
  } kind;
  uint32_t index = 0;
  int64_t value = 0;
  Compute type = Compute::F32;
};

struct Kernel {
  std::string name;
  std::string text;
};

struct Gemm {
  BufferId a, b, out;
  DType dtype;
  bool transpose_a, transpose_b;
  bool accumulate;  ///< adds to what `out` holds
  bool tf32;        ///< float32 only
  int64_t batch, m, n, k;
  bool adds = false;  ///< adds to what `addend` holds, a matrix like `out`
  BufferId addend = 0;
  bool has_bias = false;
  BufferId bias = 0;      ///< n elements that are added to every row
  uint32_t add_bias = 0;  ///< of the plan's bias_steps: does so where cuBLASLt cannot
  /// Where an operand is several buffers side by side: all of them, of which `a`, `b` or `out` is
  /// the first.
  std::vector<BufferId> a_parts = {}, b_parts = {}, out_parts = {};
};

/// A partial derivative of a convolution's form by cuDNN, of operands in their order.
struct Convolved {
  ConvolutionPart part;
  ConvolutionSizes sizes;
  DType dtype;
  bool tf32;           ///< float32 only
  bool channels_last;  ///< of all three tensors, or of none
  BufferId a, b, out;
};

/// Data that goes between the processes of a group: see CollectiveAttributes.
struct Passage {
  Op op;
  Combine combine;
  DType dtype;
  int64_t group, size, rank, root;
  bool reads = true;  ///< a barrier has no data
  BufferId in = 0, out = 0;
  int64_t given = 0, had = 0;  ///< elements
};

/// Of threads that each write single elements: what they write, and what each of them reads at
/// these elements alone.
struct ByElement {
  std::vector<BufferId> reads, writes;
};

/// A launch of a kernel, a loop, a collective, a routine, a convolution by cuDNN, or a product
/// where there is none of these.
struct Step {
  int kernel = -1;
  int loop = -1;  ///< of the plan's loops
  Gemm product{};
  std::optional<Passage> passage;
  std::optional<Call> routine;  ///< run by the host, which waits for its inputs
  std::optional<Convolved> convolution;
  bool is_product() const { return kernel < 0 && loop < 0 && !passage && !routine && !convolution; }
  uint32_t grid = 1, block_x = 256, block_y = 1;
  /// Shared memory that a block has, and for each row, of which there is one a thread x: where a
  /// device has little, a launch has fewer threads x. (A row more where they are even.)
  size_t shared_bytes = 0, shared_row_bytes = 0;
  std::vector<Argument> arguments;  ///< those of one segment after another
  uint32_t segments = 1;  ///< more: each of the kernel's parameters is an array, with one for each
  std::vector<ByElement> by_element;  ///< of each segment whose kernel is such a one
  size_t nodes = 0;                   ///< of the graph, that the step computes
  size_t bytes_read = 0;              ///< that must come from memory: each buffer once
  size_t bytes_written = 0;
  int64_t flops = 0;         ///< additions and multiplications of its products
  int64_t instructions = 0;  ///< about so many, of elementwise nodes
  /// Of a narrow network's kernel: how many cycles it is thought to take, as many as this number of
  /// tiles after each other. (Of a group of products: the cycles alone.)
  double tile_cycles = 0;
  int64_t tile_rounds = 0;
  int32_t stage = 0;  ///< steps run in their order; a lower stage never needs a higher one
  Location location;
  size_t dynamic_bytes() const { return shared_bytes + shared_row_bytes * (block_x | 1); }
};

struct Loop;

struct CudaPlan : PlanFrame {
  std::vector<Kernel> kernels;  ///< of loops' bodies too, whose plans have none of their own
  std::vector<Step> steps;
  std::vector<Step> bias_steps;  ///< run only in place of a product's own addition
  std::vector<Loop> loops;
  std::string prelude;  ///< what comes before the kernels in their module
  bool uses_status = false;
  bool wide = false;  ///< gc_index has 64 bits

  /// Whether the host computes a part of it: such a run cannot be captured.
  bool has_routines() const;
  /// The buffers that a step reads or writes.
  std::vector<BufferId> used_by(const Step& s) const;
  /// The module: prelude and kernels.
  std::string source() const;
  /// What a run puts on the stream: launches, products and collectives, those of a loop's body once
  /// for each of its steps.
  size_t launches() const;
};

/// A body's plan, run once for each of the loop's steps.
struct Loop : LoopFrame {
  CudaPlan body;
  LoopPlaces places;
  std::vector<BufferId> reads, writes;  ///< the loop's inputs and results
  BufferId state = 0, arena = 0;        ///< its own memory; the body's temporaries
};

CudaPlan make_cuda_plan(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
                        std::span<const NodeId> cuts, const Target& target);

}  // namespace gradcell::cuda

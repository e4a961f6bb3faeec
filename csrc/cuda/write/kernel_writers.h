// Writes the text of one kernel. What goes in: a fused graph and the nodes to compute; what comes
// out: the text, with the kernel's name still open, and the step that launches it.
//
// The writer works on demand: a node's value at an index is a C++ expression over values that it
// has written before. Elementwise nodes pass the index on, movement nodes change it, buffers are
// read at it. Nothing is written twice for the same index in the same scope.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda/cuda_plan.h"
#include "cuda/fuse/convolutions.h"
#include "cuda/fuse/fusion.h"
#include "cuda/tiles/feature_maps.h"

namespace gradcell::cuda {

struct WriterInputs {
  const Graph& graph;
  const Fusion& fusion;
  const std::vector<BufferId>& buffer_of;  ///< by node, where stored, and for leaves
  const std::vector<Buffer>& buffers;
  const std::vector<int>& constant_of;  ///< by node
  bool wide;                            ///< gc_index has 64 bits
  const Target& target;
  size_t longest = SIZE_MAX;  ///< what is written before it throws TooLong
};

struct TooLong {};

/// Stands for the kernel's name in its text.
inline constexpr const char* kNameMark = "@NAME@";

struct Written {
  std::string text;
  std::string title;  ///< of the ops inside: "mul_sin_add"
  Step step;
  std::map<BufferId, size_t> read;  ///< bytes of what it reads
};

/// More outputs than this and a kernel is split: its parameters have to fit into kMaxParameters.
inline constexpr size_t kMaxOutputs = 32;
/// Of more arrays a flat kernel, or one of rows, takes the elements singly: fours of them would not
/// fit into registers.
inline constexpr size_t kMostPacks = 16, kMostRowPacks = 8;

/// One thread an element: nodes with as many elements each.
Written write_flat(const WriterInputs& in, int32_t stage, std::span<const NodeId> outputs);
/// The same where something is read transposed: by tiles in shared memory. None: nothing is.
std::optional<Written> write_transposed(const WriterInputs& in, int32_t stage,
                                        std::span<const NodeId> outputs);
/// One of several that share a launch, with the number of segments still open. Its text
/// does not depend on how many elements there are: segments with equal texts can be joined.
Written write_segment(const WriterInputs& in, int32_t stage, std::span<const NodeId> outputs);
/// Segments with equal texts as one launch, or as few as have room for their parameters.
std::vector<Written> write_segments(const WriterInputs& in, int32_t stage,
                                    std::span<const std::vector<NodeId>> segments);
/// How many segments like this one a launch has room for.
size_t segments_a_launch(const WriterInputs& in, const Step& segment);
/// Some threads a row: nodes of `rows` rows, with reductions of rows among them.
Written write_rows(const WriterInputs& in, int32_t stage, int64_t rows,
                   std::span<const NodeId> outputs);
/// A reduction into a buffer: one pass, or two with partial results in `partial` (of
/// partial_bytes). The plan's planner gives the buffer.
struct Reduction {
  bool columns;    ///< one thread an output; else one block an output
  int64_t chunks;  ///< more than 1: two passes
  size_t partial_bytes;
};
Reduction plan_reduction(const Graph& g, NodeId id);
std::vector<Written> write_reduction(const WriterInputs& in, NodeId id, BufferId partial);
/// Several of buffers of one shape, in as many launches as one takes.
std::vector<Written> write_reductions(const WriterInputs& in, std::span<const NodeId> ids,
                                      std::span<const BufferId> partials);
// A node that is one kernel: what forms.def names.
#define KERNEL(write) Written write(const WriterInputs& in, NodeId id);
#define STEPS(make)
#define NONE
#define FORM(Name, parts, rows, tile, call, kernel, cost, value, writer) writer
#include "ir/forms.def"
#undef KERNEL
#undef STEPS
#undef NONE

/// A scan of lines: one pass, or two of chunks of lines, with what the chunks come to in `partial`.
struct Scan {
  int64_t chunks;  ///< more than 1: two passes
  size_t partial_bytes;
};
Scan plan_scan(const Graph& g, NodeId id);
std::vector<Written> write_scan(const WriterInputs& in, NodeId id, BufferId partial);
/// Discrete Fourier transforms, a kernel for some factors of their length each; `between`: room for
/// what comes between several, as large as the result.
bool transforms_in_steps(const Graph& g, NodeId id);
std::vector<Written> write_fourier(const WriterInputs& in, NodeId id,
                                   std::optional<BufferId> between);
/// Sums of updates at places, or which is a place's last: kernels, and the bytes of the temporary
/// buffers that they are given.
/// Of elements of rows: only where updates are many, which are sorted.
bool sorts_updates(const Graph& g, NodeId id);
std::vector<size_t> updates_memory(const WriterInputs& in, NodeId id);
std::vector<Written> write_updates(const WriterInputs& in, NodeId id,
                                   std::span<const BufferId> temporaries);
/// The places of elements of rows in order, as for updates.
std::vector<size_t> order_memory(const WriterInputs& in, NodeId id);
std::vector<Written> write_order(const WriterInputs& in, NodeId id,
                                 std::span<const BufferId> temporaries);
/// One of attention's sums; several by tensor cores (fuse/attention_tiles.h).
Written write_attention(const WriterInputs& in, NodeId id);
Written write_attention_cores(const WriterInputs& in, std::span<const NodeId> sums);
/// A partial derivative of a convolution's form: a thread an element, or in tiles. `end`: the node
/// that is stored, of those that its kernel computes after it.
Written write_convolution(const WriterInputs& in, NodeId id);
std::vector<Written> write_convolution_tiles(const WriterInputs& in, NodeId id, NodeId end,
                                             const ConvolutionTiles& tiles, BufferId partial);
/// Adds a bias to the rows of what is in the sum's buffer.
Written write_bias(const WriterInputs& in, NodeId sum, NodeId bias);
Written write_integer_product(const WriterInputs& in, NodeId id);

}  // namespace gradcell::cuda

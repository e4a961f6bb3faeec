// Convolutions on a GPU (write/convolution.cuh): which tiles compute one, how its tensors lie, and
// which elementwise nodes its kernel computes before it stores.
#pragma once

#include <map>

#include "cuda/fuse/fusion.h"
#include "ops/combining/convolution.h"

namespace gradcell::cuda {

/// The product of matrices that a node of the family is.
struct ConvolutionProduct {
  int64_t rows, columns, terms;  ///< of a group; of a gradient of the input of a phase, at most
  int64_t phases = 1;
};
ConvolutionProduct product_of(ConvolutionPart part, const ConvolutionSizes& s);
ConvolutionSizes sizes_of_convolution(const Graph& g, NodeId id);

/// A convolution in tiles, or a thread an element. In parts: their sums are in a temporary buffer
/// and added up by a second kernel.
struct ConvolutionTiles {
  int tall = 0;       ///< 64 rows of a tile so many times; 0: no tiles
  int64_t parts = 1;  ///< into which the terms fall
  size_t partial_bytes = 0;
  size_t shared_bytes = 0;
  bool wide_bits = false;  ///< a term's bits are more than 32
};
ConvolutionTiles plan_convolution(const Graph& g, NodeId id, const Target& target);

/// Whether cuDNN computes it: what is large, would have tiles, and is what the library has words
/// for. Nothing after it is in its kernel then.
bool is_of_library(const Graph& g, NodeId id, const Target& target);

/// Convolutions in tiles that read their operands where they lie before a transpose from channels
/// that come last, and write results as a transpose to such has them.
PlanGraph with_channels_last(PlanGraph from, const Target& target);

/// What a convolution's kernel computes after it.
struct ConvolutionEnd {
  NodeId convolution;
  std::vector<NodeId> reads;  ///< from memory, besides the convolution's operands
};
/// By the node that is stored: the last of the elementwise nodes that nothing else needs what is
/// before. In `f` it becomes Role::Alone, in the convolution's stage and place.
std::map<NodeId, ConvolutionEnd> ends_of_convolutions(const Graph& g, std::span<const NodeId> roots,
                                                      const Target& target, Fusion& f);

}  // namespace gradcell::cuda

// Which elementwise kernels of a plan become one launch: what goes in is a fused graph, what comes
// out the launches and, for each, the nodes that its segments compute.
//
// Kernels that are the same but for sizes and buffers are joined: an optimiser's update of every
// parameter. What nobody reads waits for the latest of its kind, which costs memory: gradients are
// kept until then. Nothing changes where there would not be fewer launches, or as many of kernels
// with fewer arrays each.
#pragma once

#include "cuda/write/kernel_writers.h"

namespace gradcell::cuda {

struct Segments {
  struct Launch {
    int32_t stage;
    std::vector<std::vector<NodeId>> segments;  ///< the outputs of each
  };
  std::vector<Launch> launches;
  std::vector<uint8_t> joined;  ///< by node: one of the launches' outputs
};

/// Moves joined nodes of `fusion`, which is also that of `in`, to their launch's stage.
Segments join_segments(const WriterInputs& in, Fusion& fusion);

}  // namespace gradcell::cuda

// Writes the kernel of a loop that a block takes a few rows through, see tiles/loop_kernel.h.
// Widths of values are in the text, and the rows of a block; how many rows and steps there are is
// not.
#pragma once

#include "cuda/tiles/loop_kernel.h"
#include "cuda/write/kernel_writers.h"

namespace gradcell::cuda {

/// `reads`, `writes`: the buffers of the loop's inputs and results.
Written write_loop_kernel(const WriterInputs& in, int32_t stage, const LoopKernel& kernel,
                          const LoopFrame& loop, std::span<const BufferId> reads,
                          std::span<const BufferId> writes);

}  // namespace gradcell::cuda

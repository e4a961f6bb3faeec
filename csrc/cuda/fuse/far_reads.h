// What a kernel reads transposed: neighbouring elements of its own order lie far apart in memory,
// and a whole sector of 32 bytes comes for each. Flat kernels turn tiles in shared memory
// (transposed_writer.cpp). A kernel that takes rows gives several neighbouring rows to a warp where
// there are rows enough, so that it uses all of a sector whichever way an operand lies; of few
// rows, and for other reductions, the transpose is a kernel of its own that goes before.
#pragma once

#include "cuda/fuse/fusion.h"

namespace gradcell::cuda {

/// Rows that keep a GPU busy where a block has kRowsAcross of them.
constexpr int64_t kRowsAcross = 64, kEnoughRows = 1 << 14;

/// Whether a node moves elements so that those of a row lie apart, and those of a column side by
/// side, if it has so many rows.
bool reads_across(const Graph& g, NodeId id, int64_t rows);

/// How many times the memory that it needs a kernel moves which reads this node in the order of its
/// elements. `rows`: of a kernel that takes rows; 0: one of a reduction.
double sectors_read(const Graph& g, NodeId id, int64_t rows);

/// Nodes that had better be transposed by a kernel of their own, for kernels that take rows or
/// reduce; none: empty.
std::vector<uint8_t> transposed_before(const Graph& g, const Fusion& f, const Weights& weights);

}  // namespace gradcell::cuda

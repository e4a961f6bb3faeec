// Small elementwise kernels that differ in size but have rows in common are one kernel that takes
// rows: of so few bytes a launch takes longer than the work, as in a step of a recurrent layer,
// whose gates lie side by side in rows longer than the state's. One that only the other one reads
// in its stage goes over to that stage, where its values are computed on the way.
#pragma once

#include "cuda/join/segments.h"
#include "cuda/write/kernel_writers.h"

namespace gradcell::cuda {

/// `fusion` is also that of `in`.
void join_rows(const WriterInputs& in, const Segments& segments, Fusion& fusion);

}  // namespace gradcell::cuda

// The limits of this machine, measured once when first asked for: what a figure is compared with.
#pragma once

#include "cpu/kernels/isa_level.h"

namespace gradcell::cpu {

/// Float operations a second of one core in a loop that only multiplies and adds in registers, best
/// of several runs; 0 where there is no such loop for the machine. Doubles: half of it.
double multiply_add_peak(IsaLevel level);

/// Bytes a second of a[i] = b[i] + s * c[i] over arrays of 128 MiB on max_threads() threads, best
/// of several runs. Counts two reads and a write, not the line that the write fetches.
double memory_bandwidth();

}  // namespace gradcell::cpu

// Which instruction set the CPU kernels use. The kernels of csrc/cpu/isa are compiled once for each
// level and picked by this at run time.
#pragma once

#include <string_view>
#include <vector>

namespace gradcell::cpu {

/// V2, V3 and V4 are the x86-64 psABI levels: SSE4.2; AVX2, FMA and F16C; AVX-512 F/BW/CD/DQ/VL.
/// Base is the one level of any other machine (NEON on aarch64).
enum class IsaLevel { Base, V2, V3, V4 };

std::string_view name(IsaLevel level);

/// The best level of this machine, or a lower one asked for by GRADCELL_ISA=v2|v3|v4 (read once).
IsaLevel isa_level();

/// Every level this machine can run, lowest first; GRADCELL_ISA has no say.
const std::vector<IsaLevel>& runnable_isa_levels();

}  // namespace gradcell::cpu

// Which instruction set the CPU kernels use. The kernels of csrc/cpu/isa are compiled once for each
// level that a build has (GRADCELL_LEVELS in CMakeLists.txt, which writes them down as
// GRADCELL_BUILT_LEVELS of built_levels.h) and picked by this at run time; nothing else asks the
// machine what it can do.
#pragma once

#include <string_view>
#include <vector>

/// X(namespace of the kernels, IsaLevel, what the machine must support): a level's row, and all
/// that there is code for, lowest first. The x86-64 levels are the psABI's, as in the compiler's
/// -march: SSE4.2; AVX2, FMA, F16C, BMI, LZCNT, MOVBE; AVX-512 F/BW/CD/DQ/VL.
#ifdef __x86_64__
#define GRADCELL_LEVEL_v2(X) X(v2, V2, "x86-64-v2")
#define GRADCELL_LEVEL_v3(X) X(v3, V3, "x86-64-v3")
#define GRADCELL_LEVEL_v4(X) X(v4, V4, "x86-64-v4")
#define GRADCELL_KNOWN_LEVELS(X) GRADCELL_LEVEL_v2(X) GRADCELL_LEVEL_v3(X) GRADCELL_LEVEL_v4(X)
#else
#define GRADCELL_LEVEL_base(X) X(base, Base, )  // NEON on aarch64: always there
#define GRADCELL_KNOWN_LEVELS(X) GRADCELL_LEVEL_base(X)
#endif

namespace gradcell::cpu {

#define GRADCELL_X(ns, Level, ...) Level,
enum class IsaLevel { GRADCELL_KNOWN_LEVELS(GRADCELL_X) };
#undef GRADCELL_X

std::string_view name(IsaLevel level);

/// The best level of this build that this machine runs, or a lower one asked for by
/// GRADCELL_ISA=v2|v3|v4 (read once). Fails, and names the levels to choose from, if GRADCELL_ISA
/// asks for anything else.
IsaLevel isa_level();

/// Whether that is x86-64-v4 or above.
bool uses_avx512();

/// Every level of this build that this machine can run, lowest first; GRADCELL_ISA has no say.
const std::vector<IsaLevel>& runnable_isa_levels();

/// The best level that this machine could run, whether this build has it or not.
IsaLevel machine_isa_level();

}  // namespace gradcell::cpu

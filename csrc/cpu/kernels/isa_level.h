// Which instruction set the CPU kernels use. The kernels of csrc/cpu/isa are compiled once for each
// level and picked by this at run time; nothing else asks the machine what it can do.
#pragma once

#include <string_view>
#include <vector>

/// X(namespace of the kernels, IsaLevel, what the machine must support) for each level that there
/// is code for, lowest first. The x86-64 levels are the psABI's, as in the compiler's -march:
/// SSE4.2; AVX2, FMA, F16C, BMI, LZCNT, MOVBE; AVX-512 F/BW/CD/DQ/VL.
#if defined(__x86_64__) && defined(GRADCELL_ONE_LEVEL)
#define GRADCELL_ISA_LEVELS(X) X(v3, V3, "x86-64-v3")
#elif defined(__x86_64__)
#define GRADCELL_ISA_LEVELS(X) \
  X(v2, V2, "x86-64-v2")       \
  X(v3, V3, "x86-64-v3")       \
  X(v4, V4, "x86-64-v4")
#else
#define GRADCELL_ISA_LEVELS(X) X(base, Base, )  // NEON on aarch64: always there
#endif

namespace gradcell::cpu {

#define GRADCELL_X(ns, Level, ...) Level,
enum class IsaLevel { GRADCELL_ISA_LEVELS(GRADCELL_X) };
#undef GRADCELL_X

std::string_view name(IsaLevel level);

/// The best level of this machine, or a lower one asked for by GRADCELL_ISA=v2|v3|v4 (read once).
/// Fails, and names the levels to choose from, if GRADCELL_ISA asks for anything else.
IsaLevel isa_level();

/// Whether that is x86-64-v4 or above.
bool uses_avx512();

/// Every level this machine can run, lowest first; GRADCELL_ISA has no say.
const std::vector<IsaLevel>& runnable_isa_levels();

}  // namespace gradcell::cpu

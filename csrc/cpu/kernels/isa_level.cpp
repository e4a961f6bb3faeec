#include "cpu/kernels/isa_level.h"

#include <cstdlib>
#include <string>

#include "base/error.h"

namespace gradcell::cpu {
namespace {

std::vector<IsaLevel> detect() {
  std::vector<IsaLevel> levels;
#ifdef __x86_64__
  __builtin_cpu_init();
#define GRADCELL_X(ns, Level, feature) \
  if (__builtin_cpu_supports(feature)) levels.push_back(IsaLevel::Level);
#else
#define GRADCELL_X(ns, Level, feature) levels.push_back(IsaLevel::Level);
#endif
  GRADCELL_ISA_LEVELS(GRADCELL_X)
#undef GRADCELL_X
  require(!levels.empty(), ErrorKind::Runtime,
          "this machine lacks what the least of gradcell's kernels need: SSE4.2 and POPCNT, "
          "x86-64-v2 (in a build of GRADCELL_ONE_LEVEL: AVX2 and FMA, x86-64-v3)");
  return levels;
}

IsaLevel choose() {
  const auto& levels = runnable_isa_levels();
  const char* asked = std::getenv("GRADCELL_ISA");
  if (!asked || !*asked) return levels.back();
  std::string names;
  for (IsaLevel level : levels) {
    if (name(level) == asked) return level;
    names.append(names.empty() ? "" : ", ").append(name(level));
  }
  fail(ErrorKind::Value, "GRADCELL_ISA=", asked, ": this machine runs the levels ", names,
       "; set one of them, or unset GRADCELL_ISA for the best");
}

}  // namespace

std::string_view name(IsaLevel level) {
#define GRADCELL_X(ns, Level, ...) #ns,
  constexpr std::string_view kNames[] = {GRADCELL_ISA_LEVELS(GRADCELL_X)};
#undef GRADCELL_X
  return kNames[static_cast<int>(level)];
}

const std::vector<IsaLevel>& runnable_isa_levels() {
  static const std::vector<IsaLevel> levels = detect();
  return levels;
}

IsaLevel isa_level() {
  static const IsaLevel level = choose();
  return level;
}

bool uses_avx512() {
#if defined(__x86_64__) && !defined(GRADCELL_ONE_LEVEL)
  return isa_level() >= IsaLevel::V4;
#else
  return false;
#endif
}

}  // namespace gradcell::cpu

#include "cpu/isa_level.h"

#include <cstdlib>

namespace gradcell::cpu {
namespace {

std::vector<IsaLevel> detect() {
#ifdef __x86_64__
  __builtin_cpu_init();
  std::vector<IsaLevel> levels{IsaLevel::V2};
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v3) levels.push_back(IsaLevel::V3);
  if (v4) levels.push_back(IsaLevel::V4);
  return levels;
#else
  return {IsaLevel::Base};
#endif
}

}  // namespace

std::string_view name(IsaLevel level) {
  constexpr std::string_view kNames[] = {"base", "v2", "v3", "v4"};
  return kNames[static_cast<int>(level)];
}

const std::vector<IsaLevel>& runnable_isa_levels() {
  static const std::vector<IsaLevel> levels = detect();
  return levels;
}

IsaLevel isa_level() {
  static const IsaLevel level = [] {
    const char* asked = std::getenv("GRADCELL_ISA");
    for (IsaLevel l : runnable_isa_levels()) {
      if (asked && name(l) == asked) return l;
    }
    return runnable_isa_levels().back();
  }();
  return level;
}

}  // namespace gradcell::cpu

#include "cpu/kernels/isa_level.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string>

#include "base/error.h"
#include "base/narrow.h"
#include "built_levels.h"

namespace gradcell::cpu {
namespace {

#define GRADCELL_X(ns, Level, ...) IsaLevel::Level,
constexpr IsaLevel kKnown[] = {GRADCELL_KNOWN_LEVELS(GRADCELL_X)};
constexpr IsaLevel kBuilt[] = {GRADCELL_BUILT_LEVELS(GRADCELL_X)};
#undef GRADCELL_X

bool supports(IsaLevel level) {
#ifdef __x86_64__
  __builtin_cpu_init();
#define GRADCELL_X(ns, Level, feature) \
  if (level == IsaLevel::Level) return __builtin_cpu_supports(feature);
  GRADCELL_KNOWN_LEVELS(GRADCELL_X)
#undef GRADCELL_X
#endif
  return level == kKnown[0];
}

/// Those of some levels that this machine runs.
std::vector<IsaLevel> supported(std::span<const IsaLevel> levels) {
  std::vector<IsaLevel> found;
  std::ranges::copy_if(levels, std::back_inserter(found), supports);
  return found;
}

std::string names(std::span<const IsaLevel> levels) {
  std::string text;
  for (IsaLevel level : levels) text.append(text.empty() ? "" : ", ").append(name(level));
  return text;
}

IsaLevel choose() {
  const auto& levels = runnable_isa_levels();
  const char* asked = std::getenv("GRADCELL_ISA");
  if (!asked || !*asked) return levels.back();
  for (IsaLevel level : levels)
    if (name(level) == asked) return level;
  fail(ErrorKind::Value, "GRADCELL_ISA=", asked, ": of this build's levels this machine runs ",
       names(levels), "; set one of them, or unset GRADCELL_ISA for the best. A build has all ",
       "levels with pip install -C cmake.define.GRADCELL_LEVELS=all");
}

}  // namespace

std::string_view name(IsaLevel level) {
#define GRADCELL_X(ns, Level, ...) #ns,
  constexpr std::string_view kNames[] = {GRADCELL_KNOWN_LEVELS(GRADCELL_X)};
#undef GRADCELL_X
  return kNames[narrow<int>(level)];
}

const std::vector<IsaLevel>& runnable_isa_levels() {
  static const std::vector<IsaLevel> levels = supported(kBuilt);
  require(!levels.empty(), ErrorKind::Runtime, "gradcell was built for the x86-64 levels ",
          names(kBuilt), ", and this machine runs ",
          supports(kKnown[0]) ? names(supported(kKnown)) : "not even v2, which needs SSE4.2",
          ": install it on this machine, or for all levels, "
          "pip install -C cmake.define.GRADCELL_LEVELS=all");
  return levels;
}

IsaLevel machine_isa_level() {
  const std::vector<IsaLevel> levels = supported(kKnown);
  return levels.empty() ? isa_level() : levels.back();
}

IsaLevel isa_level() {
  static const IsaLevel level = choose();
  return level;
}

bool uses_avx512() {
#ifdef __x86_64__
  return isa_level() >= IsaLevel::V4;
#else
  return false;
#endif
}

}  // namespace gradcell::cpu

#include "cuda/tiles/feature_maps.h"

namespace gradcell::cuda {

/// A feature map that is not made of so few arithmetic progressions is no expression.
constexpr size_t kMostRuns = 16;

std::vector<Run> runs_of(const Map& map) {
  std::vector<Run> runs;
  for (int32_t f = 0; f < narrow<int32_t>(map.size()); ++f) {
    if (!runs.empty()) {
      Run& last = runs.back();
      const int32_t n = f - last.begin;
      if (n == 1) last.step = map[f] - last.first;
      if (map[f] == last.first + n * last.step) {
        last.end = f + 1;
        continue;
      }
      if (n == 1) last.step = 0;
    }
    runs.push_back({f, f + 1, map[f], 0});
  }
  return runs;
}

Map inverse(const Map& map, int32_t features) {
  Map from(static_cast<size_t>(features), -1);
  for (size_t k = 0; k < map.size(); ++k) from[static_cast<size_t>(map[k])] = narrow<int32_t>(k);
  return from;
}

bool can_write_tile(const Region& r) {
  auto short_map = [](const Map& map) { return runs_of(map).size() <= kMostRuns; };
  for (const Uniform& u : r.uniforms)
    if (!short_map(u.map)) return false;
  for (const Instruction& i : r.program) {
    if (i.kind == TileOp::Scatter) {
      if (!short_map(inverse(r.maps[static_cast<size_t>(i.map)], i.features))) return false;
      continue;
    }
    for (int32_t m : {i.map, i.map2})
      if (m >= 0 && !short_map(r.maps[static_cast<size_t>(m)])) return false;
  }
  const size_t pointers = r.uniforms.size() + r.weights.size() + r.loads.size() + r.stores.size() +
                          r.accumulators.size();
  return 16 * pointers + 256 < kMaxParameters;
}

}  // namespace gradcell::cuda

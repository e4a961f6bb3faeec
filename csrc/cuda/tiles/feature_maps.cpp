#include "cuda/tiles/feature_maps.h"

#include <numeric>

namespace gradcell::cuda {

/// A feature map that is not made of so few arithmetic progressions, or coordinates, is no
/// expression.
constexpr size_t kMostRuns = 16;
constexpr size_t kMostCoordinates = 6;

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

bool has_many_runs(const Map& map) { return runs_of(map).size() > kMostRuns; }

std::optional<std::vector<Coordinate>> coordinates_of(const Map& map) {
  std::vector<Coordinate> found;
  Map left = map;  // where the coordinates found so far are 0
  for (int32_t divisor = 1; left.size() > 1;) {
    const int32_t step = left[1] - left[0];
    size_t n = 2;
    while (n < left.size() && left[n] - left[n - 1] == step) ++n;
    n = std::gcd(n, left.size());
    Map outer;
    for (size_t k = 0; k < left.size(); ++k) {
      if (k % n == 0)
        outer.push_back(left[k]);
      else if (left[k] - left[k - 1] != step)
        return {};
    }
    if (n == 1 || found.size() == kMostCoordinates) return {};
    found.push_back({divisor, narrow<int32_t>(n), step});
    divisor *= narrow<int32_t>(n);
    left = std::move(outer);
  }
  return found;
}

Map inverse(const Map& map, int32_t features) {
  Map from(static_cast<size_t>(features), -1);
  for (size_t k = 0; k < map.size(); ++k) from[static_cast<size_t>(map[k])] = narrow<int32_t>(k);
  return from;
}

bool can_write_tile(const Region& r) {
  auto short_map = [](const Map& map) { return !has_many_runs(map) || coordinates_of(map); };
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

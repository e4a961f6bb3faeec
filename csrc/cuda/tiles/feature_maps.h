// Maps of features, as the kernels of regions write them: in runs of equal steps, of which a text
// has room for a few, or as a view's coordinates.
#pragma once

#include <optional>
#include <vector>

#include "plan/plan.h"

namespace gradcell::cuda {

/// Where each feature comes from; -1: from nowhere.
using Map = std::vector<int32_t>;

/// Part of a map: first, first + step, ... up to feature `end`.
struct Run {
  int32_t begin, end, first, step;
};
std::vector<Run> runs_of(const Map& map);

/// Whether a map has too many runs for a text.
bool has_many_runs(const Map& map);

/// A coordinate of a feature f: f / divisor % count, of which each takes a map `step` on.
struct Coordinate {
  int32_t divisor, count, step;
};
/// Those that a map is the sum of, besides its first element; none: it is no such sum of a few.
std::optional<std::vector<Coordinate>> coordinates_of(const Map& map);

/// Where each feature of a value comes from; -1: not from there.
Map inverse(const Map& map, int32_t features);

/// Whether the kernel of a region has room for its maps and its parameters.
bool can_write_tile(const Region& r);

/// Bytes, by the oldest drivers and GPUs that there are to support.
inline constexpr size_t kMaxParameters = 4096;

}  // namespace gradcell::cuda

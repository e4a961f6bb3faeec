#include "cpu/program/lines.h"

#include <algorithm>
#include <numeric>

#include "cpu/program/region_run.h"
#include "cpu/program/spread.h"

namespace gradcell::cpu {

namespace {

/// Narrower rows fill vectors better feature by feature.
constexpr int32_t kWide = 64;
/// Elements of a tile's widest value: few rows stay in the first-level cache. More where no rows
/// are made that the next instruction reads, and where rows are added up, for the sums are read and
/// written for each tile.
constexpr int32_t kTileElements = 4096, kManyElements = 16384;

int32_t width(const Region& r) {
  int32_t widest = 1;
  for (const TileValue& v : r.values) widest = std::max(widest, v.features);
  return widest;
}

MapRuns runs_of(const std::vector<int32_t>& map) {
  MapRuns runs;
  for (size_t i = 0; i < map.size(); ++i) {
    if (!runs.empty()) {
      MapRun& last = runs.back();
      if (last.n == 1) last.step = map[i] - last.first;
      if (map[i] == last.first + last.n * last.step) {
        ++last.n;
        continue;
      }
    }
    runs.push_back({narrow<int32_t>(i), map[i], 1, 1});
  }
  runs.is_long = runs.size() * size_t{kShortLine} <= map.size();
  runs.repeats = runs.size() > 1 && std::ranges::all_of(runs, [&](const MapRun& r) {
                   return r.first == runs[0].first && r.step == runs[0].step && r.n == runs[0].n;
                 });
  return runs;
}

/// (Rows that are no whole vectors would begin anywhere, and every access touch two cache lines.)
bool is_one_a_row(const Operand& o, int32_t features, bool alone) {
  return !o.uniform && o.stride == 0 &&
         (alone ? features > 1 : features >= kWide && features % kLanes == 0);
}

}  // namespace

bool is_column(const Instruction& i, int k, bool alone) {
  if (!is_one_a_row(i.operand[k], i.features, alone)) return false;
  auto varies = [&](int n) {
    return !is_one_a_row(i.operand[n], i.features, alone) && !is_number(i.operand[n], i.features);
  };
  if (i.kind == TileOp::Choose) return varies(0);  // its loops have no others
  if (i.kind != TileOp::Elementwise) return false;
  for (int n = 0; n < i.operand_count; ++n)
    if (varies(n)) return true;
  return false;
}

namespace {

/// Whether there are rows for the lanes of vectors, and much of what is done moves single features:
/// of rows as they lie these are elements one by one, and vectors in a tile.
bool moves_features(const Region& r) {
  constexpr size_t kMostBytes = 16 << 10;  // of a row: a tile of few stays in the cache
  if (r.rows < kLanes || r.row_bytes > kMostBytes) return false;
  int64_t moved = 0, all = 0;
  for (const Instruction& i : r.program) {
    const bool reduces = i.kind == TileOp::FeatureReduce;
    const int64_t n = reduces ? int64_t{i.features} * i.inner : i.features;
    all += n;
    const int32_t map = reduces ? i.map2 : i.map;
    const bool maps = reduces || i.kind == TileOp::Scatter || i.kind == TileOp::Copy;
    if (maps && map >= 0 && spacing(runs_of(r.maps[static_cast<size_t>(map)])) != 1) moved += n;
  }
  return 4 * moved >= all;
}

}  // namespace

bool runs_by_lines(const Plan& plan, const Region& r) {
  if (r.block > 1 || !r.weights.empty() || width(r) < (r.rows == 1 ? 2 : kWide)) return false;
  if (moves_features(r)) return false;
  auto by_features = [&](BufferId b) {
    return plan.buffers[b].feature_major || plan.buffers[b].tiled;
  };
  for (const RowLoad& l : r.loads)
    if (by_features(l.buffer)) return false;
  for (const RowStore& s : r.stores)
    if (by_features(s.buffer)) return false;
  return std::ranges::none_of(r.program, [](const Instruction& i) {
    return i.kind == TileOp::Product || i.kind == TileOp::WeightGrad;
  });
}

namespace {

/// What an instruction does to its first operand's elements, if a sum can do that as it reads them.
Taken taken_in(const Instruction& i) {
  Taken t;
  const Operand& x = i.operand[0];
  auto same = [&](const Operand& o) {
    return !o.uniform && o.value == x.value && o.base == x.base && o.stride == x.stride;
  };
  if (x.uniform || (i.type != Compute::F32 && i.type != Compute::F64)) return t;
  if (i.kind == TileOp::Elementwise && i.op == Op::Square)
    t.map = Mapped::Square;
  else if (i.kind == TileOp::Elementwise && i.op == Op::Abs)
    t.map = Mapped::Size;
  else if (i.kind == TileOp::Choose && i.op == Op::NotEqual && same(i.operand[1]) &&
           same(i.operand[3]) && is_number(i.operand[2], i.features))
    t.map = Mapped::Number, t.number = 2;
  return t;
}

/// Fills in what sums do in place of the instructions before them, whose results nothing else
/// needs.
void find_taken(const Region& r, TileProgram& p) {
  auto whole = [&](const Operand& o, int32_t features) {
    return !o.uniform && o.base == 0 && o.stride == 1 && r.values[o.value].features == features;
  };
  for (size_t at = 1; at < r.program.size(); ++at) {
    const Instruction &sum = r.program[at], &made = r.program[at - 1];
    const bool lines = sum.kind == TileOp::FeatureReduce &&
                       spacing(p.runs[static_cast<size_t>(sum.map2)]) == 1 &&
                       sum.inner >= kShortLine;
    if ((!lines && sum.kind != TileOp::RowReduce) || sum.combine != Combine::Sum) continue;
    const Operand& o = sum.operand[0];
    if (accumulates(made) || o.uniform || made.dst != o.value ||
        p.taken[at - 1].map != Mapped::Itself)
      continue;
    if (!whole(o, made.features) || !whole(made.operand[0], made.features)) continue;
    const auto uses = [&](const Operand& other) {
      return !other.uniform && other.value == o.value;
    };
    int64_t count = 0;
    for (const Instruction& i : r.program)
      count += std::count_if(i.operand, i.operand + i.operand_count, uses);
    for (const RowStore& s : r.stores) count += uses(s.from);
    if (count != 1) continue;
    const Taken t = taken_in(made);
    if (t.map == Mapped::Itself) continue;
    p.taken[at] = t;
    p.taken[at - 1].dropped = true;
  }
}

/// Whether instructions make wide rows.
bool makes_rows(const Region& r, const TileProgram& p) {
  for (size_t at = 0; at < r.program.size(); ++at) {
    const Instruction& i = r.program[at];
    if (!accumulates(i) && i.features >= kWide && !p.taken[at].dropped) return true;
  }
  return false;
}

}  // namespace

void prepare_lines(const Region& r, TileProgram& p) {
  p.lines = true;
  for (const auto& map : r.maps) p.runs.push_back(runs_of(map));
  find_taken(r, p);
  if (r.rows == 1) find_spread(r, p);
  const int32_t widest = width(r);
  // Whole vectors of whole rows, so that full tiles can be read and written in place.
  const int32_t unit = kLanes / std::gcd(kLanes, widest);
  const bool small = r.accumulators.empty() && makes_rows(r, p);
  const int32_t elements = small ? kTileElements : kManyElements;
  const int32_t wanted = std::max(1, elements / widest);
  p.tile_rows = r.rows == 1 ? 1 : (wanted + unit - 1) / unit * unit;
  // As the region places values, with room behind each for the lanes of a last vector.
  std::vector<size_t> offsets;
  for (const TileValue& v : r.values) offsets.push_back(v.offset);
  std::vector<size_t> sorted = offsets;
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  constexpr size_t kRoom = kLanes * sizeof(double);
  for (size_t offset : offsets) {
    const auto rank = std::lower_bound(sorted.begin(), sorted.end(), offset) - sorted.begin();
    p.places.push_back(rounded(offset * static_cast<size_t>(p.tile_rows)) +
                       2 * kRoom * static_cast<size_t>(rank));
  }
  p.value_bytes =
      rounded(r.row_bytes * static_cast<size_t>(p.tile_rows)) + 2 * kRoom * (sorted.size() + 1);
  p.slot_bytes =
      rounded(static_cast<size_t>(p.tile_rows) * static_cast<size_t>(widest) * sizeof(double)) +
      kRoom;
}

}  // namespace gradcell::cpu

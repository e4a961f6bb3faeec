#include "cpu/program/passes.h"

#include <algorithm>

#include "cpu/program/program.h"

namespace gradcell::cpu {

namespace {

/// Values of a tile up to this size stay in the first-level cache from one loop to the next; of
/// half types, whose every result is rounded by a loop of its own, smaller ones pay too.
constexpr size_t kSmall = 32 << 10, kSmallRounded = 8 << 10;
/// Elements that a loop goes over at a time.
constexpr int32_t kElements = 1024;

/// Scratch of a value, a row's.
struct ScratchRange {
  size_t begin, end;
  bool whole;  ///< read or written feature by feature, as all others of the pass
};

ScratchRange scratch_of(const TileValue& v, bool whole) {
  return {v.offset, v.offset + static_cast<size_t>(v.features) * compute_size(v.type), whole};
}

/// Whether two values of a pass do not disturb each other: apart, or feature on feature.
bool compatible(const ScratchRange& a, const ScratchRange& b) {
  const bool apart = a.end <= b.begin || b.end <= a.begin;
  return apart || (a.whole && b.whole && a.begin == b.begin && a.end == b.end);
}

}  // namespace

std::vector<Pass> find_passes(const Region& r, const TileProgram& p) {
  std::vector<Pass> passes;
  const auto n = narrow<uint32_t>(r.program.size());
  for (uint32_t first = 0; first < n;) {
    const size_t bytes =
        static_cast<size_t>(r.program[first].features) * static_cast<size_t>(p.tile_rows) * 4;
    const int32_t chunk = std::max(1, kElements / p.tile_rows);
    if (bytes <= kSmallRounded || chunk >= r.program[first].features) {
      ++first;
      continue;
    }
    std::vector<ScratchRange> read, written;
    bool rounded = false;
    uint32_t end = first;
    for (; end < n && p.loops[end] && p.nested[end] == 0; ++end) {
      const Instruction& i = r.program[end];
      const TileValue& to = r.values[i.dst];
      if (i.features != r.program[first].features || to.features != i.features) break;
      std::vector<ScratchRange> reads;
      for (int k = 0; k < i.operand_count; ++k) {
        const Operand& o = i.operand[k];
        if (o.uniform) continue;
        const TileValue& v = r.values[o.value];
        reads.push_back(scratch_of(v, o.base == 0 && o.stride == 1 && v.features == i.features));
      }
      // What is read stays until all features have passed, unless the same feature takes its place.
      const ScratchRange dst = scratch_of(to, true);
      auto fits = [&](const std::vector<ScratchRange>& others, const ScratchRange& one) {
        return std::ranges::all_of(others,
                                   [&](const ScratchRange& o) { return compatible(o, one); });
      };
      bool ok = fits(read, dst) && fits(reads, dst);
      for (const ScratchRange& one : reads) ok = ok && fits(written, one);
      if (!ok) break;
      read.insert(read.end(), reads.begin(), reads.end());
      written.push_back(dst);
      rounded |= i.kind == TileOp::Narrow;
    }
    if (end > first + 1 && bytes > (rounded ? kSmallRounded : kSmall))
      passes.push_back({first, end - first, chunk});
    first = std::max(end, first + 1);
  }
  return passes;
}

}  // namespace gradcell::cpu

#include "cpu/program/bands.h"

#include <algorithm>

#include "cpu/program/program.h"

namespace gradcell::cpu {

namespace {

using Kind = Bands::Kind;

/// Shorter lines are not worth what is done once for each.
constexpr int64_t kShortest = 2 * kLanes;
/// Elements of a band that keeps nothing in scratch; bytes of scratch that stay in the first-level
/// cache beside what is read.
constexpr int64_t kLongest = 16384;
constexpr int64_t kScratch = 24 << 10;

bool runs_by_bands(const Region& r) {
  if (r.block > 1 || !r.accumulators.empty() || !r.weights.empty()) return false;
  auto whole = [](const Operand& o) { return !o.uniform && o.base == 0; };
  return std::ranges::any_of(r.loads, &RowLoad::viewed) &&
         std::ranges::all_of(r.values, [](const TileValue& v) { return v.features == 1; }) &&
         std::ranges::all_of(r.stores, [&](const RowStore& s) { return whole(s.from); }) &&
         std::ranges::all_of(r.program, [](const Instruction& i) {
           return is_loop(i) && i.kind != TileOp::Narrow;
         });
}

/// The length of lines along which all views have one step; 0: there is none.
int64_t line_of(const Region& r) {
  int64_t n = r.rows;
  for (const RowLoad& l : r.loads)
    if (l.viewed()) n = std::min(n, l.view.dims.back());
  for (const RowLoad& l : r.loads)
    if (l.viewed() && l.view.dims.back() % n != 0) return 0;
  return n >= kShortest ? n : 0;
}

/// Whether a loop can have a number of a line as its k-th operand; `numbers` of them has it.
bool takes_number(const Instruction& i, int k, int numbers) {
  switch (i.kind) {
    case TileOp::Elementwise:
      return numbers < i.operand_count;
    case TileOp::Choose:
      return k > 0;
    case TileOp::Chain:
      return k == 2 && i.operand_count == 3;
    case TileOp::Copy:
      return true;
    case TileOp::Formula:
    case TileOp::Convert:
    case TileOp::Narrow:
    case TileOp::Scatter:
    case TileOp::Surround:
    case TileOp::FeatureReduce:
    case TileOp::Product:
    case TileOp::RowReduce:
    case TileOp::WeightGrad:
      return false;
  }
  return false;
}

}  // namespace

std::optional<Bands> find_bands(const Region& r, const TileProgram& p) {
  if (!runs_by_bands(r)) return {};
  Bands b{line_of(r), 0, 1, {}, std::vector<Kind>(r.values.size(), Kind::Made)};
  if (b.length == 0) return {};
  for (size_t at = 0; at < r.loads.size(); ++at) {
    const RowLoad& l = r.loads[at];
    const int64_t step = l.viewed() ? l.view.strides.back() : 1;
    const bool stored =
        std::ranges::any_of(r.stores, [&](const RowStore& s) { return s.from.value == l.value; });
    Kind& kind = b.kinds[l.value] = Kind::Copied;
    if (!is_compute_type(l.dtype)) continue;
    if (!l.viewed())
      kind = Kind::Loaded;
    else if (step == 1)
      kind = Kind::Viewed;
    else if (step == 0 && !stored)
      kind = Kind::Repeated;
  }
  for (const RowStore& s : r.stores)
    if (const auto& v = r.values[s.from.value]; v.direct_out >= 0)
      b.kinds[s.from.value] = Kind::Stored;
  auto is_number = [&](const Operand& o) {
    return o.uniform || b.kinds[o.value] == Kind::Repeated;
  };
  // (What one instruction cannot have as a number is none for the others.)
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instruction& i : r.program) {
      const auto numbers =
          narrow<int>(std::count_if(i.operand, i.operand + i.operand_count, is_number));
      for (int k = 0; k < i.operand_count; ++k)
        if (const Operand& o = i.operand[k];
            !o.uniform && is_number(o) && !takes_number(i, k, numbers))
          b.kinds[o.value] = Kind::Copied, changed = true;
    }
  }
  for (const Instruction& i : r.program) {
    unsigned uniform = 0;
    for (int k = 0; k < i.operand_count; ++k) uniform |= unsigned{is_number(i.operand[k])} << k;
    b.loops.push_back(find_loop(i, uniform));
    if (!b.loops.back()) return {};
  }
  const bool scratch =
      std::ranges::any_of(b.kinds, [](Kind k) { return k == Kind::Made || k == Kind::Copied; });
  const auto row = static_cast<int64_t>(r.row_bytes);
  const int64_t most =
      scratch
          ? std::max<int64_t>(p.tile_rows, kScratch / std::max<int64_t>(row, 4) / kLanes * kLanes)
          : kLongest;
  b.piece = b.length;
  if (b.length <= most) {
    b.height = most / b.length;
    return b;
  }
  // Parts of whole vectors, the last of which has one at least.
  for (b.piece = most; b.length % b.piece != 0 && b.length % b.piece < kLanes;) b.piece -= kLanes;
  return b;
}

}  // namespace gradcell::cpu

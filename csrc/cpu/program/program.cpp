#include "cpu/program/program.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/system/system.h"
#include "cpu/kernels/pair_kernels.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/program/lines.h"
#include "cpu/program/region_run.h"
#include "cpu/program/spread.h"
#include "plan/costs.h"
#include "plan/joining.h"
#include "plan/region/scratch.h"

namespace gradcell::cpu {

namespace {

/// Scratch a tile may use: most of the second-level cache; the rest is for what streams through it.
size_t tile_bytes() {
  static const size_t bytes = [] {
    const size_t l2 = system::second_level_cache();
    return (l2 > 0 ? l2 : size_t(1) << 20) * 7 / 10;
  }();
  return bytes;
}
/// With one feature a row, tiles are cut to the first-level cache.
constexpr size_t kFlatTileBytes = 32 << 10;
/// With the positions of images as rows, to a part of the second-level one.
constexpr size_t kBlockTileBytes = 64 << 10;

/// Places `bytes` behind `total`, at a multiple of a cache line.
size_t placed(size_t& total, size_t bytes) {
  const size_t at = total;
  total += rounded(bytes);
  return at;
}

// Work --------------------------------------------------------------------------------------------

double instruction_ns(const Instruction& i, int64_t rows) {
  const double once = element_cost(OpCost::Arithmetic).cpu_ns;
  const double one = [&] {
    switch (info(i.kind).work) {
      case TileOpInfo::Work::Once:
        return once;
      case TileOpInfo::Work::Op:
        return element_cost(i.op).cpu_ns;
      case TileOpInfo::Work::Formula:
        return formula_ns(i.formula);
      case TileOpInfo::Work::Sum:
        return i.inner * once;
      case TileOpInfo::Work::Product:
        return i.inner * kMultiplyAddNs;
    }
    return once;
  }();
  return one * i.features * static_cast<double>(rows) * (i.type == Compute::F64 ? 2 : 1);
}

double region_work(const Region& r) {
  double work = 0;
  for (const Instruction& i : r.program) work += instruction_ns(i, r.rows);
  const auto passes = static_cast<int64_t>(r.loads.size() + r.stores.size());
  return work + kTransferredRowNs * static_cast<double>(r.rows * passes);
}

// Tiles and chunks --------------------------------------------------------------------------------

/// Positions of a channel lie side by side: long runs of them are foreseen by the machine. Tiles
/// that lie in one block, where there are such.
int64_t rows_of_block_tile(const Region& r, size_t per_row) {
  const auto most = std::clamp<int64_t>(static_cast<int64_t>(kBlockTileBytes / per_row), 64, 512);
  for (int64_t h = std::min(most, r.block) / 16 * 16; h >= 64; h -= 16)
    if (r.block % h == 0) return h;
  return most;
}

/// One feature a row. What a single instruction goes over is not read again: longer runs cost less
/// in between. (Not so long that a value, widened, would not stay in that cache with its source.)
int64_t rows_of_flat_tile(const Region& r, size_t per_row) {
  const bool single = r.program.size() == 1;
  const int64_t longest = single ? 4096 : 2048;
  const auto room = static_cast<int64_t>((single ? 64 << 10 : kFlatTileBytes) / per_row);
  const auto height = std::clamp<int64_t>(room, 256, longest);
  // Whole periods of what comes again: one load serves all tiles.
  int64_t whole = 16;
  for (const RowLoad& l : r.loads)
    if (const int64_t rows = period(l); rows > 0 && rows <= longest)
      whole = std::min(std::lcm(whole, rows), 2 * longest);
  if (whole > std::min(longest, 2 * room)) return height;
  return std::max(height / whole, int64_t(1)) * whole;
}

/// Four vectors of rows of each feature fill the registers of a product.
int64_t rows_of_product_tile(const Region& r, size_t per_row) {
  const bool wide = std::any_of(r.values.begin(), r.values.end(),
                                [](const TileValue& v) { return v.type == Compute::F64; });
  const int64_t best = wide ? 32 : 64;
  const auto room = static_cast<int64_t>(tile_bytes() / per_row);
  if (room >= 4 * best && r.accumulators.empty()) return 2 * best;
  return room >= best ? best : room >= 32 ? 32 : 16;
}

int32_t tile_rows(const Region& r) {
  const size_t per_row = std::max<size_t>(r.row_bytes, 4);
  const bool flat = std::all_of(r.values.begin(), r.values.end(),
                                [](const TileValue& v) { return v.features == 1; });
  const bool multiplies = std::any_of(r.program.begin(), r.program.end(), [](const Instruction& i) {
    return i.kind == TileOp::Product || i.kind == TileOp::WeightGrad;
  });
  int64_t height;
  if (r.block > 1 && !multiplies)
    height = rows_of_block_tile(r, per_row);
  else if (flat)
    height = rows_of_flat_tile(r, per_row);
  else if (!multiplies && r.accumulators.empty() && per_row < kFlatTileBytes / 128)
    height = std::min<int64_t>(static_cast<int64_t>(kFlatTileBytes / per_row), 1024);
  else
    height = rows_of_product_tile(r, per_row);
  height = height / 16 * 16;
  return narrow<int32_t>(std::min<int64_t>(height, (r.rows + 15) / 16 * 16));
}

/// Each chunk clears its accumulators and adds them up, which should be a small part of its work.
int64_t most_chunks(const TileProgram& p) {
  if (p.accumulators.empty()) return 64;
  constexpr double kPart = 0.015;  // of all chunks' work
  const double own = kClearedByteNs * static_cast<double>(p.accumulator_bytes);
  return int64_t(1) << std::ilogb(std::clamp(p.work * kPart / own, 2.0, 32.0));
}

// Memory ------------------------------------------------------------------------------------------

void place(const Region& r, TileProgram& p) {
  for (const Uniform& u : r.uniforms)
    p.uniforms.push_back(
        placed(p.uniform_bytes, static_cast<size_t>(u.count) * compute_size(u.type)));
  for (const PackedWeights& w : r.weights) {
    if (by_pairs(w.dtype)) {
      const size_t count = pair_kernels()->packed_size(w.k, w.m);
      p.weights.push_back(placed(p.packed_bytes, count * sizeof(Pair)));
      continue;
    }
    by_float(w.type, [&](auto t) {
      const size_t count = tile_kernels().matmul<decltype(t)>().packed_size(w.k, w.m);
      p.weights.push_back(placed(p.packed_bytes, count * sizeof t));
    });
  }
  for (const Accumulator& a : r.accumulators) {
    size_t sums = static_cast<size_t>(a.features) * kLanes * compute_size(a.type);
    if (a.kind == TileOp::WeightGrad && by_pairs(a.dtype))
      sums = pair_kernels()->grad_accumulator_size(a.features, a.inner) * sizeof(float);
    else if (a.kind == TileOp::WeightGrad)
      by_float(a.type, [&](auto t) {
        const auto& matmul = tile_kernels().matmul<decltype(t)>();
        sums = matmul.grad_accumulator_size(a.features, a.inner) * sizeof t;
      });
    p.accumulators.push_back({placed(p.accumulator_bytes, sums),
                              placed(p.result_bytes, a.count() * compute_size(a.type))});
  }
}

/// Room for the operands of products as pairs, with a vector behind.
void place_pairs(const Region& r, TileProgram& p) {
  const auto rows = static_cast<size_t>(p.tile_rows);
  for (const Instruction& i : r.program) {
    size_t numbers = 0;
    if (i.kind == TileOp::Product && by_pairs(r.weights[i.weights].dtype))
      numbers = (static_cast<size_t>(i.inner) + 1) * rows;
    else if (i.kind == TileOp::WeightGrad && by_pairs(r.accumulators[i.dst].dtype))
      numbers = static_cast<size_t>(i.features + i.inner) * rows;
    if (numbers > 0) p.pair_bytes = std::max(p.pair_bytes, rounded(2 * numbers) + 64);
  }
}

/// Whether all that makes a value can leave its features apart: products and plain loops but for
/// roundings, which go over all features as one.
bool is_made_apart(const Region& r, const TileProgram& p, uint32_t value) {
  for (size_t at = 0; at < r.program.size(); ++at) {
    const Instruction& i = r.program[at];
    if (accumulates(i) || i.dst != value) continue;
    if (i.kind == TileOp::Narrow || (!p.loops[at] && i.kind != TileOp::Product)) return false;
  }
  return true;
}

/// Whether each value is kept in a buffer.
std::vector<uint8_t> direct_values(const Region& r, const TileProgram& p) {
  std::vector<uint8_t> marks(r.values.size(), 0);
  for (const TileProgram::Direct& d : p.direct) marks[d.value] = 1;
  return marks;
}

void find_moving(const Region& r, TileProgram& p) {
  p.moving.clear();
  if (p.direct.empty()) return;
  const std::vector<uint8_t> is_direct = direct_values(r, p);
  for (uint32_t at = 0; at < r.program.size(); ++at) {
    const Instruction& i = r.program[at];
    bool moving = !accumulates(i) && is_direct[i.dst];
    for (int k = 0; k < i.operand_count; ++k)
      if (const Operand& o = i.operand[k]; !o.uniform) {
        const Spread* s = spread_of(p, o);
        moving |= is_direct[s ? s->value : o.value];
      }
    if (moving) p.moving.push_back(at);
  }
}

bool is_loaded(const Region& r, uint32_t value) {
  return std::ranges::any_of(r.loads, [&](const RowLoad& l) { return l.value == value; });
}

/// Whether all features of a value are stored, and nothing else.
bool is_whole(const Region& r, const RowStore& s) {
  return !s.from.uniform && s.from.base == 0 && s.from.stride == 1 &&
         s.features == r.values[s.from.value].features;
}

/// Fills in what full tiles keep in buffers: values of one feature that the plan names, and rows of
/// several features that lie in blocks of whole tiles.
void find_direct(const Plan& plan, const Region& r, TileProgram& p) {
  std::vector<uint8_t> is_direct(r.values.size(), 0);
  auto add = [&](uint32_t value, BufferId buffer, int64_t pitch, int64_t offset = 0) {
    p.direct.push_back({value, buffer, pitch, offset});
    is_direct[value] = 1;
    return narrow<int32_t>(p.direct.size()) - 1;
  };
  auto in_blocks = [&](BufferId buffer, const TileValue& v, DType dtype) {
    const Buffer& b = plan.buffers[buffer];
    const int64_t block = b.feature_major ? 1 : block_of(plan, r, buffer, v.features);
    return v.features > 1 && is_compute_type(dtype) && block % p.tile_rows == 0 ? block : 0;
  };
  for (size_t at = 0; at < r.loads.size(); ++at) {
    const RowLoad& l = r.loads[at];
    const TileValue& v = r.values[l.value];
    int32_t& direct = p.loads_direct.emplace_back(-1);
    if (v.direct_in == narrow<int32_t>(at))
      direct = add(l.value, l.buffer, 1, l.viewed() ? l.view.offset : 0);
    else if (const int64_t block = l.viewed() ? 0 : in_blocks(l.buffer, v, l.dtype);
             v.direct_in < 0 && block > 0)
      direct = add(l.value, l.buffer, block);
  }
  for (size_t at = 0; at < r.stores.size(); ++at) {
    const RowStore& s = r.stores[at];
    int32_t& direct = p.stores_direct.emplace_back(-1);
    if (s.from.uniform || is_direct[s.from.value]) continue;
    const TileValue& v = r.values[s.from.value];
    const int64_t block = in_blocks(s.buffer, v, s.dtype);
    if (v.direct_out == narrow<int32_t>(at))
      direct = add(s.from.value, s.buffer, 1);
    else if (v.direct_out < 0 && block > 0 && is_whole(r, s) &&
             plan.buffers[s.buffer].place == Place::Temp && !is_loaded(r, s.from.value) &&
             is_made_apart(r, p, s.from.value))
      direct = add(s.from.value, s.buffer, block);
  }
  find_moving(r, p);
}

// Kernels -----------------------------------------------------------------------------------------

Loop loop_of(const Instruction& i, const TileProgram& p, bool alone) {
  if (!is_loop(i)) return nullptr;
  unsigned uniform = 0;  // in lines, numbers alone: what differs from feature to feature is a line
  for (int n = 0; n < i.operand_count; ++n) {
    const Operand& o = i.operand[n];
    const Spread* s = p.lines ? spread_of(p, o) : nullptr;
    const bool number = s         ? s->step == 0
                        : p.lines ? is_column(i, n, alone) || is_number(o, i.features)
                                  : o.uniform;
    uniform |= unsigned{number} << n;
  }
  const Loop loop = find_loop(i, uniform);
  require(loop != nullptr, ErrorKind::NotImplemented,
          i.kind == TileOp::Elementwise ? info(i.op).name : "conversion", " has no CPU kernel for ",
          name(i.dtype));
  return loop;
}

TileProgram prepare(const Plan& plan, const Region& r) {
  TileProgram p;
  p.work = region_work(r);
  p.taken.resize(r.program.size());
  p.spread.resize(r.values.size());
  if (runs_by_lines(plan, r))
    prepare_lines(r, p);
  else
    p.tile_rows = tile_rows(r);
  place(r, p);
  const int64_t tiles = (r.rows + p.tile_rows - 1) / p.tile_rows;
  p.chunks = narrow<int32_t>(std::clamp<int64_t>(tiles, 1, most_chunks(p)));
  for (const Instruction& i : r.program) p.loops.push_back(loop_of(i, p, r.rows == 1));
  place_pairs(r, p);
  find_direct(plan, r, p);
  if (p.lines) return p;
  find_spread(r, p);
  p.passes = find_passes(r, p);
  p.bands = find_bands(r, p);
  return p;
}

}  // namespace

void keep_carried(const Plan& plan, const Region& r, TileProgram& p, std::span<const Carry> all) {
  using Direct = TileProgram::Direct;
  if (all.empty()) return;
  std::vector<uint8_t> is_direct = direct_values(r, p);
  auto stays = [&](BufferId buffer, uint32_t value, DType dtype) {
    const TileValue& v = r.values[value];
    return v.features > 1 && v.head + v.tail == 0 && is_compute_type(dtype) &&
           block_of(plan, r, buffer, v.features) == 1 && !is_direct[value];
  };
  for (const Carry& c : all) {
    const auto store = std::ranges::find(r.stores, c.written, &RowStore::buffer);
    if (store == r.stores.end() || !is_whole(r, *store) || is_loaded(r, store->from.value) ||
        !stays(c.written, store->from.value, store->dtype) ||
        std::ranges::count(r.stores, c.written, &RowStore::buffer) > 1)
      continue;
    // All that read what is written, which several may do.
    auto reads = [&](const RowLoad& l) {
      return std::ranges::any_of(
          all, [&](const Carry& o) { return o.written == c.written && o.read == l.buffer; });
    };
    if (!std::ranges::all_of(r.loads, [&](const RowLoad& l) {
          return !reads(l) || (!l.viewed() && stays(l.buffer, l.value, l.dtype));
        }))
      continue;
    auto add = [&](uint32_t value, BufferId buffer, Direct::But but) {
      p.direct.push_back({value, buffer, p.tile_rows, 0, but});
      is_direct[value] = 1;
      return narrow<int32_t>(p.direct.size()) - 1;
    };
    p.stores_direct[static_cast<size_t>(store - r.stores.begin())] =
        add(store->from.value, c.written, Direct::But::Last);
    for (size_t at = 0; at < r.loads.size(); ++at)
      if (reads(r.loads[at]))
        p.loads_direct[at] = add(r.loads[at].value, r.loads[at].buffer, Direct::But::First);
  }
  find_moving(r, p);
}

bool is_loop(const Instruction& i) {
  const TileOpInfo::Runs runs = info(i.kind).runs;
  return runs == TileOpInfo::Runs::Loop || (runs == TileOpInfo::Runs::MapLoop && i.map < 0);
}

Loop find_loop(const Instruction& i, unsigned uniform) {
  const Kernels& k = kernels();
  switch (i.kind) {
    case TileOp::Elementwise:
      return k.elementwise(i.op, i.type, uniform);
    case TileOp::Chain:
      return k.chain(i.type, i.links, i.operand_count, uniform != 0);
    case TileOp::Formula:
      return k.formula(i.type, i.formula);
    case TileOp::Choose:
      return k.choose(i.op, i.type, uniform);
    case TileOp::Convert:
      return k.convert(i.type, i.dtype);
    case TileOp::Narrow:
      return k.narrow(i.dtype);
    case TileOp::Copy:
      return i.map < 0 ? k.expand(i.type, uniform != 0) : nullptr;
    case TileOp::Scatter:
    case TileOp::Surround:
    case TileOp::FeatureReduce:
    case TileOp::Product:
    case TileOp::RowReduce:
    case TileOp::WeightGrad:
      return nullptr;
  }
  return nullptr;
}

bool by_pairs(DType dtype) { return dtype == DType::BFloat16 && pair_kernels() != nullptr; }

/// Who waits for other processes waits long.
constexpr double kExchangeWork = 1e6;

Program prepare(Plan plan) {
  Program program{std::move(plan), {}};
  for (const Stage& stage : program.plan.stages) {
    std::vector<TileProgram>& regions = program.stages.emplace_back();
    size_t bytes = 64;
    for (const Region& r : stage.regions) {
      const TileProgram& p = regions.emplace_back(prepare(program.plan, r));
      program.work += p.work;
      bytes += p.side_bytes();
    }
    for (const Call& c : stage.calls)
      program.work += kCallElementNs * static_cast<double>(c.out.count);
    program.side_bytes = std::max(program.side_bytes, bytes);
  }
  if (program.plan.collectives > 0) program.work += kExchangeWork;
  return program;
}

}  // namespace gradcell::cpu

#include "cpu/line_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>

#include "cpu/combine.h"
#include "cpu/tile_kernels.h"
#include "cpu/whole_kernels.h"

namespace gradcell::cpu {

namespace {

/// Fewer elements than this are combined one by one: a kernel takes longer to begin.
constexpr int32_t kShort = 8;
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

/// Whether one number of the uniforms is the operand for all of an instruction's features.
bool is_number(const Operand& o, int32_t features) {
  return o.uniform && (o.stride == 0 || features == 1);
}

bool is_line(const Operand& o, int32_t features) { return o.uniform && !is_number(o, features); }

/// So many rows are whole vectors: what is the same for all rows is repeated as often.
int32_t unit_of(int32_t features) { return kLanes / std::gcd(kLanes, features); }

DType dtype_of(Compute type) {
  switch (type) {
    case Compute::F32:
      return DType::Float32;
    case Compute::F64:
      return DType::Float64;
    case Compute::I32:
      return DType::Int32;
    default:
      return DType::Int64;
  }
}

/// f(a value of what elements are combined in), see AccumulatorOf.
template <class F>
void by_accumulator(Combine how, Compute type, F f) {
  const bool wide = how == Combine::Sum || how == Combine::Product;
  by_compute(type, [&](auto t) {
    using T = decltype(t);
    if (wide)
      f(AccumulatorOf<Combine::Sum, T>(), t);
    else
      f(T(), t);
  });
}

template <class A>
A identity(Combine how) {
  using Limits = std::numeric_limits<A>;
  constexpr bool infinite = Limits::has_infinity;
  switch (how) {
    case Combine::Max:
      return infinite ? -Limits::infinity() : Limits::min();
    case Combine::Min:
      return infinite ? Limits::infinity() : Limits::max();
    default:
      return A(how == Combine::Product);
  }
}

/// The distance between neighbours that are all as far apart, 1 of one alone; 0: they are not.
int32_t spacing(const std::vector<int32_t>& map) {
  if (map.size() < 2) return 1;
  const int32_t step = map[1] - map[0];
  for (size_t i = 2; i < map.size(); ++i)
    if (map[i] - map[i - 1] != step) return 0;
  return step;
}

/// What the k-th operand is held in: a condition is an int32 whatever is chosen.
Compute type_of(const Instruction& i, int k) {
  const bool condition = i.kind == TileOp::Elementwise && i.op == Op::Select && k == 0;
  return condition ? Compute::I32 : i.type;
}

/// Over a line of elements, whatever the type.
template <class F>
void by_item(Compute type, F f) {
  if (compute_size(type) == 4)
    f(uint32_t());
  else
    f(uint64_t());
}

/// (Rows that are no whole vectors would begin anywhere, and every access touch two cache lines.)
bool is_one_a_row(const Operand& o, int32_t features) {
  return !o.uniform && o.stride == 0 && features >= kWide && features % kLanes == 0;
}

}  // namespace

bool is_column(const Instruction& i, int k) {
  if (!is_one_a_row(i.operand[k], i.features)) return false;
  auto varies = [&](int n) {
    return !is_one_a_row(i.operand[n], i.features) && !is_number(i.operand[n], i.features);
  };
  if (i.kind == TileOp::Choose) return varies(0);  // its loops have no others
  if (i.kind != TileOp::Elementwise) return false;
  for (int n = 0; n < i.operand_count; ++n)
    if (varies(n)) return true;
  return false;
}

bool runs_by_lines(const Plan& plan, const Region& r) {
  if (r.block > 1 || !r.weights.empty() || width(r) < kWide) return false;
  auto by_features = [&](BufferId b) {
    return plan.buffers[b].feature_major || plan.buffers[b].tiled;
  };
  for (const RowLoad& l : r.loads)
    if (l.viewed() || by_features(l.buffer)) return false;
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
  p.taken.resize(r.program.size());
  auto whole = [&](const Operand& o, int32_t features) {
    return !o.uniform && o.base == 0 && o.stride == 1 && r.values[o.value].features == features;
  };
  for (size_t at = 1; at < r.program.size(); ++at) {
    const Instruction &sum = r.program[at], &made = r.program[at - 1];
    const bool lines = sum.kind == TileOp::FeatureReduce &&
                       p.spacings[static_cast<size_t>(sum.map2)] == 1 && sum.inner >= kShort;
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
  for (const auto& map : r.maps) p.spacings.push_back(spacing(map));
  find_taken(r, p);
  const int32_t widest = width(r);
  // Whole vectors of whole rows, so that full tiles can be read and written in place.
  const int32_t unit = kLanes / std::gcd(kLanes, widest);
  const bool small = r.accumulators.empty() && makes_rows(r, p);
  const int32_t elements = small ? kTileElements : kManyElements;
  const int32_t wanted = std::max(1, elements / widest);
  p.tile_rows = (wanted + unit - 1) / unit * unit;
  p.lines = true;
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

LineRunner::LineRunner(const RegionRun& run, const RunState& s)
    : r_(*run.region), p_(*run.program), run_(run), s_(s) {
  size_t lines = 0;
  for (const Instruction& i : r_.program)
    for (int k = 0; k < i.operand_count; ++k) lines += is_line(i.operand[k], i.features);
  const size_t places = rounded(r_.values.size() * sizeof *at_);
  const size_t spread = rounded(r_.program.size() * sizeof *lines_);
  sums_ = worker_scratch(p_.accumulator_bytes + p_.value_bytes +
                         (kMaxOperands + lines) * p_.slot_bytes + places + spread);
  values_ = sums_ + p_.accumulator_bytes;
  slots_ = values_ + p_.value_bytes;
  std::byte* const behind = slots_ + (kMaxOperands + lines) * p_.slot_bytes;
  at_ = reinterpret_cast<std::byte**>(behind);
  lines_ = reinterpret_cast<Lines*>(behind + places);
  spread_lines();
}

/// Uniforms that differ from feature to feature are repeated for a few rows once for all tiles.
void LineRunner::spread_lines() {
  int next = kMaxOperands;
  std::fill_n(lines_, r_.program.size(), Lines{});
  for (size_t at = 0; at < r_.program.size(); ++at) {
    const Instruction& i = r_.program[at];
    valid_ = std::min(unit_of(i.features), p_.tile_rows);
    for (int k = 0; k < i.operand_count; ++k)
      if (is_line(i.operand[k], i.features))
        lines_[at][k] = dense(i.operand[k], type_of(i, k), i.features, slot(next++));
  }
}

void LineRunner::chunk(int32_t c) {
  for (size_t a = 0; a < r_.accumulators.size(); ++a) {
    const Accumulator& acc = r_.accumulators[a];
    by_accumulator(acc.combine, acc.type, [&](auto wide, auto) {
      using A = decltype(wide);
      std::fill_n(reinterpret_cast<A*>(sums_ + p_.accumulators[a].sums), acc.features,
                  identity<A>(acc.combine));
    });
  }
  const int64_t tiles = (r_.rows + p_.tile_rows - 1) / p_.tile_rows;
  for (int64_t t = tiles * c / p_.chunks; t < tiles * (c + 1) / p_.chunks; ++t) tile(t);
  for (size_t a = 0; a < r_.accumulators.size(); ++a) {
    const Accumulator& acc = r_.accumulators[a];
    by_accumulator(acc.combine, acc.type, [&](auto wide, auto narrow) {
      using T = decltype(narrow);
      const auto* from = reinterpret_cast<decltype(wide)*>(sums_ + p_.accumulators[a].sums);
      auto* to = reinterpret_cast<T*>(result(run_, c, a));
      for (int32_t f = 0; f < acc.features; ++f) to[f] = static_cast<T>(from[f]);
    });
  }
}

void LineRunner::tile(int64_t t) {
  first_ = t * p_.tile_rows;
  valid_ = static_cast<int32_t>(std::min<int64_t>(p_.tile_rows, r_.rows - first_));
  find_places();
  for (const RowLoad& l : r_.loads) load(l);
  for (size_t i = 0; i < r_.program.size(); ++i) {
    if (!seconds_) {
      execute(i);
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    execute(i);
    seconds_[i] += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  for (const RowStore& s : r_.stores) store(s);
}

std::byte* LineRunner::rows_of(BufferId buffer, int32_t features, DType dtype) const {
  return static_cast<std::byte*>(s_.buffers[buffer]) +
         static_cast<size_t>(first_) * static_cast<size_t>(features) * item_size(dtype);
}

/// Whether a buffer that is written is one that is read, an update in place.
bool LineRunner::is_overwritten(BufferId buffer) const {
  return std::ranges::any_of(
      r_.loads, [&](const RowLoad& l) { return s_.buffers[l.buffer] == s_.buffers[buffer]; });
}

/// Values are in scratch, but for those that full tiles keep in buffers.
void LineRunner::find_places() {
  for (size_t v = 0; v < r_.values.size(); ++v) at_[v] = values_ + p_.places[v];
  if (valid_ < p_.tile_rows) return;
  auto direct = [&](uint32_t value, DType dtype) {
    return is_compute_type(dtype) && r_.values[value].features * p_.tile_rows % kLanes == 0;
  };
  auto written = [&](BufferId buffer) {
    return std::ranges::any_of(
        r_.stores, [&](const RowStore& s) { return s_.buffers[s.buffer] == s_.buffers[buffer]; });
  };
  for (const RowLoad& l : r_.loads)
    if (direct(l.value, l.dtype) && !written(l.buffer))
      at_[l.value] = rows_of(l.buffer, r_.values[l.value].features, l.dtype);
  for (const RowStore& s : r_.stores) {
    const TileValue& v = r_.values[s.from.value];
    auto same = [&](const auto& other) { return other.value == s.from.value; };
    const bool loaded = std::ranges::any_of(r_.loads, same);
    if (!s.from.uniform && direct(s.from.value, s.dtype) && s.from.base == 0 &&
        s.features == v.features && !loaded && !is_overwritten(s.buffer) &&
        at_[s.from.value] == values_ + p_.places[s.from.value])
      at_[s.from.value] = rows_of(s.buffer, s.features, s.dtype);
  }
}

void LineRunner::load(const RowLoad& l) {
  const int32_t features = r_.values[l.value].features;
  const std::byte* from = rows_of(l.buffer, features, l.dtype);
  const auto n = static_cast<size_t>(valid_) * static_cast<size_t>(features);
  if (at_[l.value] != from) tile_kernels().transpose.load(from, l.dtype, at_[l.value], n);
}

void LineRunner::store(const RowStore& s) {
  std::byte* to = rows_of(s.buffer, s.features, s.dtype);
  const std::byte* from = dense(s.from, s.type, s.features, slot(0));
  const auto n = static_cast<size_t>(valid_) * static_cast<size_t>(s.features);
  if (from != to) tile_kernels().transpose.store(from, s.dtype, to, n);
}

std::byte* LineRunner::slot(int k) const { return slots_ + static_cast<size_t>(k) * p_.slot_bytes; }

std::byte* LineRunner::number(const Operand& o) const {
  return run_.uniforms + p_.uniforms[o.value] +
         static_cast<size_t>(o.base) * compute_size(r_.uniforms[o.value].type);
}

bool LineRunner::lies_dense(const Operand& o, int32_t n) const {
  return !o.uniform && o.base == 0 && (o.stride == 1 || n == 1) && r_.values[o.value].features == n;
}

const std::byte* LineRunner::dense(const Operand& o, Compute type, int32_t n,
                                   std::byte* slot) const {
  if (lies_dense(o, n)) return at_[o.value];
  const size_t size = compute_size(type);
  if (o.stride == 0 && !o.uniform) {  // one of each row
    const std::byte* from = at_[o.value] + static_cast<size_t>(o.base) * size;
    LoopArgs a;
    a.d = slot, a.p[0] = from, a.s[0] = r_.values[o.value].features;
    a.features = valid_, a.rows = n, a.pitch = n;
    kernels().expand(type, true)(a);
    return slot;
  }
  by_item(type, [&](auto item) {
    using S = decltype(item);
    auto* to = reinterpret_cast<S*>(slot);
    const S* from = reinterpret_cast<const S*>(o.uniform ? number(o) : at_[o.value]);
    if (!o.uniform) from += o.base;
    const int32_t pitch = o.uniform ? 0 : r_.values[o.value].features;
    for (int32_t r = 0; r < valid_; ++r, to += n, from += pitch) {
      if (o.stride == 1)
        std::memcpy(to, from, static_cast<size_t>(n) * sizeof(S));
      else if (o.stride == 0)
        std::fill_n(to, n, *from);
      else
        for (int32_t f = 0; f < n; ++f) to[f] = from[static_cast<ptrdiff_t>(f) * o.stride];
    }
  });
  return slot;
}

void LineRunner::execute(size_t at) {
  const Instruction& i = r_.program[at];
  if (p_.taken[at].dropped) return;
  switch (i.kind) {
    case TileOp::Elementwise:
    case TileOp::Chain:
    case TileOp::Formula:
    case TileOp::Choose:
    case TileOp::Convert:
    case TileOp::Narrow:
      return loop(at);
    case TileOp::Copy: {
      if (i.map < 0) {
        const std::byte* from = dense(i.operand[0], i.type, i.features, at_[i.dst]);
        if (from != at_[i.dst])
          std::memcpy(
              at_[i.dst], from,
              static_cast<size_t>(valid_) * static_cast<size_t>(i.features) * compute_size(i.type));
        return;
      }
      const int32_t pitch = r_.values[i.operand[0].value].features;
      return by_item(i.type, [&](auto item) {
        using S = decltype(item);
        const auto& map = r_.maps[i.map];
        const S* from = reinterpret_cast<const S*>(at_[i.operand[0].value]);
        S* to = reinterpret_cast<S*>(at_[i.dst]);
        for (int32_t r = 0; r < valid_; ++r, from += pitch, to += i.features)
          for (int32_t f = 0; f < i.features; ++f) to[f] = from[map[f]];
      });
    }
    case TileOp::Scatter:
      return scatter(i);
    case TileOp::FeatureReduce:
      return reduce_features(at);
    case TileOp::RowReduce:
      return add_rows(at);
    case TileOp::Product:
    case TileOp::WeightGrad:
      fail(ErrorKind::Runtime, "a product in a tile of lines");
  }
}

/// Over all elements of the tile as one feature; with lines, over those of a few rows at a time.
/// (Lanes of a last vector hang over into room.)
void LineRunner::loop(size_t at) {
  const Instruction& i = r_.program[at];
  bool lined = false;
  for (int k = 0; k < i.operand_count; ++k) {
    if (is_column(i, k)) return loop_by_rows(at);
    lined |= lines_[at][k] != nullptr;
  }
  LoopArgs a;
  a.d = at_[i.dst];
  for (int k = 0; k < i.operand_count; ++k) {
    const Operand& o = i.operand[k];
    a.p[k] = is_number(o, i.features) ? number(o)
             : lines_[at][k]          ? lines_[at][k]
                                      : dense(o, type_of(i, k), i.features, slot(k));
  }
  const auto run = [&](int32_t times, int32_t elements) {
    a.features = times, a.rows = (elements + kLanes - 1) / kLanes * kLanes, a.pitch = a.rows;
    for (int k = 0; k < i.operand_count; ++k)
      a.s[k] = is_number(i.operand[k], i.features) || (lines_[at][k] && times > 1) ? 0 : a.rows;
    p_.loops[at](a);
  };
  if (!lined) return run(1, valid_ * i.features);
  const int32_t unit = unit_of(i.features), times = valid_ / unit, rest = valid_ % unit;
  if (times > 0) run(times, unit * i.features);
  if (rest == 0) return;
  const auto done = static_cast<size_t>(times) * static_cast<size_t>(unit * i.features);
  a.d = at_[i.dst] + done * compute_size(r_.values[i.dst].type);
  for (int k = 0; k < i.operand_count; ++k)
    if (!is_number(i.operand[k], i.features) && !lines_[at][k])
      a.p[k] = static_cast<const std::byte*>(a.p[k]) + done * compute_size(type_of(i, k));
  run(1, rest * i.features);
}

void LineRunner::bind_rows(LoopArgs& a, size_t at, int k) const {
  const Instruction& i = r_.program[at];
  const Operand& o = i.operand[k];
  const Compute type = type_of(i, k);
  if (is_number(o, i.features)) {
    a.p[k] = number(o), a.s[k] = 0;
  } else if (is_column(i, k)) {
    a.p[k] = at_[o.value] + static_cast<size_t>(o.base) * compute_size(type);
    a.s[k] = r_.values[o.value].features;
  } else if (lines_[at][k]) {
    a.p[k] = lines_[at][k], a.s[k] = 0;
  } else {
    a.p[k] = dense(o, type, i.features, slot(k)), a.s[k] = i.features;
  }
}

/// Row after row, so that one number of each is read where it is.
void LineRunner::loop_by_rows(size_t at) {
  const Instruction& i = r_.program[at];
  LoopArgs a;
  a.d = at_[i.dst];
  a.features = valid_, a.rows = i.features, a.pitch = i.features;
  for (int k = 0; k < i.operand_count; ++k) bind_rows(a, at, k);
  p_.loops[at](a);
}

void LineRunner::scatter(const Instruction& i) {
  const Compute type = r_.values[i.dst].type;
  const auto& map = r_.maps[i.map];
  const bool run = p_.spacings[static_cast<size_t>(i.map)] == 1;
  const std::byte* x = dense(i.operand[0], type, i.inner, slot(0));
  by_item(type, [&](auto item) {
    using S = decltype(item);
    S* to = reinterpret_cast<S*>(at_[i.dst]);
    const S* from = reinterpret_cast<const S*>(x);
    if (i.zero) std::fill_n(to, static_cast<ptrdiff_t>(valid_) * i.features, S(0));
    for (int32_t r = 0; r < valid_; ++r, to += i.features, from += i.inner) {
      if (run)
        std::memcpy(to + map[0], from, static_cast<size_t>(i.inner) * sizeof(S));
      else
        for (int32_t f = 0; f < i.inner; ++f) to[map[f]] = from[f];
    }
  });
}

namespace {

template <class T, class A>
void combine_each(Combine how, const T* line, const int32_t* base, const std::vector<int32_t>& step,
                  A* sums, size_t n) {
  by_combine(how, [&]<Combine c>() {
    for (size_t f = 0; f < n; ++f)
      for (const int32_t s : step)
        sums[f] = combined<c>(sums[f], static_cast<A>(line[base[f] + s]));
  });
}

}  // namespace

/// What a sum reads: its operand, or that of the instruction that it takes in.
const Operand& LineRunner::source(size_t at) const {
  return r_.program[p_.taken[at].map == Mapped::Itself ? at : at - 1].operand[0];
}

/// The number that is put in place of what is none.
const std::byte* LineRunner::replacement(size_t at) const {
  const int32_t k = p_.taken[at].number;
  return k < 0 ? nullptr : number(r_.program[at - 1].operand[k]);
}

void LineRunner::reduce_features(size_t at) {
  const Instruction& i = r_.program[at];
  const Operand& o = source(at);
  const Mapped map = p_.taken[at].map;
  const std::byte* const other = replacement(at);
  const auto &base = r_.maps[i.map], &step = r_.maps[i.map2];
  const int32_t pitch = r_.values[o.value].features;
  const int32_t apart = p_.spacings[static_cast<size_t>(i.map2)];
  const WholeKernels& k = whole_kernels();
  const DType dtype = dtype_of(i.type);
  const auto inner = static_cast<size_t>(i.inner);
  by_accumulator(i.combine, i.type, [&](auto wide, auto narrow) {
    using A = decltype(wide);
    using T = decltype(narrow);
    const T* line = reinterpret_cast<const T*>(at_[o.value]) + o.base;
    T* to = reinterpret_cast<T*>(at_[i.dst]);
    A* const sums = reinterpret_cast<A*>(slot(0));
    const auto features = static_cast<size_t>(i.features);
    const bool columns =
        i.features > 1 && apart != 0 && p_.spacings[static_cast<size_t>(i.map)] == 1;
    for (int32_t r = 0; r < valid_; ++r, line += pitch, to += i.features) {
      std::fill_n(sums, features, identity<A>(i.combine));
      const T* x = line + step[0];
      if (columns && map == Mapped::Itself) {
        k.fold_rows(i.combine, dtype, x + base[0], apart, inner, sums, features);
      } else if (map != Mapped::Itself) {
        for (size_t f = 0; f < features; ++f)
          k.sum_mapped(map, dtype, x + base[f], inner, other, &sums[f]);
      } else if (apart == 1 && i.inner >= kShort) {
        for (size_t f = 0; f < features; ++f)
          k.fold(i.combine, dtype, x + base[f], inner, &sums[f]);
      } else {
        for (size_t f = 0, run = 1; f < features; f += run) {  // features side by side
          for (run = 1; f + run < features && base[f + run] == base[f] + int64_t(run);) ++run;
          if (apart != 0 && run >= size_t{kShort})
            k.fold_rows(i.combine, dtype, x + base[f], apart, inner, &sums[f], run);
          else
            combine_each(i.combine, line, base.data() + f, step, sums + f, run);
        }
      }
      for (size_t f = 0; f < features; ++f) to[f] = static_cast<T>(sums[f]);
    }
  });
}

void LineRunner::add_rows(size_t at) {
  const Instruction& i = r_.program[at];
  const Mapped map = p_.taken[at].map;
  const std::byte* x = dense(source(at), i.type, i.features, slot(0));
  std::byte* sums = sums_ + p_.accumulators[i.dst].sums;
  const DType dtype = dtype_of(i.type);
  const auto rows = static_cast<size_t>(valid_), features = static_cast<size_t>(i.features);
  const WholeKernels& k = whole_kernels();
  if (map != Mapped::Itself)
    features == 1
        ? k.sum_mapped(map, dtype, x, rows, replacement(at), sums)
        : k.sum_rows_mapped(map, dtype, x, i.features, rows, replacement(at), sums, features);
  else if (features == 1)
    k.fold(i.combine, dtype, x, rows, sums);
  else
    k.fold_rows(i.combine, dtype, x, i.features, rows, sums, features);
}

}  // namespace gradcell::cpu

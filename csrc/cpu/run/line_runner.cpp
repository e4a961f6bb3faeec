#include "cpu/run/line_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>

#include "cpu/kernels/combine.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/kernels/whole_kernels.h"
#include "cpu/program/lines.h"
#include "cpu/run/view_load.h"

namespace gradcell::cpu {

namespace {

/// So many rows are whole vectors: what is the same for all rows is repeated as often.
int32_t unit_of(int32_t features) { return kLanes / std::gcd(kLanes, features); }

int32_t whole_vectors(int32_t features) { return (features + kLanes - 1) / kLanes * kLanes; }

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

/// n elements, `step` apart, side by side.
template <class S>
void take(const S* from, ptrdiff_t step, S* to, int32_t n) {
  if (step == 1)
    copy_rows(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to),
              static_cast<size_t>(n) * sizeof(S));
  else if (step == 0)
    std::fill_n(to, n, *from);
  else
    for (ptrdiff_t f = 0; f < n; ++f) to[f] = from[f * step];
}

/// The elements that a map names, side by side.
template <class S>
void take(const S* from, const MapRuns& runs, const std::vector<int32_t>& map, S* to) {
  if (runs.repeats) {
    size_t done = static_cast<size_t>(runs[0].n);
    take(from + runs[0].first, runs[0].step, to, runs[0].n);
    for (size_t n; done < map.size(); done += n) {
      n = std::min(done, map.size() - done);
      std::memcpy(to + done, to, n * sizeof(S));
    }
  } else if (runs.is_long) {
    for (const MapRun& run : runs) take(from + run.first, run.step, to + run.at, run.n);
  } else {
    for (size_t f = 0; f < map.size(); ++f) to[f] = from[map[f]];
  }
}

}  // namespace

namespace {

/// How many operands are the same lines for all tiles.
size_t lines_of(const Region& r) {
  size_t lines = 0;
  for (const Instruction& i : r.program)
    for (int k = 0; k < i.operand_count; ++k) lines += is_line(i.operand[k], i.features);
  return lines;
}

}  // namespace

size_t LineRunner::scratch_bytes(const Region& r, const TileProgram& p) {
  return p.accumulator_bytes + p.value_bytes + (kMaxOperands + lines_of(r)) * p.slot_bytes +
         rounded(r.values.size() * sizeof *at_) + rounded(r.program.size() * sizeof *lines_);
}

LineRunner::LineRunner(const RegionRun& run, const RunState& s, std::array<BoundRow, 2>& rows,
                       Dims& line, std::byte* scratch)
    : r_(*run.region),
      p_(*run.program),
      run_(run),
      s_(s),
      sums_(scratch ? scratch : worker_scratch(scratch_bytes(r_, p_))),
      values_(sums_ + p_.accumulator_bytes),
      fixed_(values_ + p_.value_bytes),
      slots_(fixed_ + lines_of(r_) * p_.slot_bytes),
      rows_(rows),
      row_(&rows[0]),
      line_(line) {
  for (BoundRow& row : rows_) row.bound = false;
  std::byte* const behind = slots_ + kMaxOperands * p_.slot_bytes;
  at_ = reinterpret_cast<std::byte**>(behind);
  lines_ = reinterpret_cast<Lines*>(behind + rounded(r_.values.size() * sizeof *at_));
  spread_lines();
}

/// Uniforms that differ from feature to feature are repeated for a few rows once for all tiles.
void LineRunner::spread_lines() {
  std::byte* next = fixed_;
  std::fill_n(lines_, r_.program.size(), Lines{});
  for (size_t at = 0; at < r_.program.size(); ++at) {
    const Instruction& i = r_.program[at];
    valid_ = std::min(unit_of(i.features), p_.tile_rows);
    for (int k = 0; k < i.operand_count; ++k)
      if (is_line(i.operand[k], i.features)) {
        lines_[at][k] = dense(i.operand[k], type_of(i, k), i.features, next);
        next += p_.slot_bytes;
      }
  }
}

void LineRunner::chunk(int32_t c) {
  if (r_.rows == 1 && r_.accumulators.empty()) return tile(0);
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
  valid_ = narrow<int32_t>(std::min<int64_t>(p_.tile_rows, r_.rows - first_));
  if (r_.rows == 1) {
    row_ = &rows_[row_ == &rows_[0]];
    row_->bound ? move_row() : bind_row();
    return run_row();
  }
  find_places();
  for (const RowLoad& l : r_.loads) load(l);
  for (size_t i = 0; i < r_.program.size(); ++i) measured(i, [&] { execute(i); });
  for (const RowStore& s : r_.stores) store(s);
}

/// Instruction `at`, or a step of it, which f does.
template <class F>
void LineRunner::measured(size_t at, F f) {
  if (!seconds_) return f();
  const auto begin = std::chrono::steady_clock::now();
  f();
  seconds_[at] += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
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
  auto has_room = [&](BufferId buffer) {
    if (r_.rows > 1 || !room_) return false;
    return room_[buffer] == Room::Always || (room_[buffer] == Room::ButInTheLastStep && !last_);
  };
  auto direct = [&](uint32_t value, DType dtype, BufferId buffer) {
    const TileValue& v = r_.values[value];
    return is_compute_type(dtype) && v.head + v.tail == 0 &&
           (v.features * p_.tile_rows % kLanes == 0 || has_room(buffer));
  };
  auto written = [&](BufferId buffer) {
    return std::ranges::any_of(
        r_.stores, [&](const RowStore& s) { return s_.buffers[s.buffer] == s_.buffers[buffer]; });
  };
  for (const RowLoad& l : r_.loads)
    if (!l.viewed() && direct(l.value, l.dtype, l.buffer) && !written(l.buffer) &&
        (r_.rows > 1 || has_room(l.buffer) || reads_inside(l)))
      at_[l.value] = rows_of(l.buffer, r_.values[l.value].features, l.dtype);
  for (const RowStore& s : r_.stores) {
    const TileValue& v = r_.values[s.from.value];
    auto same = [&](const auto& other) { return other.value == s.from.value; };
    const bool loaded = std::ranges::any_of(r_.loads, same);
    if (!s.from.uniform && direct(s.from.value, s.dtype, s.buffer) && s.from.base == 0 &&
        s.features == v.features && !loaded && !is_overwritten(s.buffer) &&
        at_[s.from.value] == values_ + p_.places[s.from.value])
      at_[s.from.value] = rows_of(s.buffer, s.features, s.dtype);
  }
}

/// Whether what reads a load of the only row stays within it, whole vectors as it reads.
bool LineRunner::reads_inside(const RowLoad& l) const {
  for (const Instruction& i : r_.program)
    for (int k = 0; k < i.operand_count; ++k) {
      const Operand& o = i.operand[k];
      if (o.uniform || o.value != l.value || o.stride != 1) continue;
      if (o.base + whole_vectors(i.features) > r_.values[l.value].features) return false;
    }
  return true;
}

/// Binds all instructions, for buffers that lie elsewhere in the next run.
void LineRunner::bind_row() {
  find_places();
  row_->steps.clear(), row_->values.clear(), row_->pointers.clear();
  row_->loads.clear(), row_->stores.clear();
  auto lies_in = [&](uint32_t value, BufferId buffer) {
    if (at_[value] != s_.buffers[buffer]) return false;
    row_->values.push_back({value, buffer, at_[value]});
    return true;
  };
  for (const RowLoad& l : r_.loads)
    if (!lies_in(l.value, l.buffer)) row_->loads.push_back(&l);
  for (const RowStore& s : r_.stores)
    if (s.from.uniform || !lies_in(s.from.value, s.buffer)) row_->stores.push_back(&s);
  for (size_t at = 0; at < r_.program.size(); ++at)
    if (!p_.taken[at].dropped && !bind(at)) row_->steps.push_back({nullptr, {}, at});
  std::ranges::sort(row_->pointers, {}, &BoundRow::Pointer::value);
  for (BoundRow::Value& v : row_->values) {
    const auto own =
        std::ranges::equal_range(row_->pointers, v.value, {}, &BoundRow::Pointer::value);
    v.first = static_cast<size_t>(own.begin() - row_->pointers.begin());
    v.end = static_cast<size_t>(own.end() - row_->pointers.begin());
  }
  row_->bound = true;
}

/// Zeros before and behind a value, which is in scratch.
void LineRunner::bind_zeros(size_t at) {
  static constexpr double kZero = 0;
  const TileValue& v = r_.values[r_.program[at].dst];
  const auto size = static_cast<ptrdiff_t>(compute_size(v.type));
  const auto zeros = [&](int32_t first, int32_t n) {
    LoopArgs a{};
    a.d = at_[r_.program[at].dst] + first * size, a.p[0] = &kZero, a.features = 1, a.rows = n;
    if (n > 0) row_->steps.push_back({kernels().expand(v.type, true), a, at});
  };
  zeros(-v.head, v.head);
  zeros(v.features, v.tail);
}

/// Binds an instruction that is a loop whose operands lie side by side, or are one number.
bool LineRunner::bind(size_t at) {
  const Instruction& i = r_.program[at];
  if (i.kind == TileOp::Surround) return bind_zeros(at), true;
  if (!p_.loops[at]) return false;
  LoopArgs a{};
  a.features = 1, a.rows = whole_vectors(i.features);
  for (int k = 0; k < i.operand_count; ++k)
    if (const Spread* s = spread_of(p_, i.operand[k]))
      a.features = i.features / s->n, a.rows = s->n;
  a.pitch = a.rows;
  const size_t first = row_->steps.size();
  auto in_buffer = [&](uint32_t value) {
    return std::ranges::any_of(row_->values, [&](const auto& v) { return v.value == value; });
  };
  auto point = [&](size_t step, int operand, uint32_t value, ptrdiff_t offset) {
    if (in_buffer(value)) row_->pointers.push_back({step, operand, value, offset});
    return at_[value] + offset;
  };
  // A number that the loop takes as a line is spread by a step of its own before.
  auto spread = [&](int k) {
    return !i.operand[k].uniform && i.operand[k].stride == 0 && i.features > 1 &&
           !is_column(i, k, true);
  };
  size_t here = first;
  for (int k = 0; k < i.operand_count; ++k) {
    const Operand& o = i.operand[k];
    if (!o.uniform && o.stride != 0 && o.stride != 1 && i.features > 1) return false;
    here += spread(k);
  }
  for (int k = 0; k < i.operand_count; ++k) {
    const Operand& o = i.operand[k];
    a.s[k] = a.rows;
    if (is_number(o, i.features)) {
      a.p[k] = number(o), a.s[k] = 0;
      continue;
    }
    if (lines_[at][k]) {
      a.p[k] = lines_[at][k];
      continue;
    }
    const Compute type = type_of(i, k);
    const auto size = static_cast<ptrdiff_t>(compute_size(type));
    if (const Spread* s = spread_of(p_, o)) {
      a.p[k] = point(here, k, s->value, s->base * size), a.s[k] = s->outer;
      continue;
    }
    const auto offset = static_cast<ptrdiff_t>(o.base) * size;
    if (!spread(k)) {
      a.p[k] = point(here, k, o.value, offset);
      if (is_column(i, k, true)) a.s[k] = 0;
      continue;
    }
    LoopArgs number = a;
    number.d = slot(k), number.s[0] = 0;
    number.p[0] = point(row_->steps.size(), 0, o.value, offset);
    row_->steps.push_back({kernels().expand(type, true), number, at});
    a.p[k] = slot(k);
  }
  a.d = point(here, -1, i.dst, 0);
  row_->steps.push_back({p_.loops[at], a, at});
  return true;
}

/// The same steps with what the buffers are now.
void LineRunner::move_row() {
  for (BoundRow::Value& v : row_->values) {
    auto* const now = static_cast<std::byte*>(s_.buffers[v.buffer]);
    at_[v.value] = now;
    if (now == v.at) continue;
    v.at = now;
    for (size_t k = v.first; k < v.end; ++k) {
      const BoundRow::Pointer& p = row_->pointers[k];
      LoopArgs& a = row_->steps[p.step].args;
      std::byte* const to = now + p.offset;
      p.operand < 0 ? a.d = to : a.p[p.operand] = to;
    }
  }
}

void LineRunner::run_row() {
  for (const RowLoad* l : row_->loads) load(*l);
  for (const BoundRow::Step& s : row_->steps)
    measured(s.at, [&] { s.loop ? s.loop(s.args) : execute(s.at); });
  for (const RowStore* s : row_->stores) store(*s);
}

void LineRunner::load(const RowLoad& l) {
  const int32_t features = r_.values[l.value].features;
  if (l.viewed()) return load_view(l, features);
  const std::byte* from = rows_of(l.buffer, features, l.dtype);
  const auto n = static_cast<size_t>(valid_) * static_cast<size_t>(features);
  if (at_[l.value] != from) tile_kernels().transpose.load(from, l.dtype, at_[l.value], n);
}

void LineRunner::load_view(const RowLoad& l, int32_t features) {
  const size_t item = item_size(l.dtype);
  const size_t row_bytes = static_cast<size_t>(features) * compute_size(compute_type(l.dtype));
  const ptrdiff_t step = l.view.strides.back() * static_cast<ptrdiff_t>(item);
  const auto* source = static_cast<const std::byte*>(s_.buffers[l.buffer]);
  for_view_runs(l.view, first_, valid_, line_, [&](int64_t at, int64_t row, int64_t n) {
    const std::byte* from = source + at * static_cast<ptrdiff_t>(item);
    std::byte* to = at_[l.value] + static_cast<size_t>(row) * row_bytes;
    for (int64_t r = 0; r < n; ++r, from += step, to += row_bytes)
      load_run(from, l.dtype, 1, to, static_cast<size_t>(features));
  });
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
        const MapRuns& runs = p_.runs[static_cast<size_t>(i.map)];
        const S* from = reinterpret_cast<const S*>(at_[i.operand[0].value]);
        S* to = reinterpret_cast<S*>(at_[i.dst]);
        for (int32_t r = 0; r < valid_; ++r, from += pitch, to += i.features)
          take(from, runs, r_.maps[i.map], to);
      });
    }
    case TileOp::Scatter:
      return scatter(i);
    case TileOp::FeatureReduce:
      return reduce_features(at);
    case TileOp::RowReduce:
      return add_rows(at);
    case TileOp::Surround:  // of the only row, which has been bound
    case TileOp::Product:
    case TileOp::WeightGrad:
      fail(ErrorKind::Runtime, "no instruction for a tile of lines");
  }
}

/// Over all elements of the tile as one feature; with lines, over those of a few rows at a time.
/// (Lanes of a last vector hang over into room.)
void LineRunner::loop(size_t at) {
  const Instruction& i = r_.program[at];
  bool lined = false;
  for (int k = 0; k < i.operand_count; ++k) {
    if (is_column(i, k, r_.rows == 1)) return loop_by_rows(at);
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
  } else if (is_column(i, k, r_.rows == 1)) {
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
  a.features = valid_, a.rows = whole_vectors(i.features), a.pitch = i.features;
  for (int k = 0; k < i.operand_count; ++k) bind_rows(a, at, k);
  p_.loops[at](a);
}

void LineRunner::scatter(const Instruction& i) {
  const Operand& o = i.operand[0];
  const int32_t pitch = o.uniform ? 0 : r_.values[o.value].features;
  by_item(r_.values[i.dst].type, [&](auto item) {
    using S = decltype(item);
    S* to = reinterpret_cast<S*>(at_[i.dst]);
    const S* from = reinterpret_cast<const S*>(o.uniform ? number(o) : at_[o.value]);
    if (!o.uniform) from += o.base;
    if (i.zero) std::fill_n(to, static_cast<ptrdiff_t>(valid_) * i.features, S(0));
    for (int32_t r = 0; r < valid_; ++r, to += i.features, from += pitch)
      for (const MapRun& run : p_.runs[static_cast<size_t>(i.map)]) {
        const S* x = from + static_cast<ptrdiff_t>(run.at) * o.stride;
        S* z = to + run.first;
        if (run.step == 1)
          take(x, o.stride, z, run.n);
        else
          for (ptrdiff_t f = 0; f < run.n; ++f) z[f * run.step] = x[f * o.stride];
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
  const int32_t apart = spacing(p_.runs[static_cast<size_t>(i.map2)]);
  const WholeKernels& k = whole_kernels();
  const auto inner = static_cast<size_t>(i.inner);
  if (map == Mapped::Itself && i.features > 1 && apart != 0 &&
      spacing(p_.runs[static_cast<size_t>(i.map)]) == 1) {
    const auto size = static_cast<ptrdiff_t>(compute_size(i.type));
    const std::byte* x = at_[o.value] + (o.base + step[0] + base[0]) * size;
    std::byte* y = at_[i.dst];
    for (int32_t r = 0; r < valid_; ++r, x += pitch * size, y += i.features * size)
      k.reduce_rows(i.combine, i.type, x, apart, inner, y, static_cast<size_t>(i.features));
    return;
  }
  const DType dtype = dtype_of(i.type);
  by_accumulator(i.combine, i.type, [&](auto wide, auto narrow) {
    using A = decltype(wide);
    using T = decltype(narrow);
    const T* line = reinterpret_cast<const T*>(at_[o.value]) + o.base;
    T* to = reinterpret_cast<T*>(at_[i.dst]);
    A* const sums = reinterpret_cast<A*>(slot(0));
    const auto features = static_cast<size_t>(i.features);
    for (int32_t r = 0; r < valid_; ++r, line += pitch, to += i.features) {
      std::fill_n(sums, features, identity<A>(i.combine));
      const T* x = line + step[0];
      if (map != Mapped::Itself) {
        for (size_t f = 0; f < features; ++f)
          k.sum_mapped(map, dtype, x + base[f], inner, other, &sums[f]);
      } else if (apart == 1 && i.inner >= kShortLine) {
        for (size_t f = 0; f < features; ++f)
          k.fold(i.combine, dtype, x + base[f], inner, &sums[f]);
      } else {
        size_t done = 0;
        auto combine_until = [&](size_t f) {
          if (f > done)
            combine_each(i.combine, line, base.data() + done, step, sums + done, f - done);
        };
        for (const MapRun& run : p_.runs[static_cast<size_t>(i.map)]) {  // features side by side
          if (apart == 0 || run.step != 1 || run.n < kShortLine) continue;
          const auto at = static_cast<size_t>(run.at);
          combine_until(at);
          done = at + static_cast<size_t>(run.n);
          k.fold_rows(i.combine, dtype, x + run.first, apart, inner, &sums[at], done - at);
        }
        combine_until(features);
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

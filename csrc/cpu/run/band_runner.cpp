#include "cpu/run/band_runner.h"

#include <algorithm>
#include <chrono>

#include "cpu/run/view_load.h"

namespace gradcell::cpu {

using Kind = Bands::Kind;

namespace {

struct Quotient {
  int64_t whole, rest;
};
/// a / b of numbers that are not negative: of small ones, as most are, in a third of the time.
Quotient divided(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) {
    const auto x = known<uint32_t>(a), y = known<uint32_t>(b);
    return {x / y, x % y};
  }
  return {a / b, a % b};
}

}  // namespace

BandRunner::BandRunner(const RegionRun& run, const RunState& s)
    : r_(*run.region), p_(*run.program), b_(*run.program->bands), run_(run), s_(s) {
  capacity_ = (b_.height * b_.piece + kLanes - 1) / kLanes * kLanes;
  const size_t values = rounded(r_.values.size() * sizeof *places_);
  const size_t loads = rounded(r_.loads.size() * sizeof *sources_);
  std::byte* const all =
      worker_scratch(values + loads + r_.row_bytes * static_cast<size_t>(capacity_));
  places_ = reinterpret_cast<Place*>(all);
  sources_ = reinterpret_cast<Place*>(all + values);
  scratch_ = all + values + loads;
}

bool BandRunner::suits(const RegionRun& run, const RunState& s) {
  if (!run.program->bands->overlaps()) return true;
  return std::ranges::none_of(run.region->stores, [&](const RowStore& store) {
    return std::ranges::any_of(run.region->loads, [&](const RowLoad& l) {
      return s.buffers[l.buffer] == s.buffers[store.buffer];
    });
  });
}

void BandRunner::chunk(int32_t c) {
  const int64_t pieces = b_.pieces(), all = r_.rows / b_.length * pieces;
  const int64_t end = all * (c + 1) / p_.chunks;
  for (int64_t unit = all * c / p_.chunks; unit < end;) {
    const auto [line, part] = divided(unit, pieces);
    const int64_t column = part * b_.piece;
    unit += band(line, pieces > 1 ? 1 : end - unit, column, std::min(b_.piece, b_.length - column));
  }
}

/// Where a view's element is, the next line's is, and how many lines go on so.
BandRunner::Place BandRunner::find(const RowLoad& l, int64_t element, int64_t& lines) const {
  const View& v = l.view;
  size_t k = v.dims.size() - 1;
  auto [rest, inside] = divided(element, v.dims[k]);
  int64_t at = v.offset + inside * v.strides[k], pitch = 0;
  if (v.dims[k] > b_.length) {
    pitch = b_.length * v.strides[k];
    lines = std::min(lines, divided(v.dims[k] - inside + b_.length - 1, b_.length).whole);
  } else if (k > 0) {
    pitch = v.strides[k - 1];
  }
  for (bool next = v.dims[k] == b_.length; k-- > 0; next = false) {
    const auto [outer, digit] = divided(rest, v.dims[k]);
    if (next) lines = std::min(lines, v.dims[k] - digit);
    at += digit * v.strides[k];
    rest = outer;
  }
  return {static_cast<std::byte*>(s_.buffers[l.buffer]) +
              at * static_cast<ptrdiff_t>(item_size(l.dtype)),
          pitch};
}

int64_t BandRunner::band(int64_t line, int64_t most, int64_t column, int64_t count) {
  const int64_t first = line * b_.length + column;
  line_ = line, lines_ = std::min(most, b_.height);
  for (uint32_t v = 0; v < r_.values.size(); ++v)
    places_[v] = {scratch_ + r_.values[v].offset * static_cast<size_t>(capacity_), count};
  for (size_t at = 0; at < r_.loads.size(); ++at) {
    const RowLoad& l = r_.loads[at];
    sources_[at] = l.viewed() ? find(l, first, lines_)
                              : Place{static_cast<std::byte*>(s_.buffers[l.buffer]) +
                                          static_cast<size_t>(first) * item_size(l.dtype),
                                      b_.length};
    const Kind kind = b_.kinds[l.value];
    if (kind != Kind::Copied) places_[l.value] = sources_[at];
  }
  for (const RowStore& s : r_.stores)
    if (b_.kinds[s.from.value] == Kind::Stored &&
        &s - r_.stores.data() == r_.values[s.from.value].direct_out)
      places_[s.from.value] = {static_cast<std::byte*>(s_.buffers[s.buffer]) +
                                   static_cast<size_t>(first) * item_size(s.dtype),
                               b_.length};
  const int64_t whole = count / kLanes * kLanes;
  columns(0, narrow<int32_t>(whole), column);
  if (whole < count) columns(count - kLanes, kLanes, column);
  return lines_;
}

/// Columns [from, from + count) of the band's, whose first one is `column` of its lines.
void BandRunner::columns(int64_t from, int32_t count, int64_t column) {
  for (const RowLoad& l : r_.loads)
    if (b_.kinds[l.value] == Kind::Copied) load(l, from, count);
  LoopArgs a;
  a.features = narrow<int32_t>(lines_);
  a.rows = count;
  for (size_t at = 0; at < r_.program.size(); ++at) {
    const Instruction& i = r_.program[at];
    a.d = element(i.dst, 0, from);
    a.pitch = places_[i.dst].pitch;
    for (int k = 0; k < i.operand_count; ++k) {
      const Operand& o = i.operand[k];
      if (o.uniform) {
        a.p[k] = run_.uniforms + p_.uniforms[o.value] +
                 static_cast<size_t>(o.base) * compute_size(r_.uniforms[o.value].type);
        a.s[k] = 0;
      } else {
        a.p[k] = element(o.value, 0, b_.kinds[o.value] == Kind::Repeated ? 0 : from);
        a.s[k] = places_[o.value].pitch;
      }
    }
    if (!seconds_) {
      b_.loops[at](a);
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    b_.loops[at](a);
    seconds_[at] += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  for (const RowStore& s : r_.stores)
    if (b_.kinds[s.from.value] != Kind::Stored ||
        &s - r_.stores.data() != r_.values[s.from.value].direct_out)
      store(s, from, count, column);
}

std::byte* BandRunner::element(uint32_t value, int64_t line, int64_t column) const {
  const Place& p = places_[value];
  return p.at +
         (line * p.pitch + column) * static_cast<ptrdiff_t>(compute_size(r_.values[value].type));
}

void BandRunner::load(const RowLoad& l, int64_t from, int32_t count) {
  const Place& source = sources_[static_cast<size_t>(&l - r_.loads.data())];
  const int64_t step = l.viewed() ? l.view.strides.back() : 1;
  const auto item = static_cast<ptrdiff_t>(item_size(l.dtype));
  for (int64_t i = 0; i < lines_; ++i)
    load_run(source.at + (i * source.pitch + from * step) * item, l.dtype, step,
             element(l.value, i, from), static_cast<size_t>(count));
}

void BandRunner::store(const RowStore& s, int64_t from, int32_t count, int64_t column) {
  auto* const to = static_cast<std::byte*>(s_.buffers[s.buffer]);
  for (int64_t i = 0; i < lines_; ++i) {
    const int64_t at = (line_ + i) * b_.length + column + from;
    tile_kernels().transpose.store(element(s.from.value, i, from), s.dtype,
                                   to + static_cast<size_t>(at) * item_size(s.dtype),
                                   static_cast<size_t>(count));
  }
}

}  // namespace gradcell::cpu

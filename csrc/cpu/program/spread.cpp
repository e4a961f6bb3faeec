#include "cpu/program/spread.h"

#include <algorithm>
#include <optional>

#include "cpu/program/lines.h"

namespace gradcell::cpu {

namespace {

/// Whether an instruction is a loop over lines that can read its k-th operand as s says: parts are
/// whole vectors of neighbours or of one number.
bool lines_read(const Instruction& i, int k, const Spread& s, const TileProgram& p) {
  if (s.n % kLanes != 0 || (s.step != 0 && s.step != 1)) return false;
  bool varies = s.step == 1;
  for (int n = 0; n < i.operand_count; ++n) {
    const Operand& o = i.operand[n];
    if (n != k && !o.uniform && o.stride != 0 && o.stride != 1) return false;
    const bool first = i.kind == TileOp::Choose ? n == 0 : true;  // its loops have one that varies
    const bool line = o.uniform ? is_line(o, i.features) : o.stride == 1;
    const Spread* other = spread_of(p, o);
    if (n != k && first && line && !(other && other->step == 0)) varies = true;
  }
  return varies && (s.step == 1 || i.kind == TileOp::Elementwise || i.kind == TileOp::Choose);
}

/// Whether an instruction is a loop that can read its k-th operand as s says.
bool reads_spread(const Instruction& i, int k, const Spread& s, const TileProgram& p) {
  if (!is_loop(i) || i.kind == TileOp::Narrow) return false;
  if (i.operand[k].base != 0 || i.operand[k].stride != 1 || i.features % s.n != 0) return false;
  for (int n = 0; n < i.operand_count; ++n)
    if (const Spread* other = spread_of(p, i.operand[n]); n != k && other && other->n != s.n)
      return false;
  return !p.lines || lines_read(i, k, s, p);
}

const auto of(uint32_t value) {
  return [value](const Operand& o) { return !o.uniform && o.value == value; };
}

bool overlap(const Region& r, uint32_t a, uint32_t b) {
  const TileValue &x = r.values[a], &y = r.values[b];
  return x.begin() < y.end() && y.begin() < x.end();
}

int64_t uses(const Region& r, uint32_t value) {
  int64_t n = std::ranges::count_if(r.stores, of(value), &RowStore::from);
  for (const Instruction& i : r.program)
    n += std::count_if(i.operand, i.operand + i.operand_count, of(value));
  return n;
}

/// Where a sum finds the k-th factor of products that an instruction would make; nothing: not at
/// the sum of a place of the result and one of the term.
std::optional<SumOfProducts::Factor> factor_of(const Region& r, const TileProgram& p,
                                               const Instruction& made, int k,
                                               const Instruction& sum) {
  const Operand& o = made.operand[k];
  const Spread* const s = spread_of(p, o);
  const auto at = [&](int32_t f) { return s ? (*s)[f] : o.base + f * o.stride; };
  const auto &base = r.maps[static_cast<size_t>(sum.map)],
             &step = r.maps[static_cast<size_t>(sum.map2)];
  SumOfProducts::Factor f{s ? s->value : o.value, {}, {}};
  for (const int32_t b : base) f.base.push_back(at(b + step[0]));
  for (const int32_t t : step) f.step.push_back(at(base[0] + t) - f.base[0]);
  for (size_t m = 0; m < base.size(); ++m)
    for (size_t n = 0; n < step.size(); ++n)
      if (at(base[m] + step[n]) != f.base[m] + f.step[n]) return {};
  if (overlap(r, sum.dst, f.value)) return {};
  return f;
}

/// Finds sums over features that can make the products that they add up, which nothing else needs.
void find_products(const Region& r, TileProgram& p) {
  for (size_t at = 1; at < r.program.size(); ++at) {
    const Instruction &sum = r.program[at], &made = r.program[at - 1];
    if (sum.kind != TileOp::FeatureReduce || sum.combine != Combine::Sum ||
        !is_product_of_values(made) || !of(made.dst)(sum.operand[0]) || sum.operand[0].base != 0 ||
        uses(r, made.dst) != 1)
      continue;
    SumOfProducts products;
    for (int k = 0; k < made.operand_count; ++k)
      if (auto f = factor_of(r, p, made, k, sum)) products.factors.push_back(std::move(*f));
    if (narrow<int>(products.factors.size()) < made.operand_count) continue;
    p.taken[at].products = narrow<int32_t>(p.products.size());
    p.products.push_back(std::move(products));
    p.taken[at - 1].dropped = true;
    p.loops[at - 1] = nullptr;
  }
}

}  // namespace

void find_spread(const Region& r, TileProgram& p) {
  for (size_t at = 0; at < r.program.size(); ++at) {
    const Instruction& copy = r.program[at];
    if (copy.kind != TileOp::Copy || copy.map < 0) continue;
    const uint32_t from = copy.operand[0].value;
    const auto map = nested(r.maps[static_cast<size_t>(copy.map)]);
    if (!map) continue;
    const Spread s{*map, from};
    bool fits = std::ranges::none_of(r.stores, of(copy.dst), &RowStore::from) &&
                std::ranges::none_of(p.direct, [&](const auto& d) { return d.value == from; });
    bool there = true;
    for (size_t k = at + 1; k < r.program.size() && fits; ++k) {
      const Instruction& i = r.program[k];
      if (!accumulates(i)) there &= !overlap(r, i.dst, from);
      for (int n = 0; n < i.operand_count; ++n)
        if (of(copy.dst)(i.operand[n]))
          fits &= there && !p.taken[k].dropped && reads_spread(i, n, s, p);
    }
    if (fits) p.spread[copy.dst] = s, p.taken[at].dropped = true;
  }
  if (p.lines) return;
  for (const Instruction& i : r.program) {
    int32_t n = 0;
    for (int k = 0; k < i.operand_count; ++k)
      if (const Spread* s = spread_of(p, i.operand[k])) n = s->n;
    p.nested.push_back(n);
  }
  find_products(r, p);
}

}  // namespace gradcell::cpu

#include "plan/chains.h"

#include <algorithm>

namespace gradcell {

namespace {

bool exact(DType t) { return t == DType::Float32 || t == DType::Float64; }

bool is_link(const Instruction& i) {
  if (!exact(i.dtype)) return false;
  if (i.kind == TileOp::Chain) return true;
  return i.kind == TileOp::Elementwise &&
         (i.op == Op::Add || i.op == Op::Sub || i.op == Op::Mul || i.op == Op::Square);
}

bool dense(const Operand& o) { return !o.uniform && o.base == 0 && o.stride == 1; }

Link link_of(Op op, bool reversed) {
  if (op == Op::Add) return Link::Add;
  if (op == Op::Mul) return Link::Mul;
  return reversed ? Link::ReverseSub : Link::Sub;
}

/// The instruction as a chain; false if it cannot start one (a uniform operand where none may be).
bool as_chain(const Instruction& from, Instruction& to) {
  to = from;
  if (from.kind == TileOp::Chain) return true;
  if (from.operand[0].uniform || (from.op != Op::Square && from.operand[1].uniform)) return false;
  to.kind = TileOp::Chain;
  if (from.op == Op::Square) {
    to.operand[1] = to.operand[0];
    to.operand_count = 2;
  }
  to.links[0] = from.op == Op::Square ? Link::Mul : link_of(from.op, false);
  return true;
}

}  // namespace

void form_chains(Region& region) {
  auto& program = region.program;
  std::vector<int32_t> uses(region.values.size(), 0), maker(region.values.size(), -1);
  std::vector<uint8_t> pinned(region.values.size(), 0);
  for (size_t at = 0; at < program.size(); ++at) {
    const Instruction& i = program[at];
    for (int k = 0; k < i.operand_count; ++k)
      if (!i.operand[k].uniform) ++uses[i.operand[k].value];
    if (accumulates(i)) continue;
    if (maker[i.dst] >= 0) pinned[i.dst] = 1;  // written by several instructions
    maker[i.dst] = static_cast<int32_t>(at);
  }
  for (const RowStore& s : region.stores)
    if (!s.from.uniform) pinned[s.from.value] = 1;
  for (const RowLoad& l : region.loads) pinned[l.value] = 1;

  std::vector<uint8_t> dropped(program.size(), 0);
  for (Instruction& i : program) {
    if (i.kind != TileOp::Elementwise || !is_link(i) || i.op == Op::Square) continue;
    for (int k : {0, 1}) {
      const Operand& inner = i.operand[k];
      const Operand other = i.operand[1 - k];
      if (!dense(inner) || uses[inner.value] != 1 || pinned[inner.value] || maker[inner.value] < 0)
        continue;
      const Instruction& made = program[maker[inner.value]];
      Instruction chain;
      if (!is_link(made) || made.features != i.features || made.operand_count >= kMaxChain ||
          !as_chain(made, chain))
        continue;
      // A uniform operand may only end a chain, and only a short one.
      bool ends = std::any_of(chain.operand, chain.operand + chain.operand_count,
                              [](const Operand& o) { return o.uniform; });
      if (ends || (other.uniform && chain.operand_count > 2)) continue;
      dropped[maker[inner.value]] = 1;
      chain.links[chain.operand_count - 1] = link_of(i.op, k == 1);
      chain.operand[chain.operand_count++] = other;
      chain.dst = i.dst;
      chain.location = i.location;
      i = chain;
      break;
    }
  }
  erase_marked(program, dropped);
}

}  // namespace gradcell

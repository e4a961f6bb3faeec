#include "plan/chains.h"

#include <algorithm>

#include "plan/uses.h"

namespace gradcell {

namespace {

bool is_link(const Instruction& i) {
  if (!exact(i.dtype)) return false;
  if (i.kind == TileOp::Chain) return true;
  return i.kind == TileOp::Elementwise &&
         (i.op == Op::Add || i.op == Op::Sub || i.op == Op::Mul || i.op == Op::Square);
}

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
  const Uses uses(region);
  std::vector<uint8_t> dropped(program.size(), 0);
  for (Instruction& i : program) {
    if (i.kind != TileOp::Elementwise || !is_link(i) || i.op == Op::Square) continue;
    for (int k : {0, 1}) {
      const int32_t maker = uses.only_for(i.operand[k]);
      const Operand other = i.operand[1 - k];
      if (maker < 0) continue;
      const Instruction& made = program[static_cast<size_t>(maker)];
      Instruction chain;
      if (!is_link(made) || made.features != i.features || made.operand_count >= kMaxChain ||
          !as_chain(made, chain))
        continue;
      // A uniform operand may only end a chain, and only a short one.
      bool ends = std::any_of(chain.operand, chain.operand + chain.operand_count,
                              [](const Operand& o) { return o.uniform; });
      if (ends || (other.uniform && chain.operand_count > 2)) continue;
      dropped[static_cast<size_t>(maker)] = 1;
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

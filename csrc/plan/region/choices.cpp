#include "plan/joining.h"

#include <utility>

#include "plan/region/uses.h"

namespace gradcell {

namespace {

/// b op' a for a op b.
Op mirrored(Op comparison) {
  switch (comparison) {
    case Op::Less:
      return Op::Greater;
    case Op::LessEqual:
      return Op::GreaterEqual;
    case Op::Greater:
      return Op::Less;
    case Op::GreaterEqual:
      return Op::LessEqual;
    default:
      return comparison;
  }
}

}  // namespace

void form_choices(Region& region) {
  auto& program = region.program;
  const Uses uses(region);
  std::vector<uint8_t> dropped(program.size(), 0);
  for (Instruction& i : program) {
    if (i.kind != TileOp::Elementwise || i.op != Op::Select || !exact(i.dtype)) continue;
    const int32_t maker = uses.only_for(i.operand[0]);
    if (maker < 0) continue;
    const Instruction& made = program[static_cast<size_t>(maker)];
    const bool compares = info(made.op).kind == OpKind::Compare || made.op == Op::IsNan;
    if (made.kind != TileOp::Elementwise || !compares || made.type != i.type ||
        made.features != i.features)
      continue;
    i.kind = TileOp::Choose;
    i.op = made.op;
    i.operand[3] = i.operand[2], i.operand[2] = i.operand[1];
    i.operand[0] = made.operand[0];
    i.operand[1] = made.operand[made.op == Op::IsNan ? 0 : 1];
    if (made.op == Op::IsNan) i.op = Op::NotEqual;  // of it and itself
    i.operand_count = 4;
    if (i.operand[0].uniform) {
      std::swap(i.operand[0], i.operand[1]);
      i.op = mirrored(i.op);
    }
    dropped[static_cast<size_t>(maker)] = 1;
  }
  erase_marked(program, dropped);
}

}  // namespace gradcell

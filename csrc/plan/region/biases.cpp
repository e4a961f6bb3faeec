#include "plan/joining.h"

#include "plan/region/uses.h"

namespace gradcell {

namespace {

bool is_bias(const Operand& o, int32_t features) {
  return o.uniform && (o.stride == 1 || features == 1);
}

}  // namespace

void fold_biases(Region& region) {
  auto& program = region.program;
  const Uses uses(region);
  std::vector<uint8_t> dropped(program.size(), 0);
  for (Instruction& i : program) {
    if (i.kind != TileOp::Elementwise || i.op != Op::Add || !exact(i.dtype)) continue;
    for (int k : {0, 1}) {
      const int32_t maker = uses.only_for(i.operand[k]);
      const Operand bias = i.operand[1 - k];
      if (maker < 0 || !is_bias(bias, i.features)) continue;
      const Instruction& made = program[static_cast<size_t>(maker)];
      if (made.kind != TileOp::Product || made.features != i.features || made.operand_count > 1)
        continue;
      dropped[static_cast<size_t>(maker)] = 1;
      const uint32_t dst = i.dst;
      i = made;
      i.dst = dst;
      i.operand[i.operand_count++] = bias;
      break;
    }
  }
  erase_marked(program, dropped);
}

}  // namespace gradcell

#include "plan/joining.h"

#include <algorithm>
#include <array>

#include "plan/region/uses.h"

namespace gradcell {

namespace {

bool is_link(const Instruction& i) {
  return i.kind == TileOp::Elementwise && exact(i.dtype) &&
         (i.op == Op::Add || i.op == Op::Sub || i.op == Op::Mul || i.op == Op::Square);
}

Link link_of(Op op, bool reversed) {
  if (op == Op::Add) return Link::Add;
  if (op == Op::Mul) return Link::Mul;
  return reversed ? Link::ReverseSub : Link::Sub;
}

/// What a chain looks like whose last op is a given instruction.
enum Written {
  kAlone,
  kTwo,         ///< ops, without uniform operands
  kTwoUniform,  ///< the last operand is uniform
  kThree,
  kForms
};

class ChainFormer {
 public:
  explicit ChainFormer(Region& region)
      : program_(region.program), uses_(region), best_(program_.size()) {}

  void run() {
    for (size_t at = 0; at < program_.size(); ++at)
      if (is_link(program_[at])) weigh(at);
    std::vector<uint8_t> dropped(program_.size(), 0);
    for (size_t at = program_.size(); at-- > 0;) {
      if (dropped[at] || !is_link(program_[at])) continue;
      const Written form = best_[at].cheapest();
      if (form != kAlone) form_chain(at, form, dropped);
    }
    erase_marked(program_, dropped);
  }

 private:
  static constexpr int kNever = 1 << 20;

  /// The fewest instructions for all links that end in this one, by the form of its own chain, and
  /// which operand that chain comes from.
  struct Best {
    std::array<int, kForms> count{kNever, kNever, kNever, kNever};
    std::array<int, kForms> from{};
    Written cheapest() const {
      return static_cast<Written>(std::min_element(count.begin(), count.end()) - count.begin());
    }
    int least() const { return count[cheapest()]; }
  };

  /// The link whose result is operand k and nothing else; -1: none.
  int32_t link_before(const Instruction& i, int k) const {
    const int32_t maker = uses_.only_for(i.operand[k]);
    if (maker < 0) return -1;
    const Instruction& made = program_[static_cast<size_t>(maker)];
    return is_link(made) && made.features == i.features ? maker : -1;
  }

  void weigh(size_t at) {
    const Instruction& i = program_[at];
    Best& best = best_[at];
    std::array<int32_t, 2> before{-1, -1};
    int all = 0;
    for (int k = 0; k < i.operand_count; ++k) {
      before[k] = link_before(i, k);
      if (before[k] >= 0) all += best_[before[k]].least();
    }
    best.count[kAlone] = 1 + all;
    if (i.op == Op::Square) return;  // uses its operand twice
    for (int k : {0, 1}) {
      if (before[k] < 0) continue;
      const Best& made = best_[before[k]];
      const int others = all - made.least();
      const bool uniform = i.operand[1 - k].uniform;
      auto offer = [&](Written form, int count) {
        if (count + others >= best.count[form]) return;
        best.count[form] = count + others;
        best.from[form] = k;
      };
      if (!has_uniform(program_[before[k]]))
        offer(uniform ? kTwoUniform : kTwo, made.count[kAlone]);
      if (!uniform) offer(kThree, made.count[kTwo]);
    }
  }

  static bool has_uniform(const Instruction& i) {
    return std::any_of(i.operand, i.operand + i.operand_count,
                       [](const Operand& o) { return o.uniform; });
  }

  /// Makes one instruction of a chain that ends at `at`.
  void form_chain(size_t at, Written form, std::vector<uint8_t>& dropped) {
    Instruction& last = program_[at];
    const int k = best_[at].from[form];
    const auto before = static_cast<size_t>(uses_.only_for(last.operand[k]));
    Instruction chain = program_[before];
    if (form == kThree) {
      form_chain(before, kTwo, dropped);
      chain = program_[before];
    } else {
      chain.kind = TileOp::Chain;
      chain.links[0] = chain.op == Op::Square ? Link::Mul : link_of(chain.op, false);
      if (chain.op == Op::Square) chain.operand[chain.operand_count++] = chain.operand[0];
    }
    dropped[before] = 1;
    chain.links[chain.operand_count - 1] = link_of(last.op, k == 1);
    chain.operand[chain.operand_count++] = last.operand[1 - k];
    chain.op = last.op;
    chain.dst = last.dst;
    chain.location = last.location;
    last = chain;
  }

  std::vector<Instruction>& program_;
  const Uses uses_;
  std::vector<Best> best_;
};

}  // namespace

void form_chains(Region& region) { ChainFormer(region).run(); }

}  // namespace gradcell

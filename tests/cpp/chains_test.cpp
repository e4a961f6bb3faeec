// Chains of sums, differences and products: as few instructions as can be, and bit for bit what the
// ops give one by one.
#include "ops/ops.h"
#include "plan/joining.h"

#include <gtest/gtest.h>

#include <random>

#include "evaluate.h"
#include "plan/planner.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

class Chains : public ::testing::TestWithParam<DType> {
 protected:
  static constexpr int64_t kRows = 1003;
  Graph g;
  Leaves leaves;

  NodeId values() { return odd_leaf(g, leaves, GetParam(), kRows); }
  NodeId number(double x) { return constant(g, GetParam(), Dims{kRows}, x); }
  NodeId op(Op o, NodeId a, NodeId b) { return binary(g, o, a, b); }
  NodeId add(NodeId a, NodeId b) { return op(Op::Add, a, b); }
  NodeId sub(NodeId a, NodeId b) { return op(Op::Sub, a, b); }
  NodeId mul(NodeId a, NodeId b) { return op(Op::Mul, a, b); }

  /// How many instructions the root's plan has; its result was compared.
  size_t check(NodeId root) {
    expect_close(run(g, root, leaves), interpret(g, root, leaves), 0);
    const NodeId roots[] = {root};
    return make_plan(g, live_nodes(g, roots), roots, {}).stages[0].regions[0].program.size();
  }
};

TEST_P(Chains, HoldFourOperands) {
  NodeId a = values(), b = values(), c = values(), d = values(), e = values();
  EXPECT_EQ(check(add(mul(a, b), c)), 1u);
  EXPECT_EQ(check(sub(d, add(mul(a, b), c))), 1u);
  EXPECT_EQ(check(sub(sub(d, add(mul(a, b), c)), e)), 2u);
  EXPECT_EQ(check(sub(unary(g, Op::Square, a), number(1))), 1u);
}

/// The path through the longer branch would leave four.
TEST_P(Chains, GoThroughTheBranchThatLeavesFewest) {
  NodeId a = values(), b = values(), c = values(), d = values(), e = values(), f = values();
  NodeId sum = add(add(mul(a, b), c), mul(d, e));
  NodeId deeper = mul(add(sub(f, mul(sum, a)), b), c);
  EXPECT_EQ(check(deeper), 3u);
}

TEST_P(Chains, AUniformOperandOnlyEndsShortOnes) {
  NodeId a = values(), b = values(), c = values();
  EXPECT_EQ(check(mul(mul(a, b), number(3))), 1u);
  EXPECT_EQ(check(mul(add(mul(a, b), c), number(3))), 2u);
  EXPECT_EQ(check(sub(mul(a, number(3)), mul(b, c))), 2u);
}

TEST_P(Chains, WhatIsUsedTwiceIsMadeOnce) {
  NodeId a = values(), b = values(), c = values();
  NodeId product = mul(a, b);
  EXPECT_EQ(check(mul(add(product, c), product)), 2u);
}

TEST_P(Chains, OfRandomTrees) {
  std::mt19937 random(3);
  std::vector<NodeId> inputs;
  for (int i = 0; i < 4; ++i) inputs.push_back(values());
  inputs.push_back(number(0.75));
  auto pick = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  for (int tree = 0; tree < 60; ++tree) {
    std::vector<NodeId> made(inputs.begin(), inputs.end() - 1);
    for (int i = 0; i < 12; ++i) {
      const Op ops[] = {Op::Add, Op::Sub, Op::Mul};
      // Mostly the newest result with an input, so that there are long chains.
      NodeId left = pick(3) > 0 ? made.back() : made[pick(made.size())];
      NodeId right = pick(3) > 0 ? inputs[pick(inputs.size())] : made[pick(made.size())];
      if (pick(2) > 0) std::swap(left, right);
      made.push_back(pick(8) == 0 ? unary(g, Op::Square, left) : op(ops[pick(3)], left, right));
    }
    if (g[made.back()].op == Op::Leaf || g[made.back()].op == Op::Const) continue;
    SCOPED_TRACE(tree);
    EXPECT_GT(check(made.back()), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Chains, ::testing::Values(DType::Float32, DType::Float64),
                         [](const auto& i) { return std::string(name(i.param)); });

}  // namespace
}  // namespace gradcell

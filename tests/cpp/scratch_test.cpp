// The order of a tile program and where its values lie: little is kept, nothing is lost.
#include "plan/region/scratch.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include "evaluate.h"
#include "plan/planner.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

class ScratchOf : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 133;
  Graph g;
  Leaves leaves;

  NodeId input(Dims dims) { return random_leaf(g, leaves, DType::Float64, dims); }
  NodeId op(Op o, NodeId a, NodeId b) { return binary(g, o, a, b); }

  /// Of the first region of the roots' plan; the results were compared.
  Region check(const std::vector<NodeId>& roots) {
    std::vector<Array> got = run(g, roots, leaves);
    for (size_t i = 0; i < roots.size(); ++i)
      expect_close(got[i], interpret(g, roots[i], leaves), 1e-12);
    return make_plan(g, live_nodes(g, roots), roots, {}).stages[0].regions[0];
  }
};

TEST_F(ScratchOf, OpsRunInPlace) {
  NodeId y = input(Dims{kRows, 6});
  for (Op o : {Op::Exp, Op::Sin, Op::Tanh, Op::Abs}) y = unary(g, o, y);
  EXPECT_EQ(check({y}).row_bytes, sizeof(double)) << "elements are rows of one feature";
}

TEST_F(ScratchOf, WhatIsReadAgainIsNotWrittenOver) {
  NodeId x = input(Dims{kRows, 6}), v = unary(g, Op::Exp, x);
  EXPECT_EQ(check({op(Op::Mul, unary(g, Op::Sin, v), v)}).row_bytes, 2 * sizeof(double));
}

/// One feature is read for all features of the result: the first one must stay until the last.
TEST_F(ScratchOf, AFeatureForAllIsNotWrittenOver) {
  NodeId x = input(Dims{kRows, 6}), v = unary(g, Op::Exp, x);
  NodeId first = slice(g, v, {Dims{0, 0}, Dims{kRows, 1}, Dims{1, 1}});
  NodeId y = op(Op::Sub, v, broadcast_to(g, first, Dims{kRows, 6}));
  EXPECT_EQ(check({y}).row_bytes, 2 * 6 * sizeof(double));
}

/// Each pair of factors is needed for the gradient only: none is kept beside the next.
TEST_F(ScratchOf, GradientsAreAddedAtOnce) {
  NodeId sum = kNoNode;
  for (int i = 0; i < 8; ++i) {
    NodeId a = unary(g, Op::Sin, input(Dims{kRows, 5}));
    NodeId b = unary(g, Op::Cos, input(Dims{kRows, 5}));
    NodeId product = matmul(g, a, b, true, false);
    sum = sum == kNoNode ? product : op(Op::Add, sum, product);
  }
  const Region r = check({sum});
  EXPECT_EQ(r.accumulators.size(), 1u);
  // The loaded rows are all there at the start, and every function runs in place.
  EXPECT_EQ(r.row_bytes, 16 * 5 * sizeof(double));
  size_t pending = 0, most = 0;
  for (const Instruction& i : r.program) most = std::max(most, pending += accumulates(i) ? -2 : 1);
  EXPECT_EQ(most, 2u);
}

}  // namespace
}  // namespace gradcell

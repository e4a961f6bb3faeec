#include "ir/verify.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include "plan/planner.h"
#include "plan/verify.h"

namespace gradcell {
namespace {

/// The message of what f throws; empty if it throws nothing.
template <class F>
std::string failure(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind, ErrorKind::Runtime);
    return e.what();
  }
  return "";
}

using List = std::vector<NodeId>;

struct Verify : ::testing::Test {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{2, 3}), i = leaf(g, DType::Int32, Dims{4});

  /// What the verifier says of a node made past the builder.
  std::string says(Op op, DType t, const Dims& dims, const List& in, const Dims& attrs = {}) {
    g.intern(op, t, dims, in, attrs);
    return failure([&] { verify(g, "test"); });
  }
  void expect(const char* part, const std::string& message) {
    EXPECT_NE(message.find(part), std::string::npos) << "got: " << message;
  }
};

TEST_F(Verify, AcceptsWhatTheBuilderMakes) {
  NodeId y = matmul(g, unary(g, Op::Tanh, x), x, false, true);
  y = reduce(g, Combine::Max, y, Dims{1});
  y = concat(g, List{y, y}, 0);
  y = gather(g, y, i, 0);
  y = scatter_add(g, i, y, 0, 9);
  y = gather(g, y, last_writer(g, i, 9), 0);
  y = slice(g, y, {{8}, {3}, {-4}});
  y = slice_scatter(g, y, Dims{9}, Dims{0}, Dims{4});
  y = broadcast_to(g, reshape(g, y, Dims{9, 1}), Dims{9, 5});
  y = select(g, binary(g, Op::Less, y, y), y, unary(g, Op::Neg, y));
  y = cumsum(g, transpose(g, cast(g, y, DType::Float64), Dims{1, 0}), {0, false, true});
  arg_reduce(g, Combine::Min, stop_gradient(g, alias(g, y)), 1);
  random_uniform(g, leaf(g, DType::Int64, Dims{2}), Dims{3});
  iota(g, DType::Int32, Dims{3}, 0);
  EXPECT_EQ(failure([&] { verify(g, "test"); }), "");
}

TEST_F(Verify, NamesThePassAndTheNode) {
  expect("invalid graph after test: %2 = Sin(%0) : float32[3, 3]: its shape follows as [2, 3]",
         says(Op::Sin, DType::Float32, {3, 3}, {x}));
}

TEST_F(Verify, Elementwise) {
  expect("its dtype follows as float32", says(Op::Sin, DType::Float64, {2, 3}, {x}));
}
TEST_F(Verify, InputCount) {
  expect("expected 1 inputs", says(Op::Sin, DType::Float32, {2, 3}, {x, x}));
}
TEST_F(Verify, CompareGivesBool) {
  expect("follows as bool", says(Op::Less, DType::Float32, {2, 3}, {x, x}));
}
TEST_F(Verify, FloatClass) {
  expect("needs a floating dtype, got int32", says(Op::Sin, DType::Int32, {4}, {i}));
}
TEST_F(Verify, MixedShapes) {
  expect("Add: shapes [2, 3] and [4] differ", says(Op::Add, DType::Int32, {4}, {x, i}));
}
TEST_F(Verify, Condition) {
  expect("condition must be bool, got float32",
         says(Op::Select, DType::Float32, {2, 3}, {x, x, x}));
}
TEST_F(Verify, LaterInput) {
  expect("does not come before", says(Op::Neg, DType::Float32, {2, 3}, {2}));
}
TEST_F(Verify, Reshape) {
  expect("cannot take shape [7]", says(Op::Reshape, DType::Float32, {7}, {x}));
}
TEST_F(Verify, Transpose) {
  expect("appears twice", says(Op::Transpose, DType::Float32, {2, 2}, {x}, {0, 0}));
}
TEST_F(Verify, Broadcast) {
  expect("does not broadcast", says(Op::BroadcastTo, DType::Float32, {2, 6}, {x}));
}
TEST_F(Verify, SliceReach) {
  expect("reach outside a tensor of shape [2, 3]",
         says(Op::Slice, DType::Float32, {2, 3}, {x}, {0, 1, 1, 1}));
}
TEST_F(Verify, SliceAttributes) {
  expect("start [0], size [2, 3] and step [1] reach outside",
         says(Op::Slice, DType::Float32, {2, 3}, {x}, {0, 1}));
}
TEST_F(Verify, Scatter) {
  expect("reach outside", says(Op::SliceScatter, DType::Float32, {2, 3}, {x}, {1, 0, 1, 1}));
}
TEST_F(Verify, Concat) {
  expect("its shape follows as [2, 6]", says(Op::Concat, DType::Float32, {4, 3}, {x, x}, {1}));
}
TEST_F(Verify, MatMul) {
  expect("do not multiply", says(Op::MatMul, DType::Float32, {2, 3}, {x, x}, {0, 0}));
}
TEST_F(Verify, Pairs) {
  expect("outside the planner", says(Op::MatMul, DType::Float32, {3, 3}, {x, x, x, x}, {1, 0}));
  EXPECT_EQ(failure([&] { verify(g, "test", 0, GraphStage::Cleaned); }), "");
}
TEST_F(Verify, Axes) {
  expect("not ascending", says(Op::ReduceSum, DType::Float32, {}, {x}, {1, 0}));
}
TEST_F(Verify, AxisRange) {
  expect("axis 2 is out of range", says(Op::ReduceSum, DType::Float32, {2}, {x}, {2}));
}
TEST_F(Verify, ArgReduce) {
  expect("follows as int32", says(Op::ArgMax, DType::Int64, {2}, {x}, {1}));
}
TEST_F(Verify, CumSum) {
  expect("a flag is 2", says(Op::CumSum, DType::Float32, {2, 3}, {x}, {1, 2, 0}));
}
TEST_F(Verify, Gather) {
  expect("indices must be int32 or int64, got float32",
         says(Op::Gather, DType::Float32, {2, 3, 3}, {x, x}, {0}));
}
TEST_F(Verify, ScatterAdd) {
  expect("do not fit", says(Op::ScatterAdd, DType::Float32, {5, 3}, {i, x}, {0, 5}));
}
TEST_F(Verify, LastWriter) {
  expect("indices must be int32 or int64", says(Op::LastWriter, DType::Int64, {2}, {x}, {2}));
}
TEST_F(Verify, LastWriterGivesPositions) {
  expect("follows as int32", says(Op::LastWriter, DType::Int64, {2}, {i}, {2}));
}
TEST_F(Verify, Alias) {
  alias(g, x);
  expect("should be gone", failure([&] { verify(g, "test", 0, GraphStage::Cleaned); }));
}
TEST_F(Verify, Random) {
  expect("must be int64 of shape [2]", says(Op::RandomUniform, DType::Float32, {2}, {i}));
}
TEST_F(Verify, Constant) {
  constant_bits(g, DType::Bool, Dims{}, 2);
  expect("none of its dtype", failure([&] { verify(g, "test"); }));
}

// Plans -----------------------------------------------------------------------------------------

/// (tanh(x w) summed over rows, its transpose): a region with weights, and a call.
Plan example() {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{100, 4}), w = leaf(g, DType::Float32, Dims{4, 5});
  NodeId y = unary(g, Op::Tanh, matmul(g, x, w, false, false));
  NodeId z = unary(g, Op::Exp, binary(g, Op::Add, y, constant(g, DType::Float32, Dims{100, 5}, 3)));
  NodeId roots[] = {reduce(g, Combine::Sum, z, Dims{0}), cumsum(g, z, {0, false, false})};
  return make_plan(g, live_nodes(g, roots), roots, {});
}

struct VerifyPlan : ::testing::Test {
  Plan plan = example();
  Region& region() { return plan.stages[0].regions[0]; }
  std::string says() {
    return failure([&] { verify(plan); });
  }
};

TEST_F(VerifyPlan, AcceptsThePlanners) { EXPECT_EQ(says(), ""); }
TEST_F(VerifyPlan, UndefinedOperand) {
  region().program[0].operand[0].value = static_cast<uint32_t>(region().values.size() - 1);
  EXPECT_NE(says().find("used before it is defined"), std::string::npos) << says();
}
TEST_F(VerifyPlan, FeatureRange) {
  region().program[0].operand[0].base = 1;
  EXPECT_NE(says().find("reads features"), std::string::npos) << says();
}
TEST_F(VerifyPlan, Scratch) {
  region().row_bytes = 8;
  EXPECT_NE(says().find("outside the scratch"), std::string::npos) << says();
}
TEST_F(VerifyPlan, Overlap) {
  for (TileValue& v : region().values) v.offset = 0;
  EXPECT_NE(says().find("overlaps"), std::string::npos) << says();
}
TEST_F(VerifyPlan, Arena) {
  plan.arena_bytes = 1;
  EXPECT_NE(says().find("outside the arena"), std::string::npos) << says();
}
TEST_F(VerifyPlan, StageOrder) {
  std::swap(plan.stages[0], plan.stages[1]);
  EXPECT_NE(says().find("before it is written"), std::string::npos) << says();
}
TEST_F(VerifyPlan, Constants) {
  plan.constants.clear();
  EXPECT_NE(says().find("no constant"), std::string::npos) << says();
}
TEST_F(VerifyPlan, Outputs) {
  plan.stages[1].calls.clear();
  EXPECT_NE(says().find("output 1 is never written"), std::string::npos) << says();
}

}  // namespace
}  // namespace gradcell

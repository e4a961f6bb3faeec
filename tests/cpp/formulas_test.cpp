// Expressions that are one instruction: found in either order of their operands, equal bit by bit
// to the ops one by one, and left alone where something else needs a part of them.
#include "ops/ops.h"
#include "plan/joining.h"

#include <gtest/gtest.h>

#include <cmath>

#include "evaluate.h"
#include "plan/planner.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

class Formulas : public ::testing::TestWithParam<DType> {
 protected:
  static constexpr int64_t kRows = 5003;
  Graph g;
  Leaves leaves;

  NodeId values(double low, double high) {
    return odd_leaf(g, leaves, GetParam(), kRows, low, high);
  }
  NodeId number(double x) {
    NodeId id = leaf(g, GetParam(), Dims{});
    leaves[id] = make_array(GetParam(), Dims{}, {x});
    return broadcast_to(g, id, Dims{kRows});
  }
  NodeId constant_of(double x) { return constant(g, GetParam(), Dims{kRows}, x); }
  NodeId op(Op o, NodeId a, NodeId b) { return binary(g, o, a, b); }

  /// How many instructions the roots' plan has, and whether the results are what they should be.
  std::vector<std::string> check(const std::vector<NodeId>& roots, double tolerance = 0) {
    std::vector<Array> got = run(g, roots, leaves);
    for (size_t i = 0; i < roots.size(); ++i)
      expect_close(got[i], interpret(g, roots[i], leaves), tolerance);
    std::string text = to_text(make_plan(g, live_nodes(g, roots), roots, {}));
    std::vector<std::string> instructions;
    for (size_t at = 0; (at = text.find(" = ", at)) != text.npos; ++at) {
      std::string line = text.substr(at + 3, text.find('\n', at) - at - 3);
      if (line.find(" : ") != line.npos) instructions.push_back(line.substr(0, line.find("  :")));
    }
    return instructions;
  }
};

TEST_P(Formulas, AStepOfAdam) {
  NodeId p = values(-1, 1), m = values(-1, 1), v = values(0, 1), d = values(-2, 2);
  NodeId m1 = op(Op::Add, op(Op::Mul, m, constant_of(0.9)), op(Op::Mul, constant_of(0.1), d));
  NodeId v1 = op(Op::Add, op(Op::Mul, constant_of(0.001), unary(g, Op::Square, d)),
                 op(Op::Mul, v, constant_of(0.999)));
  NodeId root = op(Op::Add, unary(g, Op::Sqrt, v1), constant_of(1e-8));
  NodeId p1 = op(Op::Sub, p, op(Op::Div, op(Op::Mul, number(0.01), m1), root));
  std::vector<std::string> program = check({p1, m1, v1});
  ASSERT_EQ(program.size(), 3u) << ::testing::PrintToString(program);
  EXPECT_TRUE(program[0].starts_with("[a * s + b * t]")) << program[0];
  EXPECT_TRUE(program[1].starts_with("[a * s + b * b * t]")) << program[1];
  EXPECT_TRUE(program[2].starts_with("[c - a * s / (sqrt(b) + t)]")) << program[2];
}

TEST_P(Formulas, AScaledTerm) {
  NodeId a = values(-1, 1), b = values(-1, 1);
  NodeId sum = op(Op::Add, b, op(Op::Mul, a, number(3)));
  NodeId difference = op(Op::Sub, b, op(Op::Mul, number(0.1), a));
  EXPECT_EQ(check({sum}).size(), 1u);
  EXPECT_EQ(check({difference}).size(), 1u);
}

TEST_P(Formulas, Choices) {
  const NodeId a = values(-2, 2), b = values(-2, 2);
  const NodeId zero = constant_of(0), one = constant_of(1), inf = constant_of(INFINITY);
  const NodeId above = op(Op::Greater, a, zero);
  const std::vector<std::string> sloped = check({select(g, above, a, op(Op::Mul, a, b))});
  ASSERT_EQ(sloped.size(), 1u);
  EXPECT_TRUE(sloped[0].starts_with("[where(a > s, a, a * b)]")) << sloped[0];
  const NodeId inside = op(Op::GreaterEqual, a, constant_of(-1));
  const NodeId low = select(g, inside, zero, op(Op::Add, a, one));
  const NodeId shrunk = select(g, op(Op::Greater, a, one), op(Op::Sub, a, one), low);
  EXPECT_EQ(check({shrunk}).size(), 1u);
  NodeId number = select(g, unary(g, Op::IsNan, a), zero, a);
  number = select(g, op(Op::Equal, a, inf), constant_of(5), number);
  number = select(g, op(Op::Equal, a, constant_of(-INFINITY)), constant_of(-5), number);
  EXPECT_EQ(check({number}).size(), 1u);
}

TEST_P(Formulas, Slopes) {
  const NodeId a = values(1.5, 3), b = values(-2, 2), c = values(0.5, 1), one = constant_of(1);
  const NodeId x = op(Op::Mul, a, c), y = op(Op::Mul, b, c);
  const NodeId squares = op(Op::Add, op(Op::Mul, x, x), op(Op::Mul, y, y));
  const NodeId size = op(Op::Maximum, unary(g, Op::Abs, a), unary(g, Op::Abs, b));
  const NodeId within = op(Op::Minimum, op(Op::Maximum, size, constant_of(0.25)), constant_of(2.5));
  const NodeId length = unary(g, Op::Abs, a), far = op(Op::Greater, length, constant_of(2));
  const NodeId root = unary(g, Op::Rsqrt, op(Op::Add, op(Op::Mul, a, a), one));
  const NodeId below = unary(g, Op::Sqrt, op(Op::Sub, a, one));
  const std::pair<NodeId, const char*> slopes[] = {
      {unary(g, Op::Rsqrt, squares), "[rsqrt(a * c * (a * c) + b * c * (b * c))]"},
      {op(Op::Div, one, squares), "[t / (a * c * (a * c) + b * c * (b * c))]"},
      {op(Op::Div, one, within), "[t / minimum(maximum(maximum(abs(a), abs(b)), p), q)]"},
      {select(g, far, op(Op::Div, one, length), root),
       "[where(abs(a) > s, t / abs(a), rsqrt(a * a + t))]"},
      {op(Op::Div, one, op(Op::Mul, below, unary(g, Op::Sqrt, op(Op::Add, a, one)))),
       "[t / (sqrt(a - t) * sqrt(a + t))]"}};
  for (const auto& [slope, text] : slopes) {
    const std::vector<std::string> program = check({slope}, 1e-14);
    ASSERT_EQ(program.size(), 1u) << text;
    EXPECT_TRUE(program[0].starts_with(text)) << program[0];
  }
}

TEST_P(Formulas, APartThatOnlyTheFormulaUsesTwice) {
  const NodeId a = values(-2, 2), b = values(-2, 2), one = constant_of(1), half = constant_of(0.5);
  const NodeId d = op(Op::Sub, a, b), size = unary(g, Op::Abs, d);
  const NodeId near = op(Op::Mul, unary(g, Op::Square, d), half);
  const NodeId y = select(g, op(Op::Less, size, one), near, op(Op::Sub, size, half));
  EXPECT_EQ(check({y}).size(), 1u);
  EXPECT_EQ(check({y, d}).size(), 5u) << "the difference is a result, too";
}

TEST_P(Formulas, AnOperandThatIsALetterToo) {
  // Of a * s + b * b * t: a is what b * b makes, so that it has to stay.
  const NodeId scaled = op(Op::Mul, unary(g, Op::Square, values(-2, 2)), constant_of(0.25));
  check({op(Op::Add, scaled, scaled)});
}

TEST_P(Formulas, Gates) {
  const NodeId a = values(-2, 2);
  for (Op o : {Op::Sigmoid, Op::Ndtr}) {
    const NodeId gate = unary(g, o, a), y = op(Op::Mul, gate, a);
    EXPECT_EQ(check({y}, 1e-6).size(), 1u);
    EXPECT_EQ(check({y, gate}, 1e-6).size(), 2u) << "the gate is a result, too";
    const std::vector<NodeId> alone{y}, both{y, gate};
    expect_close(run(g, alone, leaves)[0], run(g, both, leaves)[0], 0);
    EXPECT_EQ(check({op(Op::Mul, values(-1, 1), gate)}, 1e-6).size(), 2u) << "of another number";
  }
}

TEST_P(Formulas, AGateOfTanh) {
  const NodeId a = values(-2, 2), b = values(-2, 2), gate = unary(g, Op::Tanh, b);
  EXPECT_EQ(check({op(Op::Mul, a, gate)}, 1e-6).size(), 1u);
  EXPECT_EQ(check({op(Op::Mul, gate, a), gate}, 1e-6).size(), 2u) << "the gate is a result, too";
}

TEST_P(Formulas, OtherExpressionsStayAsTheyAre) {
  NodeId a = values(-1, 1), b = values(-1, 1), s = number(3);
  NodeId scaled = op(Op::Mul, a, s);
  EXPECT_EQ(check({op(Op::Sub, scaled, b)}).size(), 2u) << "the other sign";
  EXPECT_EQ(check({op(Op::Add, scaled, b), scaled}).size(), 2u) << "a part is a result too";
  EXPECT_EQ(check({op(Op::Add, scaled, unary(g, Op::Abs, scaled))}).size(), 3u) << "used twice";
  EXPECT_EQ(check({op(Op::Add, op(Op::Mul, a, a), op(Op::Mul, b, b))}).size(), 2u) << "no number";
}

TEST_P(Formulas, FeaturesAndTheirViews) {
  const Dims dims{kRows, 3};
  NodeId x = leaf(g, GetParam(), dims), y = leaf(g, GetParam(), Dims{kRows, 1});
  leaves[x] = make_array(GetParam(), dims, random_numbers(kRows * 3, -1, 1, 1));
  leaves[y] = make_array(GetParam(), Dims{kRows, 1}, random_numbers(kRows, -1, 1, 2));
  NodeId half = constant(g, GetParam(), dims, 0.5), bias = leaf(g, GetParam(), Dims{3});
  leaves[bias] = make_array(GetParam(), Dims{3}, {1, 2, 3});
  NodeId spread = broadcast_to(g, y, dims);
  EXPECT_EQ(check({op(Op::Add, spread, op(Op::Mul, x, half))}).size(), 1u);
  NodeId by_feature = op(Op::Mul, x, broadcast_to(g, bias, dims));
  EXPECT_EQ(check({op(Op::Add, spread, by_feature)}).size(), 2u) << "a number for each feature";
}

INSTANTIATE_TEST_SUITE_P(Types, Formulas, ::testing::Values(DType::Float32, DType::Float64),
                         [](const auto& i) { return std::string(name(i.param)); });

}  // namespace
}  // namespace gradcell

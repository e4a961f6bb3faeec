// Biases that a product starts from: found on either side, and left alone where something else
// needs the bare product or the numbers are not one a feature.
#include "ops/ops.h"
#include "plan/joining.h"

#include <gtest/gtest.h>

#include "evaluate.h"
#include "plan/planner.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

class Biases : public ::testing::TestWithParam<DType> {
 protected:
  static constexpr int64_t kRows = 333;
  Graph g;
  Leaves leaves;

  NodeId input(Dims dims) { return random_leaf(g, leaves, GetParam(), dims); }
  NodeId product(int64_t k, int64_t m) {
    return matmul(g, input(Dims{kRows, k}), input(Dims{k, m}), false, false);
  }

  /// The roots' plan, whose results were compared.
  std::string check(const std::vector<NodeId>& roots) {
    std::vector<Array> got = run(g, roots, leaves);
    const double tolerance = GetParam() == DType::Float64 ? 1e-13 : 1e-5;
    for (size_t i = 0; i < roots.size(); ++i)
      expect_close(got[i], interpret(g, roots[i], leaves), tolerance);
    return to_text(make_plan(g, live_nodes(g, roots), roots, {}));
  }
  static bool adds(const std::string& plan) { return plan.find(" = add ") != plan.npos; }
};

TEST_P(Biases, ALayer) {
  const Dims dims{kRows, 20};
  NodeId bias = broadcast_to(g, input(Dims{20}), dims);
  EXPECT_FALSE(adds(check({binary(g, Op::Add, product(7, 20), bias)})));
  EXPECT_FALSE(adds(check({binary(g, Op::Add, bias, product(300, 20))})));
  NodeId one = broadcast_to(g, input(Dims{}), Dims{kRows, 1});
  EXPECT_FALSE(adds(check({binary(g, Op::Add, one, product(5, 1))})));
}

TEST_P(Biases, OtherSumsStayAsTheyAre) {
  const Dims dims{kRows, 6};
  NodeId y = product(3, 6), bias = broadcast_to(g, input(Dims{6}), dims);
  EXPECT_TRUE(adds(check({binary(g, Op::Add, y, bias), y}))) << "the product is a result too";
  EXPECT_TRUE(adds(check({binary(g, Op::Add, y, broadcast_to(g, input(Dims{}), dims))})))
      << "one number for all features";
  NodeId z = product(3, 6);
  EXPECT_TRUE(adds(check({binary(g, Op::Mul, binary(g, Op::Add, z, bias), z)}))) << "used twice";
}

INSTANTIATE_TEST_SUITE_P(DTypes, Biases, ::testing::Values(DType::Float32, DType::Float64),
                         [](const auto& i) { return std::string(name(i.param)); });

}  // namespace
}  // namespace gradcell

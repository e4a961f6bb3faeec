// Second derivatives along a direction: fewer products, the same numbers.
#include "ad/row_dots.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "ad/transform.h"
#include "evaluate.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

constexpr int64_t kRows = 7;

class RowDotsOf : public ::testing::Test {
 protected:
  Graph g;
  Leaves leaves;

  NodeId input(Dims dims) { return random_leaf(g, leaves, DType::Float64, dims); }
  NodeId op(Op o, NodeId a, NodeId b) { return binary(g, o, a, b); }
  NodeId times(NodeId a, NodeId w) { return matmul(g, a, w, false, false); }
  NodeId ones(Dims dims) { return constant(g, DType::Float64, dims, 1); }
  NodeId gradient(NodeId y, NodeId x) {
    NodeId out[] = {y}, seed[] = {ones(Dims(g.dims(y)))}, wrt[] = {x};
    return ad::adjoint(g, out, seed, wrt)[0];
  }
  /// By forward mode, where a row of y depends on that row of x alone.
  NodeId forward(NodeId y, NodeId x) {
    NodeId out[] = {y}, wrt[] = {x}, along[] = {ones(Dims(g.dims(x)))};
    return ad::tangent(g, out, wrt, along)[0];
  }
  int products(NodeId root) const {
    const NodeId roots[] = {root};
    const std::vector<NodeId> live = live_nodes(g, roots);
    return static_cast<int>(
        std::count_if(live.begin(), live.end(), [&](NodeId id) { return g[id].op == Op::MatMul; }));
  }
  void expect_equal(NodeId a, NodeId b) {
    expect_close(run(g, a, leaves), run(g, b, leaves), 1e-12);
  }
};

/// A network of x and t with three hidden layers, of different widths.
TEST_F(RowDotsOf, ANetwork) {
  NodeId x = input(Dims{kRows, 1}), t = input(Dims{kRows, 1});
  NodeId both[] = {x, t}, h = concat(g, both, 1);
  for (Dims dims : {Dims{2, 5}, Dims{5, 4}, Dims{4, 6}})
    h = unary(g, Op::Tanh, times(h, input(dims)));
  NodeId u = times(h, input(Dims{6, 1}));
  NodeId u_x = gradient(u, x), u_xx = gradient(u_x, x), u_xxx = gradient(u_xx, x);
  expect_equal(u_x, forward(u, x));
  expect_equal(u_xx, forward(u_x, x));
  expect_equal(u_xxx, forward(forward(u_x, x), x));
  expect_equal(gradient(u_x, t), forward(u_x, t));
  // Forward three, backward and along x two each (a first and a last layer's rows are all the
  // same); the way back once more would make ten.
  EXPECT_EQ(products(u_xx), 7);
}

TEST_F(RowDotsOf, ResidualsSignsAndScales) {
  NodeId x = input(Dims{kRows, 1}), h = unary(g, Op::Sin, times(x, input(Dims{1, 4})));
  NodeId a = times(h, input(Dims{4, 4})), b = unary(g, Op::Tanh, times(h, input(Dims{4, 4})));
  NodeId three = constant(g, DType::Float64, Dims{kRows, 4}, 3);
  h = op(Op::Sub, op(Op::Mul, unary(g, Op::Exp, unary(g, Op::Neg, a)), b), op(Op::Mul, h, three));
  NodeId u = times(h, input(Dims{4, 1}));
  NodeId u_x = gradient(u, x), u_xx = gradient(u_x, x);
  expect_equal(u_xx, forward(u_x, x));
  expect_equal(gradient(u_xx, x), forward(forward(u_x, x), x));
}

/// What is moved must be there: the first derivative has nothing to move, and stays as it is.
TEST_F(RowDotsOf, WithoutTheDirectionNothingChanges) {
  NodeId w = input(Dims{4, 3}), b = input(Dims{kRows, 4});
  NodeId product = times(op(Op::Mul, b, b), w);
  NodeId column = slice(g, product, {Dims{0, 1}, Dims{kRows, 1}, Dims{1, 1}});
  EXPECT_EQ(ad::with_fewer_products(g, column), column);
  EXPECT_EQ(ad::with_fewer_products(g, product), product) << "three numbers a row";
}

/// A column of a product of two matrices that the user wrote stays a product.
TEST_F(RowDotsOf, LinearLayersStayAsTheyAre) {
  NodeId product = times(times(input(Dims{kRows, 5}), input(Dims{5, 4})), input(Dims{4, 3}));
  ones(Dims{kRows, 1});
  NodeId column = slice(g, product, {Dims{0, 1}, Dims{kRows, 1}, Dims{1, 1}});
  EXPECT_EQ(ad::with_fewer_products(g, column), column);
}

class OneColumn : public RowDotsOf {
 protected:
  NodeId v = input(Dims{5, 4}), w = input(Dims{4, 3}), b = input(Dims{kRows, 5});
  NodeId s = input(Dims{kRows, 4});

  /// The column of (s * b v) w that `spec` takes, with the products for its direction there.
  void check(const SliceSpec& spec, bool moved) {
    NodeId column = slice(g, times(op(Op::Mul, s, times(b, v)), w), spec);
    NodeId e = slice_scatter(g, ones(Dims{kRows, 1}), Dims{kRows, 3}, spec.start, spec.step);
    NodeId back = op(Op::Mul, s, matmul(g, e, w, false, true));
    EXPECT_EQ(ad::with_fewer_products(g, column), column) << "one product is not worth it";
    matmul(g, back, v, false, true);
    NodeId result = ad::with_fewer_products(g, column);
    EXPECT_EQ(result != column, moved);
    expect_equal(result, column);
  }
};
TEST_F(OneColumn, IsADotProduct) { check({Dims{0, 2}, Dims{kRows, 1}, Dims{1, 1}}, true); }
TEST_F(OneColumn, WithItsRowsReversedIsLeftAlone) {
  check({Dims{kRows - 1, 2}, Dims{kRows, 1}, Dims{-1, 1}}, false);
}

}  // namespace
}  // namespace gradcell

// Derivatives through the engine: against central differences along one random direction, in both
// modes and nested; and what is promised of structural zeros.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "ad/transform.h"
#include "evaluate.h"
#include "ops/ops.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT
using ad::adjoint;
using ad::tangent;

using Make = std::function<NodeId(Graph&, NodeId)>;

NodeId ones(Graph& g, NodeId like) { return constant(g, g.dtype(like), Dims(g.dims(like)), 1); }

NodeId gradient(Graph& g, NodeId y, NodeId x) {
  NodeId out[] = {y}, seed[] = {ones(g, y)}, wrt[] = {x};
  NodeId d = adjoint(g, out, seed, wrt)[0];
  return d != kNoNode ? d : constant(g, g.dtype(x), Dims(g.dims(x)), 0);
}

NodeId total(Graph& g, NodeId x) {
  Dims axes;
  for (size_t k = 0; k < g.dims(x).size(); ++k) axes.push_back(static_cast<int64_t>(k));
  return reduce(g, Combine::Sum, x, axes);
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double s = 0;
  for (size_t i = 0; i < a.size(); ++i) s += a[i] * b[i];
  return s;
}

/// Checks the `order`-th derivative of sum(make(x)) along v against differences of the one below.
void check(const char* what, const Dims& dims, double low, double high, const Make& make,
           int orders = 3) {
  SCOPED_TRACE(what);
  Graph g;
  NodeId x = leaf(g, DType::Float64, dims), v = leaf(g, DType::Float64, dims);
  int64_t n = element_count(dims);
  std::vector<double> x0 = random_numbers(n, low, high, 11), v0 = random_numbers(n, -1, 1, 12);
  Leaves leaves{{x, make_array(DType::Float64, dims, x0)},
                {v, make_array(DType::Float64, dims, v0)}};
  auto moved = [&](double h) {
    Leaves to = leaves;
    std::vector<double> at = x0;
    for (int64_t i = 0; i < n; ++i) at[i] += h * v0[i];
    to[x] = make_array(DType::Float64, dims, at);
    return to;
  };
  NodeId along = total(g, make(g, x));  // the (order - 1)-th derivative along v
  for (int order = 1; order <= orders; ++order) {
    SCOPED_TRACE("order " + std::to_string(order));
    NodeId d = gradient(g, along, x);
    NodeId out[] = {along}, wrt[] = {x}, seed[] = {v};
    NodeId forward = tangent(g, out, wrt, seed)[0];
    constexpr double h = 1e-5;
    double numeric =
        (numbers(run(g, along, moved(h)))[0] - numbers(run(g, along, moved(-h)))[0]) / (2 * h);
    double reverse = dot(numbers(run(g, d, leaves)), v0);
    double scale = std::max(1.0, std::fabs(numeric));
    EXPECT_NEAR(reverse, numeric, 1e-7 * scale);
    if (forward != kNoNode)
      EXPECT_NEAR(numbers(run(g, forward, leaves))[0], reverse, 1e-11 * scale);
    else
      EXPECT_EQ(reverse, 0);
    along = total(g, binary(g, Op::Mul, d, v));
  }
}

TEST(Adjoint, Elementwise) {
  check("tanh(x) sin(x)", {5}, -1, 1, [](Graph& g, NodeId x) {
    return binary(g, Op::Mul, unary(g, Op::Tanh, x), unary(g, Op::Sin, x));
  });
  check("exp(x) / (1 + x^2)", {5}, -1, 1, [](Graph& g, NodeId x) {
    return binary(g, Op::Div, unary(g, Op::Exp, x),
                  binary(g, Op::Add, unary(g, Op::Square, x), ones(g, x)));
  });
  check("pow, atan2, log", {5}, 0.5, 2, [](Graph& g, NodeId x) {
    NodeId p = binary(g, Op::Pow, x, unary(g, Op::Sqrt, x));
    return binary(g, Op::Atan2, p, unary(g, Op::Log1p, x));
  });
  check("maximum and select away from their edges", {8}, 0.3, 2, [](Graph& g, NodeId x) {
    NodeId one = ones(g, x), m = binary(g, Op::Maximum, unary(g, Op::Square, x), one);
    return select(g, binary(g, Op::Less, x, one), unary(g, Op::Cos, m), unary(g, Op::Exp, x));
  });
}

TEST(Adjoint, Movement) {
  check("reshape, transpose, broadcast", {2, 3}, -1, 1, [](Graph& g, NodeId x) {
    NodeId y = transpose(g, reshape(g, unary(g, Op::Sin, x), Dims{3, 2}), Dims{1, 0});
    NodeId z =
        binary(g, Op::Mul, broadcast_to(g, y, Dims{4, 2, 3}), broadcast_to(g, x, Dims{4, 2, 3}));
    return binary(g, Op::Mul, z, iota(g, DType::Float64, Dims{4, 2, 3}, 0));
  });
  check("slice, scatter, concat", {6, 3}, -1, 1, [](Graph& g, NodeId x) {
    NodeId s = slice(g, unary(g, Op::Exp, x), {{4, 2}, {2, 2}, {-3, -2}});
    NodeId t = slice_scatter(g, s, Dims{6, 3}, Dims{0, 1}, Dims{5, 1});
    NodeId both[] = {t, unary(g, Op::Square, x)};
    return unary(g, Op::Sin, concat(g, both, 1));
  });
  check("gather, scatter_add, cumsum", {5, 2}, -1, 1, [](Graph& g, NodeId x) {
    NodeId at = iota(g, DType::Int32, Dims{5}, 0);
    at = binary(g, Op::Mod, binary(g, Op::Mul, at, constant(g, DType::Int32, Dims{5}, 3)),
                constant(g, DType::Int32, Dims{5}, 4));
    NodeId y = gather(g, unary(g, Op::Sin, x), at, 0);
    NodeId z = scatter_add(g, at, y, 0, 5);
    return unary(g, Op::Exp, cumsum(g, binary(g, Op::Mul, z, x), {0, true, true}));
  });
}

TEST(Adjoint, Reductions) {
  check("softmax", {4, 3}, -1, 1, [](Graph& g, NodeId x) {
    Dims d{4, 3};
    NodeId m = reshape(g, reduce(g, Combine::Max, x, Dims{1}), Dims{4, 1});
    NodeId e = unary(g, Op::Exp, binary(g, Op::Sub, x, broadcast_to(g, m, d)));
    NodeId s = reshape(g, reduce(g, Combine::Sum, e, Dims{1}), Dims{4, 1});
    return unary(g, Op::Square, binary(g, Op::Div, e, broadcast_to(g, s, d)));
  });
  check("minimum of rows", {40, 3}, -1, 1, [](Graph& g, NodeId x) {
    return unary(g, Op::Exp, reduce(g, Combine::Min, unary(g, Op::Sin, x), Dims{0}));
  });
}

TEST(Adjoint, Products) {
  for (int flags = 0; flags < 4; ++flags)
    check("a net of two layers", {20, 20}, -0.5, 0.5, [=](Graph& g, NodeId w) {
      NodeId x = unary(g, Op::Sin, iota(g, DType::Float64, Dims{20, 20}, flags & 1));
      NodeId h = unary(g, Op::Tanh, matmul(g, x, w, flags & 1, flags & 2));
      return unary(g, Op::Tanh, matmul(g, h, w, flags & 2, flags & 1));
    });
  check("batches", {2, 3, 4}, -1, 1, [](Graph& g, NodeId x) {
    return unary(g, Op::Sin, matmul(g, x, unary(g, Op::Exp, x), false, true));
  });
}

TEST(Adjoint, HighOrdersOfTanhSin) {
  Graph g;
  NodeId x = leaf(g, DType::Float64, Dims{});
  NodeId y = binary(g, Op::Mul, unary(g, Op::Tanh, x), unary(g, Op::Sin, x));
  NodeId d = y;
  for (int order = 0; order < 8; ++order) d = gradient(g, d, x);
  Leaves at{{x, make_array(DType::Float64, {}, {0.5})}};
  // From a Taylor series of 60 digits.
  EXPECT_NEAR(numbers(run(g, d, at))[0], 1923.69928661967028, 1e-8);
  NodeId roots[] = {d};
  EXPECT_LT(live_nodes(g, roots).size(), 1500u) << "common parts are shared";
}

TEST(Adjoint, StructuralZeros) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{3}), y = leaf(g, DType::Float32, Dims{3});
  NodeId s = unary(g, Op::Sin, x);
  NodeId out[] = {s}, seed[] = {ones(g, s)}, wrt[] = {y, x};
  auto d = adjoint(g, out, seed, wrt);
  EXPECT_EQ(d[0], kNoNode) << "nothing depends on y";
  EXPECT_NE(d[1], kNoNode);
  NodeId none[] = {kNoNode};
  EXPECT_EQ(adjoint(g, out, none, wrt)[1], kNoNode);
  NodeId stopped[] = {unary(g, Op::Exp, stop_gradient(g, x))};
  EXPECT_EQ(adjoint(g, stopped, seed, wrt)[1], kNoNode);
  NodeId steps[] = {unary(g, Op::Floor, x)};
  EXPECT_EQ(adjoint(g, steps, seed, wrt)[1], kNoNode);
  NodeId whole = cast(g, x, DType::Int32);
  NodeId back[] = {cast(g, whole, DType::Float32)};
  EXPECT_EQ(adjoint(g, back, seed, wrt)[1], kNoNode) << "nothing passes through integers";
}

/// x * y at x = inf: a stored zero would make NaN of a gradient that does not meet it.
TEST(Adjoint, NoNaNFromZeroTimesInfinity) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{2}), y = leaf(g, DType::Float32, Dims{2});
  NodeId both[] = {binary(g, Op::Mul, unary(g, Op::Floor, x), y), y};
  NodeId seed[] = {kNoNode, ones(g, y)}, wrt[] = {x, y};
  auto d = adjoint(g, both, seed, wrt);
  EXPECT_EQ(d[0], kNoNode);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Leaves leaves{{x, make_array(DType::Float32, {2}, {kInf, 1})},
                {y, make_array(DType::Float32, {2}, {1, 1})}};
  expect_close(run(g, d[1], leaves), make_array(DType::Float32, {2}, {1, 1}), 0);
}

TEST(Adjoint, WalksStopAtWhatIsDifferentiatedBy) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{});
  NodeId s = unary(g, Op::Sin, x), e = unary(g, Op::Exp, s);
  NodeId out[] = {e}, seed[] = {ones(g, e)}, wrt[] = {s, x};
  auto d = adjoint(g, out, seed, wrt);
  EXPECT_EQ(d[0], e) << "exp(s) is its own derivative";
  EXPECT_EQ(d[1], kNoNode) << "s is a variable of its own";
}

TEST(Adjoint, NodesCarryTheirForwardNodesPlaceAndOrder) {
  Graph g;
  struct : Code {
    std::string line_of(int32_t offset) const override { return std::to_string(offset); }
  } code;
  NodeId x = leaf(g, DType::Float32, Dims{});
  NodeId y;
  {
    Stamp stamp(g);
    stamp.at({&code, 4});
    y = unary(g, Op::Tanh, x);
  }
  NodeId d = gradient(g, y, x), dd = gradient(g, d, x);
  EXPECT_EQ(g[d].location.code, &code);
  EXPECT_EQ(g[d].order, 1);
  EXPECT_EQ(g[dd].order, 2);
  const Node after = g[unary(g, Op::Cos, x)];
  EXPECT_EQ(after.order, 0);
  EXPECT_EQ(after.location.code, nullptr);
}

}  // namespace
}  // namespace gradcell

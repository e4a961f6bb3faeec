// Which nodes share a region, in which stage; sums of products; the plan's text.
#include "plan/planner.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "ad/transform.h"
#include "evaluate.h"
#include "ir/print.h"
#include "plan/arena.h"
#include "plan/labels.h"
#include "plan/region/in_place.h"
#include "plan/rewrite/rewrite.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

Plan plan_of(const Graph& g, const std::vector<NodeId>& roots) {
  return make_plan(g, live_nodes(g, roots), roots, {});
}

/// "2R1C R" : by stage, regions and calls.
std::string outline(const Plan& p) {
  std::string s;
  for (const Stage& stage : p.stages) {
    if (!s.empty()) s += " ";
    if (!stage.regions.empty()) s += std::to_string(stage.regions.size()) + "R";
    if (!stage.calls.empty()) s += std::to_string(stage.calls.size()) + "C";
  }
  return s;
}

NodeId bias(Graph& g, NodeId x, NodeId b) {
  return binary(g, Op::Add, x, broadcast_to(g, b, Dims(g.dims(x))));
}

struct Net {
  Graph g;
  NodeId x, w1, b1, w2;
  NodeId y;
  explicit Net(int64_t rows, DType t = DType::Float32) {
    x = leaf(g, t, Dims{rows, 2}), w1 = leaf(g, t, Dims{2, 20}), b1 = leaf(g, t, Dims{20});
    w2 = leaf(g, t, Dims{20, 1});
    NodeId h = unary(g, Op::Tanh, bias(g, matmul(g, x, w1, false, false), b1));
    y = matmul(g, h, w2, false, false);
  }
  std::vector<NodeId> gradients(NodeId of, const std::vector<NodeId>& wrt) {
    NodeId out[] = {of}, seed[] = {constant(g, g.dtype(of), Dims(g.dims(of)), 1)};
    return ad::adjoint(g, out, seed, wrt);
  }
};

TEST(Labels, ElementwiseGraphsRunByElements) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{100, 7});
  NodeId y = unary(g, Op::Sin, unary(g, Op::Exp, x));
  NodeId roots[] = {y};
  Labels l = label(g, roots);
  EXPECT_TRUE(l.node[y].in_region);
  EXPECT_EQ(l.node[y].rows, 700);
  EXPECT_EQ(l.stage_count, 1);
  EXPECT_TRUE(l.node[y].materialised);
  EXPECT_FALSE(l.node[g.input(y, 0)].materialised) << "it stays in the tile";
}

TEST(Labels, APerceptronRunsByRowsOfItsBatch) {
  Net net(1000);
  NodeId roots[] = {net.y};
  Labels l = label(net.g, roots);
  for (NodeId id = 0; id < net.g.size(); ++id) {
    if (net.g[id].op == Op::Leaf || l.storage[id] != id) continue;
    EXPECT_TRUE(l.node[id].in_region) << to_text(net.g, id);
    EXPECT_EQ(l.node[id].rows, 1000) << to_text(net.g, id);
    EXPECT_EQ(l.node[id].stage, 0) << to_text(net.g, id);
  }
}

TEST(Labels, SumsOverRowsEndARegion) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{1000, 3});
  NodeId mean = reduce(g, Combine::Sum, unary(g, Op::Exp, x), Dims{0});
  NodeId y = binary(g, Op::Sub, x, broadcast_to(g, mean, Dims{1000, 3}));
  NodeId roots[] = {y};
  Labels l = label(g, roots);
  EXPECT_TRUE(l.node[mean].reducing);
  EXPECT_TRUE(l.node[mean].materialised);
  EXPECT_EQ(l.node[mean].stage, 0);
  EXPECT_EQ(l.node[y].stage, 1);
}

TEST(Labels, SoftmaxAlongFeaturesIsOneRegion) {
  Graph g;
  Dims d{512, 10}, one{512, 1};
  NodeId x = leaf(g, DType::Float32, d);
  NodeId m = reshape(g, reduce(g, Combine::Max, x, Dims{1}), one);
  NodeId e = unary(g, Op::Exp, binary(g, Op::Sub, x, broadcast_to(g, m, d)));
  NodeId s = reshape(g, reduce(g, Combine::Sum, e, Dims{1}), one);
  Plan p = plan_of(g, {binary(g, Op::Div, e, broadcast_to(g, s, d))});
  EXPECT_EQ(outline(p), "1R");
  EXPECT_EQ(p.stages[0].regions[0].rows, 512);
}

TEST(Labels, WhatHasNoTileFormIsACall) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{64, 8});
  EXPECT_EQ(outline(plan_of(g, {unary(g, Op::Sin, cumsum(g, x, {0, false, false}))})), "1C 1R");
  EXPECT_EQ(outline(plan_of(g, {transpose(g, unary(g, Op::Sin, x), Dims{1, 0})})), "1R 1C");
  NodeId empty = leaf(g, DType::Float32, Dims{0, 8});
  EXPECT_EQ(plan_of(g, {unary(g, Op::Sin, empty)}).stages.size(), 1u);
}

/// Forward, both adjoints and all weight gradients of a physics-informed step: one region over the
/// batch. What may come after it adds up gradients, which are as small as the weights.
TEST(Labels, ATrainingStepIsOneRegion) {
  Net net(1000);
  Graph& g = net.g;
  NodeId dx = net.gradients(net.y, {net.x})[0];
  NodeId residual = binary(g, Op::Sub, slice(g, dx, {{0, 0}, {1000, 1}, {1, 1}}), net.y);
  NodeId loss = reduce(g, Combine::Sum, unary(g, Op::Square, residual), Dims{0, 1});
  std::vector<NodeId> roots = net.gradients(loss, {net.w1, net.b1, net.w2});
  roots.push_back(loss);
  Plan p = plan_of(g, roots);
  ASSERT_EQ(p.stages[0].regions.size(), 1u) << to_text(p);
  const Region& r = p.stages[0].regions[0];
  for (size_t s = 1; s < p.stages.size(); ++s)
    for (const Region& after : p.stages[s].regions) EXPECT_LE(after.rows, 40) << to_text(p);
  EXPECT_EQ(r.rows, 1000);
  EXPECT_TRUE(r.stores.empty()) << "no activation is written to memory";
  EXPECT_GE(r.accumulators.size(), 4u);
  EXPECT_LE(p.arena_bytes, 1024u);
}

// Sums of products ------------------------------------------------------------------------------

/// The same nodes under the same numbers.
Graph copy_of(const Graph& g) {
  Graph copy;
  for (NodeId id = 0; id < g.size(); ++id) rebuild(copy, g, id, g.inputs(id));
  return copy;
}

PlanGraph plan_graph(const Graph& g, std::vector<NodeId> roots) {
  PlanGraph p;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (g[id].op == Op::Leaf) p.inputs.push_back(id);
    if (g[id].op == Op::Const) p.constants.push_back(id);
  }
  p.graph = copy_of(g), p.roots = std::move(roots);
  return p;
}

std::string text(const PlanGraph& p) { return to_text(p.graph, p.roots); }

struct MergeSums : ::testing::Test {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{50, 4}), y = leaf(g, DType::Float32, Dims{50, 4});
  NodeId a = leaf(g, DType::Float32, Dims{50, 3}), b = leaf(g, DType::Float32, Dims{50, 3});
  NodeId add(NodeId p, NodeId q) { return binary(g, Op::Add, p, q); }
  NodeId product(NodeId p, NodeId q) { return matmul(g, p, q, true, false); }
};

TEST_F(MergeSums, ASharedFactorIsMultipliedOnce) {
  NodeId s = add(product(x, a), product(x, b));
  EXPECT_EQ(text(merge_sums(plan_graph(g, {s}))),
            "%0 = Leaf() : float32[50, 4]\n"
            "%1 = Leaf() : float32[50, 3]\n"
            "%2 = Leaf() : float32[50, 3]\n"
            "%3 = Add(%1, %2) : float32[50, 3]\n"
            "%4 = MatMul(%0, %3, transpose_a) : float32[4, 3]\n"
            "return %4\n");
}

TEST_F(MergeSums, OtherProductsShareAnAccumulation) {
  NodeId s = add(product(x, a), product(y, b));
  PlanGraph merged = merge_sums(plan_graph(g, {s}));
  EXPECT_EQ(merged.graph.inputs(merged.roots[0]).size(), 4u) << text(merged);
  Leaves leaves;
  for (NodeId id : {x, y, a, b}) {
    int64_t n = g.count(id);
    leaves[id] = make_array(DType::Float32, g.dims(id), random_numbers(n, -1, 1, id + 1));
  }
  expect_close(run(g, s, leaves), interpret(g, s, leaves), 1e-5);
}

TEST_F(MergeSums, SumsOverTheSameAxesAreOne) {
  NodeId s = add(reduce(g, Combine::Sum, x, Dims{0}), reduce(g, Combine::Sum, y, Dims{0}));
  EXPECT_EQ(text(merge_sums(plan_graph(g, {s}))),
            "%0 = Leaf() : float32[50, 4]\n"
            "%1 = Leaf() : float32[50, 4]\n"
            "%2 = Add(%0, %1) : float32[50, 4]\n"
            "%3 = ReduceSum(%2, axes=[0]) : float32[4]\n"
            "return %3\n");
}

TEST_F(MergeSums, OfWhatIsNegatedIsNegated) {
  NodeId s = reduce(g, Combine::Sum, unary(g, Op::Neg, x), Dims{0});
  EXPECT_EQ(text(merge_sums(plan_graph(g, {s}))),
            "%0 = Leaf() : float32[50, 4]\n"
            "%1 = ReduceSum(%0, axes=[0]) : float32[4]\n"
            "%2 = Neg(%1) : float32[4]\n"
            "return %2\n");
}

TEST_F(MergeSums, SignsGoToWhatIsShared) {
  NodeId s = binary(g, Op::Sub, product(x, a), product(x, b));
  EXPECT_EQ(text(merge_sums(plan_graph(g, {s}))),
            "%0 = Leaf() : float32[50, 4]\n"
            "%1 = Leaf() : float32[50, 3]\n"
            "%2 = Leaf() : float32[50, 3]\n"
            "%3 = Sub(%1, %2) : float32[50, 3]\n"
            "%4 = MatMul(%0, %3, transpose_a) : float32[4, 3]\n"
            "return %4\n");
}

TEST_F(MergeSums, SignsOfProductsThatShareAnAccumulation) {
  NodeId rest = leaf(g, DType::Float32, Dims{4, 3});
  NodeId three = constant(g, DType::Float32, Dims{50, 4}, 3);
  Leaves leaves;
  for (NodeId id : {x, y, a, b, rest}) {
    int64_t n = g.count(id);
    leaves[id] = make_array(DType::Float32, g.dims(id), random_numbers(n, -1, 1, id + 1));
  }
  auto minus = [&](NodeId p, NodeId q) { return binary(g, Op::Sub, p, q); };
  auto negative = [&](NodeId p) { return unary(g, Op::Neg, p); };
  auto p = [&] { return product(x, a); };
  auto q = [&] { return product(y, b); };
  const std::function<NodeId()> sums[] = {
      [&] { return minus(p(), q()); },
      [&] { return minus(rest, add(p(), q())); },
      [&] { return minus(minus(negative(p()), q()), rest); },
      [&] { return minus(rest, minus(minus(p(), q()), product(x, b))); },
      [&] { return negative(minus(negative(p()), minus(rest, q()))); },
      [&] { return minus(q(), product(binary(g, Op::Mul, x, three), a)); },
  };
  const Graph leaves_alone = copy_of(g);
  for (const auto& sum : sums) {
    g = copy_of(leaves_alone);
    NodeId s = sum();
    PlanGraph merged = merge_sums(plan_graph(g, {s}));
    int products = 0;
    for (NodeId id : live_nodes(merged.graph, merged.roots))
      products += merged.graph[id].op == Op::MatMul;
    EXPECT_EQ(products, 1) << text(merged);
    expect_close(run(g, s, leaves), interpret(g, s, leaves), 1e-5);
  }
  auto total = [&](NodeId t) { return reduce(g, Combine::Sum, t, Dims{0}); };
  g = copy_of(leaves_alone);
  NodeId s = minus(minus(negative(total(x)), total(y)), total(unary(g, Op::Sin, y)));
  PlanGraph merged = merge_sums(plan_graph(g, {s}));
  EXPECT_EQ(merged.graph[merged.roots[0]].op, Op::Neg) << text(merged);
  expect_close(run(g, s, leaves), interpret(g, s, leaves), 1e-5);
}

/// Another order of the terms would round differently.
TEST_F(MergeSums, OtherSumsStayAsTheyAreWritten) {
  NodeId c = leaf(g, DType::Float32, Dims{50, 4}), d = leaf(g, DType::Float32, Dims{50, 4});
  NodeId s = add(add(x, y), add(c, d));
  EXPECT_EQ(text(merge_sums(plan_graph(g, {s}))), text(plan_graph(g, {s})));
  NodeId p = leaf(g, DType::Float32, Dims{4, 3}), q = leaf(g, DType::Float32, Dims{4, 3});
  NodeId r = leaf(g, DType::Float32, Dims{4, 3});
  NodeId products = add(product(x, a), add(product(y, b), add(p, add(q, r))));
  const std::string merged = text(merge_sums(plan_graph(g, {products})));
  EXPECT_NE(merged.find("%7 = Add(%5, %6) : float32[4, 3]\n%8 = Add(%4, %7)"), std::string::npos)
      << merged;
}

/// (As loops make them: neither the stack nor the time may grow with the square of its length.)
TEST_F(MergeSums, AVeryLongSum) {
  NodeId one = leaf(g, DType::Float32, Dims{4, 3}), s = product(x, a);
  for (int i = 0; i < 100000; ++i) s = binary(g, i % 2 ? Op::Add : Op::Sub, s, one);
  EXPECT_EQ(merge_sums(plan_graph(g, {s})).graph.size(), g.size());
  PlanGraph merged = merge_sums(plan_graph(g, {add(s, product(y, b))}));
  EXPECT_EQ(merged.graph.inputs(merged.graph.input(merged.roots[0], 1)).size(), 4u);
}

/// A plan is kept for all values of its constants.
TEST_F(MergeSums, ConstantsValuesDoNotMatter) {
  const Graph leaves_alone = copy_of(g);
  NodeId small = leaf(g, DType::Float32, Dims{4});
  auto fill = [&](double v) { return constant(g, DType::Float32, Dims{50, 3}, v); };
  auto hidden = [&](NodeId p) { return alias(g, p); };  // from the builder, as a transform does
  auto total = [&](NodeId t) { return reduce(g, Combine::Sum, t, Dims{0}); };
  auto spread = [&] { return broadcast_to(g, small, Dims{50, 4}); };
  const std::function<NodeId(double, double)> sums[] = {
      [&](double s, double t) { return add(product(x, fill(s)), product(x, hidden(fill(t)))); },
      [&](double s, double) { return add(product(x, a), product(x, hidden(fill(s)))); },
      [&](double s, double t) {
        return add(total(hidden(fill(s))), total(hidden(binary(g, Op::Mul, a, fill(t)))));
      },
      [&](double s, double t) { return add(total(hidden(fill(s))), total(hidden(fill(t)))); },
      [&](double, double) { return add(total(hidden(spread())), total(hidden(spread()))); },
  };
  for (const auto& sum : sums) {
    std::vector<std::string> shapes;
    for (auto [s, t] : {std::pair{2.0, 3.0}, {2.0, 0.0}, {0.0, -1.0}, {1.0, -1.0}}) {
      g = copy_of(leaves_alone);
      small = leaf(g, DType::Float32, Dims{4});
      NodeId root = sum(s, t);
      PlanGraph merged = merge_sums(plan_graph(g, {root}));
      for (NodeId id : live_nodes(merged.graph, merged.roots)) {
        const bool brought = std::count(merged.constants.begin(), merged.constants.end(), id) > 0;
        EXPECT_EQ(is_constant(merged.graph, id), brought) << text(merged);
      }
      std::string outline;
      for (NodeId id : live_nodes(merged.graph, merged.roots))
        outline += str(info(merged.graph[id].op).name, to_string(merged.graph.dims(id)), " ");
      shapes.push_back(outline);
      Leaves leaves;
      for (NodeId id : {x, a, small}) {
        int64_t n = g.count(id);
        leaves[id] = make_array(DType::Float32, g.dims(id), random_numbers(n, -1, 1, id + 1));
      }
      expect_close(run(g, root, leaves), interpret(g, root, leaves), 1e-5);
    }
    EXPECT_EQ(shapes[0], shapes[1]);
    EXPECT_EQ(shapes[2], shapes[3]);
  }
}

TEST_F(MergeSums, WhatIsNeededElsewhereStays) {
  NodeId p = product(x, a), s = add(p, product(x, b));
  PlanGraph merged = merge_sums(plan_graph(g, {s, p}));
  EXPECT_NE(merged.roots[0], merged.roots[1]);
  EXPECT_EQ(merged.graph[merged.roots[1]].op, Op::MatMul);
  EXPECT_EQ(merged.graph.inputs(merged.roots[1]).size(), 2u);
}

TEST_F(MergeSums, FlagsAndRowsAreNotMixed) {
  NodeId w = leaf(g, DType::Float32, Dims{4, 7}), v = leaf(g, DType::Float32, Dims{7, 3});
  NodeId s = add(product(x, a), matmul(g, w, v, false, false));
  EXPECT_EQ(g.dims(s), (Dims{4, 3}));
  PlanGraph merged = merge_sums(plan_graph(g, {s}));
  int products = 0;
  for (NodeId id = 0; id < merged.graph.size(); ++id) products += merged.graph[id].op == Op::MatMul;
  EXPECT_EQ(products, 2) << text(merged);
}

// Sums that are products of matrices ------------------------------------------------------------

struct ContractSums : ::testing::Test {
  Graph g;
  Leaves leaves;
  /// A tensor of so many dimensions, spread over a shape. (Sizes of 1 are spread.)
  NodeId factor(Dims dims, Dims to) {
    const NodeId x = leaf(g, DType::Float64, dims);
    leaves[x] = make_array(DType::Float64, dims, random_numbers(g.count(x), -1, 1, x + 1));
    return broadcast_to(g, x, to);
  }
  NodeId sum(NodeId x, Dims axes) { return reduce(g, Combine::Sum, x, axes); }
  NodeId mul(NodeId a, NodeId b) { return binary(g, Op::Mul, a, b); }
  int products(NodeId s) {
    PlanGraph made = contract_sums(plan_graph(g, {s}));
    int count = 0;
    for (NodeId id : live_nodes(made.graph, made.roots)) count += made.graph[id].op == Op::MatMul;
    return count;
  }
};

TEST_F(ContractSums, OfTwoFactorsWithAxesOfTheirOwn) {
  struct Case {
    Dims a, b, to, axes;
  };
  const Case cases[] = {
      {{50, 1, 16}, {70, 16}, {50, 70, 16}, {2}},              // x y'
      {{70, 16}, {50, 1, 16}, {50, 70, 16}, {2}},              // the other factor first
      {{50, 70, 1}, {50, 1, 16}, {50, 70, 16}, {0}},           // x' y
      {{50, 70, 1}, {70, 16}, {50, 70, 16}, {1}},              // x y
      {{50, 1, 16}, {50, 70, 1}, {50, 70, 16}, {0}},           // results transposed: y' x
      {{5, 6, 1, 16}, {5, 1, 70, 16}, {5, 6, 70, 16}, {3}},    // a batch
      {{5, 6, 1, 16}, {1, 1, 70, 16}, {5, 6, 70, 16}, {3}},    // several axes of rows
      {{4, 8, 9, 1}, {4, 8, 1, 70}, {4, 8, 9, 70}, {0, 1}},    // several axes are summed
      {{20, 1, 1, 16}, {1, 30, 1, 16}, {20, 30, 1, 16}, {3}},  // an axis of one element
  };
  for (const Case& c : cases) {
    const NodeId s = sum(mul(factor(c.a, c.to), factor(c.b, c.to)), c.axes);
    EXPECT_EQ(products(s), 1) << s;
    expect_close(run(g, s, leaves), interpret(g, s, leaves), 1e-12);
  }
}

TEST_F(ContractSums, NotOfOthers) {
  const Dims to{50, 70, 16};
  const NodeId x = factor({50, 1, 16}, to), y = factor({70, 16}, to);
  const NodeId xy = mul(x, y);
  const NodeId others[] = {
      sum(mul(x, factor({50, 70, 16}, to)), {2}),  // the other one differs along all
      sum(mul(factor({50, 1, 1}, to), y), {2}),    // an axis of one factor is summed
      sum(mul(factor({1, 70, 1}, to), factor({50, 1, 1}, to)), {2}),  // none of both
      sum(mul(factor({5, 6, 1, 16}, {5, 6, 70, 16}), factor({5, 1, 70, 16}, {5, 6, 70, 16})),
          {0, 3}),  // summed axes that are apart
      sum(unary(g, Op::Exp, mul(x, factor({70, 16}, to))), {2}),
      sum(mul(factor({4, 1, 3}, {4, 5, 3}), factor({5, 3}, {4, 5, 3})),
          {2}),                                                           // too small for a call
      binary(g, Op::Add, sum(xy, {2}), sum(unary(g, Op::Exp, xy), {2})),  // made anyway
      reduce(g, Combine::Max, mul(x, factor({70, 16}, to)), Dims{2}),
  };
  for (NodeId s : others) {
    EXPECT_EQ(products(s), 0) << s;
    expect_close(run(g, s, leaves), interpret(g, s, leaves), 1e-12);
  }
}

// What is spread over rows and features -----------------------------------------------------------

TEST(Labels, RowsOfOneElementEachAreReadWhereTheyLie) {
  Graph g;
  Leaves leaves;
  auto given = [&](Dims dims, Dims to) {
    const NodeId x = leaf(g, DType::Float32, dims);
    leaves[x] = make_array(DType::Float32, dims, random_numbers(g.count(x), -1, 1, x + 1));
    return broadcast_to(g, x, to);
  };
  const Dims to{50, 200, 25};
  NodeId y = binary(g, Op::Mul, given({50, 1, 25}, to), given({200, 1}, to));
  y = binary(g, Op::Mul, binary(g, Op::Mul, y, given({200, 25}, to)), given({25}, to));
  y = reduce(g, Combine::Sum, y, Dims{2});
  const Plan p = plan_of(g, {y});
  EXPECT_EQ(outline(p), "1R") << to_text(p);
  EXPECT_EQ(p.arena_bytes, 0u) << "nothing is spread out in memory";
  expect_close(run(g, y, leaves), interpret(g, y, leaves), 1e-5);
}

// Text ------------------------------------------------------------------------------------------

TEST(PlanText, ElementwiseWithAConstant) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{1000});
  NodeId y = binary(g, Op::Mul, unary(g, Op::Sin, x), constant(g, DType::Float32, Dims{1000}, 3));
  EXPECT_EQ(to_text(plan_of(g, {y})),
            "plan: 1 inputs, 1 constants, 1 outputs, 4 nodes, arena 0 bytes\n"
            "stage 0\n"
            "  region rows=1000 scratch=4/row\n"
            "    u0 = constant0\n"
            "    v0 = load input0 x1\n"
            "    v1 = sin v0  : f32 x1\n"
            "    v2 = mul v1, u0  : f32 x1\n"
            "    store v2 -> output0\n");
}

TEST(PlanText, ALayerAndItsWeightGradient) {
  Net net(100);
  std::vector<NodeId> roots = net.gradients(net.y, {net.w1});
  EXPECT_EQ(to_text(plan_of(net.g, roots)),
            "plan: 4 inputs, 1 constants, 1 outputs, 15 nodes, arena 0 bytes\n"
            "stage 0\n"
            "  region rows=100 scratch=88/row\n"
            "    u0 = input2 x20\n"
            "    u1 = input3 x20\n"
            "    u2 = constant0\n"
            "    w0 = pack input1 2x20\n"
            "    v1 = load input0 x2\n"
            "    v2 = matmul v1, u0, w0  : f32 x20 (2)\n"
            "    v3 = tanh v2  : f32 x20\n"
            "    v5 = chain v3 * v3 -> - u2  : f32 x20\n"
            "    v6 = mul u1, v5  : f32 x20\n"
            "    acc0 += weight_grad v1, v6  : f32 x2 (20)\n"
            "    store acc0 -> output0\n");
}

/// A column of a weight that every row reads: nothing has to be ready before the rows run.
TEST(PlanText, AViewOfAnInputIsReadWhereItLies) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{100, 4}), w = leaf(g, DType::Float32, Dims{4, 3});
  NodeId column = slice(g, w, {Dims{0, 1}, Dims{4, 1}, Dims{1, 1}});
  NodeId all = broadcast_to(g, reshape(g, column, Dims{1, 4}), Dims{100, 4});
  EXPECT_EQ(to_text(plan_of(g, {binary(g, Op::Mul, x, all)})),
            "plan: 2 inputs, 0 constants, 1 outputs, 6 nodes, arena 0 bytes\n"
            "stage 0\n"
            "  region rows=100 scratch=16/row\n"
            "    u0 = input1 x12\n"
            "    v0 = load input0 x4\n"
            "    v1 = mul v0, u0[1::3]  : f32 x4\n"
            "    store v1 -> output0\n");
}

// What a plan promises --------------------------------------------------------------------------

TEST(Planner, OutputsMayBeInputsOrEachOther) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{4}), s = unary(g, Op::Sin, x);
  std::vector<NodeId> roots{x, s,           reshape(g, s, Dims{2, 2}),
                            s, alias(g, x), constant(g, DType::Float32, Dims{3}, 2)};
  Plan p = plan_of(g, roots);
  EXPECT_EQ(p.outputs[0].alias_input, 0);
  EXPECT_EQ(p.outputs[2].alias_output, 1);
  EXPECT_EQ(p.outputs[3].alias_output, 1);
  EXPECT_EQ(p.outputs[4].alias_input, 0);
  Leaves leaves{{x, make_array(DType::Float32, {4}, {0, 1, 2, 3})}};
  auto got = run(g, roots, leaves);
  for (size_t i = 0; i < roots.size(); ++i)
    expect_close(got[i], interpret(g, roots[i], leaves), 1e-6);
}

TEST(Planner, AliasesVanishAndWhatTheyHidIsShared) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{4}), x1 = alias(g, x),
         x2 = alias(g, stop_gradient(g, x1));
  NodeId s = binary(g, Op::Add, unary(g, Op::Sin, x1), unary(g, Op::Sin, x2));
  Plan p = plan_of(g, {s});
  EXPECT_EQ(p.node_count, 3u) << "x, sin(x), their sum";
}

TEST(Planner, CutsAreInputs) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{4}), s = unary(g, Op::Sin, x), e = unary(g, Op::Exp, s);
  std::vector<NodeId> roots{e}, cuts{s};
  Plan p = make_plan(g, live_until(g, roots, cuts), roots, cuts);
  EXPECT_EQ(p.inputs.size(), 1u);
  EXPECT_EQ(p.node_count, 2u);
}

/// The first gap, found by going over all that was placed.
TEST(Planner, AnArenaGivesTheFirstGap) {
  struct Block {
    size_t begin, end;
    int32_t first, last;
  };
  std::mt19937 random(7);
  auto below = [&](uint32_t n) { return static_cast<int32_t>(random() % n); };
  for (int32_t times : {1, 2, 7, 40}) {
    Arena arena(64);
    std::vector<Block> blocks;
    std::vector<int32_t> begins;
    for (int k = 0; k < 400; ++k) begins.push_back(below(static_cast<uint32_t>(times)));
    std::ranges::sort(begins);
    for (int k = 0; k < 400; ++k) {
      const int32_t first = begins[static_cast<size_t>(k)];
      const int32_t last = std::min(times - 1, first + below(k % 3 == 0 ? 40 : 4));
      const size_t bytes = static_cast<size_t>(below(9)) * 50, rounded = (bytes + 63) / 64 * 64;
      size_t at = 0;
      std::ranges::sort(blocks, {}, &Block::begin);
      for (const Block& b : blocks)
        if (b.first <= last && first <= b.last && at < b.end && b.begin < at + rounded) at = b.end;
      EXPECT_EQ(arena.place(bytes, first, last), at);
      if (bytes > 0) blocks.push_back({at, at + rounded, first, last});
    }
    size_t end = 0;
    for (const Block& b : blocks) end = std::max(end, b.end);
    EXPECT_EQ(arena.size(), end);
  }
}

TEST(Planner, TemporariesShareMemory) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{64, 64});
  NodeId y = x;
  for (int i = 0; i < 8; ++i) y = unary(g, Op::Sin, cumsum(g, y, {0, false, false}));
  Plan p = plan_of(g, {y});
  EXPECT_LE(p.arena_bytes, 3u * 64 * 64 * 4);
}

/// The inputs whose memory a run may give an output.
std::vector<size_t> overwritable(const Plan& p, size_t output) {
  const UpdatesInPlace in_place(p);
  std::vector<size_t> found;
  for (size_t i = 0; i < p.inputs.size(); ++i)
    if (in_place.allowed(output, i)) found.push_back(i);
  return found;
}

TEST(Planner, AnUpdateMayHappenInPlace) {
  Graph g;
  NodeId w = leaf(g, DType::Float32, Dims{100}), d = leaf(g, DType::Float32, Dims{100});
  NodeId rate = constant(g, DType::Float32, Dims{100}, 0.1);
  NodeId updated = binary(g, Op::Sub, w, binary(g, Op::Mul, d, rate));
  EXPECT_EQ(overwritable(plan_of(g, {updated}), 0), (std::vector<size_t>{0, 1}));
}

TEST(Planner, WhatIsReadAfterwardsIsNotOverwritten) {
  Graph g;
  NodeId w = leaf(g, DType::Float32, Dims{100}), d = leaf(g, DType::Float32, Dims{100});
  NodeId updated = binary(g, Op::Sub, w, d);
  NodeId sum = cumsum(g, cumsum(g, d, {0, false, false}), {0, false, false});
  NodeId later = binary(g, Op::Mul, w, sum);
  const Plan p = plan_of(g, {updated, later, d});
  EXPECT_EQ(overwritable(p, 0), std::vector<size_t>{});
  EXPECT_EQ(overwritable(p, 1), std::vector<size_t>{0});
}

}  // namespace
}  // namespace gradcell

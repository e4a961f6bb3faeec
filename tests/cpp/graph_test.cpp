#include "ir/graph.h"

#include <gtest/gtest.h>

#include "ops/ops.h"
#include "plan/planner.h"

namespace gradcell {
namespace {

const Dims kShape{2, 3};

NodeId leaf(Graph& g) { return leaf(g, DType::Float32, kShape); }

TEST(Graph, EqualNodesAreOne) {
  Graph g;
  NodeId x = leaf(g), y = leaf(g);
  EXPECT_NE(x, y);
  EXPECT_EQ(unary(g, Op::Sin, x), unary(g, Op::Sin, x));
  EXPECT_NE(unary(g, Op::Sin, x), unary(g, Op::Cos, x));
  EXPECT_EQ(binary(g, Op::Add, x, y), binary(g, Op::Add, y, x));
  EXPECT_NE(binary(g, Op::Sub, x, y), binary(g, Op::Sub, y, x));
  EXPECT_NE(binary(g, Op::Maximum, x, y), binary(g, Op::Maximum, y, x));  // they differ in zeros
  EXPECT_EQ(constant(g, DType::Float32, kShape, 2), constant(g, DType::Float32, kShape, 2));
  EXPECT_NE(constant(g, DType::Float32, kShape, 0.0), constant(g, DType::Float32, kShape, -0.0));
  EXPECT_NE(constant(g, DType::Float32, kShape, 2), constant(g, DType::Float64, kShape, 2));
  EXPECT_NE(constant(g, DType::Float32, kShape, 2), constant(g, DType::Float32, Dims{6}, 2));
  EXPECT_NE(reduce(g, Combine::Sum, x, Dims{0}), reduce(g, Combine::Sum, x, Dims{1}));
}

TEST(Graph, AliasesAreNeverShared) {
  Graph g;
  NodeId x = leaf(g);
  EXPECT_NE(alias(g, x), alias(g, x));
}

TEST(Graph, HashConsingSurvivesGrowth) {
  Graph g;
  NodeId x = leaf(g);
  std::vector<NodeId> first;
  for (int i = 0; i < 5000; ++i)
    first.push_back(binary(g, Op::Add, x, constant(g, DType::Float32, kShape, i + 1)));
  for (int i = 0; i < 5000; ++i)
    ASSERT_EQ(first[i], binary(g, Op::Add, x, constant(g, DType::Float32, kShape, i + 1)));
  EXPECT_EQ(g.size(), 10001u);
}

TEST(Graph, ArgumentsMayPointIntoTheGraph) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{2, 3, 4, 5});
  NodeId t = transpose(g, x, Dims{3, 1, 0, 2});
  for (int i = 0; i < 2000; ++i)  // pools move while their own spans are passed in
    t = g.intern(Op::Transpose, DType::Float32, g.dims(x), g.inputs(t), g.attrs(t),
                 static_cast<uint64_t>(i + 1));
  EXPECT_EQ(g.input(t, 0), x);
  EXPECT_EQ(Dims(g.attrs(t).begin(), g.attrs(t).end()), (Dims{3, 1, 0, 2}));
}

TEST(Graph, LiveNodesAreWhatTheRootsNeed) {
  Graph g;
  NodeId x = leaf(g), y = leaf(g);
  NodeId s = unary(g, Op::Sin, x);
  unary(g, Op::Exp, y);
  NodeId c = unary(g, Op::Cos, s);
  NodeId roots[] = {c};
  EXPECT_EQ(live_nodes(g, roots), (std::vector<NodeId>{x, s, c}));
  EXPECT_TRUE(live_nodes(g, {}).empty());
}

TEST(Graph, LocationAndOrderAreStamped) {
  Graph g;
  struct : Code {
    std::string line_of(int32_t offset) const override { return std::to_string(offset); }
  } code;
  NodeId x = leaf(g);
  NodeId s, after;
  {
    Stamp stamp(g);
    stamp.at({&code, 7});
    stamp.order(2);
    s = unary(g, Op::Sin, x);
  }
  after = unary(g, Op::Cos, x);
  EXPECT_EQ(g[s].location.code, &code);
  EXPECT_EQ(g[s].location.text(), "7");
  EXPECT_EQ(g[s].order, 2);
  EXPECT_EQ(g[after].order, 0) << "a stamp ends";
  EXPECT_EQ(g[after].location.code, nullptr);
  EXPECT_EQ(g[unary(g, Op::Sin, x)].order, 2) << "the first maker stays";
}

// The structural hash: what decides whether a plan can be used again ------------------------------

template <class Make>
PlanKey key_of(Make make) {
  Graph g;
  NodeId roots[] = {make(g)};
  return structural_hash(g, live_nodes(g, roots), roots, {});
}

NodeId sum_of(Graph& g, DType t, Dims dims, Op op, double c) {
  NodeId x = leaf(g, t, dims);
  return unary(g, op, binary(g, Op::Add, x, constant(g, t, dims, c)));
}

TEST(StructuralHash, ConstantsDoNotCount) {
  auto make = [](double c) {
    return [c](Graph& g) { return sum_of(g, DType::Float32, {4}, Op::Sin, c); };
  };
  EXPECT_EQ(key_of(make(1)), key_of(make(2)));
}

TEST(StructuralHash, OpsShapesDtypesAndDeadNodes) {
  auto base = key_of([](Graph& g) { return sum_of(g, DType::Float32, {4}, Op::Sin, 1); });
  EXPECT_NE(base, key_of([](Graph& g) { return sum_of(g, DType::Float64, {4}, Op::Sin, 1); }));
  EXPECT_NE(base, key_of([](Graph& g) { return sum_of(g, DType::Float32, {5}, Op::Sin, 1); }));
  EXPECT_NE(base, key_of([](Graph& g) { return sum_of(g, DType::Float32, {4, 1}, Op::Sin, 1); }));
  EXPECT_NE(base, key_of([](Graph& g) { return sum_of(g, DType::Float32, {4}, Op::Cos, 1); }));
  EXPECT_EQ(base, key_of([](Graph& g) {
              unary(g, Op::Exp, leaf(g));
              return sum_of(g, DType::Float32, {4}, Op::Sin, 1);
            }));
}

TEST(StructuralHash, WiringRootsAndAttributesCount) {
  auto wired = [](bool swapped) {
    return key_of([=](Graph& g) {
      NodeId x = leaf(g), y = leaf(g);
      return swapped ? binary(g, Op::Sub, y, x) : binary(g, Op::Sub, x, y);
    });
  };
  EXPECT_NE(wired(false), wired(true));
  auto reduced = [](int64_t axis) {
    return key_of([=](Graph& g) {
      return reduce(g, Combine::Sum, leaf(g, DType::Float32, Dims{3, 3}), Dims{axis});
    });
  };
  EXPECT_NE(reduced(0), reduced(1));
  Graph g;
  NodeId x = leaf(g), s = unary(g, Op::Sin, x), c = unary(g, Op::Cos, x);
  NodeId one[] = {s, c}, other[] = {c, s};
  auto live = live_nodes(g, one);
  EXPECT_NE(structural_hash(g, live, one, {}), structural_hash(g, live, other, {}));
}

TEST(StructuralHash, ACutIsALeaf) {
  Graph g;
  NodeId x = leaf(g), s = unary(g, Op::Sin, x), e = unary(g, Op::Exp, s);
  NodeId roots[] = {e}, cuts[] = {s};
  auto live = live_until(g, roots, NodeSet(cuts));
  EXPECT_EQ(live, (std::vector<NodeId>{s, e}));
  EXPECT_EQ(structural_hash(g, live, roots, cuts),
            key_of([](Graph& h) { return unary(h, Op::Exp, leaf(h)); }));
}

}  // namespace
}  // namespace gradcell

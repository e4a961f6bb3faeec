// Structured ops: the simplifications of csrc/ops, and the engine against the
// interpreter on shapes of every kind.
#include <gtest/gtest.h>

#include <limits>

#include "evaluate.h"
#include "ops/ops.h"
#include "plan/planner.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Structured : ::testing::Test {
  Graph g;
  Leaves leaves;

  NodeId input(const Dims& dims, DType t = DType::Float32) {
    NodeId id = leaf(g, t, dims);
    bool real = is_floating(t);
    std::vector<double> v =
        random_numbers(element_count(dims), real ? -2 : 0, real ? 2 : 100, id + 1);
    leaves[id] = make_array(t, dims, v);
    return id;
  }
  /// Made past the builder, so that nothing is simplified.
  NodeId raw(Op op, NodeId x, const Dims& dims, const Dims& attrs = {}) {
    NodeId in[] = {x};
    return g.intern(op, g.dtype(x), dims, in, attrs);
  }
  void expect_same(NodeId got, NodeId written) {
    expect_close(run(g, got, leaves), interpret(g, written, leaves), 0);
    expect_close(run(g, written, leaves), interpret(g, written, leaves), 0);
  }
};

TEST_F(Structured, Reshape) {
  NodeId x = input({2, 6});
  NodeId a = reshape(g, x, Dims{3, 4});
  EXPECT_EQ(reshape(g, a, Dims{2, 6}), x);
  EXPECT_EQ(g.input(reshape(g, a, Dims{12}), 0), x);
  EXPECT_TRUE(is_constant(g, reshape(g, constant(g, DType::Float32, Dims{4}, 1), Dims{2, 2})));
  expect_same(reshape(g, a, Dims{12}), raw(Op::Reshape, a, {12}));
}

TEST_F(Structured, Transpose) {
  NodeId x = input({2, 3, 4});
  NodeId t = transpose(g, x, Dims{2, 0, 1});
  EXPECT_EQ(transpose(g, t, Dims{1, 2, 0}), x);
  EXPECT_EQ(transpose(g, x, Dims{0, 1, 2}), x);
  EXPECT_EQ(g.input(transpose(g, t, Dims{1, 0, 2}), 0), x);
  expect_same(transpose(g, t, Dims{1, 0, 2}), raw(Op::Transpose, t, {2, 4, 3}, {1, 0, 2}));
  NodeId y = input({5, 1, 4});
  EXPECT_EQ(g[transpose(g, y, Dims{1, 0, 2})].op, Op::Reshape) << "nothing moves";
  expect_same(transpose(g, y, Dims{1, 0, 2}), raw(Op::Transpose, y, {1, 5, 4}, {1, 0, 2}));
}

TEST_F(Structured, BroadcastTo) {
  NodeId x = input({3, 1});
  NodeId b = broadcast_to(g, x, Dims{3, 4});
  EXPECT_EQ(g.input(broadcast_to(g, b, Dims{2, 3, 4}), 0), x);
  EXPECT_EQ(g[broadcast_to(g, x, Dims{1, 3, 1})].op, Op::Reshape);
  EXPECT_EQ(broadcast_to(g, x, Dims{3, 1}), x);
  expect_same(broadcast_to(g, b, Dims{2, 3, 4}), raw(Op::BroadcastTo, b, {2, 3, 4}));
  EXPECT_EQ(g.count(broadcast_to(g, input({1, 3}), Dims{0, 3})), 0);
}

TEST_F(Structured, Slice) {
  NodeId x = input({10, 7});
  EXPECT_EQ(slice(g, x, {{0, 0}, {10, 7}, {1, 1}}), x);
  NodeId s = slice(g, x, {{8, 1}, {4, 3}, {-2, 2}});
  NodeId ss = slice(g, s, {{1, 2}, {3, 2}, {1, -2}});
  EXPECT_EQ(g.input(ss, 0), x);
  expect_same(ss, raw(Op::Slice, s, {3, 2}, {1, 2, 1, -2}));
  NodeId placed = slice_scatter(g, s, Dims{10, 7}, Dims{8, 1}, Dims{-2, 2});
  EXPECT_EQ(slice(g, placed, {{8, 1}, {4, 3}, {-2, 2}}), s);
  expect_same(placed, raw(Op::SliceScatter, s, {10, 7}, {8, 1, -2, 2}));
  EXPECT_EQ(slice_scatter(g, x, Dims{10, 7}, Dims{0, 0}, Dims{1, 1}), x);
  const NodeId negative = unary(g, Op::Neg, x),
               part = slice(g, negative, {{8, 1}, {4, 3}, {-2, 2}});
  EXPECT_EQ(part, unary(g, Op::Neg, s));
  expect_same(part, raw(Op::Slice, negative, {4, 3}, {8, 1, -2, 2}));
  // One element along an axis: any step is the same, 0 too, and nothing of it may leave a trace.
  expect_same(slice(g, x, {{4, 0}, {1, 7}, {1, 1}}), raw(Op::Slice, x, {1, 7}, {4, 0, 9, 1}));
}

// Every slice of every block among nine zeros, along an axis beside one that all blocks fill.
TEST_F(Structured, SlicesOfBlocksAmongZeros) {
  const int64_t n = 9;
  auto each = [](auto visit) {
    for (int64_t start = 0; start < n; ++start)
      for (int64_t size = 1; size <= n; ++size)
        for (int64_t step : {-3, -2, -1, 1, 2, 3, 4})
          if (const int64_t last = start + (size - 1) * step; last >= 0 && last < n)
            visit(start, size, step);
  };
  int zeros = 0, inside = 0;
  each([&](int64_t at, int64_t of, int64_t by) {
    if (of > 3) return;
    const NodeId x = input({2, of});
    const NodeId placed = raw(Op::SliceScatter, x, {2, n}, {0, at, 1, by});
    std::vector<NodeId> got, written;
    each([&](int64_t start, int64_t size, int64_t step) {
      got.push_back(slice(g, placed, {{0, start}, {2, size}, {1, step}}));
      written.push_back(raw(Op::Slice, placed, {2, size}, {0, start, 1, step}));
      zeros += is_constant(g, got.back());
      inside += g.inputs(got.back()).size() == 1 && g.input(got.back(), 0) == x;
    });
    const NodeId a = concat(g, got, 1), b = concat(g, written, 1);
    expect_close(run(g, a, leaves), interpret(g, b, leaves), 0);
  });
  EXPECT_GT(zeros, 1000);
  EXPECT_GT(inside, 100);
}

TEST_F(Structured, Concat) {
  NodeId one[] = {input({2, 3})};
  EXPECT_EQ(concat(g, one, 0), one[0]);
  NodeId rows[] = {one[0], input({0, 3}), input({70, 3})};
  NodeId y = concat(g, rows, 0);
  expect_close(run(g, y, leaves), interpret(g, y, leaves), 0);
  NodeId columns[] = {input({33, 3}), input({33, 1}), input({33, 4})};
  y = concat(g, columns, 1);
  expect_close(run(g, y, leaves), interpret(g, y, leaves), 0);
}

TEST_F(Structured, MatMulTakesUpTransposesAndSigns) {
  NodeId a = input({5, 4}), b = input({5, 6});
  NodeId at = transpose(g, a, Dims{1, 0});
  NodeId y = matmul(g, at, b, false, false);
  EXPECT_EQ(y, matmul(g, a, b, true, false));
  NodeId n = matmul(g, unary(g, Op::Neg, at), b, false, false);
  EXPECT_EQ(n, unary(g, Op::Neg, y));
  EXPECT_EQ(matmul(g, unary(g, Op::Neg, at), unary(g, Op::Neg, b), false, false), y);
}

TEST_F(Structured, ReduceOfWhatIsTheSameEverywhere) {
  NodeId x = input({3, 1});
  NodeId b = broadcast_to(g, x, Dims{3, 5});
  EXPECT_EQ(reduce(g, Combine::Max, b, Dims{1}), reshape(g, x, Dims{3}));
  NodeId s = reduce(g, Combine::Sum, b, Dims{1});
  EXPECT_EQ(g[s].op, Op::Mul);
  expect_close(run(g, s, leaves), interpret(g, raw(Op::ReduceSum, b, {3}, {1}), leaves), 1e-6);
  NodeId c = reduce(g, Combine::Sum, constant(g, DType::Float64, Dims{4, 5}, 0.5), Dims{0, 1});
  EXPECT_EQ(constant_value(g, c), 10);
}

TEST_F(Structured, ReduceOfReduce) {
  NodeId x = input({3, 4, 5});
  for (Combine how : {Combine::Sum, Combine::Max, Combine::Min}) {
    NodeId inner = reduce(g, how, x, Dims{1});
    NodeId both = reduce(g, how, inner, Dims{1});
    EXPECT_EQ(both, reduce(g, how, x, Dims{1, 2}));
    expect_close(run(g, both, leaves), interpret(g, raw(g[both].op, inner, {3}, {1}), leaves),
                 1e-6);
  }
  NodeId mixed = reduce(g, Combine::Max, reduce(g, Combine::Sum, x, Dims{1}), Dims{1});
  EXPECT_EQ(g.dims(g.input(mixed, 0)), (Dims{3, 5}));
}

TEST_F(Structured, EmptySumsAreZero) {
  for (double v : {1.0, -1.0, kInf}) {
    NodeId c = reduce(g, Combine::Sum, constant(g, DType::Float32, Dims{0, 2}, v), Dims{0});
    expect_close(run(g, c, leaves), make_array(DType::Float32, {2}, {0, 0}), 0);
  }
  NodeId x = input({0, 2});
  expect_close(run(g, reduce(g, Combine::Sum, x, Dims{0}), leaves),
               make_array(DType::Float32, {2}, {0, 0}), 0);
  EXPECT_THROW(reduce(g, Combine::Max, x, Dims{0}), Error);
  EXPECT_EQ(run(g, reduce(g, Combine::Max, x, Dims{1}), leaves).count(), 0);
}

/// More equal terms than a float16 can count.
TEST_F(Structured, LongSumsInHalfTypes) {
  for (DType t : {DType::Float16, DType::BFloat16}) {
    NodeId x = leaf(g, t, Dims{1});
    leaves[x] = make_array(t, {1}, {0.0009765625});
    NodeId s = reduce(g, Combine::Sum, broadcast_to(g, x, Dims{131072}), Dims{0});
    expect_close(run(g, s, leaves), make_array(t, {}, {128}), 0);
  }
}

// The engine against the interpreter --------------------------------------------------------------

/// One line of shapes: rows by every kind of tail, features of one, few and many.
const std::vector<Dims> kShapes{{1},      {7},       {16},       {17},       {1000},      {1, 1},
                                {1, 9},   {9, 1},    {16, 3},    {63, 20},   {64, 20},    {65, 33},
                                {129, 1}, {3, 5, 7}, {2, 70, 3}, {70, 2, 1}, {1, 4, 1, 5}};

TEST_F(Structured, ReductionsOverEveryAxisSet) {
  for (DType t : {DType::Float32, DType::Float64, DType::Float16, DType::Int32, DType::Int8})
    for (const Dims& d : kShapes) {
      NodeId x = input(d, t);
      for (unsigned mask = 1; mask < (1u << d.size()); ++mask) {
        Dims axes;
        for (size_t k = 0; k < d.size(); ++k)
          if (mask >> k & 1) axes.push_back(static_cast<int64_t>(k));
        for (Combine how : {Combine::Sum, Combine::Max, Combine::Min}) {
          NodeId y = reduce(g, how, x, axes);
          double tolerance = how != Combine::Sum || !is_floating(t) ? 0
                             : t == DType::Float16                  ? 2e-3
                                                                    : 1e-5;
          SCOPED_TRACE(std::string(combine_name(how)) + to_string(d) + " over " + to_string(axes));
          expect_close(run(g, y, leaves), interpret(g, y, leaves), tolerance);
        }
      }
    }
}

TEST_F(Structured, MaximaPropagateNaN) {
  Dims d{70, 3};
  std::vector<double> v = random_numbers(210, -1, 1, 3);
  v[100] = std::numeric_limits<double>::quiet_NaN();
  NodeId x = leaf(g, DType::Float32, d);
  leaves[x] = make_array(DType::Float32, d, v);
  for (const Dims& axes : {Dims{0}, Dims{1}, Dims{0, 1}})
    for (Combine how : {Combine::Max, Combine::Min, Combine::Sum}) {
      NodeId y = reduce(g, how, x, axes);
      expect_close(run(g, y, leaves), interpret(g, y, leaves), 1e-5);
    }
  for (Combine how : {Combine::Max, Combine::Min})
    for (int axis : {0, 1}) {
      NodeId y = arg_reduce(g, how, x, axis);
      expect_close(run(g, y, leaves), interpret(g, y, leaves), 0);
    }
}

TEST_F(Structured, ProductsOfEveryShapeAndFlag) {
  for (DType t : {DType::Float32, DType::Float64, DType::BFloat16, DType::Int32})
    for (auto [m, k, n] : {std::array{1, 1, 1},
                           {1, 5, 3},
                           {17, 4, 1},
                           {64, 20, 20},
                           {65, 33, 2},
                           {3, 0, 4},
                           {0, 3, 4},
                           {200, 7, 9}})
      for (int flags = 0; flags < 4; ++flags) {
        bool ta = flags & 1, tb = flags & 2;
        NodeId a = input(ta ? Dims{k, m} : Dims{m, k}, t),
               b = input(tb ? Dims{n, k} : Dims{k, n}, t);
        NodeId y = matmul(g, a, b, ta, tb);
        SCOPED_TRACE(std::string(name(t)) + to_string(Dims{m, k, n}) + " flags " +
                     std::to_string(flags));
        double tolerance = t == DType::Int32      ? 0
                           : t == DType::BFloat16 ? 1e-2
                           : t == DType::Float32  ? 1e-5
                                                  : 1e-13;
        expect_close(run(g, y, leaves), interpret(g, y, leaves), tolerance);
      }
  NodeId a = input({3, 2, 5, 4}), b = input({3, 2, 4, 6});
  NodeId y = matmul(g, a, b, false, false);
  expect_close(run(g, y, leaves), interpret(g, y, leaves), 1e-5);
}

TEST_F(Structured, MovementOnEveryShape) {
  for (DType t : {DType::Float32, DType::Int8, DType::Float16, DType::Int64, DType::Bool})
    for (const Dims& d : kShapes) {
      SCOPED_TRACE(std::string(name(t)) + to_string(d));
      NodeId x = input(d, t);
      std::vector<NodeId> made;
      Dims perm, start, size, step, wide(1, 3);
      for (size_t k = 0; k < d.size(); ++k) {
        perm.insert(perm.begin(), static_cast<int64_t>(k));
        start.push_back(d[k] - 1), size.push_back((d[k] + 1) / 2),
            step.push_back(d[k] > 1 ? -2 : 1);
        wide.push_back(d[k]);
      }
      made.push_back(transpose(g, x, perm));
      NodeId s = slice(g, x, {start, size, step});
      made.push_back(s);
      made.push_back(slice_scatter(g, s, d, start, step));
      made.push_back(broadcast_to(g, x, wide));
      if (t != DType::Bool)
        made.push_back(
            cumsum(g, x, {static_cast<int64_t>(d.size()) - 1, d[0] % 2 != 0, d[0] % 3 != 0}));
      made.push_back(arg_reduce(g, Combine::Max, x, 0));
      for (NodeId y : made) {
        double tolerance = g[y].op == Op::CumSum && is_floating(t) ? 2e-3 : 0;
        expect_close(run(g, y, leaves), interpret(g, y, leaves), tolerance);
      }
    }
}

TEST_F(Structured, ConvolutionsAndTheirAdjoints) {
  const Dims one{1, 1}, two{2, 2}, three{3, 3}, none{0, 0}, moved{1, -1};
  auto run_parts = [&](DType t, const Dims& x, const Dims& w, const Dims& y, const Dims& stride,
                       const Dims& dilation, const Dims& before, int64_t groups) {
    auto sizes = [](const Dims& d) { return Dims(d.begin() + 2, d.end()); };
    const NodeId in_x = input(x, t), in_w = input(w, t), in_y = input(y, t);
    auto node = [&](Op op, NodeId a, NodeId b, const Dims& size) {
      const NodeId in[] = {a, b};
      return make(g, op,
                  {in, encode(ConvolutionAttributes{stride, dilation, before, size, groups, 0})});
    };
    const double tolerance = t == DType::Float16 ? 4e-3 : t == DType::Float32 ? 1e-5 : 1e-13;
    for (NodeId made : {node(Op::Convolution, in_x, in_w, sizes(y)),
                        node(Op::ConvolutionInput, in_y, in_w, sizes(x)),
                        node(Op::ConvolutionWeight, in_x, in_y, sizes(w))})
      expect_close(run(g, made, leaves), interpret(g, made, leaves), tolerance);
  };
  for (DType t : {DType::Float16, DType::Float32, DType::Float64}) {
    SCOPED_TRACE(std::string(name(t)));
    run_parts(t, {2, 4, 5, 5}, {6, 2, 3, 3}, {2, 6, 3, 3}, one, one, none, 2);
    run_parts(t, {1, 3, 5, 5}, {2, 3, 3, 3}, {1, 2, 3, 3}, two, one, one, 1);
    run_parts(t, {2, 1, 5, 5}, {2, 1, 2, 1}, {2, 2, 2, 2}, three, two, moved, 1);
    run_parts(t, {1, 2, 4}, {2, 2, 2}, {1, 2, 5}, {1}, {1}, {1}, 1);
    run_parts(t, {1, 2, 3, 4, 3}, {2, 2, 2, 2, 2}, {1, 2, 2, 3, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0},
              1);
  }
}

TEST_F(Structured, LargestOfWindows) {
  for (DType t : {DType::Float32, DType::Float64, DType::Int32, DType::BFloat16}) {
    const NodeId x = input({2, 5, 6}, t);
    const Dims kernel{2, 3}, stride{2, 1}, dilation{1, 2}, before{1, 2}, size{3, 5};
    const Dims attributes = encode(WindowAttributes{kernel, stride, dilation, before, size});
    for (Op op : {Op::WindowMax, Op::WindowArgMax}) {
      const NodeId y = make(g, op, {{&x, 1}, attributes});
      expect_close(run(g, y, leaves), interpret(g, y, leaves), 0);
    }
  }
}

TEST_F(Structured, PlacesOfRows) {
  const NodeId x = input({2, 4}), u = input({2, 3}), at = leaf(g, DType::Int32, Dims{2, 3});
  leaves[at] = make_array(DType::Int32, {2, 3}, {0, -1, 3, 2, 2, 1});
  const NodeId taken[] = {x, at}, put[] = {at, u};
  const NodeId y = make(g, Op::TakeAlong, {taken, {}});
  expect_close(run(g, y, leaves), interpret(g, y, leaves), 0);
  const NodeId z = make(g, Op::PutAlong, {put, encode(SizeAttributes{4})});
  expect_close(run(g, z, leaves), interpret(g, z, leaves), 1e-6);
  leaves[at] = make_array(DType::Int32, {2, 3}, {0, -1, 4, 2, 2, 1});
  EXPECT_THROW(run(g, y, leaves), Error);
  EXPECT_THROW(run(g, z, leaves), Error);
}

TEST_F(Structured, PositionsOfImagesAreRows) {
  for (DType t : {DType::Float16, DType::Float32, DType::Float64}) {
    const NodeId x = input({3, 5, 4, 7}, t), scale = input({1, 5, 1, 1}, t);
    const Dims image{3, 5, 4, 7};
    const NodeId scaled = unary(g, Op::Tanh, binary(g, Op::Mul, x, broadcast_to(g, scale, image)));
    const NodeId cut = slice(g, scaled, {{0, 1, 0, 0}, {3, 2, 4, 7}, {1, 2, 1, 1}});
    const NodeId pair[] = {cut, scaled};
    const NodeId joined = concat(g, pair, 1);
    const NodeId by_channel = sum(g, joined, Dims{0, 2, 3});
    const NodeId by_place = reduce(g, Combine::Max, joined, Dims{1});
    const double tolerance = t == DType::Float16 ? 5e-3 : 1e-5;
    for (NodeId y : {scaled, joined, by_channel, by_place})
      expect_close(run(g, y, leaves), interpret(g, y, leaves), tolerance);
    const NodeId roots[] = {joined, by_channel};
    const Plan plan = make_plan(g, live_nodes(g, roots), roots, {});
    bool in_blocks = false;
    for (const Stage& stage : plan.stages)
      for (const Region& r : stage.regions) in_blocks |= r.block == 28 && r.rows == 84;
    EXPECT_TRUE(in_blocks) << to_text(plan);
  }
}

TEST_F(Structured, LastWriter) {
  for (DType t : {DType::Int32, DType::Int64}) {
    NodeId at = leaf(g, t, Dims{2, 3});
    leaves[at] = make_array(t, {2, 3}, {3, -1, 0, 3, 0, 1});
    NodeId y = last_writer(g, at, 5);
    expect_close(run(g, y, leaves), make_array(DType::Int32, {5}, {4, 5, -1, 3, 1}), 0);
    expect_close(run(g, y, leaves), interpret(g, y, leaves), 0);
    leaves[at] = make_array(t, {2, 3}, {0, 1, 2, 3, 4, 5});
    EXPECT_THROW(run(g, y, leaves), Error);
  }
  NodeId none = leaf(g, DType::Int64, Dims{0});
  leaves[none] = make_array(DType::Int64, {0}, {});
  NodeId y = last_writer(g, none, 2);
  expect_close(run(g, y, leaves), make_array(DType::Int32, {2}, {-1, -1}), 0);
  EXPECT_THROW(last_writer(g, none, -1), Error);
  EXPECT_THROW(last_writer(g, input({3}), 2), Error);
}

TEST_F(Structured, GatherAndScatterAdd) {
  NodeId x = input({9, 4, 3}), at = leaf(g, DType::Int64, Dims{2, 2});
  leaves[at] = make_array(DType::Int64, {2, 2}, {3, -1, 0, 3});
  for (int axis = 0; axis < 3; ++axis) {
    if (axis == 2) leaves[at] = make_array(DType::Int64, {2, 2}, {2, -1, 0, 2});
    NodeId y = gather(g, x, at, axis);
    expect_close(run(g, y, leaves), interpret(g, y, leaves), 0);
    NodeId z = scatter_add(g, at, y, axis, 9);
    expect_close(run(g, z, leaves), interpret(g, z, leaves), 1e-6);
  }
  leaves[at] = make_array(DType::Int64, {2, 2}, {9, 0, 0, 0});
  try {
    run(g, gather(g, x, at, 0), leaves);
    FAIL() << "an index out of range was read";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind, ErrorKind::Index);
  }
}

TEST_F(Structured, ZeroSizeTensors) {
  NodeId x = input({0, 4}), y = input({4, 0}), w = input({4, 3});
  std::vector<NodeId> made{unary(g, Op::Sin, x),
                           matmul(g, x, w, false, false),
                           matmul(g, y, x, false, false),
                           transpose(g, x, Dims{1, 0}),
                           reduce(g, Combine::Sum, x, Dims{0}),
                           reduce(g, Combine::Sum, y, Dims{1}),
                           cumsum(g, x, {0, false, false}),
                           slice(g, x, {{0, 1}, {0, 2}, {1, 1}}),
                           slice(g, w, {{0, 0}, {0, 3}, {1, 1}}),
                           broadcast_to(g, input({1, 4}), Dims{0, 4}),
                           cast(g, x, DType::Int32)};
  made.push_back(slice_scatter(g, made[8], Dims{4, 3}, Dims{0, 0}, Dims{1, 1}));
  for (NodeId id : made) expect_close(run(g, id, leaves), interpret(g, id, leaves), 0);
}

}  // namespace
}  // namespace gradcell

// The builder's simplifications: that they happen, and that they change no bit, signed zeros,
// infinities and NaN included. Each rule is stated as (the node as the user wrote it, made past the
// builder; the same through the builder; the op that should come out).
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "evaluate.h"
#include "ir/fold.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

/// Every pair of these meets in the two operands.
const std::vector<double> kReals{0.0,   -0.0,   1,    -1,    2.5,  -3,    0.1,
                                 1e-40, -1e-40, 3e38, -3e38, kInf, -kInf, kNan};
const std::vector<double> kWholes{0, 1, -1, 2, 7, -13, 2147483647, -2147483648.0, 46341, 3};

struct Operands {
  Graph g;
  NodeId a, b;
  Leaves leaves;
  Dims dims;

  explicit Operands(DType t) {
    const auto& v = is_floating(t) ? kReals : kWholes;
    auto n = static_cast<int64_t>(v.size());
    dims = {n * n};
    a = leaf(g, t, dims), b = leaf(g, t, dims);
    std::vector<double> va, vb;
    for (double p : v)
      for (double q : v) va.push_back(p), vb.push_back(q);
    leaves[a] = make_array(t, dims, va);
    leaves[b] = make_array(t, dims, vb);
  }

  DType type() const { return g.dtype(a); }
  NodeId c(double v) { return constant(g, type(), dims, v); }
  NodeId raw(Op op, NodeId x) {
    NodeId in[] = {x};
    return g.intern(op, type(), dims, in);
  }
  NodeId raw(Op op, NodeId x, NodeId y) {
    NodeId in[] = {x, y};
    return g.intern(op, type(), dims, in);
  }
  NodeId neg(NodeId x) { return unary(g, Op::Neg, x); }

  /// Equal bits by the interpreter, and by the engine.
  void expect_same(NodeId got, NodeId written) {
    expect_close(interpret(g, got, leaves), interpret(g, written, leaves), 0);
    expect_close(run(g, got, leaves), run(g, written, leaves), 0);
  }
};

class Simplify : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(DTypes, Simplify,
                         ::testing::Values(DType::Float32, DType::Float64, DType::Float16,
                                           DType::Int32, DType::Int64),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(Simplify, SumsAndDifferencesTakeUpSigns) {
  Operands o(GetParam());
  auto& g = o.g;
  NodeId na = o.neg(o.a), nb = o.neg(o.b);
  NodeId difference = binary(g, Op::Sub, o.a, o.b);
  EXPECT_EQ(binary(g, Op::Add, o.a, nb), difference);
  EXPECT_EQ(binary(g, Op::Add, nb, o.a), difference);
  EXPECT_EQ(binary(g, Op::Sub, o.a, nb), binary(g, Op::Add, o.a, o.b));
  o.expect_same(difference, o.raw(Op::Add, o.a, nb));
  o.expect_same(binary(g, Op::Add, na, o.b), o.raw(Op::Add, na, o.b));
  o.expect_same(binary(g, Op::Sub, o.a, nb), o.raw(Op::Sub, o.a, nb));
}

/// Its sign could go to the constant, but then other terms could no longer share the product.
TEST_P(Simplify, AMultipleKeepsItsSignApart) {
  Operands o(GetParam());
  auto& g = o.g;
  NodeId twice = binary(g, Op::Mul, o.a, o.c(2));
  EXPECT_EQ(binary(g, Op::Add, o.b, unary(g, Op::Neg, twice)), binary(g, Op::Sub, o.b, twice));
}

TEST_P(Simplify, ZeroIsDroppedWhereThatKeepsSigns) {
  Operands o(GetParam());
  auto& g = o.g;
  EXPECT_EQ(binary(g, Op::Sub, o.a, o.c(0)), o.a);
  o.expect_same(binary(g, Op::Sub, o.a, o.c(0)), o.raw(Op::Sub, o.a, o.c(0)));
  o.expect_same(binary(g, Op::Add, o.a, o.c(0)), o.raw(Op::Add, o.a, o.c(0)));
  o.expect_same(binary(g, Op::Add, o.c(0), o.a), o.raw(Op::Add, o.c(0), o.a));
  o.expect_same(binary(g, Op::Sub, o.c(0), o.a), o.raw(Op::Sub, o.c(0), o.a));
  if (is_floating(o.type())) {
    EXPECT_NE(binary(g, Op::Add, o.a, o.c(0)), o.a) << "-0 + 0 is 0";
    EXPECT_NE(binary(g, Op::Sub, o.a, o.c(-0.0)), o.a) << "-0 - -0 is 0";
    o.expect_same(binary(g, Op::Sub, o.a, o.c(-0.0)), o.raw(Op::Sub, o.a, o.c(-0.0)));
  } else {
    EXPECT_EQ(binary(g, Op::Add, o.a, o.c(0)), o.a);
  }
  EXPECT_FALSE(is_constant(g, binary(g, Op::Mul, o.a, o.c(0)))) << "0 times NaN is NaN";
}

TEST_P(Simplify, Products) {
  Operands o(GetParam());
  auto& g = o.g;
  NodeId na = o.neg(o.a), nb = o.neg(o.b);
  EXPECT_EQ(binary(g, Op::Mul, o.a, o.c(1)), o.a);
  EXPECT_EQ(binary(g, Op::Mul, o.c(1), o.a), o.a);
  EXPECT_EQ(binary(g, Op::Mul, o.a, o.c(-1)), na);
  EXPECT_EQ(binary(g, Op::Mul, na, nb), binary(g, Op::Mul, o.a, o.b));
  EXPECT_EQ(g[binary(g, Op::Mul, na, o.b)].op, Op::Neg);
  EXPECT_EQ(g[binary(g, Op::Mul, o.a, o.a)].op, Op::Square);
  for (auto [x, y] :
       {std::pair(o.a, o.c(1)), {o.c(-1), o.a}, {na, nb}, {na, o.b}, {o.a, nb}, {o.a, o.a}})
    o.expect_same(binary(g, Op::Mul, x, y), o.raw(Op::Mul, x, y));
}

/// GELU as programs write it, and the distribution function by itself.
TEST_P(Simplify, TheNormalDistributionByErf) {
  Operands o(GetParam());
  if (!is_floating(o.type())) GTEST_SKIP() << "erf is floating";
  auto& g = o.g;
  auto mul = [&](NodeId a, NodeId b) { return binary(g, Op::Mul, a, b); };
  auto add = [&](NodeId a, NodeId b) { return binary(g, Op::Add, a, b); };
  auto div = [&](NodeId a, NodeId b) { return binary(g, Op::Div, a, b); };
  const NodeId x = o.a, half = o.c(0.5), one = o.c(1), two = o.c(2);
  const NodeId by_product = unary(g, Op::Erf, mul(x, o.c(std::sqrt(0.5))));
  const NodeId by_quotient = unary(g, Op::Erf, div(x, o.c(std::sqrt(2.0))));
  const NodeId far = unary(g, Op::Erfc, mul(o.neg(x), o.c(std::sqrt(0.5))));
  const NodeId phi = unary(g, Op::Ndtr, x), gelu = mul(x, phi);
  for (NodeId erf : {by_product, by_quotient}) {
    const NodeId sum = add(one, erf);
    EXPECT_EQ(g[sum].op, Op::Add) << "as written where nothing is gained";
    EXPECT_EQ(mul(mul(half, x), sum), gelu);
    EXPECT_EQ(mul(sum, mul(x, half)), gelu);
    EXPECT_EQ(mul(mul(x, sum), half), gelu);
    EXPECT_EQ(div(mul(x, sum), two), gelu);
    EXPECT_EQ(mul(x, mul(half, sum)), gelu);
    EXPECT_EQ(mul(x, add(half, mul(half, erf))), gelu);
    EXPECT_EQ(mul(half, mul(o.b, mul(x, sum))), mul(o.b, gelu));
    EXPECT_EQ(mul(half, sum), phi);
    EXPECT_EQ(mul(half, binary(g, Op::Sub, one, erf)), unary(g, Op::Ndtr, o.neg(x)));
    EXPECT_EQ(binary(g, Op::Sub, half, mul(erf, half)), unary(g, Op::Ndtr, o.neg(x)));
    EXPECT_EQ(mul(sum, o.c(3)), mul(phi, o.c(6)));
  }
  EXPECT_EQ(mul(mul(x, half), far), gelu);
  const NodeId narrow = mul(half, add(unary(g, Op::Erf, div(x, o.c(4))), one));
  EXPECT_EQ(g[narrow].op, Op::Ndtr) << "of another width";
  EXPECT_EQ(g[g.input(narrow, 0)].op, Op::Mul);
  for (NodeId other : {mul(half, add(unary(g, Op::Erf, x), one)), mul(half, add(by_product, two)),
                       mul(x, add(by_product, one)), mul(o.b, by_product)})
    EXPECT_EQ(g[other].op, Op::Mul) << "not the distribution function, or not for less";
}

TEST_P(Simplify, QuotientsByPowersOfTwo) {
  Operands o(GetParam());
  if (!is_floating(o.type())) GTEST_SKIP() << "a quotient is floating";
  auto& g = o.g;
  EXPECT_EQ(binary(g, Op::Div, o.a, o.c(1)), o.a);
  EXPECT_EQ(g[binary(g, Op::Div, o.a, o.c(-8))].op, Op::Mul);
  EXPECT_EQ(g[binary(g, Op::Div, o.a, o.c(3))].op, Op::Div);
  for (double d : {1.0, 2.0, -8.0, 0.125, 3.0, 0x1p-20, 0x1p-24, 0x1p15, 0x1p120, 0x1p-120, 0.0,
                   -0.0, kInf, kNan})
    o.expect_same(binary(g, Op::Div, o.a, o.c(d)), o.raw(Op::Div, o.a, o.c(d)));
}

TEST_P(Simplify, Powers) {
  Operands o(GetParam());
  auto& g = o.g;
  auto power = [&](double n) { return binary(g, Op::Pow, o.a, o.c(n)); };
  EXPECT_TRUE(is_constant(g, power(0)));
  EXPECT_EQ(power(1), o.a);
  EXPECT_EQ(power(2), unary(g, Op::Square, o.a));
  EXPECT_EQ(power(4), unary(g, Op::Square, power(2)));
  o.expect_same(power(0), o.raw(Op::Pow, o.a, o.c(0)));
  o.expect_same(power(2), o.raw(Op::Pow, o.a, o.c(2)));
  if (!is_floating(o.type())) {
    o.expect_same(power(3), o.raw(Op::Pow, o.a, o.c(3)));
    o.expect_same(power(4), o.raw(Op::Pow, o.a, o.c(4)));
    return;
  }
  EXPECT_EQ(power(0.5), unary(g, Op::Sqrt, o.a));
  EXPECT_EQ(power(-1), unary(g, Op::Reciprocal, o.a));
  o.expect_same(power(-1), o.raw(Op::Pow, o.a, o.c(-1)));
}

TEST_P(Simplify, EqualOperandsAndDoubleSigns) {
  Operands o(GetParam());
  auto& g = o.g;
  EXPECT_EQ(binary(g, Op::Maximum, o.a, o.a), o.a);
  EXPECT_EQ(binary(g, Op::Minimum, o.a, o.a), o.a);
  EXPECT_EQ(o.neg(o.neg(o.a)), o.a);
  o.expect_same(o.a, o.raw(Op::Neg, o.raw(Op::Neg, o.a)));
  o.expect_same(o.a, o.raw(Op::Maximum, o.a, o.a));
  NodeId floor = unary(g, Op::Floor, o.a);
  if (is_floating(o.type()))
    EXPECT_NE(floor, o.a);
  else
    EXPECT_EQ(floor, o.a);
}

TEST_P(Simplify, Select) {
  Operands o(GetParam());
  auto& g = o.g;
  NodeId less = binary(g, Op::Less, o.a, o.b), yes = constant(g, DType::Bool, o.dims, 1);
  EXPECT_EQ(select(g, yes, o.a, o.b), o.a);
  EXPECT_EQ(select(g, constant(g, DType::Bool, o.dims, 0), o.a, o.b), o.b);
  EXPECT_EQ(select(g, less, o.a, o.a), o.a);
  NodeId inner = select(g, less, o.a, o.b), ones = o.c(1);
  EXPECT_EQ(select(g, less, inner, ones), select(g, less, o.a, ones));
  EXPECT_EQ(select(g, less, ones, inner), select(g, less, ones, o.b));
  NodeId in[] = {less, inner, ones};
  o.expect_same(select(g, less, inner, ones), g.intern(Op::Select, o.type(), o.dims, in));
}

TEST_P(Simplify, LessWorkBelowABroadcast) {
  Graph g;
  DType t = GetParam();
  NodeId x = leaf(g, t, Dims{3}), y = leaf(g, t, Dims{3});
  const Dims wide{4, 3};
  NodeId bx = broadcast_to(g, x, wide), by = broadcast_to(g, y, wide);
  EXPECT_EQ(binary(g, Op::Add, bx, by), broadcast_to(g, binary(g, Op::Add, x, y), wide));
  EXPECT_EQ(unary(g, Op::Abs, bx), broadcast_to(g, unary(g, Op::Abs, x), wide));
  EXPECT_EQ(binary(g, Op::Add, bx, constant(g, t, wide, 2)),
            broadcast_to(g, binary(g, Op::Add, x, constant(g, t, Dims{3}, 2)), wide));
  NodeId z = leaf(g, t, Dims{4, 1});
  EXPECT_EQ(g[binary(g, Op::Add, bx, broadcast_to(g, z, wide))].op, Op::Add);
}

// Folding -----------------------------------------------------------------------------------------

double folded(Op op, DType t, double a) {
  Graph g;
  NodeId y = unary(g, op, constant(g, t, Dims{2}, a));
  EXPECT_TRUE(is_constant(g, y));
  return constant_value(g, y);
}
double folded(Op op, DType t, double a, double b) {
  Graph g;
  NodeId y = binary(g, op, constant(g, t, Dims{2}, a), constant(g, t, Dims{2}, b));
  EXPECT_TRUE(is_constant(g, y));
  return constant_value(g, y);
}

TEST(Fold, RoundsToTheDtype) {
  EXPECT_EQ(folded(Op::Exp, DType::Float64, 1), std::exp(1.0));
  EXPECT_EQ(folded(Op::Exp, DType::Float32, 1), static_cast<float>(std::exp(1.0)));
  EXPECT_EQ(folded(Op::Add, DType::Float16, 2048, 1), 2048);
  EXPECT_EQ(folded(Op::Add, DType::BFloat16, 256, 1), 256);
  EXPECT_EQ(folded(Op::Mul, DType::Float16, 300, 300), kInf);
}

TEST(Fold, IntegersWrap) {
  EXPECT_EQ(folded(Op::Add, DType::Int8, 127, 1), -128);
  EXPECT_EQ(folded(Op::Sub, DType::UInt8, 0, 1), 255);
  EXPECT_EQ(folded(Op::Mul, DType::Int32, 65536, 65536), 0);
  EXPECT_EQ(folded(Op::Neg, DType::Int32, -2147483648.0), -2147483648.0);
}

TEST(Fold, SpecialValues) {
  EXPECT_TRUE(std::signbit(folded(Op::Neg, DType::Float32, 0.0)));
  EXPECT_TRUE(std::isnan(folded(Op::Sub, DType::Float32, kInf, kInf)));
  EXPECT_EQ(folded(Op::Div, DType::Float32, 1, -0.0), -kInf);
  EXPECT_EQ(folded(Op::IsNan, DType::Float32, kNan), 1);
  EXPECT_EQ(folded(Op::IsInf, DType::Float32, -kInf), 1);
  EXPECT_EQ(folded(Op::IsFinite, DType::Float32, kNan), 0);
  EXPECT_EQ(folded(Op::Less, DType::Float32, kNan, 1), 0);
  EXPECT_TRUE(std::isnan(folded(Op::Maximum, DType::Float64, kNan, 1)));
  EXPECT_TRUE(std::isnan(folded(Op::Minimum, DType::Float64, 1, kNan)));
}

TEST(Fold, ConversionsTruncateWrapAndRound) {
  auto converted = [](DType from, DType to, double v) {
    Graph g;
    return constant_value(g, cast(g, constant(g, from, Dims{}, v), to));
  };
  EXPECT_EQ(converted(DType::Float32, DType::Int32, -2.9), -2);
  EXPECT_EQ(converted(DType::Float32, DType::Bool, 0.1), 1);
  EXPECT_EQ(converted(DType::Float32, DType::Int64, kNan), 0);
  EXPECT_EQ(converted(DType::Int32, DType::Int8, 300), 44);
  EXPECT_EQ(converted(DType::Int64, DType::Float32, 16777217), 16777216);
  EXPECT_EQ(converted(DType::Float64, DType::Float16, 65520), kInf);
}

TEST(Builder, RefusesWhatDoesNotFit) {
  Graph g;
  NodeId f = leaf(g, DType::Float32, Dims{2}), i = leaf(g, DType::Int32, Dims{2}),
         l = leaf(g, DType::Float32, Dims{3});
  auto kind = [](auto make) {
    try {
      make();
    } catch (const Error& e) {
      return e.kind;
    }
    return ErrorKind::Memory;
  };
  EXPECT_EQ(kind([&] { binary(g, Op::Add, f, i); }), ErrorKind::Type);
  EXPECT_EQ(kind([&] { binary(g, Op::Add, f, l); }), ErrorKind::Value);
  EXPECT_EQ(kind([&] { unary(g, Op::Sin, i); }), ErrorKind::Type);
  EXPECT_EQ(kind([&] { unary(g, Op::LogicalNot, f); }), ErrorKind::Type);
  EXPECT_EQ(kind([&] { select(g, f, f, f); }), ErrorKind::Type);
  EXPECT_EQ(kind([&] { reshape(g, f, Dims{3}); }), ErrorKind::Value);
  EXPECT_EQ(kind([&] { broadcast_to(g, f, Dims{3}); }), ErrorKind::Value);
  EXPECT_EQ(kind([&] { matmul(g, f, f, false, false); }), ErrorKind::Value);
  EXPECT_EQ(kind([&] { gather(g, f, l, 0); }), ErrorKind::Type);
  EXPECT_EQ(kind([&] { slice(g, f, {{1}, {2}, {1}}); }), ErrorKind::Index);
  EXPECT_EQ(kind([&] { slice(g, f, {{0, 0}, {2, 1}, {1, 1}}); }), ErrorKind::Index);
  EXPECT_EQ(kind([&] { slice_scatter(g, f, Dims{2}, Dims{0}, Dims{2}); }), ErrorKind::Index);
  EXPECT_EQ(kind([&] { slice(g, f, {{0}, {2}, {int64_t(1) << 62}}); }), ErrorKind::Index);
}

}  // namespace
}  // namespace gradcell

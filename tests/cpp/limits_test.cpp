// Counts beyond 16 and 32 bits: on leaves that nobody gives memory, where running is not the point.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/narrow.h"
#include "evaluate.h"
#include "ops/ops.h"
#include "plan/planner.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

constexpr int64_t kFar = (int64_t(1) << 31) + 5;

/// What the error says that f throws; empty: it throws none.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

Plan plan_of(const Graph& g, const std::vector<NodeId>& roots) {
  return make_plan(g, live_nodes(g, roots), roots, {});
}

TEST(Narrow, KeepsWhatFitsAndRefusesTheRest) {
  EXPECT_EQ(narrow<int32_t>(int64_t{INT32_MAX}), INT32_MAX);
  EXPECT_EQ(narrow<int32_t>(int64_t{INT32_MIN}), INT32_MIN);
  EXPECT_EQ(narrow<uint16_t>(65535), 65535);
  EXPECT_EQ(narrow<int>(-3.9), -3);
  EXPECT_EQ(narrow<int>(DType::Int8), static_cast<int64_t>(DType::Int8));
  EXPECT_NE(error_of([] { narrow<int32_t>(kFar); }).find("2147483653"), std::string::npos);
  EXPECT_NE(error_of([] { narrow<int32_t>(size_t(kFar)); }).find("2147483647"), std::string::npos);
  EXPECT_NE(error_of([] { narrow<uint16_t>(65536); }), "");
  EXPECT_NE(error_of([] { narrow<uint32_t>(-1); }), "");
  EXPECT_NE(error_of([] { narrow<uint32_t>(int64_t(1) << 32); }), "");
  EXPECT_NE(error_of([] { narrow<int32_t>(2147483648.0); }), "");
  EXPECT_NE(error_of([] { narrow<int32_t>(std::nan("")); }), "");
  EXPECT_NE(error_of([] { narrow<int64_t>(0x1p63); }), "");
  EXPECT_NE(error_of([] { narrow<uint32_t>(-1.0); }), "");
  EXPECT_EQ(low_bits<uint32_t>((uint64_t(7) << 32) + 5), 5u);
}

TEST(Narrow, FloatsStandForPlacesThatAreThere) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(place_among(2.9, 4), 2);
  EXPECT_EQ(place_among(3.0, 4), 3);
  for (double beyond : {4.0, 1e300, kInf}) EXPECT_EQ(place_among(beyond, 4), 3) << beyond;
  for (double before : {-0.5, -1e300, -kInf, std::nan("")}) EXPECT_EQ(place_among(before, 4), 0);
}

TEST(Limits, AConcatenationOfMoreThan16BitsOfTensors) {
  constexpr int64_t kPieces = 66'000;
  Graph g;
  std::vector<NodeId> pieces;
  for (int64_t i = 0; i < kPieces; ++i) pieces.push_back(leaf(g, DType::Float64, Dims{1}));
  const NodeId all = concat(g, pieces, 0);
  ASSERT_EQ(g.inputs(all).size(), size_t(kPieces));
  EXPECT_EQ(g.inputs(all)[kPieces - 1], pieces.back());
  const Movement m = spec(g, all).movement(g, all);
  ASSERT_EQ(m.pieces.size(), size_t(kPieces));
  EXPECT_EQ(m.pieces.back().input, kPieces - 1);
  EXPECT_EQ(m.pieces.back().start, Dims{kPieces - 1});
}

TEST(Limits, ASumOfProductsOfMoreThan16BitsOfFactors) {
  constexpr int64_t kTerms = 33'000;  // as a weight's gradient is that was used so often
  Graph g;
  Leaves leaves;
  std::vector<NodeId> pairs;
  std::vector<double> expected(6, 0);
  for (int64_t i = 0; i < kTerms; ++i) {
    const std::vector<double> x{double(i % 7), 1.0}, dy{1.0, double(i % 5), -2.0};
    pairs.push_back(leaf(g, DType::Float64, Dims{1, 2}));
    leaves[pairs.back()] = make_array(DType::Float64, {1, 2}, x);
    pairs.push_back(leaf(g, DType::Float64, Dims{1, 3}));
    leaves[pairs.back()] = make_array(DType::Float64, {1, 3}, dy);
    for (size_t k = 0; k < 6; ++k) expected[k] += x[k / 3] * dy[k % 3];
  }
  const NodeId sum = sum_of_products(g, pairs, {true, false});
  ASSERT_EQ(g.inputs(sum).size(), pairs.size());
  EXPECT_EQ(numbers(interpret(g, sum, leaves)), expected);
}

TEST(Limits, PlacesInLongRowsAreCountedByEnoughBits) {
  Graph g;
  const NodeId x = leaf(g, DType::Int8, Dims{2, kFar});
  for (Combine c : {Combine::Max, Combine::Min}) {
    EXPECT_EQ(g.dtype(arg_reduce(g, c, x, 1)), DType::Int64);
    EXPECT_EQ(g.dtype(arg_reduce(g, c, x, 0)), DType::Int32);
  }
}

TEST(Limits, NoRegionReadsBeyond32BitsOfALeaf) {
  Graph g;
  const NodeId table = leaf(g, DType::Int8, Dims{kFar / 4 + 2, 4}),
               x = leaf(g, DType::Int8, Dims{1000, 4});
  const NodeId last = slice(g, table, {{kFar / 4, 0}, {1, 4}, {1, 1}});
  const NodeId y = binary(g, Op::Add, x, broadcast_to(g, last, Dims{1000, 4}));
  const Plan plan = plan_of(g, {y});
  size_t regions = 0;
  for (const Stage& s : plan.stages)
    for (const Region& r : s.regions) {
      ++regions;
      for (const Uniform& u : r.uniforms) EXPECT_LE(u.count, INT32_MAX);
    }
  EXPECT_GE(regions, 1u);
}

TEST(Limits, ShapesWhoseElementsCannotBeCountedAreNamed) {
  constexpr int64_t kSide = int64_t(1) << 31;
  Graph g;
  const NodeId x = leaf(g, DType::Float32, Dims{kSide, 1, 1});
  const std::string text = error_of([&] { broadcast_to(g, x, Dims{kSide, kSide, kSide}); });
  EXPECT_EQ(text,
            "a tensor of shape [2147483648, 2147483648, 2147483648] has more elements than can be "
            "addressed");
  const std::string made = error_of([&] { constant(g, DType::Float64, Dims{kSide << 18}, 1); });
  EXPECT_NE(made.find(": a tensor of shape [562949953421312] has"), std::string::npos) << made;
  EXPECT_EQ(error_of([&] { constant(g, DType::Float64, Dims{int64_t(1) << 48}, 1); }), "");
  EXPECT_EQ(element_count(Dims{kSide, kSide, kSide, 0}), 0);
}

}  // namespace
}  // namespace gradcell

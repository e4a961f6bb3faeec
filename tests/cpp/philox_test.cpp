#include "base/philox.h"

#include <gtest/gtest.h>

#include "evaluate.h"
#include "ops/ops.h"

namespace gradcell {
namespace {

// The known answers that Random123, the authors' own implementation, comes with (kat_vectors,
// philox4x32 with 10 rounds).
TEST(Philox, KnownAnswers) {
  constexpr uint32_t kAll = 0xFFFFFFFFu;
  EXPECT_EQ(philox({0, 0}, {0, 0, 0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({kAll, kAll}, {kAll, kAll, kAll, kAll}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, KeyAndCounterAreTakenLowWordFirst) {
  EXPECT_EQ(philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull),
            philox({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0, 0}));
}

TEST(Philox, UniformsAreBelowOneAndEveryBlockDiffers) {
  EXPECT_EQ(uniform_from_bits(0), 0.0f);
  EXPECT_LT(uniform_from_bits(0xFFFFFFFFu), 1.0f);
  EXPECT_NE(philox(1, 0), philox(0, 0));
  EXPECT_NE(philox(0, 1), philox(0, 0));
  EXPECT_NE(philox(0, uint64_t(1) << 32), philox(0, 1));
  EXPECT_NE(philox(uint64_t(1) << 32, 0), philox(1, 0));
}

/// However many elements: element i is word i % 4 of block offset + i / 4.
TEST(Philox, EngineFollowsTheBlocks) {
  using namespace testing;  // NOLINT
  for (int64_t n : {0, 1, 3, 4, 5, 64, 1001, 300000}) {
    Graph g;
    NodeId state = leaf(g, DType::Int64, Dims{2});
    NodeId u = random_uniform(g, state, Dims{n});
    Array s = make_array(DType::Int64, {2}, {1234567, 89});
    std::vector<double> got = numbers(run(g, u, {{state, s}}));
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(got[i],
                uniform_from_bits(philox(1234567, 89 + static_cast<uint64_t>(i / 4))[i % 4]));
  }
}

TEST(Philox, UniformsLookUniform) {
  double mean = 0, square = 0;
  constexpr int kBlocks = 50000;
  for (int i = 0; i < kBlocks; ++i)
    for (uint32_t word : philox(7, static_cast<uint64_t>(i))) {
      double u = uniform_from_bits(word);
      mean += u, square += u * u;
    }
  mean /= 4 * kBlocks, square /= 4 * kBlocks;
  // Five standard deviations of a mean of 200,000.
  EXPECT_NEAR(mean, 0.5, 5 * 0.2887 / 447);
  EXPECT_NEAR(square, 1.0 / 3, 5 * 0.2981 / 447);
}

}  // namespace
}  // namespace gradcell

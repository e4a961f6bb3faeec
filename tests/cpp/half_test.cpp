#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gradcell {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// The value of a float16 pattern by its definition (IEEE 754-2019, 3.4).
float defined_half(uint16_t h) {
  int exponent = (h >> 10) & 31, fraction = h & 1023;
  float magnitude = exponent == 31 ? (fraction ? std::nanf("") : kInf)
                    : exponent == 0
                        ? std::ldexp(static_cast<float>(fraction), -24)
                        : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return h & 0x8000 ? -magnitude : magnitude;
}

TEST(Half, EveryPatternIsItsDefinition) {
  for (uint32_t h = 0; h < 65536; ++h) {
    float got = half_to_float(static_cast<uint16_t>(h)),
          want = defined_half(static_cast<uint16_t>(h));
    if (want != want)
      ASSERT_NE(got, got) << h;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want)) << h;
  }
}

TEST(Half, EveryPatternSurvivesARoundTrip) {
  for (uint32_t h = 0; h < 65536; ++h) {
    auto half = static_cast<uint16_t>(h);
    bool nan = (h & 0x7FFF) > 0x7C00;
    uint16_t back = float_to_half(half_to_float(half));
    if (nan)
      ASSERT_GT(back & 0x7FFF, 0x7C00) << h;
    else
      ASSERT_EQ(back, half);
    bool bnan = (h & 0x7FFF) > 0x7F80;
    uint16_t bback = float_to_bfloat(bfloat_to_float(half));
    if (bnan)
      ASSERT_GT(bback & 0x7FFF, 0x7F80) << h;
    else
      ASSERT_EQ(bback, half);
  }
}

/// Between two neighbours: to the nearer, at the midpoint to the even one.
TEST(Half, RoundsToNearestEven) {
  for (uint16_t h = 0; h < 0x7BFF; ++h) {
    float low = half_to_float(h), high = half_to_float(h + 1), middle = (low + high) / 2;
    uint16_t even = h % 2 ? h + 1 : h;
    ASSERT_EQ(float_to_half(middle), even) << h;
    ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0f)), h) << h;
    ASSERT_EQ(float_to_half(std::nextafter(middle, kInf)), h + 1) << h;
    ASSERT_EQ(float_to_half(-middle), even | 0x8000) << h;
  }
}

TEST(Half, BFloatRoundsToNearestEven) {
  for (uint16_t h = 0; h < 0x7F7F; ++h) {
    float low = bfloat_to_float(h);
    float middle = std::bit_cast<float>((uint32_t(h) << 16) | 0x8000u);
    uint16_t even = h % 2 ? h + 1 : h;
    ASSERT_EQ(float_to_bfloat(low), h);
    ASSERT_EQ(float_to_bfloat(middle), even) << h;
    ASSERT_EQ(float_to_bfloat(std::nextafter(middle, kInf)), h + 1) << h;
    ASSERT_EQ(float_to_bfloat(std::nextafter(middle, 0.0f)), h) << h;
  }
}

TEST(Half, OverflowsToInfinity) {
  EXPECT_EQ(float_to_half(65504.0f), 0x7BFF);
  EXPECT_EQ(float_to_half(65519.996f), 0x7BFF);
  EXPECT_EQ(float_to_half(65520.0f), 0x7C00);
  EXPECT_EQ(float_to_half(-1e30f), 0xFC00);
  EXPECT_EQ(float_to_half(kInf), 0x7C00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0);
  EXPECT_EQ(float_to_half(std::nextafter(0x1p-25f, 1.0f)), 1);
  EXPECT_EQ(float_to_bfloat(std::numeric_limits<float>::max()), 0x7F80);
}

}  // namespace
}  // namespace gradcell

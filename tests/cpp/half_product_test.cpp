#include "cpu/products/half_product.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/half.h"
#include "base/thread_pool.h"
#include "cpu/products/product.h"

namespace gradcell::cpu {
namespace {

struct BFloat16 {
  static constexpr bool kNeedsUnit = true;
  static constexpr double kRounding = 0x1p-8;
  static float widen(uint16_t x) { return bfloat_to_float(x); }
  static uint16_t narrow(float x) { return float_to_bfloat(x); }
  static void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t* a,
                      const uint16_t* b, uint16_t* c) {
    bf16_product(ta, tb, m, n, k, a, b, DType::BFloat16, c);
  }
};
struct Float16 {
  static constexpr bool kNeedsUnit = true;
  static constexpr double kRounding = 0x1p-11;
  static float widen(uint16_t x) { return half_to_float(x); }
  static uint16_t narrow(float x) { return float_to_half(x); }
  static void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t* a,
                      const uint16_t* b, uint16_t* c) {
    EXPECT_TRUE(f16_product(ta, tb, m, n, k, a, b, DType::Float16, c));
  }
};

/// The same numbers by products that every machine has.
template <class Type, DType type>
struct Tiles : Type {
  static constexpr bool kNeedsUnit = false;
  static void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t* a,
                      const uint16_t* b, uint16_t* c) {
    half_matrix_product(type, ta, tb, m, n, k, a, b, type, c);
  }
};

template <class Type>
struct HalfProduct : ::testing::Test {
  void SetUp() override {
    if (Type::kNeedsUnit && !has_half_products()) GTEST_SKIP() << "no matrix unit";
  }
  /// Over many binades, so that parts of numbers are small.
  static std::vector<uint16_t> random_matrix(int64_t n, std::mt19937& random) {
    std::normal_distribution<float> number;
    std::uniform_int_distribution<int> binade(-14, 3);
    std::vector<uint16_t> x(static_cast<size_t>(n));
    for (uint16_t& v : x) v = Type::narrow(std::ldexp(number(random), binade(random)));
    return x;
  }
};
using Types = ::testing::Types<BFloat16, Float16, Tiles<BFloat16, DType::BFloat16>,
                               Tiles<Float16, DType::Float16>>;
TYPED_TEST_SUITE(HalfProduct, Types);

TYPED_TEST(HalfProduct, AgreesWithSumsInDouble) {
  std::mt19937 random(3);
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {16, 16, 32},
                         {33, 31, 65},
                         {64, 96, 40},
                         {130, 7, 129},
                         {20, 70, 2100},
                         {300, 520, 66},
                         {257, 200, 300}}) {
    for (int flags = 0; flags < 4; ++flags) {
      SCOPED_TRACE(std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k) + " " +
                   std::to_string(flags));
      const bool ta = flags & 1, tb = flags & 2;
      const auto a = TestFixture::random_matrix(m * k, random),
                 b = TestFixture::random_matrix(k * n, random);
      std::vector<uint16_t> c(static_cast<size_t>(m * n) + 1, 0x7777);
      TypeParam::product(ta, tb, m, n, k, a.data(), b.data(), c.data());
      EXPECT_EQ(c.back(), 0x7777);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0, size = 0;
          for (int64_t l = 0; l < k; ++l) {
            const double term = double(TypeParam::widen(a[ta ? l * m + i : i * k + l])) *
                                TypeParam::widen(b[tb ? j * k + l : l * n + j]);
            sum += term;
            size += std::abs(term);
          }
          ASSERT_NEAR(TypeParam::widen(c[i * n + j]), sum,
                      std::abs(sum) * TypeParam::kRounding + size * 1e-6 + 0x1p-25)
              << i << " " << j;
        }
      }
    }
  }
}

TYPED_TEST(HalfProduct, DoesNotDependOnTheNumberOfThreads) {
  std::mt19937 random(4);
  const auto a = TestFixture::random_matrix(300 * 200, random),
             b = TestFixture::random_matrix(200 * 150, random);
  std::vector<uint16_t> one(300 * 150), seven(300 * 150);
  set_max_threads(1);
  TypeParam::product(false, true, 300, 150, 200, a.data(), b.data(), one.data());
  set_max_threads(7);
  TypeParam::product(false, true, 300, 150, 200, a.data(), b.data(), seven.data());
  set_max_threads(0);
  EXPECT_EQ(one, seven);
}

TEST(Bf16Product, NonFiniteNumbersStayInTheirRowAndColumn) {
  if (!has_half_products()) GTEST_SKIP() << "no matrix unit";
  const auto narrow = BFloat16::narrow;
  const auto widen = BFloat16::widen;
  constexpr int64_t n = 70;
  std::vector<uint16_t> a(n * n, narrow(1)), b(n * n, narrow(0.5f)), c(n * n);
  a[5 * n + 3] = narrow(std::numeric_limits<float>::quiet_NaN());
  b[9 * n + 68] = narrow(-std::numeric_limits<float>::infinity());
  BFloat16::product(false, false, n, n, n, a.data(), b.data(), c.data());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const float y = widen(c[i * n + j]);
      if (i == 5)
        EXPECT_TRUE(std::isnan(y));
      else if (j == 68)
        EXPECT_EQ(y, -std::numeric_limits<float>::infinity());
      else
        EXPECT_EQ(y, 35);
    }
  }
}

TEST(F16Product, LeavesNonFiniteNumbersToOthers) {
  if (!has_half_products()) GTEST_SKIP() << "no matrix unit";
  constexpr int64_t n = 70;
  for (uint16_t special : {0x7C00, 0xFC00, 0x7E01}) {
    std::vector<uint16_t> a(n * n, 0x3C00), b(a), c(n * n, 0x7777);
    b[9 * n + 68] = special;
    EXPECT_FALSE(f16_product(false, false, n, n, n, a.data(), b.data(), DType::Float16, c.data()));
    EXPECT_EQ(c, std::vector<uint16_t>(n * n, 0x7777));
  }
}

TEST(F16Product, TheLargestNumbersAndDenormals) {
  if (!has_half_products()) GTEST_SKIP() << "no matrix unit";
  constexpr int64_t n = 64;
  std::vector<uint16_t> a(n * n, 0), b(n * n, 0), c(n * n);
  for (int64_t i = 0; i < n; ++i) a[i * n + i] = 0x3C00;  // the identity
  for (int64_t i = 0; i < n * n; ++i) b[i] = static_cast<uint16_t>(i % 2 ? 0x7BFF - i : i);
  Float16::product(false, false, n, n, n, a.data(), b.data(), c.data());
  EXPECT_EQ(c, b);
}

}  // namespace
}  // namespace gradcell::cpu

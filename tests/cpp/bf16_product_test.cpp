#include "cpu/bf16_product.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "runtime/half.h"
#include "runtime/thread_pool.h"

namespace gradcell::cpu {
namespace {

float widen(uint16_t x) { return bfloat_to_float(x); }
uint16_t narrow(float x) { return float_to_bfloat(x); }

std::vector<uint16_t> random_matrix(int64_t n, std::mt19937& random) {
  std::normal_distribution<float> number;
  std::vector<uint16_t> x(static_cast<size_t>(n));
  for (uint16_t& v : x) v = narrow(number(random));
  return x;
}

TEST(Bf16Product, AgreesWithSumsInDouble) {
  if (!has_bf16_products()) GTEST_SKIP() << "no matrix unit";
  std::mt19937 random(3);
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {16, 16, 32},
                         {33, 31, 65},
                         {64, 96, 40},
                         {130, 7, 129},
                         {257, 200, 300}}) {
    for (int flags = 0; flags < 4; ++flags) {
      SCOPED_TRACE(std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k) + " " +
                   std::to_string(flags));
      const bool ta = flags & 1, tb = flags & 2;
      const auto a = random_matrix(m * k, random), b = random_matrix(k * n, random);
      std::vector<uint16_t> c(static_cast<size_t>(m * n) + 1, 0x7777);
      bf16_product(ta, tb, m, n, k, a.data(), b.data(), c.data());
      EXPECT_EQ(c.back(), 0x7777);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0, size = 0;
          for (int64_t l = 0; l < k; ++l) {
            const double term =
                double(widen(a[ta ? l * m + i : i * k + l])) * widen(b[tb ? j * k + l : l * n + j]);
            sum += term;
            size += std::abs(term);
          }
          ASSERT_NEAR(widen(c[i * n + j]), sum, std::abs(sum) * 0x1p-8 + size * 1e-6)
              << i << " " << j;
        }
      }
    }
  }
}

TEST(Bf16Product, NonFiniteNumbersStayInTheirRowAndColumn) {
  if (!has_bf16_products()) GTEST_SKIP() << "no matrix unit";
  constexpr int64_t n = 70;
  std::vector<uint16_t> a(n * n, narrow(1)), b(n * n, narrow(0.5f)), c(n * n);
  a[5 * n + 3] = narrow(std::numeric_limits<float>::quiet_NaN());
  b[9 * n + 68] = narrow(-std::numeric_limits<float>::infinity());
  bf16_product(false, false, n, n, n, a.data(), b.data(), c.data());
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

TEST(Bf16Product, DoesNotDependOnTheNumberOfThreads) {
  if (!has_bf16_products()) GTEST_SKIP() << "no matrix unit";
  std::mt19937 random(4);
  const auto a = random_matrix(300 * 200, random), b = random_matrix(200 * 150, random);
  std::vector<uint16_t> one(300 * 150), seven(300 * 150);
  set_max_threads(1);
  bf16_product(false, true, 300, 150, 200, a.data(), b.data(), one.data());
  set_max_threads(7);
  bf16_product(false, true, 300, 150, 200, a.data(), b.data(), seven.data());
  set_max_threads(0);
  EXPECT_EQ(one, seven);
}

}  // namespace
}  // namespace gradcell::cpu

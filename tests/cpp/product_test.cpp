#include "cpu/products/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"

namespace gradcell::cpu {
namespace {

template <class T>
std::vector<T> random_matrix(int64_t n, std::mt19937& random) {
  std::normal_distribution<T> number;
  std::vector<T> x(static_cast<size_t>(n));
  for (T& v : x) v = number(random);
  return x;
}

/// Whole tiles, tails of rows and columns, several blocks of k: against sums in long double (every
/// step'th row), and the same bits with one and with seven threads.
template <class T>
void check(int64_t m, int64_t n, int64_t k, int64_t step = 5) {
  std::mt19937 random(7);
  for (int flags = 0; flags < 4; ++flags) {
    SCOPED_TRACE(std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k) + " " +
                 std::to_string(flags));
    const bool ta = flags & 1, tb = flags & 2;
    const auto a = random_matrix<T>(m * k, random), b = random_matrix<T>(k * n, random);
    std::vector<T> c(static_cast<size_t>(m * n) + 1, T(77)), again(c);
    set_max_threads(1);
    matrix_product(ta, tb, m, n, k, a.data(), b.data(), c.data());
    set_max_threads(7);
    matrix_product(ta, tb, m, n, k, a.data(), b.data(), again.data());
    set_max_threads(0);
    EXPECT_EQ(c, again);
    EXPECT_EQ(c.back(), T(77));
    for (int64_t i = 0; i < m; i += step) {
      for (int64_t j = 0; j < n; ++j) {
        long double sum = 0, size = 1;
        for (int64_t l = 0; l < k; ++l) {
          const long double term = static_cast<long double>(a[ta ? l * m + i : i * k + l]) *
                                   b[tb ? j * k + l : l * n + j];
          sum += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(c[i * n + j], static_cast<double>(sum),
                    static_cast<double>(size) * std::numeric_limits<T>::epsilon() * 8)
            << i << " " << j;
      }
    }
  }
}

TEST(MatrixProduct, AgreesWithLongDouble) {
  check<float>(12, 70, 30);  // too little for tiles
  check<float>(32, 640, 64);
  check<float>(97, 130, 80);
  check<float>(193, 200, 300);
  check<float>(96, 127, 129);
  check<float>(400, 32, 80);   // one tile, b as it lies
  check<float>(640, 16, 100);  // a vector of columns
  check<float>(300, 600, 17);  // by tiles on one thread, by slabs on seven
  check<float>(25, 770, 1000);
  check<float>(270, 325, 2500, 50);   // k in blocks
  check<float>(200, 330, 22000, 99);  // in parts
  check<double>(256, 260, 1100, 50);
  check<double>(330, 32, 96);
  check<double>(100, 77, 257);
  check<double>(193, 193, 130);
  check<double>(60, 320, 160);
}

}  // namespace
}  // namespace gradcell::cpu

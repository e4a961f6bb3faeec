#include "cpu/products/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
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

/// An element [i, j] is the sum over l of the products of the pairs factors(l), as in long double.
template <class T, class F>
void expect_sum(T got, int64_t i, int64_t j, int64_t k, F factors) {
  long double sum = 0, size = 1;
  for (int64_t l = 0; l < k; ++l) {
    const auto [x, y] = factors(l);
    const long double term = static_cast<long double>(x) * y;
    sum += term;
    size += std::fabs(term);
  }
  ASSERT_NEAR(got, static_cast<double>(sum),
              static_cast<double>(size) * std::numeric_limits<T>::epsilon() * 8)
      << i << " " << j;
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
        expect_sum(c[i * n + j], i, j, k, [&](int64_t l) {
          return std::pair(a[ta ? l * m + i : i * k + l], b[tb ? j * k + l : l * n + j]);
        });
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
  check<float>(270, 325, 2500, 50);   // large in every way
  check<float>(250, 325, 2500, 50);   // k in blocks
  check<float>(200, 330, 22000, 99);  // in parts
  check<double>(256, 260, 1100, 50);
  check<double>(301, 529, 257, 50);  // large in every way
  check<double>(250, 260, 1100, 50);
  check<double>(330, 32, 96);
  check<double>(100, 77, 257);
  check<double>(193, 193, 130);
  check<double>(60, 320, 160);
}

/// a' a or a a', whose memory held NaN: against sums in long double (every 41st row), its lower
/// triangle the upper one's mirror image, the same bits for any number of threads.
template <class T>
void check_gram(int64_t n, int64_t k) {
  std::mt19937 random(8);
  const auto a = random_matrix<T>(n * k, random);
  for (const bool ta : {false, true}) {
    SCOPED_TRACE(std::to_string(n) + " " + std::to_string(k) + " " + std::to_string(ta));
    std::vector<T> first;
    for (const int threads : {1, 2, 5}) {
      std::vector<T> c(static_cast<size_t>(n * n), std::numeric_limits<T>::quiet_NaN());
      set_max_threads(threads);
      matrix_product(ta, !ta, n, n, k, a.data(), a.data(), c.data());
      set_max_threads(0);
      if (first.empty()) first = c;
      ASSERT_EQ(c, first);
    }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < i; ++j) ASSERT_EQ(first[i * n + j], first[j * n + i]);
    for (int64_t i = 0; i < n; i += 41) {
      for (int64_t j = 0; j < n; ++j) {
        expect_sum(first[i * n + j], i, j, k, [&](int64_t l) {
          return std::pair(a[ta ? l * n + i : i * k + l], a[ta ? l * n + j : j * k + l]);
        });
      }
    }
  }
}

TEST(MatrixProduct, OfAMatrixAndItselfTransposed) {
  check_gram<double>(300, 60);
  check_gram<double>(256, 256);
  check_gram<double>(737, 301);  // parts of the triangle, the last one narrow
  check_gram<float>(530, 700);
}

}  // namespace
}  // namespace gradcell::cpu

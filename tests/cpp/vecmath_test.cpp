// The vector math of every level this machine runs: special values, strided floats, sampled
// doubles, agreement of arrays with single numbers, tails and aliasing.
#include "math/vecmath.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "vecmath_reference.h"
#include "vecmath_table.h"

namespace gradcell::testing {
namespace {

template <class T>
std::vector<T> special_values() {
  using L = std::numeric_limits<T>;
  std::vector<T> values;
  for (T v : {T(0),
              L::denorm_min(),
              3 * L::denorm_min(),
              L::min() / 2,
              L::min(),
              L::epsilon(),
              T(0.25),
              T(0.5),
              T(1) - L::epsilon() / 2,
              T(1),
              T(1) + L::epsilon(),
              T(1.5),
              T(2),
              T(2.5),
              T(3),
              T(10),
              T(88),
              T(89),
              T(100),
              T(104),
              T(709),
              T(710),
              T(745),
              T(746),
              T(1e5),
              T(16777216),
              T(16777217),
              T(1e10),
              T(1e20),
              L::max() / 2,
              L::max(),
              L::infinity(),
              L::quiet_NaN()}) {
    values.push_back(v);
    values.push_back(-v);
  }
  return values;
}

double number_from_environment(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atof(text) : otherwise;
}

/// Doubles of every binade, and as many in each of the ranges where the functions do something.
std::vector<double> sampled_doubles(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> x = special_values<double>();
  const auto uniform = [&](double a, double b) {
    return a + (b - a) * (static_cast<double>(random() >> 11) * 0x1p-53);
  };
  for (size_t i = 0; i < n; ++i) {
    x.push_back(std::bit_cast<double>(random()));
    x.push_back(uniform(-1, 1));
    x.push_back(uniform(-10, 10));
    x.push_back(uniform(-800, 800));
    x.push_back(1 + std::ldexp(uniform(-1, 1), -static_cast<int>(random() % 53)));
    x.push_back(std::ldexp(uniform(-1, 1), -static_cast<int>(random() % 60)));
    // Near a multiple of pi/2.
    x.push_back(static_cast<double>(random() % (uint64_t(1) << random() % 40)) *
                1.5707963267948966);
  }
  return x;
}

template <class T>
struct Worst {
  double ulps = 0;
  T a = 0, b = 0, got = 0;
  void see(double error, T x, T y, T result) {
    if (error > ulps) *this = {error, x, y, result};
  }
};
template <class T>
void report(const char* level, const char* name, const Worst<T>& worst, double bound) {
  if (std::getenv("GRADCELL_REPORT")) {
    std::printf("%-4s %-8s %s %.4f at %a %a\n", level, name, sizeof(T) == 4 ? "f32" : "f64",
                worst.ulps, double(worst.a), double(worst.b));
  }
  EXPECT_LE(worst.ulps, bound) << level << " " << name << (sizeof(T) == 4 ? " f32" : " f64") << "("
                               << worst.a << ", " << worst.b << ") = " << worst.got << std::hexfloat
                               << " at " << worst.a << " " << worst.b;
}

const UnaryMath& find_math(const VecMathTable& table, const std::string& name) {
  for (const auto& f : table.unary) {
    if (name == f.name) return f;
  }
  std::abort();
}

/// Whether the C library's long double functions are good enough to compare with: those of Windows
/// are not (asin and pow lose bits, sin of 1e20 is 1e20). There the bits are compared:
/// bits_test.cpp.
#ifdef _WIN32
constexpr bool kHasReference = false;
#else
constexpr bool kHasReference = true;
#endif

TEST(VecMath, FloatsWithinOneUlp) {
  if (!kHasReference) GTEST_SKIP() << "no reference";
  std::vector<float> x = special_values<float>();
  for (uint64_t word = 0; word < uint64_t(1) << 32; word += 4099) {
    x.push_back(std::bit_cast<float>(uint32_t(word)));
  }
  std::vector<float> y(x.size());
  for (const auto* table : vecmath_tables()) {
    for (const auto& f : table->unary) {
      const auto& reference = find_reference(kUnaryReferences, f.name);
      f.map32(x.data(), y.data(), x.size());
      Worst<float> worst;
      for (size_t i = 0; i < x.size(); ++i) {
        worst.see(ulp_error(y[i], reference.in_double(x[i])), x[i], 0, y[i]);
      }
      report(table->level, f.name, worst, 1.0);
    }
  }
}

TEST(VecMath, DoublesWithinOneAndAHalfUlp) {
  if (!kHasReference) GTEST_SKIP() << "no reference";
  if (sizeof(Wide) == sizeof(double)) GTEST_SKIP() << "long double is double here";
  const auto x =
      sampled_doubles(static_cast<size_t>(number_from_environment("GRADCELL_SAMPLES", 20000)), 1);
  std::vector<double> y(x.size());
  std::vector<Wide> truth(x.size());
  for (const auto& reference : kUnaryReferences) {
    for (size_t i = 0; i < x.size(); ++i) truth[i] = reference.in_wide(x[i]);
    for (const auto* table : vecmath_tables()) {
      const auto& f = find_math(*table, reference.name);
      f.map64(x.data(), y.data(), x.size());
      Worst<double> worst;
      for (size_t i = 0; i < x.size(); ++i) worst.see(ulp_error(y[i], truth[i]), x[i], 0, y[i]);
      report(table->level, f.name, worst, 1.5);
    }
  }
}

template <class T>
void pairs_to_test(std::vector<T>& a, std::vector<T>& b, size_t n) {
  std::mt19937_64 random(7);
  using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  for (T x : special_values<T>()) {
    for (T y : special_values<T>()) a.push_back(x), b.push_back(y);
    for (int k = -9; k <= 9; ++k) a.push_back(x), b.push_back(T(k) / 2);
  }
  const auto unit = [&] { return T(random() >> 40) * T(0x1p-24); };
  for (size_t i = 0; i < n; ++i) {
    a.push_back(std::bit_cast<T>(Word(random()))), b.push_back(std::bit_cast<T>(Word(random())));
    a.push_back(unit() * 4), b.push_back((unit() - T(0.5)) * 60);
    a.push_back(unit() * 1000), b.push_back((unit() - T(0.5)) * 200);
    a.push_back(1 + (unit() - T(0.5)) / 1024), b.push_back((unit() - T(0.5)) * 2000000);
    a.push_back((unit() - T(0.5)) * 8), b.push_back((unit() - T(0.5)) * 8);
    a.push_back((unit() - T(0.5)) * 8), b.push_back(T(int(random() % 41) - 20));
  }
}
template <class T, class Math, class F>
void check_binary(const char* level, const Math& math, F map, double bound, size_t n) {
  const auto& reference = find_reference(kBinaryReferences, math.name);
  std::vector<T> a, b;
  pairs_to_test(a, b, n);
  std::vector<T> y(a.size());
  map(a.data(), b.data(), y.data(), a.size());
  Worst<T> worst;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = sizeof(T) == 4 ? ulp_error(y[i], reference.in_double(a[i], b[i]))
                                        : ulp_error(y[i], reference.in_wide(a[i], b[i]));
    worst.see(error, a[i], b[i], y[i]);
  }
  report(level, math.name, worst, bound);
}
TEST(VecMath, TwoArguments) {
  if (!kHasReference) GTEST_SKIP() << "no reference";
  const auto n = static_cast<size_t>(number_from_environment("GRADCELL_SAMPLES", 20000));
  for (const auto* table : vecmath_tables()) {
    for (const auto& f : table->binary) {
      check_binary<float>(table->level, f, f.map32, 1.0, n);
      if (sizeof(Wide) > sizeof(double)) {
        check_binary<double>(table->level, f, f.map64, std::string(f.name) == "pow" ? 2.0 : 1.5, n);
      }
    }
  }
}

template <class T>
bool same_bits(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof(T)) == 0;
}
template <class T, class Map, class Scalar>
void check_places(const std::string& what, Map map, Scalar scalar) {
  std::vector<T> x;
  for (double v : sampled_doubles(40, 3)) x.push_back(static_cast<T>(v));
  for (size_t n : {size_t(0), size_t(1), size_t(2), size_t(7), size_t(15), size_t(17), size_t(64),
                   size_t(257), x.size()}) {
    for (size_t offset : {size_t(0), size_t(3)}) {
      if (offset + n > x.size()) continue;
      std::vector<T> y(x.begin(), x.end());
      map(y.data() + offset, y.data() + offset, n);
      for (size_t i = 0; i < x.size(); ++i) {
        const bool inside = i >= offset && i < offset + n;
        ASSERT_TRUE(same_bits(y[i], inside ? scalar(x[i]) : x[i]))
            << what << " at " << x[i] << ": " << y[i] << ", n = " << n;
      }
    }
  }
}
TEST(VecMath, ArraysAgreeWithNumbersAtEveryPlace) {
  for (const auto* table : vecmath_tables()) {
    for (const auto& f : table->unary) {
      check_places<float>(std::string(table->level) + " " + f.name, f.map32, f.scalar32);
      check_places<double>(std::string(table->level) + " " + f.name, f.map64, f.scalar64);
    }
    for (const auto& f : table->binary) {
      check_places<float>(
          std::string(table->level) + " " + f.name,
          [&](const float* x, float* y, size_t n) { f.map32(x, y, y, n); },
          [&](float x) { return f.scalar32(x, x); });
      check_places<double>(
          std::string(table->level) + " " + f.name,
          [&](const double* x, double* y, size_t n) { f.map64(x, y, y, n); },
          [&](double x) { return f.scalar64(x, x); });
    }
  }
}

namespace scalar = GRADCELL_ISA::scalar;

template <class T>
void check_integers() {
  constexpr T kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  EXPECT_EQ(scalar::mod(T(7), T(3)), 1);
  EXPECT_EQ(scalar::mod(T(-7), T(3)), 2);
  EXPECT_EQ(scalar::mod(T(7), T(-3)), -2);
  EXPECT_EQ(scalar::mod(T(-7), T(-3)), -1);
  EXPECT_EQ(scalar::mod(T(6), T(-3)), 0);
  EXPECT_EQ(scalar::mod(T(5), T(0)), 0);
  EXPECT_EQ(scalar::mod(T(kMin), T(-1)), 0);
  EXPECT_EQ(scalar::mod(T(kMin), T(kMax)), kMax - 1);
  EXPECT_EQ(scalar::floor_div(T(7), T(3)), 2);
  EXPECT_EQ(scalar::floor_div(T(-7), T(3)), -3);
  EXPECT_EQ(scalar::floor_div(T(7), T(-3)), -3);
  EXPECT_EQ(scalar::floor_div(T(-7), T(-3)), 2);
  EXPECT_EQ(scalar::floor_div(T(-6), T(3)), -2);
  EXPECT_EQ(scalar::floor_div(T(5), T(0)), 0);
  EXPECT_EQ(scalar::floor_div(T(kMin), T(-1)), kMin);
  EXPECT_EQ(scalar::ipow<T>(3, 4), 81);
  EXPECT_EQ(scalar::ipow<T>(-2, 3), -8);
  EXPECT_EQ(scalar::ipow<T>(0, 0), 1);
  EXPECT_EQ(scalar::ipow<T>(2, -1), 0);
  EXPECT_EQ(scalar::ipow<T>(-1, -3), -1);
  EXPECT_EQ(scalar::ipow<T>(2, sizeof(T) * 8 - 1), kMin);
  EXPECT_EQ(scalar::maximum<T>(kMin, 3), 3);
  EXPECT_EQ(scalar::minimum<T>(kMin, 3), kMin);
}
TEST(VecMath, Integers) {
  check_integers<int32_t>();
  check_integers<int64_t>();
}

template <class T>
void check_remainders() {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  EXPECT_EQ(scalar::mod(T(7.5), T(2)), T(1.5));
  EXPECT_EQ(scalar::mod(T(-7.5), T(2)), T(0.5));
  EXPECT_EQ(scalar::mod(T(7.5), T(-2)), T(-0.5));
  EXPECT_TRUE(same_bits(scalar::mod(T(6), T(-3)), T(-0.0)));
  EXPECT_TRUE(same_bits(scalar::mod(T(-6), T(3)), T(0)));
  EXPECT_EQ(scalar::mod(T(5), T(inf)), 5);
  EXPECT_EQ(scalar::mod(T(-5), T(inf)), inf);
  EXPECT_TRUE(std::isnan(scalar::mod(T(inf), T(2))));
  EXPECT_TRUE(std::isnan(scalar::mod(T(5), T(0))));
  EXPECT_TRUE(std::isnan(scalar::mod(T(nan), T(2))));
  EXPECT_EQ(scalar::floor_div(T(7.5), T(2)), 3);
  EXPECT_EQ(scalar::floor_div(T(-7.5), T(2)), -4);
  EXPECT_EQ(scalar::floor_div(T(5), T(0)), inf);
  EXPECT_EQ(scalar::floor_div(T(-5), T(inf)), -1);
  EXPECT_TRUE(std::isnan(scalar::floor_div(T(nan), T(2))));
  EXPECT_TRUE(std::isnan(scalar::maximum<T>(nan, 2)) && std::isnan(scalar::maximum<T>(2, nan)));
  EXPECT_TRUE(std::isnan(scalar::minimum<T>(nan, 2)) && std::isnan(scalar::minimum<T>(2, nan)));
  std::mt19937_64 random(5);
  using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  for (int i = 0; i < 200000; ++i) {
    const T a = i % 2 ? std::bit_cast<T>(Word(random())) : T(int(random() % 2000) - 1000) / 8;
    const T b = i % 2 ? std::bit_cast<T>(Word(random())) : T(int(random() % 200) - 100) / 8;
    T r = std::fmod(a, b);
    if (r == 0) r = std::copysign(T(0), b);
    if (r != 0 && (r < 0) != (b < 0)) r += b;
    ASSERT_TRUE(same_bits(scalar::mod(T(a), T(b)), r)) << std::hexfloat << a << " " << b;
  }
}
TEST(VecMath, Remainders) {
  check_remainders<float>();
  check_remainders<double>();
}

}  // namespace
}  // namespace gradcell::testing

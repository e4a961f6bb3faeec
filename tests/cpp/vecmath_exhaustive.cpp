// Every float there is through every unary function of every level. Some minutes a level, so
// disabled by default; run with
//   gradcell_tests --gtest_also_run_disabled_tests --gtest_filter='*VecMathExhaustive*'
// and GRADCELL_LEVEL=v4, GRADCELL_FUNCTION=tanh in the environment to choose. The reference is the C
// library's double function; its vector form (libmvec, within 4 ULPs of double) is used where the
// machine has it, and each new maximum is confirmed in long double.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cpu/vecmath_table.h"
#include "vecmath_reference.h"

#if defined(__x86_64__) && defined(__linux__)
#include <dlfcn.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC's own _mm512_undefined_pd
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace gradcell::testing {
namespace {

constexpr size_t kChunk = 4096;

#if defined(__x86_64__) && defined(__linux__)
using Vector8 = __m512d (*)(__m512d);

/// libmvec's function for 8 doubles, or null.
Vector8 vector_reference(const char* name) {
  // Where most floats are out of range libmvec goes back to numbers one by one, the slow way.
  for (const char* quick : {"exp", "expm1", "log", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh"}) {
    if (std::strcmp(name, quick) == 0) return nullptr;
  }
  static void* library = __builtin_cpu_supports("avx512f") ? dlopen("libmvec.so.1", RTLD_NOW) : nullptr;
  if (!library) return nullptr;
  return reinterpret_cast<Vector8>(dlsym(library, ("_ZGVeN8v_" + std::string(name)).c_str()));
}
__attribute__((target("avx512f"))) void apply_vector(Vector8 f, const float* x, double* y) {
  for (size_t i = 0; i < kChunk; i += 8) {
    _mm512_storeu_pd(y + i, f(_mm512_cvtps_pd(_mm256_loadu_ps(x + i))));
  }
}
#endif

struct Reference {
  explicit Reference(const char* name) : scalar(find_reference(kUnaryReferences, name)) {
#if defined(__x86_64__) && defined(__linux__)
    vector = vector_reference(name);
#endif
  }
  void apply(const float* x, double* y) const {
#if defined(__x86_64__) && defined(__linux__)
    if (vector) return apply_vector(vector, x, y);
#endif
    for (size_t i = 0; i < kChunk; ++i) y[i] = scalar.in_double(x[i]);
  }
  const UnaryReference& scalar;
#if defined(__x86_64__) && defined(__linux__)
  Vector8 vector = nullptr;
#endif
};

/// |y - truth| in ULPs of finite numbers; anything else gives NaN or more than any bound.
inline double quick_error(float y, double truth) {
  uint64_t exponent = std::bit_cast<uint64_t>(truth) >> 52 & 2047;
  exponent = exponent < 1023 - 126 ? 1023 - 126 : exponent;
  const double inverse_ulp = std::bit_cast<double>((2046 + 23 - exponent) << 52);
  const double error = std::abs(static_cast<double>(y) - truth) * inverse_ulp;
  const bool signs = std::signbit(y) == std::signbit(truth);
  return signs ? error : std::numeric_limits<double>::infinity();
}

struct Worst {
  double ulps = 0;
  float at = 0;
};

Worst sweep(const UnaryMath& f) {
  const Reference reference(f.name);
  std::vector<float> x(kChunk), y(kChunk);
  std::vector<double> truth(kChunk), error(kChunk);
  Worst worst;
  for (uint64_t begin = 0; begin < uint64_t(1) << 32; begin += kChunk) {
    for (size_t i = 0; i < kChunk; ++i) x[i] = std::bit_cast<float>(uint32_t(begin + i));
    f.map32(x.data(), y.data(), kChunk);
    reference.apply(x.data(), truth.data());
    for (size_t i = 0; i < kChunk; ++i) error[i] = quick_error(y[i], truth[i]);
    for (size_t i = 0; i < kChunk; ++i) {
      if (error[i] <= worst.ulps) continue;
      if (std::isnan(y[i]) && std::isnan(truth[i])) continue;
      if (std::isinf(y[i]) && std::abs(truth[i]) > 0x1p128 && (y[i] > 0) == (truth[i] > 0)) continue;
      const double ulps = ulp_error(y[i], reference.scalar.in_wide(x[i]));
      if (ulps > worst.ulps) worst = {ulps, x[i]};
    }
  }
  return worst;
}

TEST(VecMathExhaustive, DISABLED_EveryFloat) {
  const char* level = std::getenv("GRADCELL_LEVEL");
  const char* function = std::getenv("GRADCELL_FUNCTION");
  for (const auto* table : vecmath_tables()) {
    if (level && std::string(level) != table->level) continue;
    for (const auto& f : table->unary) {
      if (function && std::string(function) != f.name) continue;
      const auto start = std::chrono::steady_clock::now();
      const Worst worst = sweep(f);
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      std::printf("%-4s %-8s %.4f ULP at %a (%.9g), %.0f s\n", table->level, f.name, worst.ulps,
                  static_cast<double>(worst.at), static_cast<double>(worst.at), elapsed.count());
      std::fflush(stdout);
      EXPECT_LE(worst.ulps, 1.0) << table->level << " " << f.name;
    }
  }
}

}  // namespace
}  // namespace gradcell::testing

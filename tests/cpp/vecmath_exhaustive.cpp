// Every float there is through every unary function of every level. Some minutes a level, so
// disabled by default; run with
//   gradcell_tests --gtest_also_run_disabled_tests --gtest_filter='*VecMathExhaustive*'
// and GRADCELL_LEVEL=v3,v4, GRADCELL_FUNCTION=tanh in the environment to choose. The reference is
// the C library's double function; its vector form (libmvec, within 4 ULPs of double) is used where
// the machine has it, and each new maximum is confirmed in long double. GRADCELL_REFERENCE=own
// takes the project's double functions instead, several times faster: they are other polynomials
// than the float ones and are themselves checked against long double in vecmath_test.cpp, but some
// reductions are shared (of huge angles above all), so a release is checked against the library.
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/system/system.h"
#include "vecmath_reference.h"
#include "vecmath_table.h"

#if defined(__x86_64__) && defined(__linux__)
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
  for (const char* quick :
       {"exp", "expm1", "log", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh"}) {
    if (std::strcmp(name, quick) == 0) return nullptr;
  }
  static void* library =
      __builtin_cpu_supports("avx512f") ? system::open_library("libmvec.so.1") : nullptr;
  if (!library) return nullptr;
  return reinterpret_cast<Vector8>(
      system::find_symbol(library, ("_ZGVeN8v_" + std::string(name)).c_str()));
}
__attribute__((target("avx512f"))) void apply_vector(Vector8 f, const float* x, double* y) {
  for (size_t i = 0; i < kChunk; i += 8) {
    _mm512_storeu_pd(y + i, f(_mm512_cvtps_pd(_mm256_loadu_ps(x + i))));
  }
}
#endif

struct Reference {
  explicit Reference(const char* name) : scalar(find_reference(kUnaryReferences, name)) {
    const char* choice = std::getenv("GRADCELL_REFERENCE");
    if (choice && std::string(choice) == "own") {
      for (const auto& f : vecmath_tables().back()->unary) {
        if (std::string(f.name) == name) own = f.map64;
      }
    }
#if defined(__x86_64__) && defined(__linux__)
    vector = vector_reference(name);
#endif
  }
  void apply(const float* x, double* y) const {
    if (own) {
      for (size_t i = 0; i < kChunk; ++i) y[i] = x[i];
      return own(y, y, kChunk);
    }
#if defined(__x86_64__) && defined(__linux__)
    if (vector) return apply_vector(vector, x, y);
#endif
    for (size_t i = 0; i < kChunk; ++i) y[i] = scalar.in_double(x[i]);
  }
  const UnaryReference& scalar;
  void (*own)(const double*, double*, size_t) = nullptr;
#if defined(__x86_64__) && defined(__linux__)
  Vector8 vector = nullptr;
#endif
};

// ThreadSanitizer: the resolver of the clones would run before the sanitizer has started.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_THREAD__)
#define GRADCELL_CLONES \
  __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define GRADCELL_CLONES
#endif

/// |y - truth| in ULPs of finite numbers; anything else gives NaN or more than any bound.
GRADCELL_CLONES void quick_errors(const float* y, const double* truth, double* errors) {
  for (size_t i = 0; i < kChunk; ++i) {
    const uint64_t word = std::bit_cast<uint64_t>(truth[i]);
    uint64_t exponent = word >> 52 & 2047;
    exponent = exponent < 1023 - 126 ? 1023 - 126 : exponent;
    const double inverse_ulp = std::bit_cast<double>((2046 + 23 - exponent) << 52);
    const double value = y[i], error = std::abs(value - truth[i]) * inverse_ulp;
    const bool signs = (std::bit_cast<uint64_t>(value) ^ word) >> 63 == 0;
    errors[i] = signs ? error : std::numeric_limits<double>::infinity();
  }
}

struct Worst {
  double ulps = 0;
  float at = 0;
};

/// Whether y is plainly right where the quick error is not finite.
bool beyond_doubt(float y, double truth) {
  if (std::isnan(y) || std::isnan(truth)) return std::isnan(y) && std::isnan(truth);
  return std::isinf(y) && std::abs(truth) > 0x1p128 && (y > 0) == (truth > 0);
}
void update(Worst& worst, const UnaryReference& reference, const float* x, const float* y,
            const double* truth) {
  static double errors[kChunk];
  quick_errors(y, truth, errors);
  for (size_t i = 0; i < kChunk; ++i) {
    if (errors[i] <= worst.ulps || beyond_doubt(y[i], truth[i])) continue;
    const double ulps = ulp_error(y[i], reference.in_wide(x[i]));
    if (ulps > worst.ulps) worst = {ulps, x[i]};
  }
}

/// The largest error of each of several versions of one function.
std::vector<Worst> sweep(const std::vector<const UnaryMath*>& versions) {
  const Reference reference(versions[0]->name);
  std::vector<float> x(kChunk), y(kChunk), first(kChunk);
  std::vector<double> truth(kChunk);
  std::vector<Worst> worst(versions.size());
  for (uint64_t begin = 0; begin < uint64_t(1) << 32; begin += kChunk) {
    for (size_t i = 0; i < kChunk; ++i) x[i] = std::bit_cast<float>(uint32_t(begin + i));
    reference.apply(x.data(), truth.data());
    for (size_t v = 0; v < versions.size(); ++v) {
      versions[v]->map32(x.data(), y.data(), kChunk);
      // Versions mostly give the same bits; what holds of one then holds of the other.
      const bool same = v > 0 && std::memcmp(first.data(), y.data(), kChunk * sizeof(float)) == 0;
      if (same && worst[0].ulps <= worst[v].ulps) continue;
      update(worst[v], reference.scalar, x.data(), y.data(), truth.data());
      if (v == 0) first = y;
    }
  }
  return worst;
}

TEST(VecMathExhaustive, DISABLED_EveryFloat) {
  const char* level = std::getenv("GRADCELL_LEVEL");
  const char* function = std::getenv("GRADCELL_FUNCTION");
  std::vector<const VecMathTable*> tables;
  for (const auto* table : vecmath_tables()) {
    if (!level || std::strstr(level, table->level)) tables.push_back(table);
  }
  ASSERT_FALSE(tables.empty());
  for (size_t i = 0; i < tables[0]->unary.size(); ++i) {
    std::vector<const UnaryMath*> versions;
    for (const auto* table : tables) versions.push_back(&table->unary[i]);
    if (function && std::string(function) != versions[0]->name) continue;
    const auto start = std::chrono::steady_clock::now();
    const auto worst = sweep(versions);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    for (size_t v = 0; v < versions.size(); ++v) {
      std::printf("%-4s %-8s %.4f ULP at %a (%.9g)\n", tables[v]->level, versions[v]->name,
                  worst[v].ulps, static_cast<double>(worst[v].at),
                  static_cast<double>(worst[v].at));
      EXPECT_LE(worst[v].ulps, 1.0) << tables[v]->level << " " << versions[v]->name;
    }
    std::printf("     %.0f s\n", elapsed.count());
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace gradcell::testing

// The vector math of every instruction-set level by name, for tests and benchmarks.
#pragma once

#include <cstddef>
#include <vector>

namespace gradcell {

struct UnaryMath {
  const char* name;
  void (*map32)(const float* x, float* y, size_t n);
  void (*map64)(const double* x, double* y, size_t n);
  float (*scalar32)(float x);
  double (*scalar64)(double x);
};
struct BinaryMath {
  const char* name;
  void (*map32)(const float* a, const float* b, float* y, size_t n);
  void (*map64)(const double* a, const double* b, double* y, size_t n);
  float (*scalar32)(float a, float b);
  double (*scalar64)(double a, double b);
};
struct VecMathTable {
  const char* level;
  std::vector<UnaryMath> unary;
  std::vector<BinaryMath> binary;
};

#if defined(__x86_64__)
const VecMathTable& vecmath_table_v2();
const VecMathTable& vecmath_table_v3();
const VecMathTable& vecmath_table_v4();
#else
const VecMathTable& vecmath_table_base();
#endif

/// The tables of the levels this machine can run, lowest first.
inline std::vector<const VecMathTable*> vecmath_tables() {
#if defined(__x86_64__)
  std::vector<const VecMathTable*> tables;
  const auto has = [](bool feature) { return feature; };
  if (has(__builtin_cpu_supports("sse4.2"))) tables.push_back(&vecmath_table_v2());
  if (has(__builtin_cpu_supports("avx2")) && has(__builtin_cpu_supports("fma")) &&
      has(__builtin_cpu_supports("bmi2"))) {
    tables.push_back(&vecmath_table_v3());
    if (has(__builtin_cpu_supports("avx512f")) && has(__builtin_cpu_supports("avx512bw")) &&
        has(__builtin_cpu_supports("avx512cd")) && has(__builtin_cpu_supports("avx512dq")) &&
        has(__builtin_cpu_supports("avx512vl"))) {
      tables.push_back(&vecmath_table_v4());
    }
  }
  return tables;
#else
  return {&vecmath_table_base()};
#endif
}

}  // namespace gradcell

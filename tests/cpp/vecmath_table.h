// The vector math of every instruction-set level by name, for its tests.
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
/// A view of a constant array. (No std::vector: its code, compiled for one level, might be linked
/// into all of them.)
template <class T>
struct MathList {
  const T* first;
  size_t count;
  const T* begin() const { return first; }
  const T* end() const { return first + count; }
  size_t size() const { return count; }
  const T& operator[](size_t i) const { return first[i]; }
};
struct VecMathTable {
  const char* level;
  MathList<UnaryMath> unary;
  MathList<BinaryMath> binary;
};

/// The tables of the levels this machine can run, lowest first.
std::vector<const VecMathTable*> vecmath_tables();

}  // namespace gradcell

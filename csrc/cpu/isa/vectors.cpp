// Products of matrices with vectors.
#include "cpu/kernels/vector_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

/// 64 bytes of T, anywhere in memory.
template <class T>
struct LanesOf {
  static constexpr size_t kCount = 64 / sizeof(T);
  typedef T type __attribute__((vector_size(64)));
  typedef T At __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
};
template <class T>
using Lanes = typename LanesOf<T>::type;

template <class T>
Lanes<T> at(const T* p) {
  return *reinterpret_cast<const typename LanesOf<T>::At*>(p);
}

template <class T>
T across(const Lanes<T>& v) {
  constexpr size_t kCount = LanesOf<T>::kCount;
  T part[kCount];
  for (size_t k = 0; k < kCount; ++k) part[k] = v[k];
  for (size_t half = kCount / 2; half > 0; half /= 2)
    for (size_t k = 0; k < half; ++k) part[k] += part[k + half];
  return part[0];
}

template <class T>
void dots_of(const T* a, ptrdiff_t stride, size_t rows, const T* x, ptrdiff_t x_stride, size_t n,
             T* y) {
  constexpr size_t kCount = LanesOf<T>::kCount, kParts = 4;
  for (size_t r = 0; r < rows; ++r, a += stride, x += x_stride) {
    Lanes<T> sum[kParts] = {};
    size_t j = 0;
    for (; j + kParts * kCount <= n; j += kParts * kCount)
      for (size_t k = 0; k < kParts; ++k) sum[k] += at(a + j + k * kCount) * at(x + j + k * kCount);
    for (; j + kCount <= n; j += kCount) sum[0] += at(a + j) * at(x + j);
    T rest = 0;
    for (; j < n; ++j) rest += a[j] * x[j];
    y[r] = across<T>((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
  }
}

/// Rows are summed up in groups, so that errors do not grow with their number.
template <class T>
void add_rows_of(const T* a, ptrdiff_t stride, size_t rows, const T* x, size_t n, T* y) {
  constexpr size_t kCount = LanesOf<T>::kCount, kWide = 4 * kCount, kGroup = 32;
  for (size_t first = 0; first < rows; first += kGroup) {
    const size_t group = rows - first < kGroup ? rows - first : kGroup;
    const T* block = a + static_cast<ptrdiff_t>(first) * stride;
    size_t j = 0;
    for (; j + kWide <= n; j += kWide) {
      Lanes<T> sum[4] = {};
      const T* row = block + j;
      for (size_t r = 0; r < group; ++r, row += stride)
        for (size_t k = 0; k < 4; ++k) sum[k] += at(row + k * kCount) * x[first + r];
      for (size_t k = 0; k < 4; ++k) {
        auto& to = *reinterpret_cast<typename LanesOf<T>::At*>(y + j + k * kCount);
        to += sum[k];
      }
    }
    for (; j < n; ++j) {
      T sum = 0;
      for (size_t r = 0; r < group; ++r)
        sum += block[static_cast<ptrdiff_t>(r) * stride + static_cast<ptrdiff_t>(j)] * x[first + r];
      y[j] += sum;
    }
  }
}

void dots(DType type, const void* a, ptrdiff_t stride, size_t rows, const void* x,
          ptrdiff_t x_stride, size_t n, void* y) {
  if (type == DType::Float64)
    dots_of(static_cast<const double*>(a), stride, rows, static_cast<const double*>(x), x_stride, n,
            static_cast<double*>(y));
  else
    dots_of(static_cast<const float*>(a), stride, rows, static_cast<const float*>(x), x_stride, n,
            static_cast<float*>(y));
}

void add_rows(DType type, const void* a, ptrdiff_t stride, size_t rows, const void* x, size_t n,
              void* y) {
  if (type == DType::Float64)
    add_rows_of(static_cast<const double*>(a), stride, rows, static_cast<const double*>(x), n,
                static_cast<double*>(y));
  else
    add_rows_of(static_cast<const float*>(a), stride, rows, static_cast<const float*>(x), n,
                static_cast<float*>(y));
}

}  // namespace

extern const VectorKernels kVectorKernels;
const VectorKernels kVectorKernels = {dots, add_rows};

}  // namespace gradcell::cpu::GRADCELL_ISA

// 64 bytes of elements in the level's registers. Sums are taken in as many lanes at every level, so
// that all add in one order; a vector type of 64 bytes would be taken apart, into elements and
// through memory, where registers are shorter.
#pragma once

#include <type_traits>
#include <utility>

#include "cpu/isa/tile_vector.h"
#include "cpu/kernels/combine.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

constexpr size_t kRegisters = 64 / kVectorBytes;

template <class A>
struct Line {
  static constexpr size_t kCount = 64 / sizeof(A);
  typedef A Part __attribute__((vector_size(kVectorBytes)));
  Part part[kRegisters];

  static Line of(A number) {
    Line line;
    for (Part& p : line.part) p = Part{} + number;
    return line;
  }
};

template <class A>
GRADCELL_INLINE Line<A> operator+(Line<A> a, const Line<A>& b) {
  for (size_t k = 0; k < kRegisters; ++k) a.part[k] += b.part[k];
  return a;
}

template <Combine how, class A>
GRADCELL_INLINE Line<A> combined_lines(Line<A> a, const Line<A>& b) {
  for (size_t k = 0; k < kRegisters; ++k) a.part[k] = combined<how>(a.part[k], b.part[k]);
  return a;
}

/// The same numbers in lanes of To.
template <class To, class V>
To lanes_as(const V& v) {
#if defined(__AVX512F__)  // (GCC 12 makes such a vector in halves; unmasked forms make it warn)
  using From = std::remove_cvref_t<decltype(v[0])>;
  using Number = std::remove_cvref_t<decltype(To{}[0])>;
  if constexpr (std::is_same_v<From, float> && std::is_same_v<Number, double>)
    return (To)_mm512_maskz_cvtps_pd(0xff, (__m256)v);
  if constexpr (std::is_same_v<From, int32_t> && std::is_same_v<Number, int64_t>)
    return (To)_mm512_maskz_cvtepi32_epi64(0xff, (__m256i)v);
  if constexpr (std::is_same_v<From, double> && std::is_same_v<Number, float>)
    return (To)_mm512_maskz_cvtpd_ps(0xff, (__m512d)v);
#endif
  return __builtin_convertvector(v, To);
}

/// Half of a vector's lanes: the lower or the upper ones.
template <bool upper, class V, size_t... k>
GRADCELL_INLINE auto half_of(const V& v, std::index_sequence<k...>) {
  return __builtin_shufflevector(v, v, (k + (upper ? sizeof...(k) : 0))...);
}

/// All lanes of two vectors, k: their numbers.
template <class V, size_t... k>
GRADCELL_INLINE auto joined(const V& low, const V& high, std::index_sequence<k...>) {
  return __builtin_shufflevector(low, high, k...);
}

/// The lanes of a register, combined in halves.
template <Combine how, class V>
auto across_lanes(const V& v) {
  constexpr size_t kCount = sizeof(V) / sizeof(v[0]);
  if constexpr (kCount == 1) {
    return std::remove_cvref_t<decltype(v[0])>(v[0]);
  } else {
    constexpr std::make_index_sequence<kCount / 2> half;
    return across_lanes<how>(combined<how>(half_of<false>(v, half), half_of<true>(v, half)));
  }
}

/// The elements of a line, combined in halves.
template <Combine how, class A>
A across(Line<A> line) {
  for (size_t half = kRegisters / 2; half > 0; half /= 2)
    for (size_t k = 0; k < half; ++k)
      line.part[k] = combined<how>(line.part[k], line.part[k + half]);
  return across_lanes<how>(line.part[0]);
}

}  // namespace
}  // namespace gradcell::cpu::GRADCELL_ISA

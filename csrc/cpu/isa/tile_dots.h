// Sums over rows of products with a factor that is read at shifts, and the copies of images that
// shifts are read in, for tile_shifted.cpp and pairs/tile_pairs.cpp.
#pragma once

#include <type_traits>
#include <utility>

#include "cpu/isa/tile_product.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

constexpr int kDotM = kVectorRegisters == 32 ? 6 : 3;  // features of dy in registers
constexpr int kDotK = kVectorRegisters == 32 ? 4 : 3;  // shifts of x

/// Segments of `Length` lanes of a and of b, halved: the sums of each one's halves, a's then b's.
template <class T, int Length, int... I>
GRADCELL_INLINE Vec<T> add_halves(Vec<T> a, Vec<T> b, std::integer_sequence<int, I...>) {
  // Lane i of the result is lane i % (Length / 2) of segment i / (Length / 2).
  constexpr int kHalf = Length / 2;
  return __builtin_shufflevector(a, b, (I / kHalf * Length + I % kHalf)...) +
         __builtin_shufflevector(a, b, (I / kHalf * Length + I % kHalf + kHalf)...);
}

/// sums[u] += the sum of v[u]'s elements, in a tree.
template <class T, int U>
GRADCELL_INLINE void add_across(const Vec<T> (&v)[U], T* sums) {
  constexpr int N = kLanes<T>;
  T parts[N];
  if constexpr (N >= 4) {
    constexpr auto lanes = std::make_integer_sequence<int, N>();
    const Vec<T> none{};
    const Vec<T> low = add_halves<T, N>(v[0], U > 1 ? v[U > 1 ? 1 : 0] : none, lanes);
    const Vec<T> high =
        U > 2 ? add_halves<T, N>(v[U > 2 ? 2 : 0], U > 3 ? v[U > 3 ? 3 : 0] : none, lanes) : none;
    store(parts, add_halves<T, N / 2>(low, high, lanes));
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
#pragma GCC unroll 4
      for (int n = N / 8; n > 0; n /= 2) {
#pragma GCC unroll 4
        for (int i = 0; i < n; ++i) parts[u * (N / 4) + i] += parts[u * (N / 4) + i + n];
      }
      sums[u] += parts[u * (N / 4)];
    }
  } else {
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
      store(parts, v[u]);
      sums[u] += parts[0] + parts[1];
    }
  }
}

/// What rows of T are multiplied as and added up in: of bfloat16 (uint16_t) two neighbours are one
/// lane.
template <class T>
using LaneOf = std::conditional_t<std::is_same_v<T, uint16_t>, uint32_t, T>;
template <class T>
using Total = std::conditional_t<std::is_same_v<T, uint16_t>, float, T>;

template <class T>
struct Dots {
  const T* x;
  ptrdiff_t image_x;
  const int32_t* at;
  const T* dy;
  ptrdiff_t image_y, ldy;
  int images, R;
  Total<T>* sums;
  ptrdiff_t lds;
};

/// W features and U shifts.
template <class T, int W, int U>
void dot_block(const Dots<T>& dots) {
  const Dots<T> a = dots;
  using V = Vec<LaneOf<T>>;
  Vec<Total<T>> acc[W][U] = {};
  const T* from[U];
#pragma GCC unroll 4
  for (int u = 0; u < U; ++u) from[u] = a.x + a.at[u];
  const T* dy = a.dy;
  int image = 0;
  do {
    int r = 0;
    do {
      V xv[U];
#pragma GCC unroll 4
      for (int u = 0; u < U; ++u) xv[u] = load_as<V>(from[u] + r);
#pragma GCC unroll 6
      for (int w = 0; w < W; ++w) {
        const V d = load_as<V>(dy + w * a.ldy + r);
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) acc[w][u] = fma(d, xv[u], acc[w][u]);
      }
    } while ((r += kLanes<T>) < a.R);
    dy += a.image_y;
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) from[u] += a.image_x;
  } while (++image < a.images);
#pragma GCC unroll 6
  for (int w = 0; w < W; ++w) add_across<Total<T>, U>(acc[w], a.sums + w * a.lds);
}

template <class T>
using DotBlock = void (*)(const Dots<T>&);

template <class T>
void dots(const T* x, ptrdiff_t image_x, const int32_t* at, const T* dy, ptrdiff_t image_y,
          ptrdiff_t ldy, int images, int K, int M, int R, Total<T>* sums, ptrdiff_t lds) {
  if (images == 0 || R == 0) return;
  constexpr int kRows = 1024;  // of dy's features, which stay in the first-level cache
  const Parts features(M, kDotM), shifts(K, kDotK);
  for (int r = 0; r < R; r += kRows) {
    const int rows = min(kRows, R - r);
    for (int f = 0, m = 0; f < features.count; m += features.width(f++)) {
      for (int s = 0, k = 0; s < shifts.count; k += shifts.width(s++)) {
        const auto block =
            chosen<kDotM, kDotK>(features.width(f), shifts.width(s),
                                 []<int w, int u>() -> DotBlock<T> { return dot_block<T, w, u>; });
        block({x + r, image_x, at + k, dy + m * ldy + r, image_y, ldy, images, rows,
               sums + m * lds + k, lds});
      }
    }
  }
}

// ---- Images and their copies ----

/// to[i * To] = from[i * From].
template <class T, int From, int To>
GRADCELL_INLINE void copy_row(const T* from, ptrdiff_t step_from, T* to, ptrdiff_t step_to, int n) {
  const ptrdiff_t f = From ? From : step_from, t = To ? To : step_to;
  if constexpr (From == 1 && To == 1) {
    int i = 0;
    for (; i + kLanes<T> <= n; i += kLanes<T>) store(to + i, load(from + i));
    for (; i < n; ++i) to[i] = from[i];
  } else {
    for (int i = 0; i < n; ++i) to[i * t] = from[i * f];
  }
}

template <class T, int Step>
void spread_rows(const T* from, ptrdiff_t row, ptrdiff_t step, int rows, int n, T* to,
                 ptrdiff_t pitch) {
  for (int r = 0; r < rows; ++r, from += row, to += pitch) {
    copy_row<T, Step, 1>(from, step, to, 1, n);
    for (ptrdiff_t i = n; i < pitch; ++i) to[i] = T(0);
  }
}

template <class T>
void spread(const T* from, ptrdiff_t row, ptrdiff_t step, int rows, int n, T* to, ptrdiff_t pitch) {
  if (step == 1) return spread_rows<T, 1>(from, row, 1, rows, n, to, pitch);
  if (step == 2) return spread_rows<T, 2>(from, row, 2, rows, n, to, pitch);
  spread_rows<T, 0>(from, row, step, rows, n, to, pitch);
}

template <class T, int Step>
void collect_rows(const T* from, ptrdiff_t pitch, int rows, int n, T* to, ptrdiff_t row,
                  ptrdiff_t step) {
  for (int r = 0; r < rows; ++r, from += pitch, to += row)
    copy_row<T, 1, Step>(from, 1, to, step, n);
}

template <class T>
void collect(const T* from, ptrdiff_t pitch, int rows, int n, T* to, ptrdiff_t row,
             ptrdiff_t step) {
  if (step == 1) return collect_rows<T, 1>(from, pitch, rows, n, to, row, 1);
  if (step == 2) return collect_rows<T, 2>(from, pitch, rows, n, to, row, 2);
  collect_rows<T, 0>(from, pitch, rows, n, to, row, step);
}

}  // namespace
}  // namespace gradcell::cpu::GRADCELL_ISA

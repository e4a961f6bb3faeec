// Sums over rows of products with a factor that is read at shifts, and the copies of images that
// shifts are read in, for tile_shifted.cpp and pairs/tile_pairs.cpp.
#pragma once

#include <type_traits>
#include <utility>

#include "cpu/isa/tile_product.h"
#include "cpu/kernels/tile_kernels.h"

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
void dots_by_places(const T* x, ptrdiff_t image_x, const int32_t* at, const T* dy,
                    ptrdiff_t image_y, ptrdiff_t ldy, int images, int K, int M, int R,
                    Total<T>* sums, ptrdiff_t lds) {
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

// ---- The same with features of dy as lanes ----
//
// dy is transposed, x is broadcast: no sums across lanes at the end, which few places would not be
// worth. The results are transposed back.

constexpr int kLaneV = kVectorRegisters == 32 ? 4 : 2;  // vectors of features
constexpr int kLaneW = kVectorRegisters == 32 ? 8 : 6;  // shifts beside two of those
constexpr int lane_w(int V) { return V < 3 ? kLaneW : V == 3 ? 8 : 6; }
constexpr int kLaneBytes = 48 * 1024;  // of dy transposed
constexpr int kLaneShifts = 96;        // between results that are transposed

/// Rows that one number of LaneOf<T> has.
template <class T>
constexpr int kRowsALane = sizeof(LaneOf<T>) / sizeof(T);

template <class T>
struct LaneDots {
  const T* x;
  ptrdiff_t image_x;
  const int32_t* at;
  const LaneOf<T>* dy;  ///< [images][steps][V vectors]
  int images, steps;
  Total<T>* sums;  ///< [shift][V vectors]
};

/// W shifts and V vectors of features.
template <class T, int W, int V>
void lane_block(const LaneDots<T>& dots) {
  const LaneDots<T> a = dots;
  constexpr int N = kLanes<Total<T>>;
  Vec<Total<T>> acc[W][V] = {};
  const T* from[W];
#pragma GCC unroll 8
  for (int w = 0; w < W; ++w) from[w] = a.x + a.at[w];
  const LaneOf<T>* dy = a.dy;
  int image = 0;
  do {
    const ptrdiff_t end = static_cast<ptrdiff_t>(a.steps) * kRowsALane<T>;
    ptrdiff_t r = 0;
    do {
      Vec<LaneOf<T>> d[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) d[v] = load(dy + v * N);
#pragma GCC unroll 8
      for (int w = 0; w < W; ++w) {
        const auto xv = broadcast(load_as<LaneOf<T>>(from[w] + r));
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) acc[w][v] = fma(xv, d[v], acc[w][v]);
      }
      dy += V * N;
    } while ((r += kRowsALane<T>) < end);
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) from[w] += a.image_x;
  } while (++image < a.images);
#pragma GCC unroll 8
  for (int w = 0; w < W; ++w) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(a.sums + (w * V + v) * N, acc[w][v]);
  }
}

template <class T>
using LaneBlock = void (*)(const LaneDots<T>&);

template <class T>
LaneBlock<T> lane_block_for(int W, int V) {
  return chosen<kLaneV, 8>(V, W, []<int v, int w>() -> LaneBlock<T> {
    if constexpr (w > lane_w(v))
      return nullptr;
    else
      return lane_block<T, w, v>;
  });
}

/// to[step][V vectors] = rows of M features, zeros beyond those. Makes whole squares of steps.
template <class T>
void transpose_features(const T* dy, ptrdiff_t ldy, int M, int steps, int V, LaneOf<T>* to) {
  using L = LaneOf<T>;
  constexpr int N = kLanes<L>;
  for (int v = 0; v < V; ++v) {
    for (int s = 0; s < steps; s += N) {
      L square[N * N] = {};
      const int there = min(N, M - v * N);
      for (int m = 0; m < there; ++m)
        store(square + m * N, load_as<Vec<L>>(dy + (v * N + m) * ldy + s * kRowsALane<T>));
      transpose_square<L, N>(square, N, to + (s * V + v) * N, V * N);
    }
  }
}

/// sums[m * lds + k] += of[k][V vectors] for K shifts and M features.
template <class T>
void add_transposed(const T* of, int K, int M, int V, T* sums, ptrdiff_t lds) {
  constexpr int N = kLanes<T>;
  for (int m0 = 0; m0 < M; m0 += N) {
    for (int k0 = 0; k0 < K; k0 += N) {
      T square[N * N];  // (`of` has room for whole squares)
      transpose_square<T, N>(of + k0 * V * N + m0, V * N, square, N);
      const int features = min(N, M - m0), shifts = min(N, K - k0);
      for (int m = 0; m < features; ++m) {
        T* const sum = sums + (m0 + m) * lds + k0;
        if (shifts == N) {
          store(sum, load(sum) + load(square + m * N));
          continue;
        }
        for (int k = 0; k < shifts; ++k) sum[k] += square[m * N + k];
      }
    }
  }
}

/// M features, of at most kLaneV vectors.
template <class T>
void dots_by_features(const T* x, ptrdiff_t image_x, const int32_t* at, const T* dy,
                      ptrdiff_t image_y, ptrdiff_t ldy, int images, int K, int M, int R,
                      Total<T>* sums, ptrdiff_t lds, std::byte* memory) {
  using L = LaneOf<T>;
  constexpr int N = kLanes<L>;
  const int V = ceil_div(M, N), all = ceil_div(R, kRowsALane<T>);  // steps
  const int room = kLaneBytes / (V * kVectorBytes);
  const Parts cuts(ceil_div(all, N), room / N);  // in squares of steps
  static_assert(kLaneBytes + sizeof(Total<T>) * kLaneShifts * kLaneV * N <= kDotsRoom);
  L* const turned = reinterpret_cast<L*>(memory);
  Total<T>* const made = reinterpret_cast<Total<T>*>(memory + kLaneBytes);
  for (int c = 0, s0 = 0; c < cuts.count; s0 += N * cuts.width(c++)) {
    const int steps = min(N * cuts.width(c), all - s0);
    const int together = 1 + (room - ceil_div(steps, N) * N) / steps;  // (the last in squares)
    const ptrdiff_t r0 = static_cast<ptrdiff_t>(s0) * kRowsALane<T>;
    for (int first = 0; first < images; first += together) {
      const int n = min(together, images - first);
      for (int i = 0; i < n; ++i)
        transpose_features(dy + (first + i) * image_y + r0, ldy, M, steps, V,
                           turned + i * steps * V * N);
      for (int k0 = 0; k0 < K; k0 += kLaneShifts) {
        const Parts shifts(min(kLaneShifts, K - k0), lane_w(V));
        Total<T>* to = made;
        for (int p = 0, k = k0; p < shifts.count; k += shifts.width(p++)) {
          lane_block_for<T>(shifts.width(p),
                            V)({x + first * image_x + r0, image_x, at + k, turned, n, steps, to});
          to += shifts.width(p) * V * N;
        }
        add_transposed(made, min(kLaneShifts, K - k0), M, V, sums + k0, lds);
      }
    }
  }
}

template <class T>
void dots(const T* x, ptrdiff_t image_x, const int32_t* at, const T* dy, ptrdiff_t image_y,
          ptrdiff_t ldy, int images, int K, int M, int R, Total<T>* sums, ptrdiff_t lds,
          std::byte* room) {
  if (images == 0 || R == 0) return;
  constexpr int N = kLanes<LaneOf<T>>;
  const int vectors = ceil_div(M, N);
  if (vectors < 2 || 8 * vectors * N > 9 * M)  // too many lanes would be empty
    return dots_by_places(x, image_x, at, dy, image_y, ldy, images, K, M, R, sums, lds);
  const Parts parts(vectors, kLaneV);
  for (int p = 0, v = 0; p < parts.count; v += parts.width(p++)) {
    const int m = v * N, features = min(parts.width(p) * N, M - m);
    dots_by_features(x, image_x, at, dy + m * ldy, image_y, ldy, images, K, features, R,
                     sums + m * lds, lds, room);
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

// The micro-kernel of products on feature-major tiles, for tile_matmul.cpp and tile_shifted.cpp.
//
// It keeps W columns (features of y) by V row vectors in registers and walks K. Weights are packed
// in that order: K blocks (so that a block of x stays in L1), in them column panels of nearly equal
// width, in them [k][W].
#pragma once

#include "cpu/isa/tile_vector.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

constexpr int kMaxW = 6;                               // columns in registers
constexpr int kMaxV = kVectorRegisters == 32 ? 4 : 2;  // row vectors in registers

/// [0, n) cut into the fewest parts of at most `most`, sizes differing by at most one.
struct Parts {
  int count, size, longer;  ///< the first `longer` parts have size + 1
  Parts(int n, int most) : count(n > 0), size(n), longer(0) {
    if (n > most) count = ceil_div(n, most), size = n / count, longer = n - size * count;
  }
  int width(int part) const { return size + (part < longer); }
};

/// What of.operator()<i, j>() gives, for 1 <= i <= I and 1 <= j <= J.
template <int I, int J, class F>
auto chosen(int i, int j, F) {
  return [=]<int... n>(std::integer_sequence<int, n...>) {
    static const decltype(F{}.template operator()<1, 1>()) all[] = {
        F{}.template operator()<n / J + 1, n % J + 1>()...};
    return all[(i - 1) * J + j - 1];
  }(std::make_integer_sequence<int, I * J>());
}

/// How a product's factors are read.
enum class Reads : uint8_t {
  Packed,   ///< weights in panels
  Rows,     ///< weights as rows of a matrix, those of a column side by side
  Shifted,  ///< weights in panels; feature k of x is what lies at at[k]
};

/// What products of T are added up in.
template <class T>
struct SumOf {
  using type = T;
};
template <>
struct SumOf<uint32_t> {  // pairs of bfloat16
  using type = float;
};
template <class T>
using Sum = typename SumOf<T>::type;

template <class T>
struct Product {
  const T* x;
  ptrdiff_t ldx;
  Sum<T>* y;
  ptrdiff_t ldy;
  const Sum<T>* bias;           ///< null: none
  bool accumulate;              ///< start from y
  const int32_t* at = nullptr;  ///< Shifted
  int kc = 0;                   ///< values of k in a block
  /// Rows: the next block of x, of which so many lines are fetched with each group of k.
  const T* next_x = nullptr;
  int next_lines = 0;
};

constexpr int kGroup = 16;  // values of k between requests for what comes next
template <class T>
constexpr int kFetched = 64 / narrow<int>(sizeof(T));  // elements that one brings

/// Weights of a block of k: `ld` elements from those of one column to the next panel's or (Rows)
/// the next column's.
template <class T>
struct Weights {
  const T* at;
  ptrdiff_t ld;
};

/// P panels of W columns by V row vectors. Where that is too few sums to hide the latency of a
/// multiply-add, U sets of them take the values of k in turn.
template <class T, Reads reads, int P, int W, int V>
void product_block(Weights<T> weights, const Product<T>& product) {
  const Product<T> a = product;  // a local: the stores below cannot change it
  constexpr bool kRows = reads == Reads::Rows;
  const ptrdiff_t panel = W * weights.ld, column = kRows ? weights.ld : 1;
  const T* w = weights.at;
  constexpr int C = P * W;
  constexpr int U = reads != Reads::Packed ? 1 : C * V <= 2 ? 4 : C * V <= 6 ? 2 : 1;
  Vec<Sum<T>> acc[U][C][V];
#pragma GCC unroll 32
  for (int c = 0; c < C; ++c) {
    const Vec<Sum<T>> start = a.bias ? broadcast(a.bias[c]) : Vec<Sum<T>>{};
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      acc[0][c][v] = a.accumulate ? start + load(a.y + c * a.ldy + v * kLanes<T>) : start;
#pragma GCC unroll 4
      for (int u = 1; u < U; ++u) acc[u][c][v] = Vec<Sum<T>>{};
    }
  }
  const T* x = a.x;
  const int32_t* at = a.at;
  auto step = [&](int u) __attribute__((always_inline)) {
    const T* row = reads == Reads::Shifted ? x + *at++ : x;
    Vec<T> xv[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) xv[v] = load(row + v * kLanes<T>);
#pragma GCC unroll 32
    for (int c = 0; c < C; ++c) {
      const Vec<T> wv = broadcast((w + (c / W) * panel)[(c % W) * column]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[u][c][v] = fma(wv, xv[v], acc[u][c][v]);
    }
    if (reads != Reads::Shifted) x += a.ldx;
    w += kRows ? 1 : W;
  };
  int k = a.kc;
  if constexpr (kRows) {
    // Asks for what the next panel needs, and a part of the next block of x, while this one is
    // computed: little at a time, since a core waits for few lines at once.
    const T* next_x = a.next_x;
    int column_y = 0;
    do {
      int steps = min(kGroup, k);
      k -= steps;
#pragma GCC unroll 32
      for (int c = 0; c < C; ++c) __builtin_prefetch(w + (C + c) * column);
      for (int l = 0; l < a.next_lines; ++l, next_x += kFetched<T>)
        __builtin_prefetch(next_x, 0, 2);
      if (column_y < C) {
        const Sum<T>* y = a.y + (C + column_y++) * a.ldy;
        for (int v = 0; v < V * kLanes<T>; v += kFetched<T>) __builtin_prefetch(y + v, 1);
      }
      do {
        step(0);
      } while (--steps > 0);
    } while (k > 0);
  } else if constexpr (U > 1) {
    for (; k % U; --k) step(0);
  }
  if (!kRows && (U == 1 || k > 0)) {
    do {  // once at least; a loop that may not run makes GCC keep the sums in memory too
#pragma GCC unroll 4
      for (int u = 0; u < U; ++u) step(u);
    } while ((k -= U) > 0);
  }
  Sum<T>* y = a.y;
  asm("" : "+r"(y));  // or GCC keeps all addresses of above, in vector registers
#pragma GCC unroll 32
  for (int c = 0; c < C; ++c, y += a.ldy) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      Vec<Sum<T>> sum = acc[0][c][v];
#pragma GCC unroll 4
      for (int u = 1; u < U; ++u) sum += acc[u][c][v];
      store(y + v * kLanes<T>, sum);
    }
  }
}

/// Panels taken together: narrow blocks of rows need more columns to fill the registers.
constexpr int panels_at_once(int V) { return kMaxV / V; }

template <class T>
using ProductBlock = void (*)(Weights<T>, const Product<T>&);

template <class T, Reads reads>
ProductBlock<T> product_block_for(int V, int W, bool many) {
  constexpr auto at_once = []<int v, int w>() -> ProductBlock<T> {
    return product_block<T, reads, panels_at_once(v), w, v>;
  };
  constexpr auto one = []<int v, int w>() -> ProductBlock<T> {
    return product_block<T, reads, 1, w, v>;
  };
  return many ? chosen<kMaxV, kMaxW>(V, W, at_once) : chosen<kMaxV, kMaxW>(V, W, one);
}

/// All columns of one block of k by V row vectors. Moves a on. (By reference: a copy of what was
/// only just written would wait for the stores.)
template <class T, Reads reads>
void product_columns(Weights<T> weights, Product<T>& a, int V, const Parts& panels) {
  const int at_once = panels_at_once(V);
  for (int p = 0; p < panels.count;) {
    const int W = panels.width(p);
    const int same = (p < panels.longer ? panels.longer : panels.count) - p;
    const bool many = at_once > 1 && same >= at_once;
    const int step = many ? at_once : 1;
    product_block_for<T, reads>(V, W, many)(weights, a);
    p += step;
    weights.at += step * W * weights.ld;
    a.next_x += kFetched<T> * ceil_div(a.kc, kGroup) * a.next_lines;
    a.y += step * W * a.ldy;
    if (a.bias) a.bias += step * W;
  }
}

template <class T>
void add_bias(const Sum<T>* bias, Sum<T>* y, ptrdiff_t ldy, int M, int R, bool accumulate) {
  for (int m = 0; m < M; ++m) {
    for (int r = 0; r < R; ++r) {
      y[m * ldy + r] = (accumulate ? y[m * ldy + r] : Sum<T>(0)) + (bias ? bias[m] : Sum<T>(0));
    }
  }
}

/// M features by R rows of y, of weights packed in these blocks of k (or in rows).
template <class T, Reads reads>
void product(Weights<T> weights, const Product<T>& whole, const Parts& blocks, int K, int M,
             int R) {
  if (K == 0) return add_bias<T>(whole.bias, whole.y, whole.ldy, M, R, whole.accumulate);
  const Parts panels(M, kMaxW), rows(R / kLanes<T>, kMaxV);
  for (int r = 0, v0 = 0; r < rows.count; v0 += rows.width(r++)) {
    const ptrdiff_t r0 = static_cast<ptrdiff_t>(v0) * kLanes<T>;
    for (int b = 0, k0 = 0; b < blocks.count; k0 += blocks.width(b++)) {
      Product<T> a = whole;
      a.x += r0, a.y += r0, a.kc = blocks.width(b);
      if (reads == Reads::Shifted)
        a.at += k0;
      else
        a.x += k0 * a.ldx;
      if (b > 0) a.bias = nullptr, a.accumulate = true;
      if (reads == Reads::Rows) {
        a.next_x = a.x + a.kc * a.ldx;
        a.next_lines = ceil_div(ceil_div(a.kc * rows.width(r) * kLanes<T>, kFetched<T>),
                                ceil_div(a.kc, kGroup) * panels.count);
      }
      Weights<T> from_k0 = weights;
      from_k0.at += static_cast<ptrdiff_t>(k0) * (reads == Reads::Rows ? 1 : M);
      if (reads != Reads::Rows) from_k0.ld = a.kc;
      product_columns<T, reads>(from_k0, a, rows.width(r), panels);
    }
  }
}

// ---- Factors that are read in place at shifts ----

/// weight(k, m) for all k and m, as product_shifted reads it.
template <class T, class F>
void pack_shifted(int K, int M, int k_block, T* packed, F weight) {
  const Parts blocks(K, k_block), panels(M, kMaxW);
  for (int b = 0, k0 = 0; b < blocks.count; k0 += blocks.width(b++)) {
    for (int p = 0, m0 = 0; p < panels.count; m0 += panels.width(p++)) {
      for (int k = k0; k < k0 + blocks.width(b); ++k)
        for (int m = 0; m < panels.width(p); ++m) *packed++ = weight(k, m0 + m);
    }
  }
}

template <class T>
void product_shifted(const T* packed, const T* x, const int32_t* at, Sum<T>* y, ptrdiff_t ldy,
                     int K, int M, int R, int k_block) {
  product<T, Reads::Shifted>({packed, 0}, {x, 0, y, ldy, nullptr, false, at}, Parts(K, k_block), K,
                             M, R);
}

}  // namespace
}  // namespace gradcell::cpu::GRADCELL_ISA

// Matrix products on feature-major tiles (contract: cpu/tile_kernels.h).
//
// The product: a micro-kernel keeps W columns (features of y) by V row vectors in registers and
// walks K. Weights are packed in that order: K blocks (so that a block of x stays in L1), in them
// column panels of nearly equal width, in them [k][W].
//
// The weight gradient has two forms, chosen by K and M alone. Small: each G[k][m] is a vector of
// partial sums, one a lane, that lives across tiles. Large: one factor (x or dy) is transposed, 64
// rows at a time, so that lanes run over its features and G[k][m] is one number.
#include "cpu/isa/tile_vector.h"
#include "cpu/tile_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

constexpr int kMaxW = 6;                               // columns in registers
constexpr int kMaxV = kVectorRegisters == 32 ? 4 : 2;  // row vectors in registers
constexpr int kAccumulators = kMaxW * kMaxV;
constexpr int kTileChunkBytes = 32 * 1024;  // of x in L1 while all column panels pass over it

/// [0, n) cut into the fewest parts of at most `most`, sizes differing by at most one.
struct Parts {
  int count, size, longer;  ///< the first `longer` parts have size + 1
  Parts(int n, int most)
      : count(ceil_div(n, most)), size(count ? n / count : 0), longer(count ? n % count : 0) {}
  int width(int part) const { return size + (part < longer); }
};

/// K blocks: as long as kMaxV row vectors of each k fit in L1's share.
template <class T>
Parts k_blocks(int K) {
  return Parts(K, kTileChunkBytes / (kMaxV * kVectorBytes));
}

template <class T>
size_t packed_size(int K, int M) {
  return static_cast<size_t>(K) * M;
}

template <class T>
void pack_weights(const T* w, ptrdiff_t k_stride, ptrdiff_t m_stride, int K, int M, T* packed) {
  const Parts blocks = k_blocks<T>(K), panels(M, kMaxW);
  for (int b = 0, k0 = 0; b < blocks.count; k0 += blocks.width(b++)) {
    for (int p = 0, m0 = 0; p < panels.count; m0 += panels.width(p++)) {
      for (int k = k0; k < k0 + blocks.width(b); ++k) {
        for (int m = m0; m < m0 + panels.width(p); ++m) *packed++ = w[k * k_stride + m * m_stride];
      }
    }
  }
}

template <class T>
struct Product {
  const T* x;
  ptrdiff_t ldx;
  T* y;
  ptrdiff_t ldy;
  int kc;
  const T* bias;    ///< null: none
  bool accumulate;  ///< start from y
};

/// P panels of W columns by V row vectors. Where that is too few sums to hide the latency of a
/// multiply-add, U sets of them take the values of k in turn.
template <class T, int P, int W, int V>
void product_block(const T* w, const Product<T>& a) {
  constexpr int C = P * W;
  constexpr int U = C * V <= 2 ? 4 : C * V <= 6 ? 2 : 1;
  Vec<T> acc[U][C][V];
#pragma GCC unroll 32
  for (int c = 0; c < C; ++c) {
    const Vec<T> start = a.bias ? broadcast(a.bias[c]) : Vec<T>{};
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      acc[0][c][v] = a.accumulate ? start + load(a.y + c * a.ldy + v * kLanes<T>) : start;
#pragma GCC unroll 4
      for (int u = 1; u < U; ++u) acc[u][c][v] = Vec<T>{};
    }
  }
  const T* x = a.x;
  auto step = [&](int u) __attribute__((always_inline)) {
    Vec<T> xv[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) xv[v] = load(x + v * kLanes<T>);
#pragma GCC unroll 32
    for (int c = 0; c < C; ++c) {
      const Vec<T> wv = broadcast(w[(c / W) * (a.kc * W) + c % W]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[u][c][v] = fma(wv, xv[v], acc[u][c][v]);
    }
    x += a.ldx;
    w += W;
  };
  int k = 0;
  for (; k + U <= a.kc; k += U) {
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) step(u);
  }
  if constexpr (U > 1) {
    for (; k < a.kc; ++k) step(0);
  }
#pragma GCC unroll 32
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      Vec<T> sum = acc[0][c][v];
#pragma GCC unroll 4
      for (int u = 1; u < U; ++u) sum += acc[u][c][v];
      store(a.y + c * a.ldy + v * kLanes<T>, sum);
    }
  }
}

/// Panels taken together: narrow blocks of rows need more columns to fill the registers.
constexpr int panels_at_once(int V) { return kMaxV / V; }

template <class T>
using ProductBlock = void (*)(const T*, const Product<T>&);

template <class T, int V, bool Many>
ProductBlock<T> product_block_of_width(int W) {
  constexpr int P = Many ? panels_at_once(V) : 1;
  static constexpr ProductBlock<T> blocks[kMaxW] = {
      product_block<T, P, 1, V>, product_block<T, P, 2, V>, product_block<T, P, 3, V>,
      product_block<T, P, 4, V>, product_block<T, P, 5, V>, product_block<T, P, 6, V>};
  return blocks[W - 1];
}

template <class T>
ProductBlock<T> product_block_for(int V, int W, bool many) {
  switch (V) {
    case 1:
      return (many ? product_block_of_width<T, 1, true> : product_block_of_width<T, 1, false>)(W);
#if defined(__AVX512F__) || defined(__aarch64__)
    case 2:
      return (many ? product_block_of_width<T, 2, true> : product_block_of_width<T, 2, false>)(W);
    case 3:
      return product_block_of_width<T, 3, false>(W);
#endif
    default:
      return product_block_of_width<T, kMaxV, false>(W);
  }
}

/// All columns of one block of k by V row vectors.
template <class T>
void product_columns(const T* packed, Product<T> a, int V, const Parts& panels) {
  const int at_once = panels_at_once(V);
  for (int p = 0; p < panels.count;) {
    const int W = panels.width(p);
    const int same = (p < panels.longer ? panels.longer : panels.count) - p;
    const bool many = at_once > 1 && same >= at_once;
    product_block_for<T>(V, W, many)(packed, a);
    const int step = many ? at_once : 1;
    p += step;
    packed += static_cast<ptrdiff_t>(step) * W * a.kc;
    a.y += step * W * a.ldy;
    if (a.bias) a.bias += step * W;
  }
}

template <class T>
void matmul(const T* packed, const T* x, ptrdiff_t ldx, T* y, ptrdiff_t ldy, int K, int M, int R,
            const T* bias, bool accumulate) {
  const Parts blocks = k_blocks<T>(K), panels(M, kMaxW), rows(R / kLanes<T>, kMaxV);
  for (int r = 0, v0 = 0; r < rows.count; v0 += rows.width(r++)) {
    const ptrdiff_t r0 = static_cast<ptrdiff_t>(v0) * kLanes<T>;
    int k0 = 0, b = 0;
    do {  // once at least: K = 0 leaves the bias
      const int kc = blocks.count ? blocks.width(b) : 0;
      const Product<T> a{x + k0 * ldx + r0,  ldx, y + r0, ldy, kc, b == 0 ? bias : nullptr,
                         accumulate || b > 0};
      product_columns(packed + static_cast<ptrdiff_t>(k0) * M, a, rows.width(r), panels);
      k0 += kc;
    } while (++b < blocks.count);
  }
}

// ---- The weight gradient ----

constexpr int kDotK = kMaxV == 4 ? 4 : 3, kDotM = kMaxV == 4 ? 6 : 4;  // sums in registers
constexpr int kLongRows = 64;  // rows transposed at a time in the large form

template <class T>
bool is_small(int K, int M) {
  const size_t bytes = static_cast<size_t>(K) * M * kVectorBytes;
  return bytes <= 32 * 1024 || (min(K, M) <= 4 && bytes <= 256 * 1024);
}

/// The large form's lanes run over the features of dy or of x, whichever wastes less.
template <class T>
struct LargeForm {
  bool over_m;
  int lanes, others;  ///< features of the transposed factor and of the other one
  int vectors;        ///< that hold the former
  LargeForm(int K, int M) {
    auto cost = [](int lanes, int others) {  // multiply-adds, and transposing as 4 others
      return static_cast<int64_t>(ceil_div(lanes, kLanes<T>)) * (others + 4);
    };
    over_m = cost(M, K) <= cost(K, M);
    lanes = over_m ? M : K;
    others = over_m ? K : M;
    vectors = ceil_div(lanes, kLanes<T>);
  }
};

template <class T>
size_t grad_accumulator_size(int K, int M) {
  if (is_small<T>(K, M)) return static_cast<size_t>(K) * M * kLanes<T>;
  const LargeForm<T> form(K, M);
  return static_cast<size_t>(form.vectors) * kLanes<T> * form.others;
}

template <class T>
void grad_zero(T* acc, int K, int M) {
  std::memset(acc, 0, grad_accumulator_size<T>(K, M) * sizeof(T));
}

template <class T>
void grad_merge(T* acc_dst, const T* acc_src, int K, int M) {
  const size_t n = grad_accumulator_size<T>(K, M);
  for (size_t i = 0; i < n; ++i) acc_dst[i] += acc_src[i];
}

template <class T, int A, int B>
void dot_block(const T* x, ptrdiff_t ldx, const T* dy, ptrdiff_t ldy, int rows, T* acc) {
  Vec<T> sum[A][B];
#pragma GCC unroll 8
  for (int i = 0; i < A; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < B; ++j) sum[i][j] = load(acc + (i * B + j) * kLanes<T>);
  }
  auto step = [&](int r, auto&& only) __attribute__((always_inline)) {
    Vec<T> xv[A];
#pragma GCC unroll 8
    for (int i = 0; i < A; ++i) xv[i] = only(load(x + i * ldx + r));
#pragma GCC unroll 8
    for (int j = 0; j < B; ++j) {
      const Vec<T> dv = only(load(dy + j * ldy + r));
#pragma GCC unroll 8
      for (int i = 0; i < A; ++i) sum[i][j] = fma(xv[i], dv, sum[i][j]);
    }
  };
  int r = 0;
  for (; r + kLanes<T> <= rows; r += kLanes<T>) {
    step(r, [](Vec<T> v) __attribute__((always_inline)) { return v; });
  }
  if (r < rows) {
    const Bits<T> valid = first_lanes<T>(rows - r);
    step(r, [valid](Vec<T> v) __attribute__((always_inline)) { return keep<T>(v, valid); });
  }
#pragma GCC unroll 8
  for (int i = 0; i < A; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < B; ++j) store(acc + (i * B + j) * kLanes<T>, sum[i][j]);
  }
}

template <class T>
using DotBlock = void (*)(const T*, ptrdiff_t, const T*, ptrdiff_t, int, T*);

template <class T>
DotBlock<T> dot_block_for(int A, int B) {
#define ROW(A)                                                                      \
  {                                                                                 \
    dot_block<T, A, 1>, dot_block<T, A, 2>, dot_block<T, A, 3>, dot_block<T, A, 4>, \
        dot_block<T, A, min(5, kDotM)>, dot_block<T, A, min(6, kDotM)>              \
  }
  static constexpr DotBlock<T> blocks[4][6] = {ROW(1), ROW(2), ROW(3), ROW(min(4, kDotK))};
#undef ROW
  return blocks[A - 1][B - 1];
}

template <class T>
void small_weight_grad(const T* x, ptrdiff_t ldx, const T* dy, ptrdiff_t ldy, int K, int M,
                       int rows, T* acc) {
  const Parts ks(K, kDotK), ms(M, kDotM);
  for (int p = 0, m0 = 0; p < ms.count; m0 += ms.width(p++)) {
    for (int q = 0, k0 = 0; q < ks.count; k0 += ks.width(q++)) {
      const int A = ks.width(q), B = ms.width(p);
      dot_block_for<T>(A, B)(x + k0 * ldx, ldx, dy + m0 * ldy, ldy, rows, acc);
      acc += A * B * kLanes<T>;
    }
  }
}

template <class T>
void small_finish(const T* acc, int K, int M, T* out, ptrdiff_t k_stride, ptrdiff_t m_stride) {
  const Parts ks(K, kDotK), ms(M, kDotM);
  for (int p = 0, m0 = 0; p < ms.count; m0 += ms.width(p++)) {
    for (int q = 0, k0 = 0; q < ks.count; k0 += ks.width(q++)) {
      for (int k = k0; k < k0 + ks.width(q); ++k) {
        for (int m = m0; m < m0 + ms.width(p); ++m, acc += kLanes<T>) {
          T lanes[kLanes<T>];
          std::memcpy(lanes, acc, sizeof(lanes));
          for (int half = kLanes<T> / 2; half > 0; half /= 2) {
            for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
          }
          out[k * k_stride + m * m_stride] = lanes[0];
        }
      }
    }
  }
}

/// acc[i][V vectors] += sum over rows r of b[i][r] * t[r][V vectors], for W features i of b.
template <class T, int W, int V>
void outer_block(const T* b, ptrdiff_t ldb, const T* t, int rows, T* acc) {
  Vec<T> sum[W][V];
#pragma GCC unroll 8
  for (int i = 0; i < W; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[i][v] = load(acc + (i * V + v) * kLanes<T>);
  }
  for (int r = 0; r < rows; ++r, t += V * kLanes<T>) {
    Vec<T> tv[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) tv[v] = load(t + v * kLanes<T>);
#pragma GCC unroll 8
    for (int i = 0; i < W; ++i) {
      const Vec<T> bv = broadcast(b[i * ldb + r]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = fma(bv, tv[v], sum[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < W; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(acc + (i * V + v) * kLanes<T>, sum[i][v]);
  }
}

template <class T>
using OuterBlock = void (*)(const T*, ptrdiff_t, const T*, int, T*);

template <class T>
OuterBlock<T> outer_block_for(int W, int V) {
#define ROW(V)                                                                              \
  {                                                                                         \
    outer_block<T, 1, V>, outer_block<T, 2, V>, outer_block<T, 3, V>, outer_block<T, 4, V>, \
        outer_block<T, 5, V>, outer_block<T, 6, V>                                          \
  }
  static constexpr OuterBlock<T> blocks[4][6] = {ROW(1), ROW(2), ROW(min(3, kMaxV)),
                                                 ROW(min(4, kMaxV))};
#undef ROW
  return blocks[V - 1][W - 1];
}

/// t[r][V vectors] = the transpose of a[lanes][rows], rows a multiple of 16. Lanes beyond hold
/// zero.
template <class T>
void transpose_lanes(const T* a, ptrdiff_t lda, int lanes, int rows, int V, T* t) {
  constexpr int N = kLanes<T>;
  for (int v = 0; v < V; ++v) {
    const int valid = min(N, lanes - v * N);
    for (int r = 0; r < rows; r += N) {
      const T* from = a + v * N * lda + r;
      T* to = t + r * V * N + v * N;
      if (valid == N) {
        transpose_square<T, N>(from, lda, to, V * N);
        continue;
      }
      T padded[N * N] = {};
      for (int i = 0; i < valid; ++i) store(padded + i * N, load(from + i * lda));
      transpose_square<T, N>(padded, N, to, V * N);
    }
  }
}

template <class T>
void large_weight_grad(const T* x, ptrdiff_t ldx, const T* dy, ptrdiff_t ldy, int K, int M,
                       int rows, T* acc) {
  constexpr int N = kLanes<T>;
  const LargeForm<T> form(K, M);
  const T *a = form.over_m ? dy : x, *b = form.over_m ? x : dy;
  const ptrdiff_t lda = form.over_m ? ldy : ldx, ldb = form.over_m ? ldx : ldy;
  const Parts chunks(form.vectors, kMaxV), others(form.others, kMaxW);
  alignas(64) T t[kLongRows * kMaxV * N];
  for (int r0 = 0; r0 < rows; r0 += kLongRows) {
    const int valid = min(kLongRows, rows - r0);
    T* sums = acc;
    for (int c = 0, v0 = 0; c < chunks.count; v0 += chunks.width(c++)) {
      const int V = chunks.width(c);
      transpose_lanes(a + v0 * N * lda + r0, lda, min(V * N, form.lanes - v0 * N),
                      ceil_div(valid, 16) * 16, V, t);
      for (int p = 0, i0 = 0; p < others.count; i0 += others.width(p++)) {
        const int W = others.width(p);
        outer_block_for<T>(W, V)(b + i0 * ldb + r0, ldb, t, valid, sums);
        sums += W * V * N;
      }
    }
  }
}

template <class T>
void large_finish(const T* acc, int K, int M, T* out, ptrdiff_t k_stride, ptrdiff_t m_stride) {
  constexpr int N = kLanes<T>;
  const LargeForm<T> form(K, M);
  const ptrdiff_t lane_stride = form.over_m ? m_stride : k_stride;
  const ptrdiff_t other_stride = form.over_m ? k_stride : m_stride;
  const Parts chunks(form.vectors, kMaxV);
  for (int c = 0, v0 = 0; c < chunks.count; v0 += chunks.width(c++)) {
    const int width = chunks.width(c) * N, valid = min(width, form.lanes - v0 * N);
    for (int i = 0; i < form.others; ++i, acc += width) {
      T* to = out + i * other_stride + v0 * N * lane_stride;
      for (int l = 0; l < valid; ++l) to[l * lane_stride] = acc[l];
    }
  }
}

template <class T>
void weight_grad(const T* x, ptrdiff_t ldx, const T* dy, ptrdiff_t ldy, int K, int M, int R,
                 int rows, T* acc) {
  (void)R;
  (is_small<T>(K, M) ? small_weight_grad<T> : large_weight_grad<T>)(x, ldx, dy, ldy, K, M, rows,
                                                                    acc);
}

template <class T>
void grad_finish(const T* acc, int K, int M, T* out, ptrdiff_t k_stride, ptrdiff_t m_stride) {
  (is_small<T>(K, M) ? small_finish<T> : large_finish<T>)(acc, K, M, out, k_stride, m_stride);
}

template <class T>
constexpr TileMatmul<T> table() {
  return {packed_size<T>, pack_weights<T>, matmul<T>,     grad_accumulator_size<T>,
          grad_zero<T>,   weight_grad<T>,  grad_merge<T>, grad_finish<T>};
}

}  // namespace

extern const TileMatmul<float> kTileMatmulF32 = table<float>();
extern const TileMatmul<double> kTileMatmulF64 = table<double>();

}  // namespace gradcell::cpu::GRADCELL_ISA

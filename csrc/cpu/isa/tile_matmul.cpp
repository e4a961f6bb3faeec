// Matrix products on feature-major tiles (contract: cpu/tile_kernels.h).
//
// The product: a micro-kernel keeps W columns (features of y) by V row vectors in registers and
// walks K. Weights are packed in that order: K blocks (so that a block of x stays in L1), in them
// column panels of nearly equal width, in them [k][W].
#include <utility>

#include "cpu/isa/tile_vector.h"
#include "cpu/tile_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

constexpr int kMaxW = 6;                               // columns in registers
constexpr int kMaxV = kVectorRegisters == 32 ? 4 : 2;  // row vectors in registers
constexpr int kTileChunkBytes = 32 * 1024;  // of x in L1 while all column panels pass over it

/// [0, n) cut into the fewest parts of at most `most`, sizes differing by at most one.
struct Parts {
  int count, size, longer;  ///< the first `longer` parts have size + 1
  Parts(int n, int most) : count(1), size(n), longer(0) {
    if (n > most) count = ceil_div(n, most), size = n / count, longer = n - size * count;
  }
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

/// W columns of kc values of k, where one of the strides is 1.
template <class T, int W>
void pack_panel(const T* w, ptrdiff_t k_stride, ptrdiff_t m_stride, int kc, T* packed) {
  if (m_stride == 1) {
    for (int k = 0; k < kc; ++k, w += k_stride, packed += W) {
      for (int m = 0; m < W; ++m) packed[m] = w[m];
    }
  } else {
    for (int k = 0; k < kc; ++k, packed += W) {
      for (int m = 0; m < W; ++m) packed[m] = w[k + m * m_stride];
    }
  }
}

template <class T>
void pack_weights(const T* w, ptrdiff_t k_stride, ptrdiff_t m_stride, int K, int M, T* packed) {
  static constexpr void (*kPack[kMaxW])(const T*, ptrdiff_t, ptrdiff_t, int, T*) = {
      pack_panel<T, 1>, pack_panel<T, 2>, pack_panel<T, 3>,
      pack_panel<T, 4>, pack_panel<T, 5>, pack_panel<T, 6>};
  const bool dense = k_stride == 1 || m_stride == 1;
  const Parts blocks = k_blocks<T>(K), panels(M, kMaxW);
  for (int b = 0, k0 = 0; b < blocks.count; k0 += blocks.width(b++)) {
    const int kc = blocks.width(b);
    for (int p = 0, m0 = 0; p < panels.count; m0 += panels.width(p++)) {
      const int W = panels.width(p);
      const T* from = w + k0 * k_stride + m0 * m_stride;
      if (dense) {
        kPack[W - 1](from, k_stride, m_stride, kc, packed);
        packed += static_cast<ptrdiff_t>(kc) * W;
        continue;
      }
      for (int k = 0; k < kc; ++k) {
        for (int m = 0; m < W; ++m) *packed++ = from[k * k_stride + m * m_stride];
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
  /// Rows: the next block of x, of which so many lines are fetched with each group of k.
  const T* next_x = nullptr;
  int next_lines = 0;
};

constexpr int kGroup = 16;  // values of k between requests for what comes next
template <class T>
constexpr int kFetched = 64 / static_cast<int>(sizeof(T));  // elements that one brings

/// Where the weights of a block of k lie: in panels [k][W], or (Rows) as rows of a matrix, those of
/// a column side by side.
template <class T>
struct Weights {
  const T* at;
  ptrdiff_t ld;  ///< Rows: between the weights of two columns
};

/// P panels of W columns by V row vectors. Where that is too few sums to hide the latency of a
/// multiply-add, U sets of them take the values of k in turn.
template <class T, bool Rows, int P, int W, int V>
void product_block(Weights<T> weights, const Product<T>& product) {
  const Product<T> a = product;  // a local: the stores below cannot change it
  const ptrdiff_t panel = Rows ? W * weights.ld : static_cast<ptrdiff_t>(a.kc) * W;
  const ptrdiff_t column = Rows ? weights.ld : 1;
  const T* w = weights.at;
  constexpr int C = P * W;
  constexpr int U = Rows ? 1 : C * V <= 2 ? 4 : C * V <= 6 ? 2 : 1;
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
      const Vec<T> wv = broadcast((w + (c / W) * panel)[(c % W) * column]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[u][c][v] = fma(wv, xv[v], acc[u][c][v]);
    }
    x += a.ldx;
    w += Rows ? 1 : W;
  };
  int k = a.kc;
  if constexpr (Rows) {
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
        const T* y = a.y + (C + column_y++) * a.ldy;
        for (int v = 0; v < V * kLanes<T>; v += kFetched<T>) __builtin_prefetch(y + v, 1);
      }
      do {
        step(0);
      } while (--steps > 0);
    } while (k > 0);
  } else if constexpr (U > 1) {
    for (; k % U; --k) step(0);
  }
  if (!Rows && (U == 1 || k > 0)) {
    do {  // once at least; a loop that may not run makes GCC keep the sums in memory too
#pragma GCC unroll 4
      for (int u = 0; u < U; ++u) step(u);
    } while ((k -= U) > 0);
  }
  T* y = a.y;
  asm("" : "+r"(y));  // or GCC keeps all addresses of above, in vector registers
#pragma GCC unroll 32
  for (int c = 0; c < C; ++c, y += a.ldy) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      Vec<T> sum = acc[0][c][v];
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

template <class T, bool Rows, int V, bool Many>
ProductBlock<T> product_block_of_width(int W) {
  constexpr int P = Many ? panels_at_once(V) : 1;
  static constexpr ProductBlock<T> blocks[kMaxW] = {
      product_block<T, Rows, P, 1, V>, product_block<T, Rows, P, 2, V>,
      product_block<T, Rows, P, 3, V>, product_block<T, Rows, P, 4, V>,
      product_block<T, Rows, P, 5, V>, product_block<T, Rows, P, 6, V>};
  return blocks[W - 1];
}

template <class T, bool Rows>
ProductBlock<T> product_block_for(int V, int W, bool many) {
  auto of = [=](auto v) {
    constexpr int kV = decltype(v)::value;
    if constexpr (panels_at_once(kV) > 1) {
      if (many) return product_block_of_width<T, Rows, kV, true>(W);
    }
    return product_block_of_width<T, Rows, kV, false>(W);
  };
  switch (V) {
    case 1:
      return of(Int<1>{});
    case 2:
      return of(Int<min(2, kMaxV)>{});
    case 3:
      return of(Int<min(3, kMaxV)>{});
    default:
      return of(Int<kMaxV>{});
  }
}

/// All columns of one block of k by V row vectors. Moves a on. (By reference: a copy of what was
/// only just written would wait for the stores.)
template <class T, bool Rows>
void product_columns(Weights<T> weights, Product<T>& a, int V, const Parts& panels) {
  const int at_once = panels_at_once(V);
  for (int p = 0; p < panels.count;) {
    const int W = panels.width(p);
    const int same = (p < panels.longer ? panels.longer : panels.count) - p;
    const bool many = at_once > 1 && same >= at_once;
    const int step = many ? at_once : 1;
    product_block_for<T, Rows>(V, W, many)(weights, a);
    p += step;
    weights.at += step * W * (Rows ? weights.ld : a.kc);
    a.next_x += kFetched<T> * ceil_div(a.kc, kGroup) * a.next_lines;
    a.y += step * W * a.ldy;
    if (a.bias) a.bias += step * W;
  }
}

template <class T>
void add_bias(const T* bias, T* y, ptrdiff_t ldy, int M, int R, bool accumulate) {
  for (int m = 0; m < M; ++m) {
    for (int r = 0; r < R; ++r) {
      y[m * ldy + r] = (accumulate ? y[m * ldy + r] : T(0)) + (bias ? bias[m] : T(0));
    }
  }
}

template <class T, bool Rows>
void product(Weights<T> weights, const T* x, ptrdiff_t ldx, T* y, ptrdiff_t ldy, int K, int M,
             int R, const T* bias, bool accumulate) {
  if (K == 0) return add_bias(bias, y, ldy, M, R, accumulate);
  const Parts blocks = k_blocks<T>(K), panels(M, kMaxW), rows(R / kLanes<T>, kMaxV);
  for (int r = 0, v0 = 0; r < rows.count; v0 += rows.width(r++)) {
    const ptrdiff_t r0 = static_cast<ptrdiff_t>(v0) * kLanes<T>;
    for (int b = 0, k0 = 0; b < blocks.count; k0 += blocks.width(b++)) {
      Product<T> a{x + k0 * ldx + r0,  ldx, y + r0, ldy, blocks.width(b), b == 0 ? bias : nullptr,
                   accumulate || b > 0};
      if (Rows) {
        a.next_x = a.x + a.kc * ldx;
        a.next_lines = ceil_div(ceil_div(a.kc * rows.width(r) * kLanes<T>, kFetched<T>),
                                ceil_div(a.kc, kGroup) * panels.count);
      }
      const Weights<T> from_k0{weights.at + static_cast<ptrdiff_t>(k0) * (Rows ? 1 : M),
                               weights.ld};
      product_columns<T, Rows>(from_k0, a, rows.width(r), panels);
    }
  }
}

template <class T>
void matmul(const T* packed, const T* x, ptrdiff_t ldx, T* y, ptrdiff_t ldy, int K, int M, int R,
            const T* bias, bool accumulate) {
  product<T, false>({packed, 0}, x, ldx, y, ldy, K, M, R, bias, accumulate);
}

template <class T>
void matmul_rows(const T* w, ptrdiff_t ldw, const T* x, ptrdiff_t ldx, T* y, ptrdiff_t ldy, int K,
                 int M, int R) {
  product<T, true>({w, ldw}, x, ldx, y, ldy, K, M, R, nullptr, false);
}

// ---- The weight gradient ----
//
// Lanes run over features of one factor (x or dy, "a"), the other one ("b") is broadcast:
//   sum[i][lane] += b[i][r] * a[lane][r].
// A large gradient has one feature a lane, so `a` is transposed. A small one has 16 bytes of rows
// (a quad) of each feature: fewer shuffles, no padding to a whole vector of features, and four
// (double: two) partial sums for each weight, added up in finish, which must not crowd the cache.

constexpr int kGradV = kVectorRegisters == 32 ? 5 : 2;  // vectors of `a` in registers
/// Features of b beside V of those, so that the sums about fill the registers.
constexpr int grad_w(int V) { return min(12, (kVectorRegisters == 32 ? 25 : 12) / V); }

constexpr int kSteps = 64;  // vectors of `a` made at a time, for each of kGradV side by side
/// Of accumulators in the form with quads: up to the first always, up to the second if the other
/// form would multiply more padding.
constexpr size_t kSmallQuadForm = 32 * 1024, kLargeQuadForm = 64 * 1024;

template <class T>
struct GradForm {
  int rows_a_step;    ///< rows in a vector: 1 or a quad
  int features;       ///< in a vector
  bool over_m;        ///< lanes are features of dy, else of x
  int lanes, others;  ///< features of a and of b
  int vectors;        ///< that hold the former

  GradForm(int K, int M) : GradForm(K, M, 1) {
    constexpr int kQuad = 16 / static_cast<int>(sizeof(T));
    const GradForm quads(K, M, kQuad);
    const size_t bytes = static_cast<size_t>(K) * M * 16;
    const bool less_padding = quads.cost() < cost() * kQuad;
    if (bytes <= kSmallQuadForm || (bytes <= kLargeQuadForm && less_padding)) *this = quads;
  }
  size_t size() const { return static_cast<size_t>(vectors) * kLanes<T> * others; }

 private:
  GradForm(int K, int M, int rows) : rows_a_step(rows), features(kLanes<T> / rows) {
    set(M, K);
    const int64_t over_dy = cost();
    set(K, M);
    over_m = over_dy <= cost();
    if (over_m) set(M, K);
  }
  void set(int of_a, int of_b) {
    lanes = of_a;
    others = of_b;
    vectors = ceil_div(lanes, features);
  }
  /// Of a step: multiply-adds, and making a vector of `a` as dear as a few of them.
  int64_t cost() const { return static_cast<int64_t>(vectors) * (others + 4); }
};

template <class T>
size_t grad_accumulator_size(int K, int M) {
  return GradForm<T>(K, M).size();
}

template <class T>
void grad_zero(T* acc, int K, int M) {
  std::memset(acc, 0, grad_accumulator_size<T>(K, M) * sizeof(T));
}

/// sums[i][V vectors] += sum over steps s of b[i][s] * t[s][V vectors], for W features i of b.
template <class T, int Q, int W, int V>
void outer_block(const T* b, ptrdiff_t ldb, const T* t, int steps, T* sums) {
  Vec<T> sum[W][V];
#pragma GCC unroll 12
  for (int i = 0; i < W; ++i) {
#pragma GCC unroll 5
    for (int v = 0; v < V; ++v) sum[i][v] = load(sums + (i * V + v) * kLanes<T>);
  }
  int s = 0;
  do {  // once at least; a loop that may not run makes GCC keep the sums in memory too
    Vec<T> tv[V];
#pragma GCC unroll 5
    for (int v = 0; v < V; ++v) tv[v] = load(t + v * kLanes<T>);
#pragma GCC unroll 12
    for (int i = 0; i < W; ++i) {
      Vec<T> bv;
      if constexpr (Q == 1) {
        bv = broadcast(b[i * ldb]);
      } else {
        bv = broadcast_quad(b + i * ldb);
      }
#pragma GCC unroll 5
      for (int v = 0; v < V; ++v) sum[i][v] = fma(bv, tv[v], sum[i][v]);
    }
    t += V * kLanes<T>;
    b += Q;
  } while (++s < steps);
#pragma GCC unroll 12
  for (int i = 0; i < W; ++i) {
#pragma GCC unroll 5
    for (int v = 0; v < V; ++v) store(sums + (i * V + v) * kLanes<T>, sum[i][v]);
  }
}

template <class T>
using OuterBlock = void (*)(const T*, ptrdiff_t, const T*, int, T*);

template <class T, int Q, int V, int... W>
OuterBlock<T> outer_block_of_width(int w, std::integer_sequence<int, W...>) {
  static constexpr OuterBlock<T> blocks[] = {outer_block<T, Q, W + 1, V>...};
  return blocks[w - 1];
}

template <class T, int Q>
OuterBlock<T> outer_block_for(int W, int V) {
  auto of = [W](auto v) {
    constexpr int kV = decltype(v)::value;
    return outer_block_of_width<T, Q, kV>(W, std::make_integer_sequence<int, grad_w(kV)>{});
  };
  switch (V) {
    case 1:
      return of(Int<1>{});
    case 2:
      return of(Int<2>{});
    case 3:
      return of(Int<min(3, kGradV)>{});
    case 4:
      return of(Int<min(4, kGradV)>{});
    default:
      return of(Int<kGradV>{});
  }
}

/// t[s][V vectors]: quad s of `lanes` features of a, zeros beyond them. Makes whole vectors' quads.
template <class T>
void interleave_quads(const T* a, ptrdiff_t lda, int lanes, int steps, int V, T* t) {
  constexpr int N = kLanes<T>, G = kVectorBytes / 16;
  static const T zeros[kSteps * N] = {};
  for (int v = 0; v < V; ++v) {
    const T* from[G];
    for (int g = 0; g < G; ++g) {
      from[g] = v * G + g < lanes ? a + (v * G + g) * lda : zeros;
      asm("" : "+r"(from[g]));  // or GCC chooses again at every step
    }
    T* to = t + v * N;
    for (ptrdiff_t s = 0; s < steps; s += G, to += G * V * N) {
      Vec<T> quads[G];
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) quads[g] = load(from[g] + s * N / G);
      transpose_quads(quads);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) store(to + g * V * N, quads[g]);
    }
  }
}

/// t[s][V vectors]: row s of `lanes` features of a, zeros beyond them. Makes whole blocks of steps.
template <class T>
void transpose_lanes(const T* a, ptrdiff_t lda, int lanes, int steps, int V, T* t) {
  constexpr int N = kLanes<T>;
  for (int v = 0; v < V; ++v) {
    const int valid = min(N, lanes - v * N);
    for (int r = 0; r < steps; r += N) {
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

/// One factor's features from `at`, rows from r.
template <class T>
struct Factor {
  const T* data;
  ptrdiff_t ld;
  const T* at(int feature, int r) const { return data + feature * ld + r; }
};

/// The rows from r of `features` features that do not fill a quad, in a quad with zeros.
template <class T, int Q>
void last_quad(const Factor<T>& f, int feature, int features, int r, int rows, T* quads) {
  for (int i = 0; i < features; ++i) {
    for (int q = 0; q < Q; ++q) quads[i * Q + q] = r + q < rows ? f.at(feature + i, r)[q] : T(0);
  }
}

/// Rows [r0, r0 + steps * Q), or if `partial` the last rows [r0, rows) that do not fill a quad.
template <class T, int Q>
void add_rows(const GradForm<T>& form, const Factor<T>& a, const Factor<T>& b, int r0, int steps,
              bool partial, int rows, T* sums) {
  constexpr int N = kLanes<T>;
  const Parts chunks(form.vectors, kGradV);
  alignas(64) T t[kSteps * kGradV * N];
  for (int c = 0, v0 = 0; c < chunks.count; v0 += chunks.width(c++)) {
    const int V = chunks.width(c), lane0 = v0 * form.features;
    const int lanes = min(V * form.features, form.lanes - lane0);
    if constexpr (Q == 1) {
      transpose_lanes(a.at(lane0, r0), a.ld, lanes, steps, V, t);
    } else if (partial) {
      for (int l = 0; l < V * N; ++l) t[l] = T(0);
      last_quad<T, Q>(a, lane0, lanes, r0, rows, t);  // a step has them side by side, too
    } else {
      interleave_quads(a.at(lane0, r0), a.ld, lanes, steps, V, t);
    }
    const Parts others(form.others, grad_w(V));
    for (int p = 0, i0 = 0; p < others.count; i0 += others.width(p++)) {
      const int W = others.width(p);
      const auto block = outer_block_for<T, Q>(W, V);
      if (partial) {
        T quads[grad_w(1) * Q];
        last_quad<T, Q>(b, i0, W, r0, rows, quads);
        block(quads, Q, t, 1, sums);
      } else {
        block(b.at(i0, r0), b.ld, t, steps, sums);
      }
      sums += W * V * N;
    }
  }
}

template <class T, int Q>
void add_tile(const GradForm<T>& form, const Factor<T>& a, const Factor<T>& b, int rows, T* acc) {
  const int whole = rows / Q;
  for (int s = 0; s < whole; s += kSteps) {
    add_rows<T, Q>(form, a, b, s * Q, min(kSteps, whole - s), false, rows, acc);
  }
  if (whole * Q < rows) add_rows<T, Q>(form, a, b, whole * Q, 1, true, rows, acc);
}

template <class T>
void weight_grad(const T* x, ptrdiff_t ldx, const T* dy, ptrdiff_t ldy, int K, int M, int R,
                 int rows, T* acc) {
  (void)R;
  constexpr int kQuad = 16 / static_cast<int>(sizeof(T));
  const GradForm<T> form(K, M);
  const Factor<T> fx{x, ldx}, fdy{dy, ldy};
  const auto add = form.rows_a_step == 1 ? add_tile<T, 1> : add_tile<T, kQuad>;
  add(form, form.over_m ? fdy : fx, form.over_m ? fx : fdy, rows, acc);
}

/// The sums of neighbours, of a's and then of b's.
template <class T, int... I>
GRADCELL_INLINE Vec<T> add_pairs(Vec<T> a, Vec<T> b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (2 * I)...) + __builtin_shufflevector(a, b, (2 * I + 1)...);
}

/// kLanes sums of Q neighbours each.
template <class T, int Q>
GRADCELL_INLINE Vec<T> add_parts(const T* parts) {
  if constexpr (Q == 1) {
    return load(parts);
  } else {
    constexpr int N = kLanes<T>;
    return add_pairs<T>(add_parts<T, Q / 2>(parts), add_parts<T, Q / 2>(parts + N * Q / 2),
                        std::make_integer_sequence<int, N>());
  }
}

/// to[l * stride] = the sum of Q neighbours from parts[l * Q], l < n.
template <class T, int Q>
void sum_parts(const T* parts, int n, T* to, ptrdiff_t stride) {
  constexpr int N = kLanes<T>;
  int l = 0;
  for (; l + N <= n; l += N, parts += N * Q) {
    const Vec<T> sum = add_parts<T, Q>(parts);
    if (stride == 1) {
      store(to + l, sum);
    } else {
      for (int i = 0; i < N; ++i) to[(l + i) * stride] = sum[i];
    }
  }
  for (; l < n; ++l, parts += Q) {
    T sum = parts[0];
    for (int q = 1; q < Q; ++q) sum += parts[q];
    to[l * stride] = sum;
  }
}

template <class T>
void grad_finish(const T* acc, int K, int M, T* out, ptrdiff_t k_stride, ptrdiff_t m_stride) {
  constexpr int kQuad = 16 / static_cast<int>(sizeof(T));
  const GradForm<T> form(K, M);
  const ptrdiff_t lane_stride = form.over_m ? m_stride : k_stride;
  const ptrdiff_t other_stride = form.over_m ? k_stride : m_stride;
  const auto add_up = form.rows_a_step == 1 ? sum_parts<T, 1> : sum_parts<T, kQuad>;
  const Parts chunks(form.vectors, kGradV);
  for (int c = 0, v0 = 0; c < chunks.count; v0 += chunks.width(c++)) {
    const int lane0 = v0 * form.features, width = chunks.width(c) * form.features;
    const int valid = min(width, form.lanes - lane0);
    for (int i = 0; i < form.others; ++i, acc += width * form.rows_a_step) {
      add_up(acc, valid, out + i * other_stride + lane0 * lane_stride, lane_stride);
    }
  }
}

template <class T>
constexpr TileMatmul<T> table() {
  return {kMaxV * kLanes<T> > 16 ? kMaxV * kLanes<T> : 16,
          packed_size<T>,
          pack_weights<T>,
          matmul<T>,
          matmul_rows<T>,
          grad_accumulator_size<T>,
          grad_zero<T>,
          weight_grad<T>,
          grad_finish<T>};
}

}  // namespace

extern const TileMatmul<float> kTileMatmulF32 = table<float>();
extern const TileMatmul<double> kTileMatmulF64 = table<double>();

}  // namespace gradcell::cpu::GRADCELL_ISA

// Matrix products on feature-major tiles, for tile_matmul.cpp (contract:
// cpu/kernels/tile_kernels.h) and pairs/tile_pairs.cpp.
#pragma once

#include <type_traits>

#include "cpu/isa/tile_product.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

constexpr int kTileChunkBytes = 32 * 1024;  // of x in L1 while all column panels pass over it

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
  const bool dense = k_stride == 1 || m_stride == 1;
  const Parts blocks = k_blocks<T>(K), panels(M, kMaxW);
  for (int b = 0, k0 = 0; b < blocks.count; k0 += blocks.width(b++)) {
    const int kc = blocks.width(b);
    for (int p = 0, m0 = 0; p < panels.count; m0 += panels.width(p++)) {
      const int W = panels.width(p);
      const T* from = w + k0 * k_stride + m0 * m_stride;
      if (dense) {
        chosen<1, kMaxW>(1, W, []<int, int w>() { return &pack_panel<T, w>; })(
            from, k_stride, m_stride, kc, packed);
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
void matmul(const T* packed, const T* x, ptrdiff_t ldx, Sum<T>* y, ptrdiff_t ldy, int K, int M,
            int R, const Sum<T>* bias, bool accumulate) {
  product<T, Reads::Packed>({packed, 0}, {x, ldx, y, ldy, bias, accumulate}, k_blocks<T>(K), K, M,
                            R);
}

template <class T>
void matmul_rows(const T* w, ptrdiff_t ldw, const T* x, ptrdiff_t ldx, Sum<T>* y, ptrdiff_t ldy,
                 int K, int M, int R) {
  product<T, Reads::Rows>({w, ldw}, {x, ldx, y, ldy, nullptr, false}, k_blocks<T>(K), K, M, R);
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
    constexpr int kQuad = 16 / narrow<int>(sizeof(T));
    const GradForm quads(K, M, kQuad);
    const size_t bytes = static_cast<size_t>(K) * M * 16;
    const bool less_padding = quads.cost() < cost() * kQuad;
    if (!std::is_same_v<T, Sum<T>>) return;  // two rows are a number
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
void grad_zero(Sum<T>* acc, int K, int M) {
  std::memset(acc, 0, grad_accumulator_size<T>(K, M) * sizeof(*acc));
}

/// sums[i][V vectors] += sum over steps s of b[i][s] * t[s][V vectors], for W features i of b.
template <class T, int Q, int W, int V>
void outer_block(const T* b, ptrdiff_t ldb, const T* t, int steps, Sum<T>* sums) {
  Vec<Sum<T>> sum[W][V];
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
using OuterBlock = void (*)(const T*, ptrdiff_t, const T*, int, Sum<T>*);

template <class T, int Q>
OuterBlock<T> outer_block_for(int W, int V) {
  return chosen<kGradV, grad_w(1)>(V, W, []<int v, int w>() -> OuterBlock<T> {
    if constexpr (w > grad_w(v))
      return nullptr;
    else
      return outer_block<T, Q, w, v>;
  });
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
              bool partial, int rows, Sum<T>* sums) {
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
void add_tile(const GradForm<T>& form, const Factor<T>& a, const Factor<T>& b, int rows,
              Sum<T>* acc) {
  const int whole = rows / Q;
  for (int s = 0; s < whole; s += kSteps) {
    add_rows<T, Q>(form, a, b, s * Q, min(kSteps, whole - s), false, rows, acc);
  }
  if (whole * Q < rows) add_rows<T, Q>(form, a, b, whole * Q, 1, true, rows, acc);
}

template <class T>
void weight_grad(const T* x, ptrdiff_t ldx, const T* dy, ptrdiff_t ldy, int K, int M, int R,
                 int rows, Sum<T>* acc) {
  (void)R;
  constexpr int kQuad = 16 / narrow<int>(sizeof(T));
  const GradForm<T> form(K, M);
  const Factor<T> fx{x, ldx}, fdy{dy, ldy};
  auto add = add_tile<T, 1>;
  if constexpr (std::is_same_v<T, Sum<T>>)
    if (form.rows_a_step != 1) add = add_tile<T, kQuad>;
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
void grad_finish(const Sum<T>* acc, int K, int M, Sum<T>* out, ptrdiff_t k_stride,
                 ptrdiff_t m_stride) {
  constexpr int kQuad = 16 / narrow<int>(sizeof(T));
  const GradForm<T> form(K, M);
  const ptrdiff_t lane_stride = form.over_m ? m_stride : k_stride;
  const ptrdiff_t other_stride = form.over_m ? k_stride : m_stride;
  const auto add_up = form.rows_a_step == 1 ? sum_parts<Sum<T>, 1> : sum_parts<Sum<T>, kQuad>;
  const Parts chunks(form.vectors, kGradV);
  for (int c = 0, v0 = 0; c < chunks.count; v0 += chunks.width(c++)) {
    const int lane0 = v0 * form.features, width = chunks.width(c) * form.features;
    const int valid = min(width, form.lanes - lane0);
    for (int i = 0; i < form.others; ++i, acc += width * form.rows_a_step) {
      add_up(acc, valid, out + i * other_stride + lane0 * lane_stride, lane_stride);
    }
  }
}

}  // namespace
}  // namespace gradcell::cpu::GRADCELL_ISA

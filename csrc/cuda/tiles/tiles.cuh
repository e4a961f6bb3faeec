// Tiles of rows in shared memory: where a thread stands, products with weights, their gradients and
// sums over rows, by multiply-adds. Text for NVRTC, behind prelude.cuh; tensor_cores.cuh has the
// same products by tensor cores.

namespace gradcell {
namespace scalar {

// Tiles of rows, see tile_layout.h: threads x are rows, threads y share the features of values. In
// shared memory a feature's rows lie side by side; the next feature's begin an odd number of rows
// later, so that threads which read the same row of neighbours use different banks.
#ifndef GRADCELL_SHIM
extern __shared__ __align__(16) unsigned char gc_tile[];
#endif
// A launch has a thread y for each group of features. (Tests have fewer, which take turns.)
#ifdef GRADCELL_SHIM
#define GC_TURNS(groups) for (int turn = 0; turn < (groups); turn += blockDim.y)
#define GC_MINE(groups) (turn + gc_group() < (groups))
#define GC_GROUP(groups) (GC_MINE(groups) ? turn + gc_group() : (groups) - 1)
#define GC_KNOWN(known, here) (here)
#else
#define GC_TURNS(groups)
#define GC_MINE(groups) true
#define GC_GROUP(groups) gc_group()
#define GC_KNOWN(known, here) (known)
#endif
// How many rows there is room for; Launcher::fit_rows counts the same.
__device__ constexpr int gc_rows(int bytes, int row_bytes) {
  int rows = 32;
  while (rows > 1 && bytes + row_bytes * (rows | 1) > GRADCELL_SHARED - 1024) rows /= 2;
  return rows;
}
template <class T>
GRADCELL_DEVICE T* gc_in_tile(int bytes) {
  return reinterpret_cast<T*>(gc_tile + bytes);
}
GRADCELL_DEVICE int gc_feature(int f, int features) { return f < features ? f : features - 1; }
// Where a thread stands in a tile, which row and which group of features it has. Of 16 rows a warp
// has two groups, so that four neighbouring threads have two rows of both, see tensor_cores.cuh.
GRADCELL_DEVICE bool gc_two_groups() { return blockDim.x == 16 && blockDim.y % 2 == 0; }
GRADCELL_DEVICE int gc_row() {
  const int i = gc_thread() % 32;
  return gc_two_groups() ? i / 4 * 2 + i % 2 : (int)threadIdx.x;
}
GRADCELL_DEVICE int gc_group() {
  const int i = gc_thread();
  return gc_two_groups() ? i / 32 * 2 + i / 2 % 2 : (int)threadIdx.y;
}
// The columns of a matrix of K x M, by groups of C neighbours that have P places each; the next row
// begins `step` places later.
template <class Type, int K, int M, int C, int P, int step, class T, class Stored>
GRADCELL_DEVICE void gc_stage(T* to, const Stored* from, int k_stride, int m_stride) {
  for (int i = gc_thread(); i < K * step; i += gc_threads()) {
    const int j = i % step % P, y = i % step / P, k = i / step, m = y * C + j;
    to[i] = j < C && m < M ? T(Type::decoded(from[k * k_stride + m * m_stride])) : T(0);
  }
}

template <class T, int n>
struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) gc_some {
  T at[n];
};

// What is not inlined is compiled once for all the products of a kernel that have its shape.

template <class T, int n>
struct gc_sums {
  T at[n];
};

// n values combined over the lanes of a warp that differ in `levels` bits: all but bit 1 with
// `skips`, else the lowest. With each level a lane keeps half of what it has and gets the other's
// half, until it has one; so that the values are spread over lanes, in the order of a tree.
// Returns the first place that a lane has, or -1 if another lane has the same ones.
template <class Op, int n, class T>
GRADCELL_DEVICE int gc_combine_lanes(T (&v)[n], int levels, bool skips) {
  int first = 0;
  bool again = false;
#pragma unroll
  for (int level = 0, have = n; level < levels; ++level) {
    const int bit = levels - 1 - level, distance = 1 << (skips && bit > 0 ? bit + 1 : bit);
    const bool upper = (gc_thread() & distance) != 0;
    if (have > 1) {
      have /= 2;
#pragma unroll
      for (int i = 0; i < n / 2; ++i) {
        if (i >= have) break;
        const T other = gc_shuffle(upper ? v[i] : v[have + i], distance);
        v[i] = Op::of(upper ? v[have + i] : v[i], other);
      }
      if (upper) first += have;
    } else {
      v[0] = Op::of(v[0], gc_shuffle(v[0], distance));
      again |= upper;
    }
  }
  return again ? -1 : first;
}
// Of so many lanes, and how many of n values each then has.
__device__ constexpr int gc_levels(int lanes) { return lanes <= 1 ? 0 : 1 + gc_levels(lanes / 2); }
__device__ constexpr int gc_share_of(int n, int levels) {
  return n >> levels > 1 ? n >> levels : 1;
}
// The least power of two that is no smaller.
__device__ constexpr int gc_even(int n) { return n <= 1 ? 1 : 2 * gc_even((n + 1) / 2); }

// to[f] becomes what it is and a group's values, from feature `first` on, of the rows of a tile.
template <class Op, int rows, class T, class V, int C>
__device__ __noinline__ void gc_add_rows_up(T* to, gc_sums<V, C> v, bool live, int first,
                                            int features) {
  constexpr int n = gc_even(C);
  const int levels = GC_KNOWN(gc_levels(rows), gc_levels(blockDim.x));
  const bool skips = GC_KNOWN(rows == 16, gc_two_groups());
  T s[n];
#pragma unroll
  for (int j = 0; j < n; ++j) s[j] = j < C && live ? (T)v.at[j < C ? j : 0] : Op::none();
  const int place = gc_combine_lanes<Op>(s, levels, skips);
  T before[n];
  bool has[n];
#pragma unroll
  for (int j = 0; j < n; ++j) {
    has[j] =
        j < gc_share_of(n, levels) && place >= 0 && place + j < C && first + place + j < features;
    before[j] = has[j] ? gc_sum_at(to + first + place + j) : T(0);
  }
#pragma unroll
  for (int j = 0; j < n; ++j)
    if (has[j]) gc_set_sum(to + first + place + j, Op::of(before[j], s[j]));
}

// How far a loop of products is unrolled: places are constants in what is.
__device__ constexpr int gc_unrolled(int k, int products) { return k * products <= 256 ? k : 4; }

// A row of K values times a group's columns, which lie in packs of P, `step` to a term.
template <int K, int C, int P, int step, int stride, class T>
__device__ __noinline__ gc_sums<T, C> gc_multiply(const T* row, const T* w) {
  constexpr int n = P < 4 ? P : 4;
  gc_sums<T, C> to = {};
#pragma unroll(gc_unrolled(K, C))
  for (int k = 0; k < K; ++k) {
    const T x = row[k * stride];
    const gc_some<T, n>* const columns = reinterpret_cast<const gc_some<T, n>*>(w + k * step);
#pragma unroll
    for (int j = 0; j < P / n; ++j) {
      const gc_some<T, n> some = columns[j];
#pragma unroll
      for (int u = 0; u < n; ++u)
        if (j * n + u < C) to.at[j * n + u] = gc_fma(x, some.at[u], to.at[j * n + u]);
    }
  }
  return to;
}
// The same with columns where they are stored, from `first` on: term k of column m at k_stride k +
// m_stride m. `aligned`: four neighbouring terms are one load.
template <class Type, int K, int M, int C, int k_stride, int m_stride, int stride, bool aligned,
          class T, class Stored>
__device__ __noinline__ gc_sums<T, C> gc_multiply_stored(const T* row, const Stored* w, int first) {
  constexpr int n = aligned && k_stride == 1 && K % 4 == 0 && m_stride % 4 == 0 ? 4 : 1;
  gc_sums<T, C> to = {};
  int columns[C];
#pragma unroll
  for (int j = 0; j < C; ++j) columns[j] = gc_feature(first + j, M) * m_stride;
#pragma unroll(gc_unrolled(K / n, C * n))
  for (int k = 0; k < K; k += n) {
    T x[n];
#pragma unroll
    for (int u = 0; u < n; ++u) x[u] = row[(k + u) * stride];
#pragma unroll
    for (int j = 0; j < C; ++j) {
      const gc_some<Stored, n> some =
          *reinterpret_cast<const gc_some<Stored, n>*>(w + columns[j] + k * k_stride);
#pragma unroll
      for (int u = 0; u < n; ++u) to.at[j] = gc_fma(x[u], T(Type::decoded(some.at[u])), to.at[j]);
    }
  }
  return to;
}

// How many neighbours of `all` threads, a power of two of them, can share each of some parts.
__device__ constexpr int gc_sharing(int all, int parts, int lanes = 1) {
  return lanes < 32 && lanes * 2 * parts <= all && all % (lanes * 2) == 0
             ? gc_sharing(all, parts, lanes * 2)
             : lanes;
}

// Left and right factors of n products that are added up.
template <class T, int n>
struct gc_factors {
  const T *a[n], *b[n];
};

// to[k][m] += sum of a[k] b[m] over the rows of a tile, for all factors. A few neighbouring threads
// share the rows of 4 x 4 elements, as many as leave none of the block's without work, and then the
// elements.
template <int K, int M, int stride, int threads, class T, int pairs>
__device__ __noinline__ void gc_add_outer(double* to, gc_factors<T, pairs> of, int rows) {
  constexpr int height = K < 4 ? K : 4, width = M < 4 ? M : 4;
  constexpr int across = (M + width - 1) / width, parts = (K + height - 1) / height * across;
  const int all = GC_KNOWN(threads, gc_threads());
  const int lanes = gc_sharing(all, parts), levels = gc_levels(lanes), step = all / lanes;
  constexpr int n = gc_even(height * width);
  const int lane = gc_thread() % lanes;
#pragma unroll 1
  for (int first = 0; first < parts; first += step) {
    const int mine = first + gc_thread() / lanes, part = gc_feature(mine, parts);
    const int k0 = part / across * height, m0 = part % across * width;
    // What combining will give this lane, if no other one has it too.
    int place = 0;
    bool has = mine < parts;
#pragma unroll
    for (int level = 0; level < levels; ++level)
      if (lane >> (levels - 1 - level) & 1) place += n >> (level + 1), has &= n >> level > 1;
    double* at[n];
    double before[n];
#pragma unroll
    for (int u = 0; u < n; ++u) {
      const int i = (place + u) / width, j = (place + u) % width;
      const bool there =
          has && u < gc_share_of(n, levels) && i < height && k0 + i < K && m0 + j < M;
      at[u] = there ? to + (k0 + i) * M + m0 + j : nullptr;
      before[u] = there ? gc_sum_at(at[u]) : 0;
    }
    T s[n] = {};
    // Of blocks of 4 x 4 all are whole where sizes say so: their places differ by constants.
    auto row = [&](int i) { return K % height == 0 ? k0 + i : gc_feature(k0 + i, K); };
    auto column = [&](int j) { return M % width == 0 ? m0 + j : gc_feature(m0 + j, M); };
    auto add = [&](int r) {
#pragma unroll
      for (int pair = 0; pair < pairs; ++pair) {
        T x[height], y[width];
#pragma unroll
        for (int i = 0; i < height; ++i) x[i] = of.a[pair][row(i) * stride + r];
#pragma unroll
        for (int j = 0; j < width; ++j) y[j] = of.b[pair][column(j) * stride + r];
#pragma unroll
        for (int i = 0; i < height; ++i)
#pragma unroll
          for (int j = 0; j < width; ++j) s[i * width + j] = gc_fma(x[i], y[j], s[i * width + j]);
      }
    };
    constexpr int most = stride & ~1;  // rows of a whole tile
    if (most % lanes == 0 && rows == most) {
#pragma unroll(most / lanes * pairs <= 8 ? most / lanes : 1)
      for (int r = 0; r < most; r += lanes) add(r + lane);
    } else {
#pragma unroll 1
      for (int r = lane; r < rows; r += lanes) add(r);
    }
    gc_combine_lanes<gc_sum<T>>(s, levels, false);
#pragma unroll
    for (int u = 0; u < n; ++u)
      if (at[u]) gc_set_sum(at[u], before[u] + s[u]);
  }
}

}  // namespace scalar
}  // namespace gradcell

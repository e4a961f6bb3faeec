#include "cpu/product.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/scratch.h"
#include "base/thread_pool.h"
#include "cpu/blas.h"
#include "cpu/tile_kernels.h"

namespace gradcell::cpu {

namespace {

// Scratch: what all threads read, and what one makes for itself.
struct Shared;
struct Own;

constexpr int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }
constexpr int64_t round_up(int64_t n, int64_t to) { return ceil_div(n, to) * to; }

/// c is made in tiles of a few columns, of slabs of rows. The slab of a stays in a part of the
/// second-level cache while tiles pass over it. k is cut into blocks, of which a tile of b stays
/// there too.
constexpr int kMaxColumns = 64;
constexpr int kSlabRows = 192;
constexpr int64_t kSlabBytes = 768 << 10;
constexpr int64_t kDepth = 1024;
/// Multiplications below which waking another thread would take as long.
constexpr int64_t kParallelWork = 3'000'000;

/// The most of an operand that is copied as tiles need it; of larger ones, parts after parts.
constexpr int64_t kMostCopied = 16 << 20;

/// Asks for `count` elements of each of `rows` rows, which are too far apart for the machine to
/// foresee.
template <class T>
void fetch(const T* from, int64_t ld, int64_t rows, int64_t count) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + r * ld + i);
}

template <class T>
constexpr DType kType = std::is_same_v<T, float> ? DType::Float32 : DType::Float64;

/// to[c][r] = from[r][c]; rows up to the next multiple of 16 repeat the last one.
template <class T>
void transpose(const T* from, int64_t ld, int64_t rows, int64_t columns, T* to, int64_t ld_to) {
  for (int64_t r = 0; r < rows; r += 16) {
    if (r + 16 < rows)
      fetch(from + (r + 16) * ld, ld, std::min<int64_t>(16, rows - r - 16), columns);
    tile_kernels().transpose.load_rows(from + r * ld, kType<T>, ld,
                                       static_cast<int>(std::min<int64_t>(16, rows - r)),
                                       static_cast<int>(columns), to + r, ld_to, 16);
  }
}

template <class T>
struct Product {
  bool ta, tb;
  int64_t m, n, k;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T* c;
  int64_t ldc;

  int R = static_cast<int>(std::min<int64_t>(tile_kernels().matmul<T>().columns, round_up(n, 16)));
  int64_t tiles = ceil_div(n, R);
  bool b_is_tile = !tb && n == R && ldb == R;

  /// Of a, row-major: as it lies, or transposed first. (Rows apart by a power of two would meet in
  /// few sets of the cache.)
  int64_t ld_left = ta ? round_up(k, 16) + 16 : lda;

  template <class F>
  void for_each(int64_t tasks, F body) const {
    parallel_if(m * n * k >= kParallelWork, static_cast<int>(tasks), body);
  }

  int columns(int64_t tile) const { return static_cast<int>(std::min<int64_t>(R, n - tile * R)); }

  /// Rows [k0, k1) of a tile of b, [k][R], zeros or copies beyond its columns.
  void pack(int64_t tile, int64_t k0, int64_t k1, T* to) const {
    const int count = columns(tile);
    to += k0 * R;
    if (tb) {
      return tile_kernels().transpose.load_rows(b + tile * R * ldb + k0, kType<T>, ldb, count,
                                                static_cast<int>(k1 - k0), to, R, R);
    }
    constexpr int64_t kAhead = 16;
    const T* from = b + k0 * ldb + tile * R;
    for (int64_t i = k0; i < k1; ++i, to += R, from += ldb) {
      if (i + kAhead < k1) fetch(from + kAhead * ldb, ldb, 1, count);
      std::memcpy(to, from, sizeof(T) * static_cast<size_t>(count));
      std::fill(to + count, to + R, T(0));
    }
  }

  /// A tile of a slab of c: w is the slab of a, x the tile of b.
  void multiply(int64_t row, int64_t rows, const T* w, int64_t tile, const T* x) const {
    const TileMatmul<T>& mm = tile_kernels().matmul<T>();
    const auto M = static_cast<int>(rows);
    const int count = columns(tile);
    T* const y = c + row * ldc + tile * R;
    for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
      const auto K = static_cast<int>(std::min(kDepth, k - k0));
      if (k0 == 0 && count % 16 == 0) {
        mm.matmul_rows(w, ld_left, x, R, y, ldc, K, M, count);
        continue;
      }
      T part[kSlabRows * kMaxColumns];
      mm.matmul_rows(w + k0, ld_left, x + k0 * R, R, part, R, K, M,
                     static_cast<int>(round_up(count, 16)));
      for (int i = 0; i < M; ++i) {
        T* const to = y + i * ldc;
        const T* const from = part + i * R;
        if (k0 == 0)
          std::memcpy(to, from, sizeof(T) * static_cast<size_t>(count));
        else
          for (int j = 0; j < count; ++j) to[j] += from[j];
      }
    }
  }

  int64_t slab_rows() const {
    return std::clamp<int64_t>(kSlabBytes / (k * int64_t(sizeof(T))), 24, kSlabRows) / 12 * 12;
  }

  /// Rows of a, transposed to `to` if need be.
  const T* slab_of_a(int64_t row, int64_t rows, T* to) const {
    if (!ta) return a + row * lda;
    transpose(a + row, lda, k, rows, to, ld_left);
    return to;
  }

  /// Tasks are tiles: each is packed by the thread that multiplies with it.
  void by_tiles(int64_t at_once) const {
    const T* left = a;
    if (ta) {
      constexpr int64_t kRows = 64;
      T* const to = kept<T, Shared>(m * ld_left);
      for_each(ceil_div(m, kRows), [&](int task, int) {
        const int64_t row = task * kRows;
        slab_of_a(row, std::min(kRows, m - row), to + row * ld_left);
      });
      left = to;
    }
    for_each(ceil_div(tiles, at_once), [&](int task, int) {
      const int64_t first = task * at_once, last = std::min(tiles, first + at_once);
      T* const x = kept<T, Own>(at_once * R * k);
      for (int64_t t = first; t < last; ++t) pack(t, 0, k, x + (t - first) * R * k);
      const int64_t slab = slab_rows();
      for (int64_t row = 0; row < m; row += slab)
        for (int64_t t = first; t < last; ++t)
          multiply(row, std::min(slab, m - row), left + row * ld_left, t, x + (t - first) * R * k);
    });
  }

  /// Tasks are slabs, of one tile if a lies as it is needed; b is packed for all threads.
  void by_slabs(int64_t tasks) const {
    const T* x = b;
    if (!b_is_tile) {
      constexpr int64_t kRows = 128;
      const int64_t parts = ceil_div(k, kRows);
      T* const packed = kept<T, Shared>(tiles * R * k);
      for_each(tiles * parts, [&](int task, int) {
        const int64_t tile = task / parts, k0 = task % parts * kRows;
        pack(tile, k0, std::min(k, k0 + kRows), packed + tile * R * k);
      });
      x = packed;
    }
    const int64_t at_once = ta ? tiles : 1, across = tiles / at_once;
    int64_t slab = slab_rows();
    while (slab > 24 && ceil_div(m, slab) * across < tasks) slab /= 2;
    slab = slab / 12 * 12;
    for_each(ceil_div(m, slab) * across, [&](int task, int) {
      const int64_t row = task / across * slab, rows = std::min(slab, m - row);
      const T* w = slab_of_a(row, rows, ta ? kept<T, Own>(slab * ld_left) : nullptr);
      for (int64_t i = 0, tile = task % across; i < at_once; ++i, ++tile)
        multiply(row, rows, w, tile, x + tile * R * k);
    });
  }

  void run() const {
    const int64_t tasks = 4 * max_threads();
    const bool by_column = tiles >= tasks && !(ta && m >= n);  // packs the smaller for all
    by_column ? by_tiles(std::min<int64_t>(tiles / tasks, 256 / R)) : by_slabs(tasks);
  }
};

/// Whether tiles are about filled and there is enough to do; where k is long, enough of c to share
/// out.
bool fills_tiles(int64_t m, int64_t n, int64_t k) {
  return m >= 16 && k >= 16 && (k <= kDepth || m * n >= 256 * 256) && m * n * k >= 1'000'000 &&
         round_up(n, 16) * 8 <= n * 9;
}

}  // namespace

template <class T>
void matrix_product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, const T* b,
                    T* c) {
  if (!fills_tiles(m, n, k)) return gemm(ta, tb, m, n, k, a, b, c);
  const int64_t most =
      std::max<int64_t>(kSlabRows, kMostCopied / int64_t(sizeof(T)) / k / kSlabRows * kSlabRows);
  const int64_t rows = ta ? most : m;
  for (int64_t j = 0; j < n; j += most)
    for (int64_t i = 0; i < m; i += rows)
      // clang-format off
      Product<T>{ta, tb, std::min(rows, m - i), std::min(most, n - j), k,
                 a + (ta ? i : i * k), ta ? m : k, b + (tb ? j * k : j), tb ? k : n,
                 c + i * n + j, n}.run();
  // clang-format on
}

template void matrix_product(bool, bool, int64_t, int64_t, int64_t, const float*, const float*,
                             float*);
template void matrix_product(bool, bool, int64_t, int64_t, int64_t, const double*, const double*,
                             double*);

}  // namespace gradcell::cpu

#include "cpu/products/product.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/scratch.h"
#include "base/thread_pool.h"
#include "cpu/kernels/isa_level.h"
#include "cpu/kernels/pair_kernels.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/products/blas.h"

namespace gradcell::cpu {

namespace {

// Scratch: what all threads read, what one makes for itself, its sums, and those of half types.
struct Shared;
struct Own;
struct Slab;
struct Even;
struct Sums;

constexpr int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }
constexpr int64_t round_up(int64_t n, int64_t to) { return ceil_div(n, to) * to; }

/// c is made in tiles of a few columns, of slabs of rows. The slab of a stays in a part of the
/// second-level cache while tiles pass over it. k is cut into blocks of a page, of which a tile of
/// b stays there too.
constexpr int kMaxColumns = 64;
constexpr int kSlabRows = 192;
constexpr int64_t kSlabBytes = 768 << 10;
template <class T>
constexpr int64_t kDepth = 4096 / sizeof(T);
/// Terms that one register adds up; sums of more are sums of such sums, whose rounding errors are
/// smaller.
template <class T>
constexpr int64_t kTerms = std::is_same_v<T, float> ? 512 : kDepth<T>;
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
constexpr DType kType = std::is_same_v<T, double> ? DType::Float64 : DType::Float32;
template <class T>
constexpr bool kPairs = std::is_same_v<T, Pair>;

constexpr int64_t kGroup = 16;           // rows that are transposed at a time
constexpr int64_t kLeastMirrored = 256;  // smaller ones have little below their diagonal's slabs
constexpr int64_t kAllWanted = std::numeric_limits<int64_t>::min() / 2;

/// A matrix in memory, its rows `ld` elements apart: of T, for float of a half type too, and for
/// pairs of bfloat16.
template <class T>
struct Source {
  const std::byte* data;
  DType stored;
  int64_t ld;

  const std::byte* at(int64_t row, int64_t column) const {
    return data + static_cast<size_t>(row * ld + column) * item_size(stored);
  }
  const T* in_place(int64_t row, int64_t column) const {
    return reinterpret_cast<const T*>(at(row, column));
  }

  /// to[column][row] of `rows` rows; rows up to the next multiple of 16, or R, repeat the last one.
  /// For pairs rows are what is paired: columns are pairs.
  void turned(int64_t row, int64_t rows, int64_t column, int64_t columns, T* to, int64_t ld_to,
              int R) const {
    const bool pairs = kPairs<T>;
    tile_kernels().transpose.load_rows(at(row, pairs ? 2 * column : column),
                                       pairs ? kType<T> : stored, pairs ? ld / 2 : ld,
                                       narrow<int>(rows), narrow<int>(columns), to, ld_to, R);
  }

  /// to[i] = `columns` elements of row i, for pairs of rows 2 i and 2 i + 1; row `end` is none.
  void rows(int64_t row, int64_t end, int64_t column, int64_t columns, T* to, int64_t ld_to) const {
    constexpr int64_t kAhead = 16;
    const auto n = static_cast<size_t>(columns);
    const int64_t step = kPairs<T> ? 2 : 1;
    for (; row < end; row += step, to += ld_to) {
      if (row + kAhead < end) fetch(at(row + kAhead, column), ld, step, columns);
      if constexpr (kPairs<T>) {
        static constexpr uint16_t zeros[kMaxColumns] = {};
        auto* even = reinterpret_cast<const uint16_t*>(at(row, column));
        pair_kernels()->interleave(even, row + 1 < end ? even + ld : zeros, to, n);
      } else {
        tile_kernels().transpose.load(at(row, column), stored, to, n);
      }
    }
  }

  /// Asks for `count` elements of each of `rows` rows, which are too far apart for the machine to
  /// foresee.
  void fetch(const std::byte* from, int64_t ld, int64_t rows, int64_t count) const {
    const auto item = static_cast<int64_t>(item_size(stored));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < count * item; i += 64) __builtin_prefetch(from + r * ld * item + i);
  }
};

/// Whether n columns are best multiplied by a as it lies: not transposed, of T, and not with rows
/// apart by pages, which meet in one set of the first cache, where enough columns pay for a copy.
template <class T>
bool lies_well(bool ta, const Source<T>& a, int64_t n) {
  constexpr int64_t kPage = 4096, kPays = 512;
  if (ta || kPairs<T>) return !ta;
  const bool meet = a.ld * int64_t(sizeof(T)) % kPage == 0 && n >= kPays;
  return a.stored == kType<T> && !meet;
}

/// Rows of a are broadcast, columns of b are lanes. k counts what T is: of pairs half as many as
/// numbers, which are `length`.
template <class T>
struct Product {
  bool ta, tb;
  int64_t m, n, length;
  Source<T> a, b;
  std::byte* c;
  int64_t ldc;
  DType made;  ///< what c is of: the operands' type, or what sums are in
  bool adds;   ///< to c, which holds sums, instead of writing it
  /// Elements whose row, plus this, is greater than their column are those of a symmetric matrix's
  /// lower triangle, which nobody wants.
  int64_t below = kAllWanted;

  using Sum = std::conditional_t<kPairs<T>, float, T>;
  bool exact = a.stored == kType<T>;
  int64_t k = kPairs<T> ? ceil_div(length, 2) : length;
  int R = narrow<int>(std::min<int64_t>(tile_kernels().matmul<Sum>().columns, round_up(n, 16)));
  int64_t tiles = ceil_div(n, R);
  bool b_is_tile = exact && !tb && n == R && b.ld == R;

  /// Of a, row-major: as it lies, or copied first.
  bool a_as_it_lies = lies_well(ta, a, n);
  int64_t ld_left = !a_as_it_lies ? round_up(k, 16) + 16 : kPairs<T> ? a.ld / 2 : a.ld;

  template <class F>
  void for_each(int64_t tasks, F body) const {
    parallel_if(m * n * k >= kParallelWork, tasks, body);
  }

  /// How many of `rows` rows from `row` have something in a tile that is wanted.
  int64_t wanted(int64_t row, int64_t rows, int64_t tile) const {
    return std::clamp<int64_t>((tile + 1) * R - row - below, 0, rows);
  }

  int columns(int64_t tile) const { return narrow<int>(std::min<int64_t>(R, n - tile * R)); }

  /// Rows [k0, k1) of a tile of b, [k][R], zeros or copies beyond its columns.
  void pack(int64_t tile, int64_t k0, int64_t k1, T* to) const {
    const int count = columns(tile);
    to += k0 * R;
    if (tb) return b.turned(tile * R, count, k0, k1 - k0, to, R, R);
    const int64_t step = kPairs<T> ? 2 : 1;
    b.rows(k0 * step, std::min(length, k1 * step), tile * R, count, to, R);
    if (count == R) return;
    for (T* end = to + (k1 - k0) * R; to < end; to += R) std::fill(to + count, to + R, T(0));
  }

  void matmul(const T* w, const T* x, Sum* y, int64_t ldy, int K, int M, int columns) const {
    if constexpr (kPairs<T>)
      pair_kernels()->matmul_rows(w, ld_left, x, R, y, ldy, K, M, columns);
    else
      tile_kernels().matmul<T>().matmul_rows(w, ld_left, x, R, y, ldy, K, M, columns);
  }

  /// Rows [row, row + rows) of c in a tile: sums over blocks of k, in c itself where it holds them.
  void multiply(int64_t row, int64_t rows, const T* w, int64_t tile, const T* x) const {
    const auto M = narrow<int>(rows);
    const int count = columns(tile), whole = narrow<int>(round_up(count, 16));
    std::byte* const to = c + static_cast<size_t>(row * ldc + tile * R) * item_size(made);
    constexpr int64_t kRoom = kSlabRows * kMaxColumns;  // too much for a thread's stack
    Sum* const sums = kept<Sum, Slab>(2 * kRoom);
    Sum* const part = sums + kRoom;
    const bool holds = made == kType<Sum>, direct = holds && count == whole;
    auto* const sums_in_c = reinterpret_cast<Sum*>(to);
    Sum* const y = direct ? sums_in_c : sums;
    const int64_t ldy = direct ? ldc : R;
    auto add = [&](const Sum* from, Sum* into, int64_t ld) {
      for (int i = 0; i < M; ++i)
        for (int j = 0; j < count; ++j) into[i * ld + j] += from[i * R + j];
    };
    for (int64_t k0 = 0; k0 < k; k0 += kTerms<T>) {
      const auto K = narrow<int>(std::min(kTerms<T>, k - k0));
      if (k0 == 0 && !(direct && adds)) {
        matmul(w, x, y, ldy, K, M, whole);
        continue;
      }
      matmul(w + k0, x + k0 * R, part, R, K, M, whole);
      add(part, y, ldy);
    }
    if (direct) return;
    if (adds) return add(sums, sums_in_c, ldc);
    for (int i = 0; i < M; ++i)
      tile_kernels().transpose.store(y + i * R, made,
                                     to + static_cast<size_t>(i * ldc) * item_size(made),
                                     static_cast<size_t>(count));
  }

  int64_t slab_rows() const {
    return std::clamp<int64_t>(kSlabBytes / (k * int64_t(sizeof(T))), 24, kSlabRows) / 12 * 12;
  }

  /// Rows of a, transposed or widened to `to` if need be.
  const T* slab_of_a(int64_t row, int64_t rows, T* to) const {
    if (a_as_it_lies) return a.in_place(row, 0);
    if (!ta) {
      a.rows(row, row + rows, 0, k, to, ld_left);
    } else if constexpr (kPairs<T>) {
      Pair group[kGroup * kSlabRows];
      for (int64_t i = 0; i < k; i += kGroup) {
        const int64_t there = std::min(kGroup, k - i);
        for (int64_t r = 0; r < rows; r += kMaxColumns)
          a.rows(2 * i, std::min(length, 2 * (i + there)), row + r,
                 std::min<int64_t>(kMaxColumns, rows - r), group + r, kSlabRows);
        tile_kernels().transpose.load_rows(group, kType<T>, kSlabRows, narrow<int>(there),
                                           narrow<int>(rows), to + i, ld_left, kGroup);
      }
    } else {
      for (int64_t i = 0; i < k; i += kGroup) {
        if (i + kGroup < k)
          a.fetch(a.at(i + kGroup, row), a.ld, std::min(kGroup, k - i - kGroup), rows);
        a.turned(i, std::min(kGroup, k - i), row, rows, to + i, ld_left, kGroup);
      }
    }
    return to;
  }

  /// Tasks are tiles: each is packed by the thread that multiplies with it.
  void by_tiles(int64_t at_once) const {
    const T* left = a.in_place(0, 0);
    if (!a_as_it_lies) {
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
          if (const int64_t rows = wanted(row, std::min(slab, m - row), t); rows > 0)
            multiply(row, rows, left + row * ld_left, t, x + (t - first) * R * k);
    });
  }

  /// Tasks are slabs, of one tile if a lies as it is needed; b is packed for all threads.
  void by_slabs(int64_t tasks) const {
    const T* x = b.in_place(0, 0);
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
    const int64_t at_once = a_as_it_lies ? 1 : tiles, across = tiles / at_once;
    int64_t slab = slab_rows();
    while (slab > 24 && ceil_div(m, slab) * across < tasks) slab /= 2;
    slab = slab / 12 * 12;
    for_each(ceil_div(m, slab) * across, [&](int task, int) {
      const int64_t row = task / across * slab, rows = std::min(slab, m - row);
      if (wanted(row, rows, task % across + at_once - 1) == 0) return;
      const T* w = slab_of_a(row, rows, a_as_it_lies ? nullptr : kept<T, Own>(slab * ld_left));
      for (int64_t i = 0, tile = task % across; i < at_once; ++i, ++tile)
        if (const int64_t some = wanted(row, rows, tile); some > 0)
          multiply(row, some, w, tile, x + tile * R * k);
    });
  }

  void run() const {
    const int64_t tasks = 4 * max_threads();
    const bool by_column = tiles >= tasks && (a_as_it_lies || m < n);  // packs the smaller for all
    by_column ? by_tiles(std::min<int64_t>(tiles / tasks, 256 / R)) : by_slabs(tasks);
  }
};

/// Whether tiles are about filled and there is enough to do; where k is long, enough of c to share
/// out.
template <class T>
bool fills_tiles(int64_t m, int64_t n, int64_t k) {
  return m >= 16 && k >= 16 && (k <= kDepth<T> || m * n >= 256 * 256) && m * n * k >= 4'000 &&
         round_up(n, 16) * 8 <= n * 9;
}

/// Whether the BLAS multiplies faster: large matrices, below AVX-512. (GFLOPS of one core with AVX2
/// by the kernel of the tiles and by OpenBLAS, 1,024 square: 29 and 37 in double, 63 and 75 in
/// float; of 64 columns in float 59 and 51.)
bool by_library(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kLeast = 256;
  return !uses_avx512() && std::min({m, n, k}) >= kLeast;
}

/// Where k is many blocks, one after the other is copied and multiplied, and c's sums wait in
/// memory: what is copied stays in the caches.
/// symmetric: the upper triangle alone is written.
template <class T>
void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const Source<T>& a,
             const Source<T>& b, DType made, void* c, bool symmetric = false) {
  using Sum = typename Product<T>::Sum;
  constexpr int64_t kNumbers = kPairs<T> ? 2 : 1;  // in a T
  const bool cut = k > 2 * kNumbers * kDepth<T>;
  const int64_t block = cut ? kNumbers * kDepth<T> : k;
  const int64_t most = std::max<int64_t>(
      kSlabRows, kMostCopied / int64_t(sizeof(T)) / block * kNumbers / kSlabRows * kSlabRows);
  const bool lies = lies_well(ta, a, n);
  const bool apart = cut && made != kType<Sum>;  // sums are not what c is of
  const int64_t down = lies && !apart ? m : most;
  for (int64_t j = 0; j < n; j += most)
    for (int64_t i = 0; i < m; i += down) {
      const int64_t rows = std::min(down, m - i), columns = std::min(most, n - j);
      auto* const to =
          static_cast<std::byte*>(c) + static_cast<size_t>(i * n + j) * item_size(made);
      Sum* const sums = apart ? kept<Sum, Sums>(rows * columns) : nullptr;
      for (int64_t k0 = 0; k0 < k; k0 += block)
        Product<T>{ta,
                   tb,
                   rows,
                   columns,
                   std::min(block, k - k0),
                   {ta ? a.at(k0, i) : a.at(i, k0), a.stored, a.ld},
                   {tb ? b.at(j, k0) : b.at(k0, j), b.stored, b.ld},
                   apart ? reinterpret_cast<std::byte*>(sums) : to,
                   apart ? columns : n,
                   apart ? kType<Sum> : made,
                   k0 > 0,
                   symmetric ? i - j : kAllWanted}
            .run();
      if (!apart) continue;
      parallel_for(ceil_div(rows, kGroup), [&](int task, int) {
        for (int64_t r = task * kGroup; r < std::min(rows, (task + 1) * kGroup); ++r)
          tile_kernels().transpose.store(sums + r * columns, made,
                                         to + static_cast<size_t>(r * n) * item_size(made),
                                         static_cast<size_t>(columns));
      });
    }
}

/// The lower triangle becomes the upper one's mirror image.
template <class T>
void mirror(int64_t n, T* c) {
  constexpr int64_t kBlock = 32;
  const int64_t blocks = ceil_div(n, kBlock);
  parallel_for(blocks, [&](int task, int) {
    const int64_t r0 = task * kBlock, r1 = std::min(n, r0 + kBlock);
    for (int64_t s0 = 0; s0 <= r0; s0 += kBlock)
      for (int64_t r = r0; r < r1; ++r)
        for (int64_t s = s0; s < std::min(r, s0 + kBlock); ++s) c[r * n + s] = c[s * n + r];
  });
}

template <class T>
Source<T> source(const void* p, DType stored, int64_t ld) {
  return {static_cast<const std::byte*>(p), stored, ld};
}

/// A copy of rows of k numbers with a zero behind each, so that they are pairs.
const uint16_t* with_zeros(const uint16_t* from, int64_t rows, int64_t k, uint16_t* to) {
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(to + r * (k + 1), from + r * k, sizeof *to * static_cast<size_t>(k));
    to[r * (k + 1) + k] = 0;
  }
  return to;
}

}  // namespace

template <class T>
void matrix_product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, const T* b,
                    T* c) {
  if (!fills_tiles<T>(m, n, k)) return gemm(ta, tb, m, n, k, a, b, c);
  const bool symmetric = a == b && ta != tb && m == n && n >= kLeastMirrored;
  if (by_library(m, n, k)) {
    if (!symmetric) return gemm(ta, tb, m, n, k, a, b, c);
    gram(ta, n, k, a, c);
    return mirror(n, c);
  }
  product<T>(ta, tb, m, n, k, source<T>(a, kType<T>, ta ? m : k),
             source<T>(b, kType<T>, tb ? k : n), kType<T>, c, symmetric);
  if (symmetric) mirror(n, c);
}

void half_matrix_product(DType type, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                         const uint16_t* a, const uint16_t* b, DType made, void* c) {
  if (k == 0) return std::memset(c, 0, static_cast<size_t>(m * n) * item_size(made)), void();
  if (type != DType::BFloat16 || !pair_kernels())
    return product<float>(ta, tb, m, n, k, source<float>(a, type, ta ? m : k),
                          source<float>(b, type, tb ? k : n), made, c);
  int64_t lda = ta ? m : k, ldb = tb ? k : n;
  const bool odd_a = k % 2 != 0 && !ta, odd_b = k % 2 != 0 && tb;
  uint16_t* const even =
      odd_a || odd_b ? kept<uint16_t, Even>((odd_a * m + odd_b * n) * (k + 1)) : nullptr;
  if (odd_a) a = with_zeros(a, m, k, even), lda = k + 1;
  if (odd_b) b = with_zeros(b, n, k, even + odd_a * m * (k + 1)), ldb = k + 1;
  product<Pair>(ta, tb, m, n, k, source<Pair>(a, type, lda), source<Pair>(b, type, ldb), made, c);
}

template void matrix_product(bool, bool, int64_t, int64_t, int64_t, const float*, const float*,
                             float*);
template void matrix_product(bool, bool, int64_t, int64_t, int64_t, const double*, const double*,
                             double*);

}  // namespace gradcell::cpu

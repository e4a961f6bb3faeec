#include "cpu/product.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>

#include "cpu/blas.h"
#include "cpu/tile_kernels.h"
#include "ir/error.h"
#include "runtime/thread_pool.h"

namespace gradcell::cpu {

namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};

/// Memory that a thread keeps for its next product: fresh pages cost as much as packing does.
template <class T>
T* kept(size_t elements) {
  thread_local std::unique_ptr<void, Free> block;
  thread_local size_t size = 0;
  const size_t bytes = (elements * sizeof(T) + 4095) / 4096 * 4096;
  if (bytes > size) {
    block.reset();
    block.reset(std::aligned_alloc(64, bytes));
    size = block ? bytes : 0;
    if (!block) fail(ErrorKind::Memory, "out of memory: ", bytes, " bytes to pack a product");
  }
  return static_cast<T*>(block.get());
}

/// A task makes a tile, 256 bytes of columns of c as in regions, of the rows of one slab of a. A
/// slab takes a part of the second-level cache, which it stays in while the tiles pass.
template <class T>
inline constexpr int kColumns = 256 / static_cast<int>(sizeof(T));
constexpr int kSlab = 96;

/// Columns [first, first + count) of b as a tile: [k][columns], zeros or copies beyond count.
template <class T>
void pack_columns(bool transposed, int64_t n, int64_t k, const T* b, int64_t first, int count,
                  T* to) {
  constexpr int R = kColumns<T>;
  if (transposed)
    return tile_kernels().transpose.load_rows(
        b + first * k, std::is_same_v<T, float> ? DType::Float32 : DType::Float64, k, count,
        static_cast<int>(k), to, R, R);
  for (int64_t i = 0; i < k; ++i, to += R) {
    std::memcpy(to, b + i * n + first, sizeof(T) * static_cast<size_t>(count));
    std::fill(to + count, to + R, T(0));
  }
}

template <class T>
void by_tiles(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  constexpr int R = kColumns<T>;
  const TileMatmul<T>& mm = tile_kernels().matmul<T>();
  const auto K = static_cast<int>(k);
  const auto slabs = static_cast<int>((m + kSlab - 1) / kSlab);
  const auto tiles = static_cast<int>((n + R - 1) / R);
  auto rows = [&](int s) {
    return static_cast<int>(std::min<int64_t>(kSlab, m - int64_t(s) * kSlab));
  };
  T* const left = kept<T>(static_cast<size_t>((m + n + R) * k));
  T* const right = left + (m * k + 15) / 16 * 16;
  parallel_for(slabs + tiles, [&](int task, int) {
    if (task < slabs) {
      const int64_t at = int64_t(task) * kSlab;
      mm.pack_weights(ta ? a + at : a + at * k, ta ? m : 1, ta ? 1 : k, K, rows(task),
                      left + at * k);
    } else {
      const int64_t first = int64_t(task - slabs) * R;
      const auto count = static_cast<int>(std::min<int64_t>(R, n - first));
      pack_columns(tb, n, k, b, first, count, right + first * k);
    }
  });
  parallel_for(slabs * tiles, [&](int task, int) {
    const int slab = task / tiles;
    const int64_t row = int64_t(slab) * kSlab, first = int64_t(task % tiles) * R;
    const auto count = static_cast<int>(std::min<int64_t>(R, n - first));
    const T *w = left + row * k, *x = right + first * k;
    T* y = c + row * n + first;
    if (count == R) return mm.matmul(w, x, R, y, n, K, rows(slab), R, nullptr, false);
    T edge[kSlab * R];
    mm.matmul(w, x, R, edge, R, K, rows(slab), (count + 15) / 16 * 16, nullptr, false);
    for (int i = 0; i < rows(slab); ++i)
      std::memcpy(y + i * n, edge + i * R, sizeof(T) * static_cast<size_t>(count));
  });
}

/// Whether the tiles are about as well filled as they can be, packing is a small part, and a slab
/// and a tile of b stay in the cache (where not, the BLAS, which cuts k too, is faster).
template <class T>
bool fills_tiles(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t R = kColumns<T>;
  const int64_t padded = (n + 15) / 16 * 16;
  const bool in_cache = k * static_cast<int64_t>(sizeof(T)) <= 4096;
  return m >= 32 && n >= R && k >= 64 && in_cache && padded * 8 <= n * 9;
}

template <class T>
void choose(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  if (fills_tiles<T>(m, n, k)) return by_tiles(ta, tb, m, n, k, a, b, c);
  gemm(ta, tb, m, n, k, a, b, c);
}

}  // namespace

void matrix_product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a,
                    const float* b, float* c) {
  choose(ta, tb, m, n, k, a, b, c);
}
void matrix_product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a,
                    const double* b, double* c) {
  choose(ta, tb, m, n, k, a, b, c);
}

}  // namespace gradcell::cpu

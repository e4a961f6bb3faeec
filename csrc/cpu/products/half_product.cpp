#include "cpu/products/half_product.h"

#include "base/error.h"
#include "base/scratch.h"
#include "base/system/system.h"
#include "base/thread_pool.h"
#include "cpu/kernels/isa_level.h"
#include "cpu/kernels/tile_kernels.h"

#if defined(__x86_64__) && \
    defined(__LP64__)  // on Windows no system gives them, and GCC cannot address tiles
#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <span>

namespace gradcell::cpu {
namespace {

/// A tile of the unit has 16 rows of 64 bytes. Of a it holds 16 rows by 32 columns, of b 16 pairs
/// of rows by 16 columns, the two rows' elements side by side. A block of c is 2 by 2 tiles.
constexpr int64_t kTile = 16, kDepth = 32, kBlock = 2 * kTile;
constexpr int64_t kTileElements = kTile * kDepth;

bool detect() {
  if (!uses_avx512()) return false;
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;
  if (!(edx & kBf16) || !(edx & kTiles)) return false;
  return system::may_use_matrix_units();
}

/// A matrix [rows, columns]; stored transposed or not.
struct Matrix {
  const uint16_t* data;
  int64_t rows, columns;
  bool transposed;
};

/// Rows [row, row + 32) of a: for each 32 columns two tiles, `step` elements from the last two,
/// zeros beyond the matrix.
void pack_a(const Matrix& a, int64_t row, uint16_t* first, int64_t step) {
  for (int64_t k = 0; k < a.columns; k += kDepth, first += step) {
    uint16_t* to = first;
    const int64_t depth = std::min(kDepth, a.columns - k);
    for (int64_t i = row; i < row + kBlock; ++i, to += kDepth) {
      if (i >= a.rows || depth < kDepth) std::memset(to, 0, kDepth * sizeof *to);
      if (i >= a.rows) continue;
      if (!a.transposed) {
        std::memcpy(to, a.data + i * a.columns + k, static_cast<size_t>(depth) * sizeof *to);
        continue;
      }
      for (int64_t j = 0; j < depth; ++j) to[j] = a.data[(k + j) * a.rows + i];
    }
  }
}

/// Columns [column, column + 32) of b: for each 32 rows two tiles, likewise.
void pack_b(const Matrix& b, int64_t column, uint16_t* first, int64_t step) {
  auto at = [&](int64_t k, int64_t j) -> uint16_t {
    if (k >= b.rows || j >= b.columns) return 0;
    return b.transposed ? b.data[j * b.rows + k] : b.data[k * b.columns + j];
  };
  for (int64_t k = 0; k < b.rows; k += kDepth, first += step) {
    uint16_t* to = first;
    for (int64_t j = column; j < column + kBlock; j += kTile) {
      const bool whole = k + kDepth <= b.rows && j + kTile <= b.columns;
      for (int64_t p = k; p < k + kDepth; p += 2, to += 2 * kTile) {
        if (whole && !b.transposed) {
          const uint16_t *even = b.data + p * b.columns + j, *odd = even + b.columns;
          for (int64_t c = 0; c < kTile; ++c) to[2 * c] = even[c], to[2 * c + 1] = odd[c];
        } else if (whole) {
          for (int64_t c = 0; c < kTile; ++c)
            std::memcpy(to + 2 * c, b.data + (j + c) * b.rows + p, 2 * sizeof *to);
        } else {
          for (int64_t c = 0; c < kTile; ++c)
            to[2 * c] = at(p, j + c), to[2 * c + 1] = at(p + 1, j + c);
        }
      }
    }
  }
}

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_a_row[16] = {};
  uint8_t rows[16] = {};
};

#define GRADCELL_AMX __attribute__((target("amx-tile,amx-bf16")))

GRADCELL_AMX void configure() {
  TileConfig config;
  for (int t = 0; t < 8; ++t) config.bytes_a_row[t] = 64, config.rows[t] = kTile;
  asm volatile("" : : "r"(&config) : "memory");  // GCC 12 takes the first 8 bytes for all it reads
  _tile_loadconfig(&config);
}
GRADCELL_AMX void release() { _tile_release(); }

/// A block of c, 32 by 32, from packed panels of `steps` times 32 columns of a and rows of b, each
/// in `parts` that add up to it.
GRADCELL_AMX void block(const uint16_t* a, const uint16_t* b, int64_t steps, int parts, float* c) {
  constexpr int64_t kPart = 2 * kTileElements;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t s = 0; s < steps; ++s, a += parts * kPart, b += parts * kPart) {
    for (int i = 0; i < parts; ++i) {
      for (int j = 0; j < parts; ++j) {
        _tile_loadd(4, a + i * kPart, 64);
        _tile_loadd(6, b + j * kPart, 64);
        _tile_loadd(7, b + j * kPart + kTileElements, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + i * kPart + kTileElements, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
  }
  constexpr int kRowBytes = kBlock * sizeof(float);
  _tile_stored(0, c, kRowBytes);
  _tile_stored(1, c + kTile, kRowBytes);
  _tile_stored(2, c + kTile * kBlock, kRowBytes);
  _tile_stored(3, c + kTile * kBlock + kTile, kRowBytes);
}

/// c = (a[0] + a[1] + ...) (b[0] + b[1] + ...), rounded to `type`.
void product_of_sums(std::span<const Matrix> a, std::span<const Matrix> b, DType type, void* c) {
  const int64_t m = a[0].rows, n = b[0].columns, k = b[0].rows;
  const auto parts = narrow<int>(a.size());
  const int64_t steps = (k + kDepth - 1) / kDepth, step = parts * 2 * kTileElements;
  const int64_t panel = steps * step;
  const auto down = narrow<int>((m + kBlock - 1) / kBlock);
  const auto across = narrow<int>((n + kBlock - 1) / kBlock);
  thread_local Scratch scratch;
  auto* const left = reinterpret_cast<uint16_t*>(
      scratch.get(static_cast<size_t>((down + across) * panel) * sizeof(uint16_t)));
  uint16_t* const right = left + down * panel;
  parallel_for(down + across, [&](int task, int) {
    for (int i = 0; i < parts; ++i) {
      uint16_t* to = left + task * panel + i * 2 * kTileElements;
      task < down ? pack_a(a[i], task * kBlock, to, step)
                  : pack_b(b[i], (task - down) * kBlock, to, step);
    }
  });
  // Several rows of blocks pass over a panel of b while it is in the cache.
  constexpr int kRowsATask = 4;
  parallel_for((down + kRowsATask - 1) / kRowsATask, [&](int task, int) {
    configure();
    alignas(64) float sums[kBlock * kBlock];
    const TileTranspose& t = tile_kernels().transpose;
    for (int j = 0; j < across; ++j) {
      const int64_t width = std::min(kBlock, n - j * kBlock);
      for (int i = task * kRowsATask; i < std::min(down, (task + 1) * kRowsATask); ++i) {
        block(left + i * panel, right + j * panel, steps, parts, sums);
        const int64_t height = std::min(kBlock, m - i * kBlock);
        for (int64_t r = 0; r < height; ++r)
          t.store(sums + r * kBlock, type,
                  static_cast<std::byte*>(c) +
                      static_cast<size_t>((i * kBlock + r) * n + j * kBlock) * item_size(type),
                  static_cast<size_t>(width));
      }
    }
    release();
  });
}

/// x = high + low, both bfloat16 patterns. False if a number is not finite.
bool split(const uint16_t* x, int64_t count, uint16_t* high, uint16_t* low) {
  constexpr int64_t kPart = 4096;
  std::atomic<bool> finite{true};
  parallel_for((count + kPart - 1) / kPart, [&](int task, int) {
    const int64_t first = task * kPart, n = std::min(kPart, count - first);
    float wide[kPart];
    tile_kernels().transpose.load(x + first, DType::Float16, wide, static_cast<size_t>(n));
    constexpr uint32_t kExponent = 0x7F800000u;
    uint32_t not_finite = 0;
    for (int64_t i = 0; i < n; ++i) {
      const auto bits = std::bit_cast<uint32_t>(wide[i]);
      const uint32_t upper = (bits + 0x8000u) & 0xFFFF0000u;
      const float rest = wide[i] - std::bit_cast<float>(upper);
      not_finite |= (bits & kExponent) == kExponent;
      high[first + i] = low_bits<uint16_t>(upper >> 16);
      low[first + i] = low_bits<uint16_t>(std::bit_cast<uint32_t>(rest) >> 16);
    }
    if (not_finite) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load(std::memory_order_relaxed);
}

}  // namespace

bool has_half_products() {
  static const bool has = detect();
  return has;
}

void bf16_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                  const uint16_t* a, const uint16_t* b, DType made, void* c) {
  const Matrix left{a, m, k, transpose_a}, right{b, k, n, transpose_b};
  product_of_sums({&left, 1}, {&right, 1}, made, c);
}

bool f16_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                 const uint16_t* a, const uint16_t* b, DType made, void* c) {
  thread_local Scratch scratch;
  auto* const parts = reinterpret_cast<uint16_t*>(
      scratch.get(static_cast<size_t>(2 * (m + n) * k) * sizeof(uint16_t)));
  uint16_t *const a_low = parts + m * k, *const b_high = a_low + m * k,
                  *const b_low = b_high + k * n;
  if (!split(a, m * k, parts, a_low) || !split(b, k * n, b_high, b_low)) return false;
  const Matrix left[] = {{parts, m, k, transpose_a}, {a_low, m, k, transpose_a}};
  const Matrix right[] = {{b_high, k, n, transpose_b}, {b_low, k, n, transpose_b}};
  product_of_sums(left, right, made, c);
  return true;
}

}  // namespace gradcell::cpu

#else

namespace gradcell::cpu {

bool has_half_products() { return false; }

void bf16_product(bool, bool, int64_t, int64_t, int64_t, const uint16_t*, const uint16_t*, DType,
                  void*) {
  fail(ErrorKind::Runtime, "this machine has no matrix unit");
}
bool f16_product(bool, bool, int64_t, int64_t, int64_t, const uint16_t*, const uint16_t*, DType,
                 void*) {
  return false;
}

}  // namespace gradcell::cpu

#endif

#include "cpu/bf16_product.h"

#include "cpu/isa_level.h"
#include "cpu/scratch.h"
#include "cpu/tile_kernels.h"
#include "ir/error.h"
#include "runtime/thread_pool.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace gradcell::cpu {
namespace {

/// A tile of the unit has 16 rows of 64 bytes. Of a it holds 16 rows by 32 columns, of b 16 pairs
/// of rows by 16 columns, the two rows' elements side by side. A block of c is 2 by 2 tiles.
constexpr int64_t kTile = 16, kDepth = 32, kBlock = 2 * kTile;
constexpr int64_t kTileElements = kTile * kDepth;

bool detect() {
  if (isa_level() != IsaLevel::V4) return false;
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;
  if (!(edx & kBf16) || !(edx & kTiles)) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

/// A matrix [rows, columns]; stored transposed or not.
struct Matrix {
  const uint16_t* data;
  int64_t rows, columns;
  bool transposed;
};

/// Rows [row, row + 32) of a: for each 32 columns two tiles, zeros beyond the matrix.
void pack_a(const Matrix& a, int64_t row, uint16_t* to) {
  for (int64_t k = 0; k < a.columns; k += kDepth) {
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

/// Columns [column, column + 32) of b: for each 32 rows two tiles, zeros beyond the matrix.
void pack_b(const Matrix& b, int64_t column, uint16_t* to) {
  auto at = [&](int64_t k, int64_t j) -> uint16_t {
    if (k >= b.rows || j >= b.columns) return 0;
    return b.transposed ? b.data[j * b.rows + k] : b.data[k * b.columns + j];
  };
  for (int64_t k = 0; k < b.rows; k += kDepth) {
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

/// A block of c, 32 by 32, from packed panels of `steps` times 32.
GRADCELL_AMX void block(const uint16_t* a, const uint16_t* b, int64_t steps, float* c) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t s = 0; s < steps; ++s, a += 2 * kTileElements, b += 2 * kTileElements) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_loadd(7, b + kTileElements, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + kTileElements, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  constexpr int kRowBytes = kBlock * sizeof(float);
  _tile_stored(0, c, kRowBytes);
  _tile_stored(1, c + kTile, kRowBytes);
  _tile_stored(2, c + kTile * kBlock, kRowBytes);
  _tile_stored(3, c + kTile * kBlock + kTile, kRowBytes);
}

}  // namespace

bool has_bf16_products() {
  static const bool has = detect();
  return has;
}

void bf16_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                  const uint16_t* a, const uint16_t* b, uint16_t* c) {
  const int64_t steps = (k + kDepth - 1) / kDepth, panel = steps * 2 * kTileElements;
  const auto down = static_cast<int>((m + kBlock - 1) / kBlock);
  const auto across = static_cast<int>((n + kBlock - 1) / kBlock);
  thread_local Scratch scratch;
  auto* const left = reinterpret_cast<uint16_t*>(
      scratch.get(static_cast<size_t>((down + across) * panel) * sizeof(uint16_t)));
  uint16_t* const right = left + down * panel;
  const Matrix of_a{a, m, k, transpose_a}, of_b{b, k, n, transpose_b};
  parallel_for(down + across, [&](int task, int) {
    if (task < down)
      pack_a(of_a, task * kBlock, left + task * panel);
    else
      pack_b(of_b, (task - down) * kBlock, right + (task - down) * panel);
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
        block(left + i * panel, right + j * panel, steps, sums);
        const int64_t height = std::min(kBlock, m - i * kBlock);
        for (int64_t r = 0; r < height; ++r)
          t.store(sums + r * kBlock, DType::BFloat16, c + (i * kBlock + r) * n + j * kBlock,
                  static_cast<size_t>(width));
      }
    }
    release();
  });
}

}  // namespace gradcell::cpu

#else

namespace gradcell::cpu {

bool has_bf16_products() { return false; }

void bf16_product(bool, bool, int64_t, int64_t, int64_t, const uint16_t*, const uint16_t*,
                  uint16_t*) {
  fail(ErrorKind::Runtime, "this machine has no matrix unit");
}

}  // namespace gradcell::cpu

#endif

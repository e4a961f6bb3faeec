// Rows in and out of feature-major tiles, and the 16-bit floats (contract:
// cpu/kernels/tile_kernels.h).
//
// Every way through ends in square transposes held in registers. A dtype that differs from its
// compute type is converted row by row into a small buffer first (or last).
#include "cpu/isa/tile_vector.h"
#include "cpu/kernels/tile_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

// ---- One element, for the compiler to vectorise: no branches ----

struct Bool {
  uint8_t byte;
};

GRADCELL_INLINE uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
GRADCELL_INLINE float float_of(uint32_t b) { return __builtin_bit_cast(float, b); }

/// Sums instead of branches: a float16's bits, moved up, are a float whose exponent is 112 too low;
/// multiplying by 2^112 puts that right, subnormals included.
GRADCELL_INLINE float f16_to_f32(uint16_t h) {
  const uint32_t magnitude = h & 0x7fffu, sign = low_bits<uint32_t>(h & 0x8000u) << 16;
  const uint32_t finite = bits_of(float_of(magnitude << 13) * 0x1p112f);
  const uint32_t quiet = magnitude > 0x7c00u ? 0x00400000u : 0u;
  const uint32_t special = 0x7f800000u | (magnitude << 13) | quiet;
  return float_of(sign | (magnitude >= 0x7c00u ? special : finite));
}

GRADCELL_INLINE uint16_t f32_to_f16(float x) {
  const uint32_t sign = bits_of(x) & 0x80000000u, a = bits_of(x) ^ sign;
  // A normal result: drop 13 bits with rounding to even; the carry may move the exponent, even to
  // infinity's. A subnormal one: adding 0.5 lines its last bit up with the float's, and rounds.
  const uint32_t normal = (a - (112u << 23) + 0xfffu + ((a >> 13) & 1u)) >> 13;
  const uint32_t subnormal = bits_of(float_of(a) + 0.5f) - bits_of(0.5f);
  const uint32_t finite = a < 0x38800000u ? subnormal : normal;
  const uint32_t nan = 0x7e00u | ((a >> 13) & 0x3ffu);
  const uint32_t large = a > 0x7f800000u ? nan : 0x7c00u;
  return low_bits<uint16_t>((sign >> 16) | (a >= 0x47800000u ? large : finite));
}

GRADCELL_INLINE uint16_t f32_to_bf16(float x) {
  const uint32_t a = bits_of(x);
  const uint32_t rounded = (a + 0x7fffu + ((a >> 16) & 1u)) >> 16;
  const uint32_t nan = (a >> 16) | 0x40u;
  return low_bits<uint16_t>((a & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

template <class To, class From>
GRADCELL_INLINE void convert(From from, To& to) {
  to = static_cast<To>(from);  // integers wrap (C++20)
}
GRADCELL_INLINE void convert(Half h, float& to) { to = f16_to_f32(h.bits); }
GRADCELL_INLINE void convert(float x, Half& to) { to.bits = f32_to_f16(x); }
GRADCELL_INLINE void convert(Bfloat h, float& to) {
  to = float_of(low_bits<uint32_t>(h.bits) << 16);
}
GRADCELL_INLINE void convert(float x, Bfloat& to) { to.bits = f32_to_bf16(x); }
GRADCELL_INLINE void convert(Bool b, int32_t& to) { to = b.byte != 0; }
GRADCELL_INLINE void convert(int32_t x, Bool& to) { to.byte = x != 0; }

// ---- Contiguous elements ----

template <class From, class To>
void convert_n(const From* from, To* to, size_t n) {
  if constexpr (__is_same(From, To)) {
    std::memcpy(to, from, n * sizeof(To));
  } else {
    for (size_t i = 0; i < n; ++i) convert(from[i], to[i]);
  }
}

#if defined(__F16C__)  // (the unmasked 512-bit forms make GCC 12 warn)
void convert_n(const Half* from, float* to, size_t n) {
  size_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    _mm512_storeu_ps(to + i,
                     _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256((const __m256i*)(from + i))));
  }
#endif
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(from + i))));
  }
  for (; i < n; ++i) convert(from[i], to[i]);
}

void convert_n(const float* from, Half* to, size_t n) {
  size_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    _mm256_storeu_si256((__m256i*)(to + i), _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(from + i),
                                                                  _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128((__m128i*)(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) convert(from[i], to[i]);
}
#endif

template <class Narrow>
void round_to(float* x, size_t n) {
  constexpr size_t kChunk = 256;
  Narrow buffer[kChunk];
  for (size_t i = 0; i < n; i += kChunk) {
    const size_t count = n - i < kChunk ? n - i : kChunk;
    convert_n(x + i, buffer, count);
    convert_n(buffer, x + i, count);
  }
}

/// Both conversions in one; a NaN keeps its upper half.
void round_to_bfloat(float* x, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const uint32_t a = bits_of(x[i]);
    const uint32_t rounded = a + 0x7fffu + ((a >> 16) & 1u);
    x[i] = float_of(((a & 0x7fffffffu) > 0x7f800000u ? a | 0x00400000u : rounded) & 0xffff0000u);
  }
}

/// Calls f with (a value of the stored type, a value of the tile type).
template <class F>
GRADCELL_INLINE void with_types(DType t, F f) {
  using F32 = float;
  using F64 = double;
  using I32 = int32_t;
  using I64 = int64_t;
  switch (t) {
#define GRADCELL_X(Name, storage, compute, ...) \
  case DType::Name:                             \
    return f(storage{}, compute{});
    GRADCELL_DTYPES(GRADCELL_X)
#undef GRADCELL_X
    default:  // complex numbers are pairs of others here
      break;
  }
}

void load_n(const void* src, DType dtype, void* dst, size_t n) {
  with_types(dtype, [&](auto stored, auto tile) {
    convert_n(static_cast<const decltype(stored)*>(src), static_cast<decltype(tile)*>(dst), n);
  });
}

void store_n(const void* src, DType dtype, void* dst, size_t n) {
  with_types(dtype, [&](auto stored, auto tile) {
    convert_n(static_cast<const decltype(tile)*>(src), static_cast<decltype(stored)*>(dst), n);
  });
}

void round(DType dtype, float* x, size_t n) {
  if (dtype == DType::BFloat16) return round_to_bfloat(x, n);
  with_types(dtype, [&](auto stored, auto) {
    if constexpr (std::is_convertible_v<decltype(stored), float> &&
                  std::is_class_v<decltype(stored)>)
      round_to<decltype(stored)>(x, n);
  });
}

// ---- Transposes. Only bits move, so a 4-byte type goes as float and an 8-byte one as double. ----

template <class T>
using Word = std::conditional_t<sizeof(T) == 4, float, double>;

/// Reads rows[i][f .. f+N) for N rows, writes to[f + j][i]. Loads are always of valid rows.
template <class T, int N>
GRADCELL_INLINE void rows_to_columns(const T* const* rows, int f, T* to, ptrdiff_t ld) {
  using S = Square<Word<T>, N>;
  typename S::V a[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) a[i] = load_as<typename S::V>(rows[i] + f);
  S::transpose(a);
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) store(to + (f + i) * ld, a[i]);
}

/// The reverse: writes the first `valid` of N rows.
template <class T, int N>
GRADCELL_INLINE void columns_to_rows(const T* from, ptrdiff_t ld, int f, T* to, ptrdiff_t stride,
                                     int valid) {
  using S = Square<Word<T>, N>;
  typename S::V a[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) a[i] = load_as<typename S::V>(from + (f + i) * ld);
  S::transpose(a);
  if (valid >= N) {
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) store(to + i * stride + f, a[i]);
  } else {
    for (int i = 0; i < valid; ++i) store(to + i * stride + f, a[i]);
  }
}

/// Features in blocks of N; the last block reaches back over the one before instead of hanging over
/// the end. Calls block(f) at each start; false if there are fewer than N.
template <int N, class Block>
GRADCELL_INLINE bool feature_blocks(int F, Block block) {
  if (F < N) return false;
  for (int f = 0; f < F; f += N) block(f + N <= F ? f : F - N);
  return true;
}

template <class T>
constexpr int kSquareSide = kVectorBytes / narrow<int>(sizeof(T));  // 4, 8 or 16; 2 for SSE double
template <class T>
constexpr int kSmallSquareSide = 16 / narrow<int>(sizeof(T));

/// 16 rows to the columns 0..16 of a tile.
template <class T>
void load_16_rows(const T* const* rows, int F, T* dst, ptrdiff_t ld) {
  auto blocks_of = [&](auto size) __attribute__((always_inline)) {
    constexpr int N = decltype(size)::value;
    return feature_blocks<N>(F, [&](int f) {
      for (int i = 0; i < 16; i += N) rows_to_columns<T, N>(rows + i, f, dst + i, ld);
    });
  };
  if (blocks_of(Int<kSquareSide<T>>{}) || blocks_of(Int<kSmallSquareSide<T>>{})) return;
  for (int f = 0; f < F; ++f) {
    for (int i = 0; i < 16; ++i) dst[f * ld + i] = rows[i][f];
  }
}

/// The columns 0..valid of a tile, valid <= 16, to rows.
template <class T>
void store_16_rows(const T* src, ptrdiff_t ld, int F, T* to, ptrdiff_t stride, int valid) {
  auto blocks_of = [&](auto size) __attribute__((always_inline)) {
    constexpr int N = decltype(size)::value;
    return feature_blocks<N>(F, [&](int f) {
      for (int i = 0; i < valid; i += N) {
        columns_to_rows<T, N>(src + i, ld, f, to + i * stride, stride, valid - i);
      }
    });
  };
  if (blocks_of(Int<kSquareSide<T>>{}) || blocks_of(Int<kSmallSquareSide<T>>{})) return;
  for (int i = 0; i < valid; ++i) {
    for (int f = 0; f < F; ++f) to[i * stride + f] = src[f * ld + i];
  }
}

constexpr int kConvertedFeatures = 64;  // of 16 rows, converted at a time

template <class Stored, class Tile>
void load_rows_of(const Stored* src, ptrdiff_t stride, int rows, int F, Tile* dst, ptrdiff_t ld,
                  int R) {
  for (int r = 0; r < R; r += 16) {
    const Stored* row[16];
    for (int i = 0; i < 16; ++i) row[i] = src + min(r + i, rows - 1) * stride;
    if constexpr (__is_same(Stored, Tile)) {
      load_16_rows(row, F, dst + r, ld);
    } else if (stride == F && F <= kConvertedFeatures && r + 16 <= rows) {
      Tile converted[16 * kConvertedFeatures];  // all 16 rows in one go
      const Tile* converted_row[16];
      convert_n(row[0], converted, 16 * F);
      for (int i = 0; i < 16; ++i) converted_row[i] = converted + i * F;
      load_16_rows(converted_row, F, dst + r, ld);
    } else {
      for (int f = 0; f < F; f += kConvertedFeatures) {
        const int count = min(kConvertedFeatures, F - f);
        Tile converted[16][kConvertedFeatures];
        const Tile* converted_row[16];
        for (int i = 0; i < 16; ++i) {
          convert_n(row[i] + f, converted[i], count);
          converted_row[i] = converted[i];
        }
        load_16_rows(converted_row, count, dst + f * ld + r, ld);
      }
    }
  }
}

template <class Stored, class Tile>
void store_rows_of(const Tile* src, ptrdiff_t ld, int rows, int F, Stored* dst, ptrdiff_t stride) {
  for (int r = 0; r < rows; r += 16) {
    const int valid = min(16, rows - r);
    if constexpr (__is_same(Stored, Tile)) {
      store_16_rows(src + r, ld, F, dst + r * stride, stride, valid);
    } else if (stride == F && F <= kConvertedFeatures) {
      Tile tile_rows[16 * kConvertedFeatures];
      store_16_rows(src + r, ld, F, tile_rows, F, valid);
      convert_n(tile_rows, dst + r * stride, valid * F);
    } else {
      for (int f = 0; f < F; f += kConvertedFeatures) {
        const int count = min(kConvertedFeatures, F - f);
        Tile tile_rows[16][kConvertedFeatures];
        store_16_rows(src + f * ld + r, ld, count, tile_rows[0], kConvertedFeatures, valid);
        for (int i = 0; i < valid; ++i) {
          convert_n(tile_rows[i], dst + (r + i) * stride + f, count);
        }
      }
    }
  }
}

/// One feature: a row is an element.
template <class Stored, class Tile>
void load_one_feature(const Stored* src, ptrdiff_t stride, int rows, Tile* dst, int R) {
  if (stride == 1) {
    convert_n(src, dst, rows);
  } else {
    for (int r = 0; r < rows; ++r) convert(src[r * stride], dst[r]);
  }
  for (int r = rows; r < R; ++r) dst[r] = dst[rows - 1];
}

template <class Stored, class Tile>
void store_one_feature(const Tile* src, int rows, Stored* dst, ptrdiff_t stride) {
  if (stride == 1) {
    convert_n(src, dst, rows);
  } else {
    for (int r = 0; r < rows; ++r) convert(src[r], dst[r * stride]);
  }
}

/// Two or three features side by side, as parts of complex numbers or coordinates are.
template <int F, class Stored, class Tile>
void load_few(const Stored* src, int rows, Tile* dst, ptrdiff_t ld, int R) {
  for (int f = 0; f < F; ++f) {
    for (int r = 0; r < rows; ++r) convert(src[r * F + f], dst[f * ld + r]);
    for (int r = rows; r < R; ++r) dst[f * ld + r] = dst[f * ld + rows - 1];
  }
}

template <int F, class Stored, class Tile>
void store_few(const Tile* src, ptrdiff_t ld, int rows, Stored* dst) {
  for (int r = 0; r < rows; ++r) {
    for (int f = 0; f < F; ++f) convert(src[f * ld + r], dst[r * F + f]);
  }
}

void load_rows(const void* src, DType dtype, ptrdiff_t row_stride_elems, int rows, int F, void* dst,
               ptrdiff_t ld, int R) {
  with_types(dtype, [&](auto stored, auto tile) {
    auto from = static_cast<const decltype(stored)*>(src);
    auto to = static_cast<decltype(tile)*>(dst);
    if (rows == 0) {
      for (int f = 0; f < F; ++f) std::memset(to + f * ld, 0, R * sizeof(tile));
    } else if (F == 1) {
      load_one_feature(from, row_stride_elems, rows, to, R);
    } else if (F == 2 && row_stride_elems == 2) {
      load_few<2>(from, rows, to, ld, R);
    } else if (F == 3 && row_stride_elems == 3) {
      load_few<3>(from, rows, to, ld, R);
    } else {
      load_rows_of(from, row_stride_elems, rows, F, to, ld, R);
    }
  });
}

void store_rows(const void* src, ptrdiff_t ld, DType dtype, int rows, int F, void* dst,
                ptrdiff_t row_stride_elems) {
  with_types(dtype, [&](auto stored, auto tile) {
    auto from = static_cast<const decltype(tile)*>(src);
    auto to = static_cast<decltype(stored)*>(dst);
    if (F == 1) {
      store_one_feature(from, rows, to, row_stride_elems);
    } else if (F == 2 && row_stride_elems == 2) {
      store_few<2>(from, ld, rows, to);
    } else if (F == 3 && row_stride_elems == 3) {
      store_few<3>(from, ld, rows, to);
    } else {
      store_rows_of(from, ld, rows, F, to, row_stride_elems);
    }
  });
}

}  // namespace

extern const TileTranspose kTileTranspose = {load_rows, store_rows, load_n, store_n, round};

}  // namespace gradcell::cpu::GRADCELL_ISA

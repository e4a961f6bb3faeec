// Every ISA level this machine runs, against plain loops in double.
#include "cpu/kernels/tile_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace gradcell::cpu {
namespace {

class TileKernelsTest : public ::testing::TestWithParam<IsaLevel> {
 protected:
  const TileKernels& kernels = tile_kernels(GetParam());
  std::mt19937 random{1};

  template <class T>
  std::vector<T> uniform(size_t n) {
    std::uniform_real_distribution<T> d(-1, 1);
    std::vector<T> v(n);
    for (T& x : v) x = d(random);
    return v;
  }

  template <class T>
  void check_matmul(int K, int M, int R, int pad, bool transposed, bool with_bias, bool accumulate,
                    bool as_rows = false);
  template <class T>
  void check_weight_grad(int K, int M, int R, std::vector<int> tiles, bool transposed);
};

INSTANTIATE_TEST_SUITE_P(Isa, TileKernelsTest, ::testing::ValuesIn(runnable_isa_levels()),
                         [](const auto& i) { return std::string(name(i.param)); });

template <class T>
constexpr double kEpsilon = std::numeric_limits<T>::epsilon();

template <class T>
void TileKernelsTest::check_matmul(int K, int M, int R, int pad, bool transposed, bool with_bias,
                                   bool accumulate, bool as_rows) {
  SCOPED_TRACE("K " + std::to_string(K) + " M " + std::to_string(M) + " R " + std::to_string(R));
  const auto& mm = kernels.matmul<T>();
  const ptrdiff_t ks = transposed ? 1 : M + 1, ms = transposed ? K + 2 : 1, ld = R + pad;
  const auto w = uniform<T>((K + 2) * (M + 2)), x = uniform<T>(K * ld + 1), bias = uniform<T>(M);
  const auto before = uniform<T>(M * ld);
  auto y = before;
  std::vector<T> packed(mm.packed_size(K, M) + 1, T(77));
  mm.pack_weights(w.data(), ks, ms, K, M, packed.data());
  EXPECT_EQ(packed.back(), T(77));
  if (as_rows) {
    mm.matmul_rows(w.data(), ms, x.data(), ld, y.data(), ld, K, M, R);
  } else {
    mm.matmul(packed.data(), x.data(), ld, y.data(), ld, K, M, R, with_bias ? bias.data() : nullptr,
              accumulate);
  }
  for (int m = 0; m < M; ++m) {
    for (int r = 0; r < ld; ++r) {
      const double old = before[m * ld + r];
      if (r >= R) {
        ASSERT_EQ(y[m * ld + r], old) << "wrote beyond the tile";
        continue;
      }
      double sum = (with_bias ? bias[m] : 0) + (accumulate ? old : 0), size = 2;
      for (int k = 0; k < K; ++k) {
        const double term = double(w[k * ks + m * ms]) * x[k * ld + r];
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(y[m * ld + r], sum, kEpsilon<T> * size * 8) << "m " << m << " r " << r;
    }
  }
}

TEST_P(TileKernelsTest, MatmulOverShapes) {
  for (int R : {16, 32, 48, 64, 80, 128, 256}) {
    for (int M : {1, 2, 3, 5, 6, 7, 10, 13, 20, 50, 64}) {
      for (int K : {1, 2, 3, 20, 33}) {
        check_matmul<float>(K, M, R, M % 3, K % 2, M % 2, (K + M) % 2);
        check_matmul<double>(K, M, R, M % 3, M % 2, K % 2, (K + M) % 2);
      }
    }
  }
}

TEST_P(TileKernelsTest, MatmulOverLongSums) {
  for (int K : {127, 128, 129, 300, 784}) {
    check_matmul<float>(K, 17, 64, 0, true, true, false);
    check_matmul<float>(K, 25, 48, 1, false, true, true);
    check_matmul<double>(K, 11, 64, 0, true, false, false);
  }
  check_matmul<float>(512, 512, 64, 0, false, true, false);
}

TEST_P(TileKernelsTest, MatmulOfRowsOverShapes) {
  for (int R : {16, 32, 48, 64, 112}) {
    for (int M : {1, 5, 6, 13, 24, 50}) {
      for (int K : {1, 15, 16, 17, 33, 129, 300}) {
        check_matmul<float>(K, M, R, M % 3, true, false, false, true);
        check_matmul<double>(K, M, R, K % 3, true, false, false, true);
      }
    }
  }
}

TEST_P(TileKernelsTest, MatmulOfNothingIsTheBias) {
  check_matmul<float>(0, 5, 16, 0, false, true, false);
  check_matmul<float>(0, 5, 16, 0, false, false, true);
}

TEST_P(TileKernelsTest, MatmulKeepsNanAndInfInTheirRow) {
  const auto& mm = kernels.matmul<float>();
  const int K = 20, M = 20, R = 64;
  auto w = uniform<float>(K * M), x = uniform<float>(K * R);
  x[3 * R + 5] = std::nanf("");
  x[4 * R + 9] = HUGE_VALF;
  std::vector<float> packed(mm.packed_size(K, M)), y(M * R);
  mm.pack_weights(w.data(), M, 1, K, M, packed.data());
  mm.matmul(packed.data(), x.data(), R, y.data(), R, K, M, R, nullptr, false);
  for (int m = 0; m < M; ++m) {
    for (int r = 0; r < R; ++r) {
      ASSERT_EQ(std::isnan(y[m * R + r]), r == 5);
      ASSERT_EQ(std::isinf(y[m * R + r]), r == 9);
    }
  }
}

/// Two accumulators, as of two threads, take the tiles in turn and are added up.
template <class T>
void TileKernelsTest::check_weight_grad(int K, int M, int R, std::vector<int> tiles,
                                        bool transposed) {
  SCOPED_TRACE("K " + std::to_string(K) + " M " + std::to_string(M) + " R " + std::to_string(R));
  const auto& mm = kernels.matmul<T>();
  const ptrdiff_t ldx = R + 3, ldy = R;
  const size_t size = mm.grad_accumulator_size(K, M);
  std::vector<T> acc[2];
  std::vector<double> sum(K * M), magnitude(K * M);
  for (auto& a : acc) {
    a.assign(size + 1, T(77));
    mm.grad_zero(a.data(), K, M);
  }
  for (size_t t = 0; t < tiles.size(); ++t) {
    const int rows = tiles[t];
    auto x = uniform<T>(K * ldx), dy = uniform<T>(M * ldy);
    for (int r = rows; r < R; ++r) {
      for (int k = 0; k < K; ++k) x[k * ldx + r] = std::numeric_limits<T>::quiet_NaN();
      for (int m = 0; m < M; ++m) dy[m * ldy + r] = std::numeric_limits<T>::infinity();
    }
    mm.weight_grad(x.data(), ldx, dy.data(), ldy, K, M, R, rows, acc[t % 2].data());
    for (int k = 0; k < K; ++k) {
      for (int m = 0; m < M; ++m) {
        for (int r = 0; r < rows; ++r) {
          const double term = double(x[k * ldx + r]) * dy[m * ldy + r];
          sum[k * M + m] += term;
          magnitude[k * M + m] += std::abs(term);
        }
      }
    }
  }
  const ptrdiff_t ks = transposed ? 1 : M, ms = transposed ? K : 1;
  std::vector<T> out(K * M), other(K * M);
  mm.grad_finish(acc[0].data(), K, M, out.data(), ks, ms);
  mm.grad_finish(acc[1].data(), K, M, other.data(), ks, ms);
  for (int i = 0; i < K * M; ++i) out[i] += other[i];
  for (const auto& a : acc) EXPECT_EQ(a.back(), T(77));
  for (int k = 0; k < K; ++k) {
    for (int m = 0; m < M; ++m) {
      ASSERT_NEAR(out[k * ks + m * ms], sum[k * M + m],
                  kEpsilon<T> * (magnitude[k * M + m] + 1) * 8)
          << "k " << k << " m " << m;
    }
  }
}

TEST_P(TileKernelsTest, WeightGradOverShapes) {
  for (int K : {1, 2, 3, 7, 20, 23, 50}) {
    for (int M : {1, 2, 3, 10, 20, 25, 64, 70}) {
      check_weight_grad<float>(K, M, 64, {64, 64, 37}, K % 2);
      check_weight_grad<double>(K, M, 48, {48, 1, 16}, M % 2);
    }
  }
  for (int R : {16, 32, 128, 256}) {
    check_weight_grad<float>(20, 20, R, {R, R - 1, 0, 9}, false);
    check_weight_grad<float>(40, 33, R, {R, R - 1, 0, 9}, true);
    check_weight_grad<double>(40, 33, R, {R, R - 1, 0, 9}, true);
  }
  check_weight_grad<float>(784, 10, 64, {64, 50}, false);
  check_weight_grad<float>(10, 784, 64, {64, 50}, false);
  check_weight_grad<float>(128, 130, 64, {64, 50}, true);
  check_weight_grad<double>(128, 70, 64, {64, 50}, true);
  check_weight_grad<float>(2000, 2, 64, {64, 50}, true);
}

// ---- Rows in and out ----

double half_value(uint16_t h) {
  const int exponent = (h >> 10) & 31, fraction = h & 1023;
  const double sign = h >> 15 ? -1 : 1;
  if (exponent == 31) return fraction ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

double bfloat_value(uint16_t h) {
  const int exponent = (h >> 7) & 255, fraction = h & 127;
  const double sign = h >> 15 ? -1 : 1;
  if (exponent == 255) return fraction ? std::nan("") : sign * HUGE_VAL;
  return sign *
         (exponent ? std::ldexp(128 + fraction, exponent - 134) : std::ldexp(fraction, -133));
}

bool same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

TEST_P(TileKernelsTest, EverySixteenBitPattern) {
  std::vector<uint16_t> all(65536), back(65536);
  std::vector<float> values(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  for (DType t : {DType::Float16, DType::BFloat16}) {
    kernels.transpose.load(all.data(), t, values.data(), all.size());
    kernels.transpose.store(values.data(), t, back.data(), all.size());
    auto value = t == DType::Float16 ? half_value : bfloat_value;
    for (int i = 0; i < 65536; ++i) {
      ASSERT_TRUE(same(values[i], value(all[i]))) << name(t) << " " << i;
      ASSERT_TRUE(std::isnan(values[i]) ? std::isnan(value(back[i])) : back[i] == all[i])
          << name(t) << " " << i;
    }
    auto rounded = values;
    kernels.transpose.round(t, rounded.data(), rounded.size());
    for (int i = 0; i < 65536; ++i) ASSERT_TRUE(same(rounded[i], values[i]));
  }
}

/// Between two neighbours: the middle goes to the even one, a hair off the middle to the nearer.
TEST_P(TileKernelsTest, SixteenBitRounding) {
  for (DType t : {DType::Float16, DType::BFloat16}) {
    const bool half = t == DType::Float16;
    auto value = half ? half_value : bfloat_value;
    const int infinity = half ? 0x7c00 : 0x7f80;
    std::vector<float> x;
    std::vector<uint16_t> expected;
    auto expect = [&](double v, int bits) {
      x.push_back(static_cast<float>(v));
      expected.push_back(static_cast<uint16_t>(bits));
      x.push_back(static_cast<float>(-v));
      expected.push_back(static_cast<uint16_t>(bits | 0x8000));
    };
    for (int i = 0; i < infinity; ++i) {
      // Where infinity stands, rounding sees the next power of two.
      const double above = i + 1 < infinity ? value(i + 1) : std::ldexp(1, half ? 16 : 128);
      const float middle = static_cast<float>((value(i) + above) / 2);
      expect(middle, i + (i & 1));
      expect(std::nextafter(middle, 0.0f), i);
      expect(std::nextafter(middle, HUGE_VALF), i + 1);
    }
    expect(HUGE_VAL, infinity);
    expect(std::numeric_limits<float>::max(), infinity);
    if (half) expect(1e-30, 0);
    std::vector<uint16_t> stored(x.size());
    kernels.transpose.store(x.data(), t, stored.data(), x.size());
    auto rounded = x;
    kernels.transpose.round(half ? DType::Float16 : DType::BFloat16, rounded.data(),
                            rounded.size());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(stored[i], expected[i]) << name(t) << " " << x[i];
      ASSERT_TRUE(same(rounded[i], value(expected[i]))) << name(t) << " " << x[i];
    }
  }
}

TEST_P(TileKernelsTest, SixteenBitNansStayNans) {
  std::vector<float> x;
  for (uint32_t fraction : {1u, 2u, 0x1fffu, 0x2000u, 0xffffu, 0x10000u, 0x400000u, 0x7fffffu}) {
    x.push_back(std::bit_cast<float>(0x7f800000u | fraction));
    x.push_back(std::bit_cast<float>(0xff800000u | fraction));
  }
  std::vector<uint16_t> stored(x.size());
  kernels.transpose.store(x.data(), DType::Float16, stored.data(), x.size());
  for (uint16_t h : stored) EXPECT_TRUE(std::isnan(half_value(h)));
  kernels.transpose.store(x.data(), DType::BFloat16, stored.data(), x.size());
  for (uint16_t h : stored) EXPECT_TRUE(std::isnan(bfloat_value(h)));
}

/// An array [rows][F] of small whole numbers, which every dtype but bool holds exactly.
double element(DType t, int r, int f) {
  const int v = (r * 31 + f * 7) % 100;
  return t == DType::Bool ? v % 2 : is_unsigned(t) ? v : v - 50;
}

/// Of a whole number below 1024.
uint16_t half_bits(double v) {
  const double a = std::abs(v);
  if (a == 0) return 0;
  const int e = std::ilogb(a);
  const auto fraction = static_cast<int>(std::ldexp(a, 10 - e)) - 1024;
  return static_cast<uint16_t>((v < 0 ? 0x8000 : 0) | ((e + 15) << 10) | fraction);
}

void put(DType t, std::byte* p, double v) {
  auto copy = [&](auto x) { std::memcpy(p, &x, sizeof(x)); };
  switch (t) {
    case DType::Bool:
    case DType::UInt8:
      return copy(static_cast<uint8_t>(v));
    case DType::Int8:
      return copy(static_cast<int8_t>(v));
    case DType::Int16:
      return copy(static_cast<int16_t>(v));
    case DType::Int32:
      return copy(static_cast<int32_t>(v));
    case DType::Int64:
      return copy(static_cast<int64_t>(v));
    case DType::UInt16:
      return copy(static_cast<uint16_t>(v));
    case DType::UInt32:
      return copy(static_cast<uint32_t>(v));
    case DType::UInt64:
      return copy(static_cast<uint64_t>(v));
    case DType::Float16:
      return copy(half_bits(v));
    case DType::BFloat16:
      return copy(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(v)) >> 16));
    case DType::Float32:
      return copy(static_cast<float>(v));
    case DType::Float64:
      return copy(v);
    default:
      FAIL() << "no elements of " << name(t) << " in tiles";
  }
}

double get(Compute type, const std::byte* p) {
  return by_compute(type, [&](auto x) {
    std::memcpy(&x, p, sizeof(x));
    return static_cast<double>(x);
  });
}

TEST_P(TileKernelsTest, RowsInAndOut) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const DType t = static_cast<DType>(d);
    if (is_complex(t)) continue;  // pairs, in tiles
    const Compute tile = compute_type(t);
    const size_t size = item_size(t), tile_size = compute_size(tile);
    for (int F : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20, 33, 64, 70}) {
      for (int rows : {1, 2, 15, 16, 17, 48}) {
        SCOPED_TRACE(std::string(name(t)) + " F " + std::to_string(F) + " rows " +
                     std::to_string(rows));
        const int R = 48, stride = F + rows % 3, ld = R + 2;
        std::vector<std::byte> src(rows * stride * size), dst((F * ld) * tile_size, std::byte{99});
        for (int r = 0; r < rows; ++r) {
          for (int f = 0; f < F; ++f) put(t, &src[(r * stride + f) * size], element(t, r % 10, f));
        }
        src.resize((rows * stride - (stride - F)) * size);  // nothing may be read past the last row
        src.shrink_to_fit();
        kernels.transpose.load_rows(src.data(), t, stride, rows, F, dst.data(), ld, R);
        for (int f = 0; f < F; ++f) {
          for (int r = 0; r < R; ++r) {
            const int row = std::min(r, rows - 1);
            ASSERT_EQ(get(tile, &dst[(f * ld + r) * tile_size]), element(t, row % 10, f))
                << f << " " << r;
          }
        }
        std::vector<std::byte> back(src.size() + 64, std::byte{99}), expected = back;
        for (int r = 0; r < rows; ++r) {
          std::memcpy(&expected[r * stride * size], &src[r * stride * size], F * size);
        }
        kernels.transpose.store_rows(dst.data(), ld, t, rows, F, back.data(), stride);
        ASSERT_EQ(back, expected) << "also: wrote between or after the rows";
      }
    }
  }
}

TEST_P(TileKernelsTest, LoadingNoRowsGivesZeros) {
  std::vector<float> tile(3 * 16, 1);
  kernels.transpose.load_rows(nullptr, DType::Float32, 3, 0, 3, tile.data(), 16, 16);
  EXPECT_EQ(tile, std::vector<float>(3 * 16));
}

TEST_P(TileKernelsTest, NarrowIntegersWrapAndBoolsNormalise) {
  const std::vector<int32_t> x{300, -300, 128, 65536 + 7, 0, -1, 256};
  std::vector<uint8_t> u(x.size());
  std::vector<int8_t> i(x.size());
  std::vector<int16_t> s(x.size());
  kernels.transpose.store(x.data(), DType::UInt8, u.data(), x.size());
  EXPECT_EQ(u, (std::vector<uint8_t>{44, 212, 128, 7, 0, 255, 0}));
  kernels.transpose.store(x.data(), DType::Int8, i.data(), x.size());
  EXPECT_EQ(i, (std::vector<int8_t>{44, -44, -128, 7, 0, -1, 0}));
  kernels.transpose.store(x.data(), DType::Int16, s.data(), x.size());
  EXPECT_EQ(s, (std::vector<int16_t>{300, -300, 128, 7, 0, -1, 256}));
  kernels.transpose.store(x.data(), DType::Bool, u.data(), x.size());
  EXPECT_EQ(u, (std::vector<uint8_t>{1, 1, 1, 1, 0, 1, 1}));
  const std::vector<uint8_t> bytes{0, 1, 2, 255};
  std::vector<int32_t> loaded(4);
  kernels.transpose.load(bytes.data(), DType::Bool, loaded.data(), 4);
  EXPECT_EQ(loaded, (std::vector<int32_t>{0, 1, 1, 1}));
}

TEST(IsaLevel, IsOneThisMachineRuns) {
  const auto& levels = runnable_isa_levels();
  EXPECT_NE(std::find(levels.begin(), levels.end(), isa_level()), levels.end());
  EXPECT_EQ(tile_kernels().level, isa_level());
}

}  // namespace
}  // namespace gradcell::cpu

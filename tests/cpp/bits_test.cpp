// The same bits on every system and from every compiler: what vector math and tile products of a
// level give for fixed inputs has the digest that stands here.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "base/philox.h"
#include "cpu/kernels/isa_level.h"
#include "cpu/kernels/tile_kernels.h"
#include "vecmath_table.h"

namespace gradcell::cpu {
namespace {

/// Numbers of either sign between 2^-12 and 2^12; no library's own distribution has a part in them.
template <class T>
std::vector<T> numbers(size_t n, uint64_t key) {
  std::vector<T> x(n);
  for (size_t i = 0; i < n; ++i) {
    const PhiloxBlock random = philox(key, i);
    const T size = std::ldexp(T(1) + T(random[0] >> 9) * T(0x1p-23), int(random[1] % 24) - 12);
    x[i] = random[2] & 1 ? -size : size;
  }
  return x;
}

/// FNV-1a over the numbers' bits. What a NaN has besides is nobody's business.
class Digest {
 public:
  template <class T>
  void add(const std::vector<T>& x) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    for (T v : x) {
      Bits bits = 0;
      if (v == v) std::memcpy(&bits, &v, sizeof v);
      for (size_t i = 0; i < sizeof v; ++i)
        state_ = (state_ ^ (bits >> (8 * i) & 255)) * 0x100000001B3ull;
    }
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0xCBF29CE484222325ull;
};

struct Expected {
  uint64_t functions, products;
};
/// By level. On other processors nobody has compared yet.
const std::map<std::string, Expected> kExpected = {
    {"v3", {4533223178547770287u, 17360147122805438681u}},
    {"v4", {4533223178547770287u, 17360147122805438681u}},
};

template <class T, class F>
void add_function(Digest& all, std::string& each, const char* name, F map) {
  std::vector<T> y(4000);
  map(y.data(), y.size());
  Digest one;
  one.add(y), all.add(y);
  each +=
      std::string(name) + (sizeof(T) == 4 ? " 32: " : " 64: ") + std::to_string(one.value()) + "\n";
}

TEST(Bits, OfFunctions) {
  const auto a32 = numbers<float>(4000, 1), b32 = numbers<float>(4000, 2);
  const auto a64 = numbers<double>(4000, 1), b64 = numbers<double>(4000, 2);
  for (const VecMathTable* table : vecmath_tables()) {
    Digest all;
    std::string each;
    for (const UnaryMath& f : table->unary) {
      add_function<float>(all, each, f.name,
                          [&](float* y, size_t n) { f.map32(a32.data(), y, n); });
      add_function<double>(all, each, f.name,
                           [&](double* y, size_t n) { f.map64(a64.data(), y, n); });
    }
    for (const BinaryMath& f : table->binary) {
      add_function<float>(all, each, f.name,
                          [&](float* y, size_t n) { f.map32(a32.data(), b32.data(), y, n); });
      add_function<double>(all, each, f.name,
                           [&](double* y, size_t n) { f.map64(a64.data(), b64.data(), y, n); });
    }
    const auto it = kExpected.find(table->level);
    if (it == kExpected.end()) continue;
    EXPECT_EQ(all.value(), it->second.functions) << table->level << "\n" << each;
  }
}

template <class T>
void add_products(Digest& all, const TileKernels& kernels) {
  const auto& mm = kernels.matmul<T>();
  for (const auto& [K, M, R] : {std::array{1, 1, 64}, {20, 20, 256}, {64, 33, 50}, {512, 65, 64}}) {
    const auto w = numbers<T>(size_t(K * M), 3), x = numbers<T>(size_t(K * R), 4);
    std::vector<T> packed(mm.packed_size(K, M)), y(size_t(M * R));
    mm.pack_weights(w.data(), M, 1, K, M, packed.data());
    mm.matmul(packed.data(), x.data(), R, y.data(), R, K, M, R, nullptr, false);
    all.add(y);
  }
}

TEST(Bits, OfProducts) {
  for (IsaLevel level : runnable_isa_levels()) {
    Digest all;
    add_products<float>(all, tile_kernels(level));
    add_products<double>(all, tile_kernels(level));
    const auto it = kExpected.find(std::string(name(level)));
    if (it == kExpected.end()) continue;
    EXPECT_EQ(all.value(), it->second.products) << name(level);
  }
}

}  // namespace
}  // namespace gradcell::cpu

#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace gradcell {

namespace {

constexpr size_t kBytes = 8;

/// For each of eight bytes in a row what it adds to the check, by its place (the way of "slicing by
/// 8": Kounavis, Berry 2008).
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, kBytes> t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t v = i;
    for (int bit = 0; bit < 8; ++bit) v = v >> 1 ^ (v & 1 ? 0x82F63B78u : 0u);
    t[0][i] = v;
  }
  for (size_t k = 1; k < kBytes; ++k)
    for (size_t i = 0; i < 256; ++i) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
  return t;
}();

}  // namespace

uint32_t crc32c(std::span<const uint8_t> data) {
  static_assert(std::endian::native == std::endian::little);
  uint32_t v = ~0u;
  size_t i = 0;
  for (; i + kBytes <= data.size(); i += kBytes) {
    uint64_t next;
    std::memcpy(&next, data.data() + i, kBytes);
    next ^= v;
    v = 0;
    for (size_t k = 0; k < kBytes; ++k) v ^= kTables[kBytes - 1 - k][next >> (8 * k) & 255];
  }
  for (; i < data.size(); ++i) v = v >> 8 ^ kTables[0][(v ^ data[i]) & 255];
  return ~v;
}

}  // namespace gradcell

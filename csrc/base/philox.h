// Philox 4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011), section 3.3: four 32-bit words for each (key, counter).
#pragma once

#include <array>
#include <cstdint>

#include "base/narrow.h"

namespace gradcell {

using PhiloxBlock = std::array<uint32_t, 4>;

inline PhiloxBlock philox(std::array<uint32_t, 2> key, PhiloxBlock c) {
  auto [k0, k1] = key;
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53u) * c[0], p1 = uint64_t(0xCD9E8D57u) * c[2];
    c = {low_bits<uint32_t>(p1 >> 32) ^ c[1] ^ k0, low_bits<uint32_t>(p1),
         low_bits<uint32_t>(p0 >> 32) ^ c[3] ^ k1, low_bits<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/// The counter's upper half is zero.
inline PhiloxBlock philox(uint64_t key, uint64_t counter) {
  auto low = [](uint64_t v) { return low_bits<uint32_t>(v); };
  return philox({low(key), low(key >> 32)}, {low(counter), low(counter >> 32), 0, 0});
}

/// 24 random bits as a float in [0, 1).
inline float uniform_from_bits(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

}  // namespace gradcell

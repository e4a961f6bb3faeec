// Division of indices by a number that is known before a launch: gc_divisor of prelude.cuh.
#pragma once

#include <bit>
#include <cstdint>

namespace gradcell::cuda {

struct Divisor {
  uint64_t multiplier;
  int shift;
};

/// For all n from 0 below 2^bits (31 or 63), n / by is n * multiplier >> (bits + 1 + shift). The
/// multiplier is 2^(bits + 1 + shift) / by, rounded up (Granlund and Montgomery, "Division by
/// invariant integers using multiplication", 1994, theorem 4.2); it has bits + 1 bits.
inline Divisor divisor(int64_t by, int bits) {
  const auto d = static_cast<uint64_t>(by);
  if (d >> bits) return {0, 0};                                 // more than any n
  const int rounds = 64 - std::countl_zero(d - 1);              // the width of d - 1
  uint64_t multiplier = 1, rest = (uint64_t(1) << rounds) - d;  // of 2^rounds / by
  for (int bit = 0; bit < bits; ++bit) {
    const bool one = 2 * rest >= d;
    multiplier = 2 * multiplier + one;
    rest = 2 * rest - (one ? d : 0);
  }
  return {multiplier + (rest > 0), rounds - 1};
}

}  // namespace gradcell::cuda

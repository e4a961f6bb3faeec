// float16 and bfloat16: conversions to and from float, nearest even, and what stores an element.
#pragma once

#include <bit>
#include <cstdint>

#include "base/narrow.h"

namespace gradcell {

inline float bfloat_to_float(uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); }

inline uint16_t float_to_bfloat(float f) {
  auto u = std::bit_cast<uint32_t>(f);
  if ((u & 0x7FFFFFFFu) > 0x7F800000u) return low_bits<uint16_t>((u >> 16) | 0x40u);
  return low_bits<uint16_t>((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16);
}

inline float half_to_float(uint16_t h) {
  uint32_t sign = (h & 0x8000u) << 16;
  uint32_t magnitude = h & 0x7FFFu;
  if (magnitude >= 0x7C00u)  // inf and NaN
    return std::bit_cast<float>(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  // A scale by 2^112 moves the exponent; it also makes denormals normal.
  float f = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(f));
}

inline uint16_t float_to_half(float f) {
  auto u = std::bit_cast<uint32_t>(f);
  auto sign = low_bits<uint16_t>((u >> 16) & 0x8000u);
  u &= 0x7FFFFFFFu;
  if (u > 0x7F800000u) return sign | 0x7E00u | low_bits<uint16_t>((u >> 13) & 0x3FFu);
  if (u >= 0x477FF000u) return sign | 0x7C00u;  // rounds to 65536 or more
  if (u < 0x38800000u) {                        // a denormal half: let the adder round
    float d = std::bit_cast<float>(u) + 0.5f;
    return sign | low_bits<uint16_t>(std::bit_cast<uint32_t>(d) - 0x3F000000u);
  }
  return sign | low_bits<uint16_t>((u - 0x38000000u + 0xFFFu + ((u >> 13) & 1u)) >> 13);
}

/// An element in memory: a narrow float (base/types.h) has such a class, which knows its values.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float f) : bits(float_to_half(f)) {}
  operator float() const { return half_to_float(bits); }
  static constexpr int kDigits = 11;
  static constexpr float kLargest = 65504.0F;
};
struct Bfloat {
  uint16_t bits = 0;
  Bfloat() = default;
  explicit Bfloat(float f) : bits(float_to_bfloat(f)) {}
  operator float() const { return bfloat_to_float(bits); }
  static constexpr int kDigits = 8;
  static constexpr float kLargest = 0x1.FEp127F;
};

/// A float that rounds to either half type as the double itself does: rounded to odd, so that what
/// was cut off still breaks ties (Boldo and Melquiond 2008, theorem 1).
inline float to_odd(double v) {
  auto f = static_cast<float>(v);
  if (static_cast<double>(f) == v || v != v) return f;
  auto u = std::bit_cast<uint32_t>(f);
  if ((f < 0 ? -f : f) > (v < 0 ? -v : v)) --u;  // towards zero
  return std::bit_cast<float>(u | 1u);
}

/// A double that rounds to float and the half types as the integer itself does.
inline double to_odd(int64_t v) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (v <= kExact && v >= -kExact) return static_cast<double>(v);
  return static_cast<double>((v & ~int64_t{0xFFFF}) | (int64_t{(v & 0xFFFF) != 0} << 16));
}

}  // namespace gradcell

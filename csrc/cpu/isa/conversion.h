// How a number of one type becomes one of another.
#pragma once

#include <limits>
#include <type_traits>

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

/// NaN becomes 0 and what is out of range the nearest end: conversions are always defined.
template <class To, class From>
inline To converted(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From kHigh = From(0x1p31) * (sizeof(To) == 8 ? From(0x1p32) : From(1));
    constexpr To low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
    if constexpr (sizeof(From) > sizeof(To)) {  // which holds both ends
      From bounded = x < From(low) ? From(low) : x;
      bounded = bounded > From(high) ? From(high) : bounded;
      return static_cast<To>(x == x ? bounded : From(0));
    }
    bool inside = x >= -kHigh && x < kHigh;
    To value = static_cast<To>(inside ? x : From(0));
    return inside ? value : x >= kHigh ? high : x < -kHigh ? low : To(0);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace
}  // namespace gradcell::cpu::GRADCELL_ISA

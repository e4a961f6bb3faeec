// Numbers in fewer bits: how counts, sizes and places become what a format, a library or a kernel
// has for them. A bare cast to fewer bits stands nowhere else (a test sees to it).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace gradcell {

/// Throws Value: a number that a user's sizes led to is beyond what is counted with here.
[[noreturn]] void does_not_fit(double value, int64_t most);
[[noreturn]] void does_not_fit(int64_t value, int64_t most);
[[noreturn]] void does_not_fit(uint64_t value, int64_t most);

/// An enumerator's number, or the number itself.
template <class T>
[[gnu::always_inline]] constexpr auto number_of(T x) {
  if constexpr (std::is_enum_v<T>)
    return static_cast<std::underlying_type_t<T>>(x);
  else
    return x;
}

/// x, without what is behind its point, as a To, or an error that says which number is too large.
/// (Always inline: it is called in code for several instruction sets, of which the linker would
/// choose one.)
template <std::integral To, class From>
[[gnu::always_inline]] constexpr To narrow(From x) {
  using Limits = std::numeric_limits<To>;
  constexpr auto most = static_cast<int64_t>(Limits::max());
  const auto n = number_of(x);
  using N = std::remove_const_t<decltype(n)>;
  if constexpr (std::floating_point<N>) {
    constexpr N end = N(uint64_t(1) << (Limits::digits - 1)) * 2;
    if (!(n < end && n >= (std::is_signed_v<To> ? -end : N(0)))) [[unlikely]]
      does_not_fit(double(n), most);
  } else if (!std::in_range<To>(n)) [[unlikely]] {
    does_not_fit(std::conditional_t<std::is_signed_v<N>, int64_t, uint64_t>(n), most);
  }
  return static_cast<To>(n);
}

/// x as a To, which holds it because of what whoever made x has checked: for loops over elements.
/// Builds with the verifier look again.
template <std::integral To, class From>
[[gnu::always_inline]] constexpr To known(From x) {
#ifdef GRADCELL_VERIFY
  return narrow<To>(x);
#else
  return static_cast<To>(x);
#endif
}

/// The low bits of x, the others left out: of hashes, random words and numbers in pieces.
template <std::integral To, std::integral From>
[[gnu::always_inline]] constexpr To low_bits(From x) {
  return static_cast<To>(x);
}

/// Which of `count` > 0 things a float stands for: rounded down, and held within. (NaN: the first.)
template <std::floating_point T>
[[gnu::always_inline]] constexpr int64_t place_among(T x, int64_t count) {
  if (!(x > 0)) return 0;
  return x < static_cast<T>(count - 1) ? static_cast<int64_t>(x) : count - 1;
}

}  // namespace gradcell

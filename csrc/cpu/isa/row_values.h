// What rows of the op table are evaluated on: a number, a register of numbers, or a block of
// registers; how they come from memory and go there; and T(...) in a row's text.
#pragma once

#include <string_view>
#include <type_traits>

#include "math/scalar.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

namespace math = gradcell::GRADCELL_ISA;
using math::HalfI, math::MaskOf, math::VecD, math::VecF;
using namespace math::scalar;  // NOLINT: the names in rows

namespace blocks {

/// A few registers, for rows that are composed of several vector functions: each goes over the
/// whole block before the next begins. Within one, registers do not depend on each other and the
/// processor overlaps them; a chain of functions on one register would leave it waiting.
template <class V>
struct Block {
  static constexpr int kSize = 512 / sizeof(V);
  V r[kSize];
  int size = kSize;                         ///< so many are in use
  explicit operator bool() const = delete;  // choices in a row are where(c, a, b)
};

template <class F, class V, class... W>
GRADCELL_INLINE auto each(F f, const Block<V>& x, const Block<W>&... more) {
  Block<decltype(f(x.r[0], more.r[0]...))> y;
  y.size = x.size;
  ((y.size = more.size < y.size ? more.size : y.size), ...);
  for (int i = 0; i < y.size; ++i) y.r[i] = f(x.r[i], more.r[i]...);
  return y;
}

#define GRADCELL_X(op)                                     \
  template <class V>                                       \
  auto operator op(const Block<V>& a, const Block<V>& b) { \
    return each([](V x, V y) { return x op y; }, a, b);    \
  }
GRADCELL_X(+)
GRADCELL_X(-)
GRADCELL_X(*)
GRADCELL_X(/)
GRADCELL_X(==)
GRADCELL_X(!=)
GRADCELL_X(<)
GRADCELL_X(<=)
GRADCELL_X(>)
GRADCELL_X(>=)
GRADCELL_X(&)
GRADCELL_X(|)
#undef GRADCELL_X
template <class V>
auto operator-(const Block<V>& a) {
  return each([](V x) { return -x; }, a);
}

#define GRADCELL_X(name, ...)                                  \
  template <class V>                                           \
  __attribute__((noinline)) Block<V> name(const Block<V>& a) { \
    return each([](V x) { return math::scalar::name(x); }, a); \
  }
GRADCELL_VECMATH_UNARY(GRADCELL_X)
GRADCELL_VECMATH_COMPOSED(GRADCELL_X)
#undef GRADCELL_X
#define GRADCELL_X(name, ...)                                                     \
  template <class V>                                                              \
  __attribute__((noinline)) Block<V> name(const Block<V>& a, const Block<V>& b) { \
    return each([](V x, V y) { return math::scalar::name(x, y); }, a, b);         \
  }
GRADCELL_VECMATH_BINARY(GRADCELL_X)
GRADCELL_X(floor_div)
GRADCELL_X(maximum)
GRADCELL_X(minimum)
#undef GRADCELL_X
template <class M, class V>
Block<V> where(const Block<M>& c, const Block<V>& a, const Block<V>& b) {
  return each([](M m, V x, V y) { return math::scalar::where(m, x, y); }, c, a, b);
}

}  // namespace blocks

template <class V>
inline constexpr bool kNumber = std::is_arithmetic_v<V>;
template <class V>
inline constexpr bool kBlock = requires(V v) { v.r; };

/// How many numbers V has.
template <class V>
constexpr ptrdiff_t step() {
  if constexpr (kNumber<V>)
    return 1;
  else if constexpr (kBlock<V>)
    return V::kSize * step<std::remove_extent_t<decltype(V::r)>>();
  else
    return sizeof(V) / sizeof(V{}[0]);
}

/// A register in memory, where it may lie anywhere.
template <class V>
struct Stored {
  typedef V type __attribute__((aligned(4), may_alias));
};

/// V of the numbers from p on, of which there are n. In memory a bool is an int32_t, in a register
/// it is a mask.
template <class V, class X>
GRADCELL_INLINE V read(const X* p, ptrdiff_t n) {
  if constexpr (kNumber<V>) {
    return static_cast<V>(*p);
  } else if constexpr (kBlock<V>) {
    using R = std::remove_extent_t<decltype(V::r)>;
    V v;
    v.size = n < step<V>() ? narrow<int>(n / step<R>()) : V::kSize;
    for (int i = 0; i < v.size; ++i) v.r[i] = read<R>(p + i * step<R>(), n);
    return v;
  } else if constexpr (std::is_same_v<V, MaskOf<VecD>>) {
    return math::widen(*reinterpret_cast<const Stored<HalfI>::type*>(p));
  } else {
    return *reinterpret_cast<const typename Stored<V>::type*>(p);
  }
}
template <class X, class V>
GRADCELL_INLINE void write(X* p, const V& v) {
  if constexpr (kNumber<V>) {
    *p = static_cast<X>(v);
  } else if constexpr (kBlock<V>) {
    for (int i = 0; i < v.size; ++i) write(p + i * step<V>() / V::kSize, v.r[i]);
  } else if constexpr (std::is_same_v<V, MaskOf<VecD>>) {
    *reinterpret_cast<Stored<HalfI>::type*>(p) = math::narrow(v) & 1;
  } else if constexpr (std::is_same_v<V, MaskOf<VecF>>) {
    *reinterpret_cast<typename Stored<V>::type*>(p) = v & 1;
  } else {
    *reinterpret_cast<typename Stored<V>::type*>(p) = v;
  }
}
/// V of one number.
template <class V, class X>
GRADCELL_INLINE V spread(X x) {
  if constexpr (kNumber<V>) {
    return static_cast<V>(x);
  } else if constexpr (kBlock<V>) {
    V v;
    for (auto& r : v.r) r = spread<std::remove_extent_t<decltype(V::r)>>(x);
    return v;
  } else {
    // One instruction, where a loop over lanes is one for each; x - 0 is x, -0 too.
    return static_cast<std::decay_t<decltype(V()[0])>>(x) - V{};
  }
}

/// T(...) in a row's text: of a number, or of a condition as 0 and 1.
template <class V>
struct ToValue {
  const V& operator()(const V& x) const { return x; }
  template <class X>
  GRADCELL_INLINE V operator()(const X& x) const {
    if constexpr (kNumber<X>)
      return spread<V>(x);
    else
      return where(x, spread<V>(1), spread<V>(0));
  }
};

/// How many vector functions a row's text calls.
constexpr int calls(std::string_view text) {
  int n = 0;
#define GRADCELL_X(name, ...) std::string_view(#name "("),
  for (auto call : {GRADCELL_VECMATH_UNARY(GRADCELL_X) GRADCELL_VECMATH_COMPOSED(GRADCELL_X)
                        GRADCELL_VECMATH_BINARY(GRADCELL_X)}) {
#undef GRADCELL_X
    for (size_t at = text.find(call); at != text.npos; at = text.find(call, at + 1)) {
      const char before = at == 0 ? ' ' : text[at - 1];
      n += !(before == '_' || (before >= '0' && before <= '9') || (before >= 'a' && before <= 'z'));
    }
  }
  return n;
}

/// What a row of that text takes at a time.
template <class T, bool composed>
struct StepOf {
  using Register = std::conditional_t<sizeof(T) == 4, VecF, VecD>;
  using Lanes = std::conditional_t<composed, blocks::Block<Register>, Register>;
  using type = std::conditional_t<std::is_floating_point_v<T>, Lanes, T>;
};

}  // namespace
}  // namespace gradcell::cpu::GRADCELL_ISA

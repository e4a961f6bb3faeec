// Loops for the rows of formulas.def, register by register.
#include <array>
#include <string_view>
#include <utility>

#include "cpu/isa/row_values.h"
#include "cpu/kernels/kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {

namespace {

template <class V>
GRADCELL_INLINE MaskOf<V> isnan(V x) {
  return x != x;
}

constexpr std::string_view kLetters = "abcpqrst";
constexpr char kFirstNumber = 'p';

// The expression sees its operands by their letters.
#define FORMULA(Name, expression)                                                                \
  struct Name##Expression {                                                                      \
    static constexpr std::string_view kText = #expression;                                       \
    template <class V>                                                                           \
    GRADCELL_INLINE static V call([[maybe_unused]] const std::array<V, kLetters.size()>& x) {    \
      [[maybe_unused]] const V &a = x[0], &b = x[1], &c = x[2], &p = x[3], &q = x[4], &r = x[5], \
                               &s = x[6], &t = x[7];                                             \
      return expression;                                                                         \
    }                                                                                            \
  };
#include "plan/region/formulas.def"
#undef FORMULA

constexpr bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

/// Whether an expression has the letter as a word of its own.
constexpr bool has(std::string_view text, char letter) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = i == 0 || !is_letter(text[i - 1]);
    const bool ends = i + 1 == text.size() || !is_letter(text[i + 1]);
    if (text[i] == letter && begins && ends) return true;
  }
  return false;
}

/// The place of each letter among the operands; -1: the expression does not have it.
constexpr std::array<int, kLetters.size()> places(std::string_view text) {
  std::array<int, kLetters.size()> at{};
  int n = 0;
  for (size_t k = 0; k < at.size(); ++k) at[k] = has(text, kLetters[k]) ? n++ : -1;
  return at;
}

template <class E, class T>
void loop(const LoopArgs& args) {
  using V = typename StepOf<T, false>::type;
  constexpr auto at = places(E::kText);
  constexpr size_t kRows = kLetters.find(kFirstNumber);
  ptrdiff_t rows = args.rows, features = args.features;
  bool flat = args.pitch == rows;
  for (size_t k = 0; k < kRows; ++k) flat &= at[k] < 0 || args.s[at[k]] == rows;
  if (flat) rows *= features, features = 1;
  std::array<V, kLetters.size()> x{};
  for (size_t k = kRows; k < kLetters.size(); ++k)
    if (at[k] >= 0) x[k] = spread<V>(*static_cast<const T*>(args.p[at[k]]));
  for (ptrdiff_t f = 0; f < features; ++f) {
    T* d = static_cast<T*>(args.d) + f * args.pitch;
    const T* from[kRows];
    for (size_t k = 0; k < kRows; ++k)
      from[k] = at[k] < 0 ? nullptr : static_cast<const T*>(args.p[at[k]]) + f * args.s[at[k]];
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < rows; i += step<V>()) {
      [&]<size_t... k>(std::index_sequence<k...>) {
        ((at[k] >= 0 ? (void)(x[k] = read<V>(from[k] + i, rows - i)) : void()), ...);
      }(std::make_index_sequence<kRows>());
      write(d + i, E::template call<V>(x));
    }
  }
}

}  // namespace

Loop formula(Compute type, Formula which) {
  static constexpr Loop kLoops[][2] = {
#define FORMULA(Name, expression) {loop<Name##Expression, float>, loop<Name##Expression, double>},
#include "plan/region/formulas.def"
#undef FORMULA
  };
  return kLoops[narrow<int>(which)][type == Compute::F64];
}

}  // namespace gradcell::cpu::GRADCELL_ISA

// Loops for the rows of formulas.def.
#include <string_view>

#include "cpu/kernels.h"
#include "math/scalar.h"

namespace gradcell::cpu::GRADCELL_ISA {

namespace {

using gradcell::GRADCELL_ISA::scalar::sqrt;

// The expression sees its operands by their letters.
#define FORMULA(Name, expression)                                                   \
  struct Name##Expression {                                                         \
    static constexpr std::string_view kText = #expression;                          \
    template <class T>                                                              \
    static T call([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c, \
                  [[maybe_unused]] T s, [[maybe_unused]] T t) {                     \
      return expression;                                                            \
    }                                                                               \
  };
#include "plan/formulas.def"
#undef FORMULA

/// The place of each letter among the operands; -1: the expression does not have it.
struct Places {
  int a = -1, b = -1, c = -1, s = -1, t = -1;
};

constexpr bool has(std::string_view text, char letter) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 4) == "sqrt") i += 4;
    if (text[i] == letter) return true;
  }
  return false;
}

constexpr Places places(std::string_view text) {
  Places p;
  int n = 0;
  const auto take = [&](int& place, char letter) {
    if (has(text, letter)) place = n++;
  };
  take(p.a, 'a'), take(p.b, 'b'), take(p.c, 'c'), take(p.s, 's'), take(p.t, 't');
  return p;
}

template <class E, class T>
void loop(const LoopArgs& args) {
  constexpr Places at = places(E::kText);
  ptrdiff_t rows = args.rows, features = args.features;
  auto dense = [&](int k) { return k < 0 || args.s[k] == rows; };
  if (args.pitch == rows && dense(at.a) && dense(at.b) && dense(at.c))
    rows *= features, features = 1;
  auto number = [&](int k) { return k < 0 ? T() : *static_cast<const T*>(args.p[k]); };
  const T s = number(at.s), t = number(at.t);
  for (ptrdiff_t f = 0; f < features; ++f) {
    auto feature = [&](int k) {
      return k < 0 ? nullptr : static_cast<const T*>(args.p[k]) + f * args.s[k];
    };
    const T *a = feature(at.a), *b = feature(at.b), *c = feature(at.c);
    T* d = static_cast<T*>(args.d) + f * args.pitch;
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < rows; ++i) d[i] = E::template call<T>(
        at.a < 0 ? T() : a[i], at.b < 0 ? T() : b[i], at.c < 0 ? T() : c[i], s, t);
  }
}

}  // namespace

Loop formula(Compute type, Formula which) {
  static constexpr Loop kLoops[][2] = {
#define FORMULA(Name, expression) {loop<Name##Expression, float>, loop<Name##Expression, double>},
#include "plan/formulas.def"
#undef FORMULA
  };
  return kLoops[static_cast<int>(which)][type == Compute::F64];
}

}  // namespace gradcell::cpu::GRADCELL_ISA

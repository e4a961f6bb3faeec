// Texts as rows of the op table may have them give the same on numbers, registers and blocks.
#include "cpu/isa/row_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

#define TEXT(Name, forward)                        \
  struct Name {                                    \
    static constexpr int kCalls = calls(#forward); \
    static constexpr const char* kText = #forward; \
    template <class V>                             \
    static auto call(const V& a, const V& b) {     \
      [[maybe_unused]] constexpr ToValue<V> T{};   \
      return forward;                              \
    }                                              \
  };
TEXT(LogOneMinusExp, where((a > T(-0.69)) | (b != b), log(-expm1(a)), log1p(-exp(a))))
TEXT(LogAddExp, maximum(a, b) + log1p(exp(-abs(a - b))))
TEXT(Remainders, minimum(floor_div(a, b), mod(b, T(1.5))) / pow(a, T(3)))
TEXT(Waves, T((sin(a) < cos(b)) & (a >= b)) / tan(a))
TEXT(Comparison, a* b <= erf(a))

static_assert(LogOneMinusExp::kCalls == 4 && LogAddExp::kCalls == 3 && Comparison::kCalls == 1);

template <class T>
std::vector<T> sample(size_t n, int seed) {
  using L = std::numeric_limits<T>;
  std::mt19937 random(seed);
  std::uniform_real_distribution<T> near(-4, 4), far(-40, 40);
  const T special[] = {T(0),          -T(0),          L::denorm_min(), L::min(), T(1),
                       T(-2.5),       T(1e6),         T(-1e20),        L::max(), -L::max(),
                       L::infinity(), -L::infinity(), L::quiet_NaN()};
  std::vector<T> x;
  for (size_t i = 0; i < n; ++i)
    x.push_back(random() % 8 == 0 ? special[random() % std::size(special)]
                : i % 2           ? near(random)
                                  : T(std::exp2(far(random))));
  return x;
}

template <class R>
bool same(R a, R b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof(R)) == 0;
}

/// `uniform`: b is the same number everywhere.
template <class Row, class V, class R, class T>
void check(bool uniform) {
  const ptrdiff_t n = 16 * 129;  // no whole number of blocks
  const auto a = sample<T>(n, 1), b = sample<T>(n, 2);
  std::vector<R> y(n);
  for (ptrdiff_t i = 0; i < n; i += step<V>())
    write(&y[i], Row::template call<V>(read<V>(&a[i], n - i),
                                       uniform ? spread<V>(T(1.7)) : read<V>(&b[i], n - i)));
  for (ptrdiff_t i = 0; i < n; ++i) {
    R expected;
    write(&expected, Row::template call<T>(a[i], uniform ? T(1.7) : b[i]));
    ASSERT_TRUE(same(y[i], expected))
        << Row::kText << " at " << a[i] << ", " << b[i] << ": " << y[i] << ", " << expected;
  }
}
template <class Row, class V, class R>
void check_lanes() {
  using T = math::ElementOf<V>;
  for (bool uniform : {false, true}) {
    check<Row, V, std::conditional_t<std::is_void_v<R>, T, R>, T>(uniform);
    check<Row, blocks::Block<V>, std::conditional_t<std::is_void_v<R>, T, R>, T>(uniform);
  }
}
template <class Row, class R = void>
void check_row() {
  check_lanes<Row, VecF, R>();
  check_lanes<Row, VecD, R>();
}

TEST(RowValues, TheSameOnNumbersRegistersAndBlocks) {
  check_row<LogOneMinusExp>();
  check_row<LogAddExp>();
  check_row<Remainders>();
  check_row<Waves>();
  check_row<Comparison, int32_t>();
}

}  // namespace
}  // namespace gradcell::cpu::GRADCELL_ISA

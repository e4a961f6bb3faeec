// Functions of two integers' bits and divisors, elementwise.
#include <algorithm>
#include <atomic>
#include <bit>
#include <type_traits>

#include "base/element.h"
#include "base/parts.h"
#include "cpu/calls/integers.h"
#include "cpu/calls/routines.h"
#include "cpu/kernels/whole_kernels.h"
#include "ir/attributes.h"
#include "ops/moving/order.h"

namespace gradcell::cpu {

namespace {

/// The greatest common divisor.
template <class T>
T divisor_of(T a, T b) {
  using U = std::make_unsigned_t<T>;
  auto size = [](T v) {
    return static_cast<U>(v < 0 ? U(0) - static_cast<U>(v) : static_cast<U>(v));
  };
  U x = size(a), y = size(b);
  if (x == 0 || y == 0) return static_cast<T>(x | y);
  const int twos = std::countr_zero(static_cast<U>(x | y));
  x = static_cast<U>(x >> std::countr_zero(x));
  while (y != 0) {  // Stein: both odd, the difference even
    y = static_cast<U>(y >> std::countr_zero(y));
    const U low = std::min(x, y);
    y = static_cast<U>(std::max(x, y) - low);
    x = low;
  }
  return static_cast<T>(static_cast<U>(x << twos));
}

template <class T>
T multiple_of(T a, T b) {
  using U = std::make_unsigned_t<T>;
  const T d = divisor_of(a, b);
  if (d == 0) return T(0);
  const U all = static_cast<U>(static_cast<U>(a / d) * static_cast<U>(b));
  return static_cast<T>(static_cast<T>(all) < 0 ? static_cast<U>(U(0) - all) : all);
}

void of_integers(const Call& c, const void* const* in, void* out) {
  const auto function =
      static_cast<IntegerFunction>(decode<IntegersAttributes>(c.attributes).function);
  const DType dtype = c.out.dtype;
  const int64_t n = product(c.out.dims, 0, c.out.dims.size());
  const bool many_a = !c.in[0].dims.empty(), many_b = !c.in[1].dims.empty();
  if (function < IntegerFunction::Gcd) {
    const auto item = static_cast<int64_t>(item_size(dtype));
    auto at = [&](const void* p, int64_t i) { return static_cast<const std::byte*>(p) + i * item; };
    return by_parts(n, 1, [&](int64_t begin, int64_t end) {
      whole_kernels().bits(static_cast<Bits>(function), dtype, at(in[0], many_a ? begin : 0),
                           many_a, at(in[1], many_b ? begin : 0), many_b,
                           static_cast<std::byte*>(out) + begin * item,
                           static_cast<size_t>(end - begin));
    });
  }
  by_dtype(dtype, [&]<class T> {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
      by_parts(n, 32, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T x = a[many_a ? i : 0], y = b[many_b ? i : 0];
          static_cast<T*>(out)[i] =
              function == IntegerFunction::Gcd ? divisor_of(x, y) : multiple_of(x, y);
        }
      });
    }
  });
}

/// Whether a test holds of one of n numbers.
template <class T, class Test>
bool any_is(const T* x, int64_t n, Test test) {
  std::atomic<bool> any = false;
  by_parts(n, 1, [&](int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 1024;
    for (int64_t i = begin; i < end && !any.load(std::memory_order_relaxed); i += kBlock) {
      const int64_t last = std::min(end, i + kBlock);
      T found = 0;
      for (int64_t k = i; k < last; ++k) found |= static_cast<T>(test(x[k]));
      if (found) any.store(true, std::memory_order_relaxed);
    }
  });
  return any;
}

void permitted(const Call& c, const void* const* in, void* out) {
  const auto limit = static_cast<IntegerLimit>(decode<PermittedAttributes>(c.attributes).limit);
  require(all_permitted(c.in[0].dtype, in[0], c.in[0].count, limit), ErrorKind::Value,
          broken(limit));
  by_size(item_size(c.out.dtype),
          [&]<class T> { std::fill_n(static_cast<T*>(out), c.out.count, T{}); });
}

constexpr RoutineRow kFunctionsOfIntegers[] = {{Op::OfIntegers, of_integers},
                                               {Op::Permitted, permitted}};

}  // namespace

bool all_permitted(DType dtype, const void* integers, int64_t n, IntegerLimit limit) {
  bool all = true;
  by_dtype(dtype, [&]<class T> {
    if constexpr (std::is_integral_v<T>) {
      const T* const x = static_cast<const T*>(integers);
      all = limit == IntegerLimit::Pow ? !any_is(x, n, [](T v) { return v < T(0); })
                                       : !any_is(x, n, [](T v) { return v == T(0); });
    }
  });
  return all;
}

std::span<const RoutineRow> functions_of_integers() { return kFunctionsOfIntegers; }

}  // namespace gradcell::cpu

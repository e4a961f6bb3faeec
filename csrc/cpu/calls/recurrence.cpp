// Linear recurrences along an axis, several lines at a time: they do not wait for one another.
#include <algorithm>

#include "cpu/calls/elements.h"
#include "ops/combining/scan.h"

namespace gradcell::cpu {

namespace {

/// At most this many lines at a time.
constexpr int64_t kRecurring = 256;

/// `width` lines, whose elements are `apart` from each other and `step` from the next.
template <class S>
void recur_lines(const S* a, const S* b, S* y, int64_t n, int64_t step, int64_t apart,
                 int64_t width, const ScanAttributes& how) {
  using C = typename ComputeOf<S>::type;
  using A = Accumulator<C>;
  A last[kRecurring] = {};
  auto element = [](S v) { return static_cast<A>(static_cast<C>(v)); };
  auto run = [&](int64_t between) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = (how.reverse ? n - 1 - i : i) * step;
      for (int64_t j = 0; j < width; ++j) {
        const int64_t k = at + j * between;
        const A before = last[j];
        if constexpr (std::is_integral_v<A>)  // wraps
          last[j] =
              static_cast<A>(static_cast<uint64_t>(element(a[k])) * static_cast<uint64_t>(before) +
                             static_cast<uint64_t>(element(b[k])));
        else
          last[j] = element(a[k]) * before + element(b[k]);
        y[k] = S(static_cast<C>(how.exclusive ? before : last[j]));
      }
    }
  };
  apart == 1 ? run(1) : run(apart);
}

}  // namespace

void recur(const Call& c, const void* const* inputs, void* out) {
  const auto how = decode<ScanAttributes>(c.attributes);
  const auto axis = static_cast<size_t>(how.axis);
  const Dims& dims = c.out.dims;
  if (c.out.count == 0) return;
  const int64_t inner = product(dims, axis + 1, dims.size()), n = dims[axis];
  const int64_t outer = c.out.count / (n * inner);
  by_dtype_and_size(c.out.dtype, [&]<class S>() {
    const auto* a = static_cast<const S*>(inputs[0]);
    const auto* b = static_cast<const S*>(inputs[1]);
    auto* y = static_cast<S*>(out);
    auto run = [&](int64_t base, int64_t apart, int64_t width) {
      recur_lines(a + base, b + base, y + base, n, inner, apart, width, how);
    };
    constexpr int64_t kFew = 8;
    if (inner >= kFew) {  // neighbours
      const int64_t strips = (inner + kRecurring - 1) / kRecurring;
      return split(outer * strips, c.out.count, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = inner * (i % strips) / strips;
          run(i / strips * n * inner + first, 1, inner * (i % strips + 1) / strips - first);
        }
      });
    }
    // The lines of some neighbours on the outer axis, one inner place after the other.
    const int64_t groups = (outer + kFew - 1) / kFew;
    split(groups * inner, c.out.count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i / inner * kFew;
        run(first * n * inner + i % inner, n * inner, std::min(kFew, outer - first));
      }
    });
  });
}

}  // namespace gradcell::cpu

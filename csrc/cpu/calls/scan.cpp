// Running sums and products along an axis.
#include "ops/scan.h"

#include "cpu/calls/elements.h"

namespace gradcell::cpu {

namespace {

/// `width` lines at a time, whose elements are `apart` from each other and `step` from the next:
/// the sums of neighbours do not wait for one another.
template <Combine how, int64_t kWidth, class S>
void scan_lines(const S* x, S* y, int64_t n, int64_t step, int64_t apart, int64_t width,
                const ScanAttributes& a) {
  using C = typename ComputeOf<S>::type;
  using A = Accumulator<C>;
  A so_far[kWidth];
  std::fill_n(so_far, width, how == Combine::Product ? A(1) : A(0));
  auto run = [&](int64_t lines, int64_t between) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = (a.reverse ? n - 1 - i : i) * step;
      const S* from = x + at;
      S* to = y + at;
      for (int64_t j = 0; j < lines; ++j) {
        const A v = static_cast<A>(static_cast<C>(from[j * between]));
        const A with = combined<how>(so_far[j], v);
        to[j * between] = S(static_cast<C>(a.exclusive ? so_far[j] : with));
        so_far[j] = with;
      }
    }
  };
  if (apart == 1)
    run(width, 1);
  else if (width == kWidth)
    run(kWidth, apart);
  else
    run(width, apart);
}

}  // namespace

void scan(const Call& c, const void* in, void* out) {
  const auto a = decode<ScanAttributes>(c.attributes);
  const auto axis = static_cast<size_t>(a.axis);
  const Dims& dims = c.out.dims;
  const int64_t inner = product(dims, axis + 1, dims.size()), n = dims[axis];
  const int64_t outer = c.out.count / (n * inner);
  constexpr int64_t kColumns = 256, kLines = 8;
  by_dtype(c.out.dtype, [&]<class S>() {
    const auto* x = static_cast<const S*>(in);
    auto* y = static_cast<S*>(out);
    by_combine(c.combine, [&]<Combine how>() {
      if (inner >= kLines) {
        const int64_t strips = (inner + kColumns - 1) / kColumns;
        return split(outer * strips, c.out.count, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t first = inner * (i % strips) / strips;
            const int64_t width = inner * (i % strips + 1) / strips - first;
            const int64_t base = i / strips * n * inner + first;
            scan_lines<how, kColumns>(x + base, y + base, n, inner, 1, width, a);
          }
        });
      }
      // The lines of some neighbours on the outer axis, one inner place after the other.
      const int64_t groups = (outer + kLines - 1) / kLines;
      split(groups * inner, c.out.count, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i / inner * kLines, base = first * n * inner + i % inner;
          scan_lines<how, kLines>(x + base, y + base, n, inner, n * inner,
                                  std::min(kLines, outer - first), a);
        }
      });
    });
  });
}

}  // namespace gradcell::cpu

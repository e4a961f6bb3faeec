// Running sums and products along an axis.
#include "ops/combining/scan.h"

#include <cmath>

#include "cpu/calls/elements.h"
#include "cpu/kernels/whole_kernels.h"

namespace gradcell::cpu {

namespace {

/// `width` lines at a time, whose elements are `apart` from each other and `step` from the next:
/// the sums of neighbours do not wait for one another. so_far: what comes before each line, and
/// then its last element too. y is null where only that is wanted.
template <Combine how, int64_t kWidth, class S, class A>
void scan_lines(const S* x, S* y, int64_t n, int64_t step, int64_t apart, int64_t width,
                const ScanAttributes& a, A* so_far) {
  using C = typename ComputeOf<S>::type;
  if constexpr (std::is_same_v<S, C> && sizeof(S) >= 4 &&
                (how == Combine::Sum || how == Combine::Product)) {
    if (apart == 1 && width >= 8) {
      const int64_t at = a.reverse ? (n - 1) * step : 0;
      const DType type = std::is_same_v<S, float>    ? DType::Float32
                         : std::is_same_v<S, double> ? DType::Float64
                         : sizeof(S) == 4            ? DType::Int32
                                                     : DType::Int64;
      return whole_kernels().scan_rows(how, type, a.exclusive, x + at, y ? y + at : nullptr,
                                       a.reverse ? -step : step, static_cast<size_t>(n), so_far,
                                       static_cast<size_t>(width));
    }
  }
  auto run = [&](int64_t lines, int64_t between) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = (a.reverse ? n - 1 - i : i) * step;
      const S* from = x + at;
      for (int64_t j = 0; j < lines; ++j) {
        const A v = static_cast<A>(static_cast<C>(from[j * between]));
        const A with = combined<how>(so_far[j], v);
        if (y) y[at + j * between] = S(static_cast<C>(a.exclusive ? so_far[j] : with));
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

template <Combine how, int64_t kWidth, class S>
void scan_lines(const S* x, S* y, int64_t n, int64_t step, int64_t apart, int64_t width,
                const ScanAttributes& a) {
  using A = Accumulator<typename ComputeOf<S>::type>;
  A so_far[kWidth];
  std::fill_n(so_far, width, how == Combine::Product ? A(1) : A(0));
  scan_lines<how, kWidth>(x, y, n, step, apart, width, a, so_far);
}

constexpr int64_t kLines = 8;
/// A line this long is scanned in parts, of which kLines at a time do not wait for one another.
constexpr int64_t kLong = 1 << 14;

/// One line: what its parts come to, what is before each, and then all parts. False if that leaves
/// the range, in which sums and products one after the other may stay.
template <Combine how, class S>
bool scan_long(const S* x, S* y, int64_t n, int64_t step, const ScanAttributes& a) {
  using A = Accumulator<typename ComputeOf<S>::type>;
  constexpr int64_t kParts = 8 * kLines;
  const int64_t length = n / kParts, rest = n % kParts, apart = length * step;
  const A none = how == Combine::Product ? A(1) : A(0);
  A before[kParts + 1];  // the last: the elements that are left over
  std::fill_n(before, kParts + 1, none);
  auto each = [&](S* to) {
    split(kParts / kLines, n, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        const int64_t at = g * kLines * apart;
        scan_lines<how, kLines>(x + at, to ? to + at : nullptr, length, step, apart, kLines, a,
                                before + g * kLines);
      }
    });
    if (rest > 0)
      scan_lines<how, kLines>(x + kParts * apart, to ? to + kParts * apart : nullptr, rest, step, 1,
                              1, a, before + kParts);
  };
  each(nullptr);
  if constexpr (std::is_floating_point_v<A>)
    for (const A total : before)
      if (how == Combine::Product ? !std::isnormal(total) : !std::isfinite(total)) return false;
  A so_far = none;
  for (int64_t k = 0; k <= kParts; ++k) {
    A& part = before[a.reverse ? kParts - k : k];
    const A with = combined<how>(so_far, part);
    part = so_far;
    so_far = with;
  }
  each(y);
  return true;
}

}  // namespace

void scan(const Call& c, const void* const* inputs, void* out) {
  const void* in = inputs[0];
  const auto a = decode<ScanAttributes>(c.attributes);
  const auto axis = static_cast<size_t>(a.axis);
  const Dims& dims = c.out.dims;
  const int64_t inner = product(dims, axis + 1, dims.size()), n = dims[axis];
  const int64_t outer = c.out.count / (n * inner);
  constexpr int64_t kColumns = 256;
  by_dtype_and_size(c.out.dtype, [&]<class S>() {
    const auto* x = static_cast<const S*>(in);
    auto* y = static_cast<S*>(out);
    auto run = [&]<Combine how>() {
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
      if (outer * inner < kLines && n >= kLong) {
        for (int64_t i = 0; i < outer * inner; ++i) {
          const int64_t at = i / inner * n * inner + i % inner;
          if (!scan_long<how>(x + at, y + at, n, inner, a))
            scan_lines<how, kLines>(x + at, y + at, n, inner, n * inner, 1, a);
        }
        return;
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
    };
    c.combine == Combine::Product ? run.template operator()<Combine::Product>()
                                  : run.template operator()<Combine::Sum>();
  });
}

}  // namespace gradcell::cpu

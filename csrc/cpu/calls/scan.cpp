// Running sums and products along an axis.
#include "ops/combining/scan.h"

#include <cmath>

#include "cpu/calls/elements.h"
#include "cpu/calls/wide.h"
#include "cpu/kernels/whole_kernels.h"

namespace gradcell::cpu {

namespace {

constexpr int64_t kLines = 8;
constexpr int64_t kSideBySide = 256;

/// `many` sums of neighbours that stand `apart`, known to the compiler where many is: they do not
/// wait for one another.
template <Combine how, class S, class A, class Many>
void scan_rows(const S* x, S* y, int64_t n, int64_t step, int64_t apart, Many many, A* so_far) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < many; ++j) {
      const int64_t at = i * step + j * apart;
      so_far[j] = combined<how>(so_far[j], static_cast<A>(x[at]));
      y[at] = static_cast<S>(so_far[j]);
    }
}

/// The same, and nothing is written.
template <Combine how, class S, class A, class Many>
void add_rows(const S* x, int64_t n, int64_t step, int64_t apart, Many many, A* so_far) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < many; ++j)
      so_far[j] = combined<how>(so_far[j], static_cast<A>(x[i * step + j * apart]));
}

using Few = std::integral_constant<int64_t, kLines>;

/// What is scanned together, from the first elements in the scan's direction. so_far: for each line
/// what comes before it, and then all of it too.
template <class S, class A>
struct Lines {
  const S* x;
  S* y;
  int64_t n, step, apart, width;  ///< elements of a line; between them, and between lines; lines
  A* so_far;

  /// What comes before an element is its value: all values stand a step later.
  void exclude() {
    for (int64_t j = 0; j < width; ++j) y[j * apart] = static_cast<S>(so_far[j]);
    y += step, --n;
  }
};

/// At most kLines lines.
template <Combine how, class S, class A>
void scan_lines(Lines<S, A> l, bool exclusive) {
  if (exclusive) l.exclude();
  l.width == kLines ? scan_rows<how>(l.x, l.y, l.n, l.step, l.apart, Few(), l.so_far)
                    : scan_rows<how>(l.x, l.y, l.n, l.step, l.apart, l.width, l.so_far);
}

template <Combine how, class S, class A>
void add_up_lines(const Lines<S, A>& l) {
  l.width == kLines ? add_rows<how>(l.x, l.n, l.step, l.apart, Few(), l.so_far)
                    : add_rows<how>(l.x, l.n, l.step, l.apart, l.width, l.so_far);
}

/// Lines that stand side by side, at most kSideBySide.
template <Combine how, class S, class A>
void scan_columns(Lines<S, A> l, bool exclusive) {
  if (exclusive) l.exclude();
  whole_kernels().scan_rows(how, kWideType<S>, l.x, l.y, l.step, static_cast<size_t>(l.n), l.so_far,
                            static_cast<size_t>(l.width));
}

/// A line this long is scanned in parts, of which kLines at a time do not wait for one another.
constexpr int64_t kLong = 1 << 14;

/// One line: what its parts come to, what is before each, and then all parts. False if that leaves
/// the range, in which sums and products one after the other may stay.
template <Combine how, class S>
bool scan_long(const S* x, S* y, int64_t n, int64_t step, bool exclusive) {
  using A = Accumulator<S>;
  constexpr int64_t kParts = 8 * kLines;
  const int64_t length = n / kParts, rest = n % kParts, apart = length * step;
  const A none = how == Combine::Product ? A(1) : A(0);
  A before[kParts + 1];  // the last: the elements that are left over
  std::fill_n(before, kParts + 1, none);
  auto each = [&](auto run) {
    split(kParts / kLines, n, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        const int64_t at = g * kLines * apart;
        run(Lines<S, A>{x + at, y + at, length, step, apart, kLines, before + g * kLines});
      }
    });
    const int64_t at = kParts * apart;
    if (rest > 0) run(Lines<S, A>{x + at, y + at, rest, step, 1, 1, before + kParts});
  };
  each(add_up_lines<how, S, A>);
  if constexpr (std::is_floating_point_v<A>)
    for (const A total : before)
      if (how == Combine::Product ? !std::isnormal(total) : !std::isfinite(total)) return false;
  A so_far = none;
  for (A& part : before) {
    const A with = combined<how>(so_far, part);
    part = so_far;
    so_far = with;
  }
  each([&](const Lines<S, A>& l) { scan_lines<how>(l, exclusive); });
  return true;
}

/// All lines of [outer][n][inner], of a type that elements are added in.
template <Combine how, class S>
void scan_all(const S* x, S* y, int64_t outer, int64_t n, int64_t inner, const ScanAttributes& a) {
  using A = Accumulator<S>;
  const int64_t start = a.reverse ? (n - 1) * inner : 0, step = a.reverse ? -inner : inner;
  const int64_t work = outer * n * inner;
  x += start, y += start;
  const A none = how == Combine::Product ? A(1) : A(0);
  if (inner >= kLines) {
    const int64_t strips = (inner + kSideBySide - 1) / kSideBySide;
    return split(outer * strips, work, [&](int64_t begin, int64_t end) {
      A so_far[kSideBySide];
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = inner * (i % strips) / strips;
        const int64_t width = inner * (i % strips + 1) / strips - first;
        const int64_t base = i / strips * n * inner + first;
        std::fill_n(so_far, width, none);
        scan_columns<how>(Lines<S, A>{x + base, y + base, n, step, 1, width, so_far}, a.exclusive);
      }
    });
  }
  auto scan_some = [&](int64_t at, int64_t width) {
    A so_far[kLines];
    std::fill_n(so_far, width, none);
    scan_lines<how>(Lines<S, A>{x + at, y + at, n, step, n * inner, width, so_far}, a.exclusive);
  };
  if (outer * inner < kLines && n >= kLong) {
    for (int64_t i = 0; i < outer * inner; ++i) {
      const int64_t at = i / inner * n * inner + i % inner;
      if (!scan_long<how>(x + at, y + at, n, step, a.exclusive)) scan_some(at, 1);
    }
    return;
  }
  // The lines of some neighbours on the outer axis, one inner place after the other.
  const int64_t groups = (outer + kLines - 1) / kLines;
  split(groups * inner, work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / inner * kLines;
      scan_some(first * n * inner + i % inner, std::min(kLines, outer - first));
    }
  });
}

}  // namespace

void scan(const Call& c, const void* const* inputs, void* out) {
  const auto a = decode<ScanAttributes>(c.attributes);
  const Dims& dims = c.out.dims;
  const auto axis = static_cast<size_t>(a.axis);
  const int64_t inner = product(dims, axis + 1, dims.size()), n = dims[axis];
  // (Sums and products wrap alike with signs and without.)
  in_wide_type(as_signed(c.out.dtype), inputs[0], out, c.out.count / (n * inner), n * inner,
               [&]<class S>(const S* x, S* y, int64_t outer) {
                 if constexpr (!std::is_same_v<S, uint64_t>)
                   c.combine == Combine::Product
                       ? scan_all<Combine::Product>(x, y, outer, n, inner, a)
                       : scan_all<Combine::Sum>(x, y, outer, n, inner, a);
               });
}

}  // namespace gradcell::cpu

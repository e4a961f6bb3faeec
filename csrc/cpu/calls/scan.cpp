// Running sums and products along an axis.
#include "ops/scan.h"

#include "cpu/calls/elements.h"

namespace gradcell::cpu {

void scan(const Call& c, const void* in, void* out) {
  const auto a = decode<ScanAttributes>(c.attributes);
  const auto axis = static_cast<size_t>(a.axis);
  const Dims& dims = c.out.dims;
  int64_t inner = product(dims, axis + 1, dims.size()), n = dims[axis];
  by_dtype(c.out.dtype, [&]<class S>() {
    using C = typename ComputeOf<S>::type;
    using A = Accumulator<C>;
    const int64_t lines = n ? c.out.count / n : 0;
    by_combine(c.combine, [&]<Combine how>() {
      split(lines, c.out.count, [&](int64_t begin, int64_t end) {
        for (int64_t l = begin; l < end; ++l) {
          const int64_t base = l / inner * inner * n + l % inner;
          A so_far = how == Combine::Product ? A(1) : A(0);
          for (int64_t i = 0; i < n; ++i) {
            const int64_t at = base + (a.reverse ? n - 1 - i : i) * inner;
            const A v = static_cast<A>(static_cast<C>(static_cast<const S*>(in)[at]));
            const A with = combined<how>(so_far, v);
            static_cast<S*>(out)[at] = S(static_cast<C>(a.exclusive ? so_far : with));
            so_far = with;
          }
        }
      });
    });
  });
}

}  // namespace gradcell::cpu

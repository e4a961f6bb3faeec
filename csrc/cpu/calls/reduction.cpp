// Whole tensors, reduced along axes.
#include "cpu/calls/elements.h"

namespace gradcell::cpu {

void reduce(const Call& c, const void* in, void* out) {
  const Dims& dims = c.in[0].dims;
  const Dims strides = row_major(dims), &axes = c.attributes;
  const Dims kept = pick(dims, axes, false), kept_strides = pick(strides, axes, false);
  const Dims gone = pick(dims, axes, true), gone_strides = pick(strides, axes, true);
  int64_t n = element_count(gone);
  std::vector<int64_t> step(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, at = 0;
    for (size_t k = gone.size(); k-- > 0;) at += rest % gone[k] * gone_strides[k], rest /= gone[k];
    step[i] = at;
  }
  by_dtype(c.out.dtype, [&]<class S>() {
    using C = typename ComputeOf<S>::type;
    using A = Accumulator<C>;
    const S* x = static_cast<const S*>(in);
    by_combine(c.combine, [&]<Combine how>() {
      split(c.out.count, c.in[0].count, [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          int64_t rest = o, at = 0;
          for (size_t k = kept.size(); k-- > 0;)
            at += rest % kept[k] * kept_strides[k], rest /= kept[k];
          A acc = how == Combine::Sum       ? A(0)
                  : how == Combine::Product ? A(1)
                                            : A(static_cast<C>(x[at]));
          for (int64_t s : step)
            acc = combined<how>(acc, static_cast<A>(static_cast<C>(x[at + s])));
          static_cast<S*>(out)[o] = S(static_cast<C>(acc));
        }
      });
    });
  });
}

void extremum(const Call& c, const void* in, void* out) {
  auto axis = static_cast<size_t>(c.attributes[0]);
  const Dims& dims = c.in[0].dims;
  int64_t inner = product(dims, axis + 1, dims.size()), n = dims[axis];
  by_dtype(c.in[0].dtype, [&]<class S>() {
    using C = typename ComputeOf<S>::type;
    for (int64_t o = 0; o < c.out.count; ++o) {
      const S* x = static_cast<const S*>(in) + o / inner * inner * n + o % inner;
      int64_t best = 0;
      C top = static_cast<C>(x[0]);
      for (int64_t i = 1; i < n && top == top; ++i) {  // the first NaN wins
        C v = static_cast<C>(x[i * inner]);
        bool better = c.combine == Combine::Max ? v > top : v < top;
        if (better || v != v) best = i, top = v;
      }
      static_cast<int32_t*>(out)[o] = static_cast<int32_t>(best);
    }
  });
}

}  // namespace gradcell::cpu

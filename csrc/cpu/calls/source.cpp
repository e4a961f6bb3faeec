// Constants, ranges and random numbers in memory.
#include <bit>

#include "base/philox.h"
#include "cpu/calls/elements.h"
#include "ops/source.h"

namespace gradcell::cpu {

void fill(const Call& c, void* out, uint64_t bits) {
  by_dtype(c.out.dtype, [&]<class S>() {
    S v = is_floating(c.out.dtype)
              ? S(static_cast<typename ComputeOf<S>::type>(std::bit_cast<double>(bits)))
              : S(static_cast<typename ComputeOf<S>::type>(std::bit_cast<int64_t>(bits)));
    std::fill_n(static_cast<S*>(out), c.out.count, v);
  });
}

void range(const Call& c, void* out) {
  auto axis = static_cast<size_t>(c.attributes[0]);
  int64_t inner = product(c.out.dims, axis + 1, c.out.dims.size()), n = c.out.dims[axis];
  by_dtype(c.out.dtype, [&]<class S>() {
    for (int64_t i = 0; i < c.out.count; ++i)
      static_cast<S*>(out)[i] = S(static_cast<typename ComputeOf<S>::type>(i / inner % n));
  });
}

void random_uniform(const Call& c, const void* state, void* out) {
  auto* s = static_cast<const int64_t*>(state);
  auto seed = static_cast<uint64_t>(s[0]), offset = static_cast<uint64_t>(s[1]);
  auto* y = static_cast<float*>(out);
  split((c.out.count + 3) / 4, c.out.count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto block = philox(seed, offset + static_cast<uint64_t>(i));
      for (int64_t k = 0; k < std::min<int64_t>(4, c.out.count - 4 * i); ++k)
        y[4 * i + k] = uniform_from_bits(block[k]);
    }
  });
}

}  // namespace gradcell::cpu

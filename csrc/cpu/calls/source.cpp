// Constants, ranges and random numbers in memory.
#include <bit>
#include <cstring>

#include "base/philox.h"
#include "cpu/calls/elements.h"
#include "ops/source.h"

namespace gradcell::cpu {

namespace {

/// A block of the number is made once and copied from then on, by the library's widest moves.
template <class S>
void fill_part(S* to, int64_t n, S v) {
  constexpr int64_t kBlock = 4096 / sizeof(S);
  const int64_t first = std::min(n, kBlock);
  std::fill_n(to, first, v);
  for (int64_t i = first; i < n; i += kBlock)
    std::memcpy(to + i, to, static_cast<size_t>(std::min(kBlock, n - i)) * sizeof(S));
}

}  // namespace

void fill(const Call& c, const void* const* in, void* out) {
  const uint64_t bits = *static_cast<const uint64_t*>(in[0]);
  by_dtype(c.out.dtype, [&]<class S>() {
    S v = is_floating(c.out.dtype)
              ? S(static_cast<typename ComputeOf<S>::type>(std::bit_cast<double>(bits)))
              : S(static_cast<typename ComputeOf<S>::type>(std::bit_cast<int64_t>(bits)));
    split(c.out.count, c.out.count, [&](int64_t begin, int64_t end) {
      fill_part(static_cast<S*>(out) + begin, end - begin, v);
    });
  });
}

void range(const Call& c, const void* const*, void* out) {
  const auto axis = static_cast<size_t>(c.attributes[0]);
  const int64_t inner = product(c.out.dims, axis + 1, c.out.dims.size()), n = c.out.dims[axis];
  by_dtype(c.out.dtype, [&]<class S>() {
    using C = typename ComputeOf<S>::type;
    S* to = static_cast<S*>(out);
    split(c.out.count / inner, c.out.count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        // Runs of places that follow each other: no division within them.
        const int64_t first = i % n, run = std::min(end - i, n - first);
        if (inner == 1)
          for (int64_t k = 0; k < run; ++k) to[i + k] = S(static_cast<C>(first + k));
        else
          for (int64_t k = 0; k < run; ++k)
            std::fill_n(to + (i + k) * inner, inner, S(static_cast<C>(first + k)));
        i += run;
      }
    });
  });
}

void random_uniform(const Call& c, const void* const* in, void* out) {
  auto* s = static_cast<const int64_t*>(in[0]);
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

// Slices read and written at indices.
#include <cstring>
#include <vector>

#include "cpu/calls/elements.h"

namespace gradcell::cpu {

namespace {

int64_t read_index(const Call& c, const TensorDesc& desc, const void* p, int64_t i, int64_t size) {
  int64_t at = desc.dtype == DType::Int32 ? static_cast<const int32_t*>(p)[i]
                                          : static_cast<const int64_t*>(p)[i];
  require(at >= -size && at < size, ErrorKind::Index, info(c.op).name, ": index ", at,
          " is out of range for an axis of size ", size);
  return at < 0 ? at + size : at;
}

}  // namespace

void take(const Call& c, const void* const* in, void* out) {
  auto axis = static_cast<size_t>(c.attributes[0]);
  const Dims& dims = c.in[0].dims;
  int64_t outer = product(dims, 0, axis), n = dims[axis];
  int64_t bytes =
      product(dims, axis + 1, dims.size()) * static_cast<int64_t>(item_size(c.out.dtype));
  int64_t m = c.in[1].count;
  std::vector<int64_t> at(static_cast<size_t>(m));
  for (int64_t i = 0; i < m; ++i) at[i] = read_index(c, c.in[1], in[1], i, n);
  auto* src = static_cast<const char*>(in[0]);
  auto* dst = static_cast<char*>(out);
  split(outer * m, c.out.count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(dst + i * bytes, src + (i / m * n + at[i % m]) * bytes,
                  static_cast<size_t>(bytes));
  });
}

void scatter(const Call& c, const void* const* in, void* out) {
  auto axis = static_cast<size_t>(c.attributes[0]);
  const Dims& dims = c.out.dims;
  int64_t outer = product(dims, 0, axis), n = dims[axis];
  int64_t inner = product(dims, axis + 1, dims.size()), m = c.in[0].count;
  std::vector<int64_t> at(static_cast<size_t>(m));
  for (int64_t i = 0; i < m; ++i) at[i] = read_index(c, c.in[0], in[0], i, n);
  by_dtype(c.out.dtype, [&]<class S>() {
    using C = typename ComputeOf<S>::type;
    std::vector<C> sums(static_cast<size_t>(n * inner));
    const S* x = static_cast<const S*>(in[1]);
    for (int64_t o = 0; o < outer; ++o) {
      std::fill(sums.begin(), sums.end(), C(0));
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < inner; ++j)
          sums[at[i] * inner + j] =
              static_cast<C>(sums[at[i] * inner + j] + static_cast<C>(x[(o * m + i) * inner + j]));
      for (int64_t i = 0; i < n * inner; ++i) static_cast<S*>(out)[o * n * inner + i] = S(sums[i]);
    }
  });
}

void last_index(const Call& c, const void* const* in, void* out) {
  auto* writer = static_cast<int64_t*>(out);
  std::fill_n(writer, c.out.count, -1);
  for (int64_t i = 0; i < c.in[0].count; ++i)
    writer[read_index(c, c.in[0], in[0], i, c.out.count)] = i;
}

}  // namespace gradcell::cpu

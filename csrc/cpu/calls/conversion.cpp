// Casts, and logic of bools, of whole tensors: elements in the types they are stored in.
#include "cpu/calls/elements.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/kernels/whole_kernels.h"

namespace gradcell::cpu {

namespace {

/// Elements are worth a thread if so many bytes move with them.
template <class F>
void split_bytes(int64_t n, size_t item, F f) {
  split(n, n * static_cast<int64_t>(item) / 4, f);
}

}  // namespace

void convert(const Call& c, const void* const* inputs, void* out) {
  const void* in = inputs[0];
  const DType from = c.in[0].dtype, to = c.out.dtype;
  const size_t item_in = item_size(from), item_out = item_size(to);
  const TileTranspose& t = tile_kernels().transpose;
  split_bytes(c.out.count, item_in + item_out, [&](int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 1024;
    alignas(64) float wide[kBlock];  // narrow floats pass through float32
    const bool widens = is_narrow_float(from) && to != DType::Float32;
    const bool narrows = is_narrow_float(to) && from != DType::Float32;
    const int64_t block = widens || narrows ? kBlock : end - begin;
    for (int64_t i = begin; i < end; i += block) {
      const auto n = static_cast<size_t>(std::min(block, end - i));
      const void* x = static_cast<const char*>(in) + static_cast<size_t>(i) * item_in;
      void* y = static_cast<char*>(out) + static_cast<size_t>(i) * item_out;
      if (is_narrow_float(from)) {
        t.load(x, from, widens ? wide : y, n);
        if (!widens) continue;
        x = wide;
      }
      if (!is_narrow_float(to)) {
        whole_kernels().convert(is_narrow_float(from) ? DType::Float32 : from, to, x, y, n);
        continue;
      }
      if (narrows && !is_narrow_float(from)) {
        whole_kernels().convert(from, DType::Float32, x, wide, n);
        x = wide;
      }
      t.store(x, to, y, n);
    }
  });
}

void logical(const Call& c, const void* const* in, void* out) {
  split_bytes(c.out.count, 2, [&](int64_t begin, int64_t end) {
    auto at = [&](const void* p) { return static_cast<const uint8_t*>(p) + begin; };
    whole_kernels().logical(c.op, at(in[0]), at(c.in.size() > 1 ? in[1] : in[0]),
                            static_cast<uint8_t*>(out) + begin, static_cast<size_t>(end - begin));
  });
}

}  // namespace gradcell::cpu

// Discrete Fourier transforms, by pocketfft.
#include "ops/combining/fourier.h"

#include "cpu/calls/elements.h"

#define POCKETFFT_NO_MULTITHREADING  // lines are split over the pool here
#define POCKETFFT_CACHE_SIZE 16
#include "pocketfft_hdronly.h"

namespace gradcell::cpu {

namespace {

template <class T>
void transform(const std::complex<T>* x, std::complex<T>* y, int64_t outer, int64_t n,
               int64_t inner, bool inverse) {
  constexpr auto item = static_cast<ptrdiff_t>(sizeof(std::complex<T>));
  const pocketfft::stride_t stride{n * inner * item, inner * item, item};
  auto part = [&](int64_t at, int64_t lines, int64_t beside) {
    const pocketfft::shape_t shape{static_cast<size_t>(lines), static_cast<size_t>(n),
                                   static_cast<size_t>(beside)};
    pocketfft::c2c(shape, stride, stride, {1}, !inverse, x + at, y + at, T(1));
  };
  const int64_t work = 8 * outer * n * inner;
  if (outer >= inner)
    split(outer, work, [&](int64_t b, int64_t e) { part(b * n * inner, e - b, inner); });
  else
    split(inner, work, [&](int64_t b, int64_t e) { part(b, outer, e - b); });
}

}  // namespace

void fourier(const Call& c, const void* const* inputs, void* out) {
  const void* in = inputs[0];
  const auto a = decode<FourierAttributes>(c.attributes);
  const auto axis = static_cast<size_t>(a.axis);
  const Dims& dims = c.out.dims;
  const int64_t outer = product(dims, 0, axis), inner = product(dims, axis + 1, dims.size() - 1);
  auto run = [&]<class T>(T) {
    transform(static_cast<const std::complex<T>*>(in), static_cast<std::complex<T>*>(out), outer,
              dims[axis], inner, a.inverse);
  };
  c.out.dtype == DType::Float32 ? run(float()) : run(double());
}

}  // namespace gradcell::cpu

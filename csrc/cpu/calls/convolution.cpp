// Convolutions and their adjoints: of floats by shifted products, of integers term by term.
#include "cpu/products/convolution.h"

#include "cpu/calls/elements.h"

namespace gradcell::cpu {

namespace {

/// Calls f(element of y, of w, of x) for every term that image n, group g, channels o and c of it,
/// and place p of the result have a part in.
template <class F>
void terms(const ConvolutionSizes& s, const Dims& p, F f) {
  Dims kernel;
  for (const WindowAxis& a : s.axes) kernel.push_back(a.kernel);
  for_each_index(kernel, [&](int64_t u, const Dims& at) {
    if (const int64_t q = element_read(s.axes, p, at); q >= 0) f(u, q);
  });
}

template <class S>
void integers(ConvolutionPart part, const ConvolutionSizes& s, const S* a, const S* b, S* out,
              int64_t count) {
  std::vector<int64_t> sums(static_cast<size_t>(count));
  const int64_t X = s.inner(&WindowAxis::input), Y = s.inner(&WindowAxis::output),
                T = s.inner(&WindowAxis::kernel);
  Dims places;
  for (const WindowAxis& axis : s.axes) places.push_back(axis.output);
  for (int64_t n = 0; n < s.images; ++n)
    for (int64_t o = 0; o < s.groups * s.outputs; ++o)
      for_each_index(places, [&](int64_t p, const Dims& at) {
        const int64_t y = (n * s.groups * s.outputs + o) * Y + p;
        terms(s, at, [&](int64_t u, int64_t q) {
          for (int64_t c = 0; c < s.inputs; ++c) {
            const int64_t w = (o * s.inputs + c) * T + u;
            const int64_t x = ((n * s.groups + o / s.outputs) * s.inputs + c) * X + q;
            if (part == ConvolutionPart::Output)
              sums[static_cast<size_t>(y)] += static_cast<int64_t>(a[x]) * b[w];
            else if (part == ConvolutionPart::Input)
              sums[static_cast<size_t>(x)] += static_cast<int64_t>(a[y]) * b[w];
            else
              sums[static_cast<size_t>(w)] += static_cast<int64_t>(a[x]) * b[y];
          }
        });
      });
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<S>(sums[static_cast<size_t>(i)]);
}

}  // namespace

void convolve(const Call& c, const void* const* in, void* out) {
  const ConvolutionPart part = convolution_part(c.op);
  const auto attributes = decode<ConvolutionAttributes>(c.attributes);
  require(attributes.last == 0, ErrorKind::NotImplemented, info(c.op).name,
          ": channels that come last are for plans of a GPU");
  const ConvolutionSizes sizes =
      convolution_sizes(c.op, c.in[0].dims, c.in[1].dims, c.out.dims, attributes);
  by_dtype(c.out.dtype, [&]<class S>() {
    using C = typename ComputeOf<S>::type;
    if constexpr (std::is_floating_point_v<C>)
      convolution<C>(part, sizes, c.out.dtype, in[0], in[1], out);
    else
      integers(part, sizes, static_cast<const S*>(in[0]), static_cast<const S*>(in[1]),
               static_cast<S*>(out), c.out.count);
  });
}

}  // namespace gradcell::cpu

// The family of weighted sums of elements at places: the three partial derivatives of one trilinear
// form,
//
//   sum of y[n, c, i] w[n, k, i] x[n, c, places[n, k, i]],
//
// over n, channels c, results i and the k places of each, which all channels share; -1 is the place
// of a zero. By y it is what a sampler of images gives (x being its pixels, w those of the
// neighbours' weights), by x it adds y up at the places, by w it gives the weights' gradient; so
// each one's adjoints are the other two.
#pragma once

#include "ir/spec.h"

namespace gradcell {

/// Which of the form's three tensors a node of the family is.
enum class SamplePart : uint8_t { Result, Source, Weight };
SamplePart sample_part(Op op);

/// Of a call's or node's inputs (a factor, places, a factor) and result.
struct SampleSizes {
  int64_t batch, channels, size;  ///< of x
  int64_t places, results;        ///< k, i
};
SampleSizes sample_sizes(Op op, const Dims& first, const Dims& places, const Dims& out);

}  // namespace gradcell

// Convolutions of float tensors and their adjoints, as products whose right factor is never made:
// each thread copies a band of an image with the zeros around it, and the kernel's elements read
// that copy where they stand.
#pragma once

#include "base/types.h"
#include "ops/combining/convolution.h"

namespace gradcell::cpu {

/// out from a and b, dense and row-major, as the node with these sizes: T is float or double.
/// `stored`: what out and the image (a; the result's gradient of ConvolutionWeight too) hold, T's
/// dtype or for float a half type. Runs on all threads; the result does not depend on their number.
template <class T>
void convolution(ConvolutionPart part, const ConvolutionSizes& sizes, DType stored, const void* a,
                 const void* b, void* out);

extern template void convolution<float>(ConvolutionPart, const ConvolutionSizes&, DType,
                                        const void*, const void*, void*);
extern template void convolution<double>(ConvolutionPart, const ConvolutionSizes&, DType,
                                         const void*, const void*, void*);

}  // namespace gradcell::cpu

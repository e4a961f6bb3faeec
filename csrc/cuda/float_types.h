// What libraries, trials and estimates for a GPU need to know of each float. A new one is a row
// here, or it does not compile.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "base/types.h"

namespace gradcell::cuda {

/// How products are computed: by fused multiply-adds or by tensor cores, float32 in three parts or
/// in one that is rounded.
enum class ProductUnit : uint8_t { Fma, Tf32x3, Tf32, BFloat, Half };

struct FloatType {
  DType dtype;
  int cublas, cudnn, nccl;  ///< cudaDataType, cudnnDataType_t and ncclDataType_t
  int first_with_cores;     ///< compute capability from which on tensor cores multiply them
  int first_with_library;   ///< and from which on cuDNN has convolutions of them
  ProductUnit unit;         ///< for exact products
  bool wide;                ///< what is a number of float32 is about the same one of this
  uint64_t half, varying;   ///< the bits of 0.5; those with which it is any number up to 1, signed
};

inline constexpr FloatType kFloatTypes[] = {
    {DType::Float64, 1, 1, 8, 80, 0, ProductUnit::Fma, true, 0x3FE0000000000000,
     0x800FFFFFFFFFFFFF},
    {DType::Float32, 0, 0, 7, 80, 0, ProductUnit::Tf32x3, true, 0x3F000000, 0x807FFFFF},
    {DType::Float16, 2, 2, 6, 75, 0, ProductUnit::Half, false, 0x3800, 0x83FF},
    {DType::BFloat16, 14, 9, 9, 80, 80, ProductUnit::BFloat, true, 0x3F00, 0x807F},
};

/// Null: it is no float.
constexpr const FloatType* find_float_type(DType t) {
  for (const FloatType& row : kFloatTypes)
    if (row.dtype == t) return &row;
  return nullptr;
}

static_assert([] {
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto dtype = static_cast<DType>(t);
    bool found = false;  // (with sanitizers GCC 12 does not compare addresses at compile time)
    for (const FloatType& row : kFloatTypes) found |= row.dtype == dtype;
    if ((is_floating(dtype) && !is_complex(dtype)) != found) return false;
  }
  return true;
}());

/// Of a float.
inline const FloatType& float_type(DType t) {
  const FloatType* row = find_float_type(t);
  require(row != nullptr, ErrorKind::NotImplemented, "a GPU's library was given ", name(t),
          " for a float");
  return *row;
}

}  // namespace gradcell::cuda

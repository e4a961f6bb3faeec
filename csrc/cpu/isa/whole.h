// What the files of WholeKernels share: dtypes as types, and the parts of the table that are
// another file's.
#pragma once

#include "cpu/kernels/whole_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {

// elements.cpp: what looks at one element at a time.
void convert(DType from, DType to, const void* x, void* y, size_t n);
void logical(Op op, const uint8_t* a, const uint8_t* b, uint8_t* y, size_t n);
void bits(Bits what, DType type, const void* a, bool many_a, const void* b, bool many_b, void* y,
          size_t n);
int64_t select(DType type, const void* x, size_t n, int64_t size, int64_t low, int64_t count,
               int32_t* found, int32_t* place);
bool places(DType type, const void* at, size_t n, int64_t size, int64_t* to);
void copy_apart(size_t item, const void* x, ptrdiff_t step, void* y, size_t n);

namespace {

/// f.operator()<type>(); the half types are none of these.
template <class F>
auto by_type(DType t, F f) {
  switch (t) {
    case DType::Int8:
      return f.template operator()<int8_t>();
    case DType::Int16:
      return f.template operator()<int16_t>();
    case DType::Int32:
      return f.template operator()<int32_t>();
    case DType::Int64:
      return f.template operator()<int64_t>();
    case DType::UInt16:
      return f.template operator()<uint16_t>();
    case DType::UInt32:
      return f.template operator()<uint32_t>();
    case DType::UInt64:
      return f.template operator()<uint64_t>();
    case DType::Float32:
      return f.template operator()<float>();
    case DType::Float64:
      return f.template operator()<double>();
    default:
      return f.template operator()<uint8_t>();
  }
}

}  // namespace
}  // namespace gradcell::cpu::GRADCELL_ISA

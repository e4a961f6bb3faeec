// Element types and their properties. Everything below csrc/ speaks of dtypes through this file.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/half.h"

namespace gradcell {

/// X(DType, storage, Compute, name, as MindSpore prints it), a row for each element type. The order
/// is MindSpore's promotion order within each family. Bool is what stores one, as whoever expands
/// the table declares it. (uint64 computes as int64, which is right modulo 2^64;
/// ops/elementwise.cpp has the rest.)
#define GRADCELL_DTYPES(X)                         \
  X(Bool, Bool, I32, "bool", "Bool")               \
  X(UInt8, uint8_t, I32, "uint8", "UInt8")         \
  X(Int8, int8_t, I32, "int8", "Int8")             \
  X(Int16, int16_t, I32, "int16", "Int16")         \
  X(Int32, int32_t, I32, "int32", "Int32")         \
  X(Int64, int64_t, I64, "int64", "Int64")         \
  X(UInt16, uint16_t, I32, "uint16", "UInt16")     \
  X(UInt32, uint32_t, I64, "uint32", "UInt32")     \
  X(UInt64, uint64_t, I64, "uint64", "UInt64")     \
  X(Float16, Half, F32, "float16", "Float16")      \
  X(BFloat16, Bfloat, F32, "bfloat16", "BFloat16") \
  X(Float32, float, F32, "float32", "Float32")     \
  X(Float64, double, F64, "float64", "Float64")

/// X(DType, its word in names of CUDA text, DLPack's type code): floats that are stored in fewer
/// bits than they are computed in. Each has a class in base/half.h, and in cuda/write/prelude.cuh
/// gc_float_to_WORD, gc_WORD_to_float, gc_round_WORD and gc_as_WORD. What engines have beyond that
/// (matrix units, conversions in vectors) they have for the dtypes that they name.
#define GRADCELL_NARROW_FLOATS(X) \
  X(Float16, "half", 2)           \
  X(BFloat16, "bfloat", 4)

/// X(DType, its parts' DType, name, as MindSpore prints it): pairs of numbers, which graphs hold
/// and engines do not see (csrc/ops/complex.h).
#define GRADCELL_COMPLEX_DTYPES(X)                \
  X(Complex64, Float32, "complex64", "Complex64") \
  X(Complex128, Float64, "complex128", "Complex128")

#define GRADCELL_X(Name, ...) Name,
enum class DType : uint8_t { GRADCELL_DTYPES(GRADCELL_X) GRADCELL_COMPLEX_DTYPES(GRADCELL_X) };
#undef GRADCELL_X

/// The type an engine computes in: half types compute as float and are rounded after each op, small
/// integers and bool as int32 and are wrapped after each op.
enum class Compute : uint8_t { F32, F64, I32, I64 };
constexpr size_t compute_size(Compute c) { return c == Compute::F32 || c == Compute::I32 ? 4 : 8; }

/// f(a value of that type).
template <class F>
constexpr decltype(auto) by_compute(Compute c, F f) {
  switch (c) {
    case Compute::F32:
      return f(float());
    case Compute::F64:
      return f(double());
    case Compute::I32:
      return f(int32_t());
    default:
      return f(int64_t());
  }
}

struct DTypeInfo {
  std::string_view name;     ///< as in IR text and errors: "float32"
  std::string_view printed;  ///< as MindSpore prints it: "Float32"
  uint8_t size;              ///< bytes an element
  Compute compute;           ///< of complex numbers: their parts'
  bool floating;             ///< derivatives exist: complex dtypes too
  bool complex;
};

inline constexpr auto kDTypes = [] {
  using Bool [[maybe_unused]] = uint8_t;
#define GRADCELL_X(Name, storage, compute, name, printed)                                      \
  DTypeInfo{name, printed, sizeof(storage), Compute::compute, Compute::compute < Compute::I32, \
            false},
  constexpr std::array kReal{GRADCELL_DTYPES(GRADCELL_X)};
#undef GRADCELL_X
  constexpr auto of = [kReal](DType part) { return kReal[static_cast<size_t>(part)]; };
  std::array<DTypeInfo, kReal.size() + 2> all{};
  std::copy(kReal.begin(), kReal.end(), all.begin());
#define GRADCELL_X(Name, part, name, printed)                                            \
  all[static_cast<size_t>(DType::Name)] = {                                              \
      name, printed, narrow<uint8_t>(2 * of(DType::part).size), of(DType::part).compute, \
      true, true};
  GRADCELL_COMPLEX_DTYPES(GRADCELL_X)
#undef GRADCELL_X
  return all;
}();
inline constexpr int kDTypeCount = narrow<int>(kDTypes.size());

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<size_t>(t)]; }
constexpr size_t item_size(DType t) { return info(t).size; }
constexpr Compute compute_type(DType t) { return info(t).compute; }
/// Whether elements are stored as they are computed with.
constexpr bool is_compute_type(DType t) { return item_size(t) == compute_size(compute_type(t)); }
constexpr bool is_floating(DType t) { return info(t).floating; }
constexpr bool is_narrow_float(DType t) {
  return is_floating(t) && item_size(t) < compute_size(compute_type(t));
}
constexpr bool is_complex(DType t) { return info(t).complex; }
constexpr bool is_unsigned(DType t) {
  return t == DType::UInt8 || t == DType::UInt16 || t == DType::UInt32 || t == DType::UInt64;
}
/// The dtype of a complex number's parts; that of others is their own.
constexpr DType part_dtype(DType t) {
  return t == DType::Complex64 ? DType::Float32 : t == DType::Complex128 ? DType::Float64 : t;
}
constexpr std::string_view name(DType t) { return info(t).name; }

struct NarrowFloat {
  DType dtype;
  const char* word;
  uint8_t dlpack;
};
inline constexpr NarrowFloat kNarrowFloats[] = {
#define GRADCELL_X(Name, word, dlpack) {DType::Name, word, dlpack},
    GRADCELL_NARROW_FLOATS(GRADCELL_X)
#undef GRADCELL_X
};
/// Of a dtype that is one.
constexpr const NarrowFloat& narrow_float(DType t) {
  const NarrowFloat* row = kNarrowFloats;
  while (row->dtype != t) ++row;
  return *row;
}

}  // namespace gradcell

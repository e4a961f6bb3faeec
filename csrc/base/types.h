// Element types and their properties. Everything below csrc/ speaks of dtypes through this file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradcell {

// The order is MindSpore's promotion order within each family.
enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64
};

inline constexpr int kDTypeCount = 10;

struct DTypeInfo {
  std::string_view name;     ///< as printed in IR text and errors: "float32"
  std::string_view printed;  ///< as MindSpore prints it: "Float32"
  uint8_t size;              ///< bytes an element
  bool floating;
};

inline constexpr std::array<DTypeInfo, kDTypeCount> kDTypes{{
    {"bool", "Bool", 1, false},
    {"uint8", "UInt8", 1, false},
    {"int8", "Int8", 1, false},
    {"int16", "Int16", 2, false},
    {"int32", "Int32", 4, false},
    {"int64", "Int64", 8, false},
    {"float16", "Float16", 2, true},
    {"bfloat16", "BFloat16", 2, true},
    {"float32", "Float32", 4, true},
    {"float64", "Float64", 8, true},
}};

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<size_t>(t)]; }
constexpr bool is_floating(DType t) { return info(t).floating; }
constexpr size_t item_size(DType t) { return info(t).size; }
constexpr std::string_view name(DType t) { return info(t).name; }

}  // namespace gradcell

#include "cuda/write/expressions.h"

#include <cctype>

namespace gradcell::cuda {

const char* stored_type(DType t) {
  static constexpr std::array<const char*, kDTypeCount> kTypes{"unsigned char",
                                                               "unsigned char",
                                                               "signed char",
                                                               "short",
                                                               "int",
                                                               "long long",
                                                               "unsigned short",
                                                               "unsigned",
                                                               "unsigned long long",
                                                               "unsigned short",
                                                               "unsigned short",
                                                               "float",
                                                               "double"};
  return kTypes[static_cast<size_t>(t)];
}

const char* type_name(Compute c) {
  static constexpr const char* kTypes[] = {"float", "double", "int", "long long"};
  return kTypes[static_cast<size_t>(c)];
}

std::string decoded(DType t, const std::string& stored) {
  switch (t) {
    case DType::Bool:
      return stored + " != 0";
    case DType::Float16:
      return "gc_half_to_float(" + stored + ")";
    case DType::BFloat16:
      return "gc_bfloat_to_float(" + stored + ")";
    default:
      return stored;
  }
}

std::string encoded(DType t, const std::string& value) {
  switch (t) {
    case DType::Bool:
      return value + " != 0";
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::UInt16:
    case DType::UInt32:
      return "(" + std::string(stored_type(t)) + ")" + value;
    case DType::Float16:
      return "gc_float_to_half(" + value + ")";
    case DType::BFloat16:
      return "gc_float_to_bfloat(" + value + ")";
    default:
      return value;
  }
}

std::string narrowed(DType t, const std::string& value) {
  switch (t) {
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::UInt16:
    case DType::UInt32:
      return "(" + std::string(stored_type(t)) + ")(" + value + ")";
    case DType::Float16:
      return "gc_round_half(" + value + ")";
    case DType::BFloat16:
      return "gc_round_bfloat(" + value + ")";
    default:
      return value;
  }
}

std::string converted(DType from, DType to, const std::string& value) {
  if (to == DType::Bool) return value + " != 0";
  std::string text = value;
  if (is_floating(from) && !is_floating(to))
    text = (compute_type(to) == Compute::I64 ? "gc_to_long(" : "gc_to_int(") + value + ")";
  else if (compute_type(from) != compute_type(to))
    text = "(" + std::string(type_name(compute_type(to))) + ")" + value;
  return narrowed(to, text);
}

std::string applied(Op op, const char* T, const std::array<std::string, 3>& operands) {
  const OpInfo& row = info(op);
  const char* names = row.kind == OpKind::Unary || row.kind == OpKind::Predicate ? "x"
                      : row.kind == OpKind::Ternary                              ? "cab"
                                                                                 : "ab";
  std::string type = std::string(T) == "long long" ? "gc_long" : T;  // a cast T(0) needs one word
  std::string out;
  for (const char* p = row.forward; *p;) {
    if (!std::isalpha(static_cast<unsigned char>(*p)) && *p != '_') {
      out += *p++;
      continue;
    }
    std::string word;
    while (std::isalnum(static_cast<unsigned char>(*p)) || *p == '_') word += *p++;
    size_t k = word.size() == 1 ? std::string(names).find(word[0]) : std::string::npos;
    out += k != std::string::npos ? operands[k] : word == "T" ? type : word;
  }
  return out;
}

}  // namespace gradcell::cuda

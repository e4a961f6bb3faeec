#include "cuda/write/expressions.h"

#include <bit>
#include <cctype>
#include <charconv>

#include "base/element.h"

namespace gradcell::cuda {

const char* stored_type(DType t) {
  if (is_floating(t) && is_compute_type(t)) return type_name(compute_type(t));
  static constexpr const char* kSigned[] = {"signed char", "short", "int", "long long"};
  static constexpr const char* kUnsigned[] = {"unsigned char", "unsigned short", "unsigned",
                                              "unsigned long long"};
  const bool bits = t == DType::Bool || is_unsigned(t) || is_floating(t);
  return (bits ? kUnsigned : kSigned)[std::countr_zero(item_size(t))];
}

const char* type_name(Compute c) {
  static constexpr const char* kTypes[] = {"float", "double", "int", "long long"};
  return kTypes[static_cast<size_t>(c)];
}

std::string decoded(DType t, const std::string& stored) {
  if (t == DType::Bool) return stored + " != 0";
  if (is_narrow_float(t)) return str("gc_", narrow_float(t).word, "_to_float(", stored, ")");
  // (Smaller integers are promoted; of an unsigned one no overload is the nearest.)
  if (t == DType::UInt32 || t == DType::UInt64) return "(long long)" + stored;
  return stored;
}

/// Whether registers hold numbers that the dtype does not: they are wrapped.
static bool wraps(DType t) { return !is_floating(t) && t != DType::Bool && !is_compute_type(t); }

std::string encoded(DType t, const std::string& value) {
  if (t == DType::Bool) return value + " != 0";
  if (is_narrow_float(t)) return str("gc_float_to_", narrow_float(t).word, "(", value, ")");
  return wraps(t) ? str("(", stored_type(t), ")", value) : value;
}

std::string narrowed(DType t, const std::string& value) {
  if (is_narrow_float(t)) return str("gc_round_", narrow_float(t).word, "(", value, ")");
  return wraps(t) ? str("(", stored_type(t), ")(", value, ")") : value;
}

std::string end_of_dtype(DType t, bool least) {
  const std::string type = type_name(compute_type(t));
  if (is_floating(t)) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, end_of<double>(t, least));
    return str("(", type, ")", std::string(text, end.ptr));
  }
  if (t == DType::Int64 && least) return "gc_limits<long long>::low()";
  return str("(", type, ")",
             t == DType::UInt64 ? static_cast<int64_t>(end_of<uint64_t>(t, least))
                                : end_of<int64_t>(t, least),
             "ll");
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

/// Sums and products of integers wrap: of signed ones a compiler may suppose that they do not.
static bool wraps(Op op) {
  return op == Op::Neg || op == Op::Square || op == Op::Add || op == Op::Sub || op == Op::Mul;
}

std::string applied(Op op, const char* T, const std::array<std::string, 3>& operands) {
  const OpInfo& row = info(op);
  const std::string_view computed = T;
  const bool modular = wraps(op) && (computed == "int" || computed == "long long");
  const std::string natural = modular ? str("(unsigned ", T, ")") : "";
  const char* names = row.kind == OpKind::Unary || row.kind == OpKind::Predicate ? "x"
                      : row.kind == OpKind::Ternary                              ? "cab"
                                                                                 : "ab";
  std::string type = std::string(T) == "long long" ? "gc_long" : T;  // a cast T(0) needs one word
  std::string out;
  for (const char* p = row.forward; *p;) {
    if (!std::isalpha(low_bits<unsigned char>(*p)) && *p != '_') {
      out += *p++;
      continue;
    }
    std::string word;
    while (std::isalnum(low_bits<unsigned char>(*p)) || *p == '_') word += *p++;
    size_t k = word.size() == 1 ? std::string(names).find(word[0]) : std::string::npos;
    out += k != std::string::npos ? natural + operands[k] : word == "T" ? type : word;
  }
  return modular ? str("(", T, ")(", out, ")") : out;
}

}  // namespace gradcell::cuda

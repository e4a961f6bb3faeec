// The op table's properties, read from ops.def.
#include <string_view>

#include "ir/builder.h"

namespace gradcell {

namespace {

constexpr bool is_nondiff(const char* adjoint) { return std::string_view(adjoint) == "NONDIFF"; }

constexpr TangentClass tangent_class(std::string_view name) {
  if (name == "SOURCE") return TangentClass::Source;
  if (name == "LINEAR") return TangentClass::Linear;
  if (name == "BILINEAR") return TangentClass::Bilinear;
  if (name == "OWN") return TangentClass::Own;
  return TangentClass::NonDiff;
}

constexpr OpInfo kTable[] = {
#define UNARY(Name, fn, cls, forward, adjoint)                                                  \
  {#Name,   #fn, OpKind::Unary, OpClass::cls, TangentClass::Elementwise, !is_nondiff(#adjoint), \
   #forward},
#define BINARY(Name, fn, cls, forward, da, db) \
  {#Name, #fn, OpKind::Binary, OpClass::cls, TangentClass::Elementwise, !is_nondiff(#da), #forward},
#define COMPARE(Name, fn, forward) \
  {#Name, #fn, OpKind::Compare, OpClass::Number, TangentClass::NonDiff, false, #forward},
#define PREDICATE(Name, fn, forward) \
  {#Name, #fn, OpKind::Predicate, OpClass::Number, TangentClass::NonDiff, false, #forward},
#define TERNARY(Name, fn, forward, da, db) \
  {#Name, #fn, OpKind::Ternary, OpClass::None, TangentClass::Elementwise, true, #forward},
#define STRUCTURED(Name, fn, tangent)                \
  {#Name,                                            \
   #fn,                                              \
   OpKind::Structured,                               \
   OpClass::None,                                    \
   tangent_class(#tangent),                          \
   tangent_class(#tangent) != TangentClass::NonDiff, \
   ""},
#include "ir/ops.def"
#include "ir/undef.h"
};

}  // namespace

const OpInfo& info(Op op) { return kTable[static_cast<size_t>(op)]; }

}  // namespace gradcell

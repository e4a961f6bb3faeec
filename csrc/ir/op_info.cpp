// The op table's properties, read from ops.def.
#include "ir/op_info.h"

#include <string_view>

namespace gradcell {

namespace {

constexpr bool has_rule(std::string_view adjoint) { return adjoint != "NONDIFF"; }

constexpr OpInfo kTable[] = {
#define UNARY(Name, fn, cls, forward, adjoint) \
  {#Name, #fn, OpKind::Unary, OpClass::cls, has_rule(#adjoint), #forward},
#define BINARY(Name, fn, cls, forward, da, db) \
  {#Name, #fn, OpKind::Binary, OpClass::cls, has_rule(#da), #forward},
#define COMPARE(Name, fn, forward) {#Name, #fn, OpKind::Compare, OpClass::Number, false, #forward},
#define PREDICATE(Name, fn, forward) \
  {#Name, #fn, OpKind::Predicate, OpClass::Number, false, #forward},
#define TERNARY(Name, fn, forward, da, db) \
  {#Name, #fn, OpKind::Ternary, OpClass::None, true, #forward},
#define STRUCTURED(Name, fn) {#Name, #fn, OpKind::Structured, OpClass::None, true, ""},
#include "ir/rows.h"
};

}  // namespace

const OpInfo& info(Op op) { return kTable[static_cast<size_t>(op)]; }

}  // namespace gradcell

// The op table's properties, read from ops.def.
#include "ir/op_info.h"

#include <string_view>

namespace gradcell {

namespace {

constexpr bool has_rule(std::string_view adjoint) { return adjoint != "NONDIFF"; }

constexpr OpInfo kTable[] = {
#define UNARY(Name, fn, cls, cost, forward, adjoint) \
  {#Name, #fn, OpKind::Unary, OpClass::cls, OpCost::cost, has_rule(#adjoint), #forward},
#define BINARY(Name, fn, cls, cost, forward, da, db) \
  {#Name, #fn, OpKind::Binary, OpClass::cls, OpCost::cost, has_rule(#da), #forward},
#define COMPARE(Name, fn, forward) \
  {#Name, #fn, OpKind::Compare, OpClass::Number, OpCost::Arithmetic, false, #forward},
#define PREDICATE(Name, fn, forward) \
  {#Name, #fn, OpKind::Predicate, OpClass::Number, OpCost::Arithmetic, false, #forward},
#define TERNARY(Name, fn, forward, da, db) \
  {#Name, #fn, OpKind::Ternary, OpClass::None, OpCost::Arithmetic, true, #forward},
#define STRUCTURED(Name, fn) \
  {#Name, #fn, OpKind::Structured, OpClass::None, OpCost::Arithmetic, true, ""},
#include "ir/rows.h"
};

}  // namespace

const OpInfo& info(Op op) { return kTable[static_cast<size_t>(op)]; }

}  // namespace gradcell

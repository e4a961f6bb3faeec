// A graph value with operators: what the adjoint texts of ops.def are written in. A null value is a
// structural zero: it is never multiplied or added, it just stays zero.
#pragma once

#include "ops/elementwise.h"

namespace gradcell::symbolic {

struct Value {
  Graph* graph = nullptr;
  NodeId id = kNoNode;
  explicit operator bool() const { return graph != nullptr; }
  const Dims& dims() const { return graph->dims(id); }
  DType dtype() const { return graph->dtype(id); }
};

inline Value wrap(Graph& g, NodeId id) { return {&g, id}; }
inline Value full_like(Value x, double v) {
  return {x.graph, constant(*x.graph, x.dtype(), Dims(x.dims()), v)};
}
inline Value zeros_like(Value x) { return full_like(x, 0); }
inline Value ones_like(Value x) { return full_like(x, 1); }

#define NAMES_ALONE
#define UNARY(Name, fn, ...) \
  inline Value fn(Value x) { return {x.graph, unary(*x.graph, Op::Name, x.id)}; }
#define BINARY(Name, fn, ...)                                                                     \
  inline Value fn(Value a, Value b) { return {a.graph, binary(*a.graph, Op::Name, a.id, b.id)}; } \
  inline Value fn(Value a, double b) { return fn(a, full_like(a, b)); }                           \
  inline Value fn(double a, Value b) { return fn(full_like(b, a), b); }
#define TERNARY(Name, fn, ...)                            \
  inline Value fn(Value c, Value a, Value b) {            \
    return {a.graph, select(*a.graph, c.id, a.id, b.id)}; \
  }
#include "ir/rows.h"

inline Value operator-(Value x) { return neg(x); }
#define GRADCELL_OPERATOR(symbol, fn)                                  \
  inline Value operator symbol(Value a, Value b) { return fn(a, b); }  \
  inline Value operator symbol(Value a, double b) { return fn(a, b); } \
  inline Value operator symbol(double a, Value b) { return fn(a, b); }
GRADCELL_OPERATOR(+, add)
GRADCELL_OPERATOR(-, sub)
GRADCELL_OPERATOR(*, mul)
GRADCELL_OPERATOR(/, div)
GRADCELL_OPERATOR(==, equal)
GRADCELL_OPERATOR(!=, not_equal)
GRADCELL_OPERATOR(<, less)
GRADCELL_OPERATOR(<=, less_equal)
GRADCELL_OPERATOR(>, greater)
GRADCELL_OPERATOR(>=, greater_equal)
#undef GRADCELL_OPERATOR

}  // namespace gradcell::symbolic

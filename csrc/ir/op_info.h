// What the op table says of each op.
#pragma once

#include "ir/graph.h"

namespace gradcell {

enum class OpKind : uint8_t { Unary, Binary, Compare, Predicate, Ternary, Structured };
enum class OpClass : uint8_t { Float, Number, Bool, None };

/// What an element takes, as plan/costs.h has it: a square root is a Division, an exponential
/// Short, a sine a Function, a power Long. Moved, Lookup and Random are those of forms: an element
/// from another place, from a place that an index names, a random number.
enum class OpCost : uint8_t {
  Arithmetic,
  Division,
  InverseRoot,
  Short,
  Function,
  Long,
  Moved,
  Lookup,
  Random,
};

struct OpInfo {
  const char* name;      ///< "Sin"
  const char* function;  ///< "sin": the Python function, the CUDA symbol
  OpKind kind;
  OpClass cls;
  OpCost cost;          ///< of an elementwise op
  bool differentiable;  ///< a row's adjoint is not NONDIFF; a structured op's spec knows
  const char* forward;  ///< the row's text
};

const OpInfo& info(Op op);
/// Whether a op b is b op a to the last bit (the builder then orders the inputs).
inline bool commutes(Op op) { return op == Op::Add || op == Op::Mul; }
inline bool is_elementwise(Op op) { return info(op).kind != OpKind::Structured; }

}  // namespace gradcell

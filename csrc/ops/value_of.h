// "This value there": functions that need a choice between formulas at special points, such as a
// power at 0, a length of 0, or numbers whose squares overflow. The nodes of a choice have the
// right value, but their derivatives are those of the formula that was chosen, which at a single
// point may be anything. So a node ValueOf marks the value as that of a function of a list
// (value_of.cpp), whose derivatives are functions of the list again: a derivative of any order is
// right at special points if each function's value is. The list also has functions whose
// derivatives lose digits if they are those of what computes the value. Plans know nothing of the
// marks, which go when a graph is cleaned.
#pragma once

#include "ops/value.h"

namespace gradcell {

/// Of a and b, and of whole numbers m and n.
enum class Function : int64_t {
  Power,       ///< what m derivatives by a and n by b make of a^b
  Hypot,       ///< sqrt(a^2 + b^2)
  Direction,   ///< a / hypot(a, b): 0 at 0
  Turn,        ///< b / (a^2 + b^2)
  Root,        ///< sqrt(a); all derivatives at 0 are taken to be 0, as a length has them
  XLogY,       ///< a log(b): 0 where a is 0 and b is 0 or infinite
  Quotient,    ///< a / b^n: 0 where both are 0
  LowerGamma,  ///< the integral of t^b log(t)^n e^-t from 0 to a, at a = 0
  Complement,  ///< 1 - a^2
  Difference,  ///< a^2 - b^2
  Bell,        ///< 1 / (1 + a^2)
  Slant,       ///< 1 / sqrt(1 + a^2)
  Count,
};

struct ValueOfAttributes {
  int64_t function, m, n;
  static constexpr auto fields() {
    return std::tuple{Field{"function", AttributeKind::Size, &ValueOfAttributes::function},
                      Field{"m", AttributeKind::Size, &ValueOfAttributes::m},
                      Field{"n", AttributeKind::Size, &ValueOfAttributes::n}};
  }
};

/// The node's function if it is marked as a value of one; else Count.
Function function_of(const Graph& g, NodeId id);

namespace symbolic {

/// Root, Complement, Bell and Slant have no b.
Value value_of(Function f, Value a, Value b, int m = 0, int n = 0);
inline Value power(Value a, Value b, int m, int n) { return value_of(Function::Power, a, b, m, n); }
inline Value hypot(Value a, Value b) { return value_of(Function::Hypot, a, b); }
inline Value direction(Value a, Value b) { return value_of(Function::Direction, a, b); }
inline Value turn(Value a, Value b) { return value_of(Function::Turn, a, b); }
inline Value difference(Value a, Value b) { return value_of(Function::Difference, a, b); }
inline Value complement(Value a) { return value_of(Function::Complement, a, {}); }
inline Value slant(Value a) { return value_of(Function::Slant, a, {}); }
inline Value bell(Value a) { return value_of(Function::Bell, a, {}); }

/// A power of two that brings x and y to where squares neither over- nor underflow: 1 for most
/// numbers. Its derivative is zero, which is exact: what is computed does not depend on it.
Value scale(Value x, Value y);

}  // namespace symbolic

}  // namespace gradcell

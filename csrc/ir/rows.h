// Expands ops.def (which see) by the macros that its includer has defined, and ends them. Of those
// that are not defined, ROW stands for each kind of elementwise row; without it a comparison is a
// BINARY row and a predicate a UNARY one, both with no derivative, and other rows give nothing.
//
// With NAMES_ALONE rows have their first two columns: what asks for no more is not compiled again
// when a formula changes. csrc/CMakeLists.txt writes them.
#ifdef ROW
#define UNARY ROW
#define BINARY ROW
#define COMPARE ROW
#define PREDICATE ROW
#define TERNARY ROW
#endif
#ifndef UNARY
#define UNARY(...)
#endif
#ifndef BINARY
#define BINARY(...)
#endif
#ifndef COMPARE
#define COMPARE(Name, fn, forward) BINARY(Name, fn, Number, Arithmetic, forward, NONDIFF, NONDIFF)
#endif
#ifndef PREDICATE
#define PREDICATE(Name, fn, forward) UNARY(Name, fn, Number, Arithmetic, forward, NONDIFF)
#endif
#ifndef TERNARY
#define TERNARY(...)
#endif
#ifndef STRUCTURED
#define STRUCTURED(...)
#endif
#ifdef NAMES_ALONE
#include "op_names.def"
#else
#include "ir/ops.def"
#endif
#undef NAMES_ALONE
#undef ROW
#undef UNARY
#undef BINARY
#undef COMPARE
#undef PREDICATE
#undef TERNARY
#undef STRUCTURED

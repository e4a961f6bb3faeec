// Ends an expansion of ops.def (which see).
#undef UNARY
#undef BINARY
#undef COMPARE
#undef PREDICATE
#undef TERNARY
#undef STRUCTURED

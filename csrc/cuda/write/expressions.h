// Names of types in kernels, and a row's text with its parameters replaced.
#pragma once

#include <array>
#include <string>

#include "ir/op_info.h"
#include "plan/plan.h"

namespace gradcell::cuda {

/// The C type that a dtype has in memory: "unsigned short" for float16.
const char* stored_type(DType t);
/// The C type that a kernel computes in.
const char* type_name(Compute c);

/// A stored element as a value of the compute type, and back.
std::string decoded(DType t, const std::string& stored);
std::string encoded(DType t, const std::string& value);
/// A value of the compute type, rounded or wrapped to what the dtype can hold.
std::string narrowed(DType t, const std::string& value);
/// The least number that a dtype has, or the largest, as a value of the compute type.
std::string end_of_dtype(DType t, bool least);
/// A value of one dtype in another.
std::string converted(DType from, DType to, const std::string& value);

/// The forward text of a row on the given operands, in compute type T.
std::string applied(Op op, const char* T, const std::array<std::string, 3>& operands);

}  // namespace gradcell::cuda

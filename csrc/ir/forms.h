// How elements come about, as far as planners and engines care: the table forms.def.
#pragma once

#include "ir/op_info.h"

namespace gradcell {

enum class Form : uint8_t {
#define FORM(Name, ...) Name,
#include "ir/forms.def"
};

/// What becomes of complex operands.
enum class PartsRule : uint8_t { Each, Sums, Multiplied, Converted, Pairs };

/// The instruction of a region that computes it; Call: none, a call does.
enum class TileForm : uint8_t { Element, Convert, Move, Reduce, Product, Call };

/// How a GPU comes by a value.
enum class KernelForm : uint8_t {
  Source,     ///< it is there
  View,       ///< it is its input
  Element,    ///< inside any kernel, of its inputs' elements at the same place
  Elsewhere,  ///< inside any kernel, of elements at other places
  Rows,       ///< inside a kernel that has whole rows, or as Fold
  Fold,       ///< a kernel of its own, which computes its operand's elements where it reads them
  Terms,      ///< inside any kernel if it is a sum of few terms, otherwise as Whole
  Whole,      ///< a kernel or library call of its own, which reads whole buffers
  Absent,     ///< cleaned graphs for a GPU have none
};

struct FormInfo {
  const char* name;
  PartsRule parts;
  TileForm tile;
  KernelForm kernel;
  OpCost cost;  ///< of an element that another kernel computes on its way
};

inline constexpr FormInfo kForms[] = {
#define FORM(Name, parts, rows, tile, call, kernel, cost, value, writer) \
  {#Name, PartsRule::parts, TileForm::tile, KernelForm::kernel, OpCost::cost},
#include "ir/forms.def"
};

constexpr const FormInfo& info(Form form) { return kForms[static_cast<size_t>(form)]; }

/// Whether a GPU kernel of its own computes the operand's elements where it reads them.
constexpr bool folds(Form form) {
  return info(form).kernel == KernelForm::Fold || info(form).kernel == KernelForm::Rows;
}

}  // namespace gradcell

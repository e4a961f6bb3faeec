// Ops that a library's routine computes for each matrix or row of a batch: factorisations of
// matrices, orders of rows. To derivatives they are constants: what is differentiable brings a rule
// made of other ops.
//
// A routine is a row of ops.def, a spec here and a row of cpu/calls/routines.h. What it makes is
// one array; several results lie in it one behind the other, and slices read them.
#pragma once

#include "ops/families.h"

namespace gradcell {

class Routine : public Constant {
 public:
  /// form: another one where engines have more than a routine for it.
  Routine(Op op, std::span<const Attribute> attributes, std::span<const Parameter> parameters,
          Form form = Form::Routine)
      : Constant(op, form, attributes, parameters) {}

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override;

 protected:
  /// The leading dimensions, which count the problems: the same for all inputs.
  Dims problems(const Graph& g, const Draft& d) const;
  /// Those behind them of input k.
  Dims problem(const Graph& g, const Draft& d, size_t k) const;
};

}  // namespace gradcell

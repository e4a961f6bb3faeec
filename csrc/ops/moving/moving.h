// What the ops that move elements share: movement.cpp, slice.cpp.
#pragma once

#include "ops/families.h"
#include "ops/moving/movement.h"
#include "ops/source.h"

namespace gradcell {

/// A constant, whatever is done to its places, is a constant.
class Moving : public Linear {
 public:
  using Linear::Linear;

 protected:
  static NodeId constant_as(Graph& g, NodeId x, const Type& type) {
    return is_constant(g, x) ? constant_bits(g, type.dtype, type.dims, g[x].bits) : kNoNode;
  }
};

/// What a view of one input is.
class Viewing : public Moving {
 public:
  using Moving::Moving;
  bool views() const override { return true; }
  Movement movement(const Graph& g, NodeId id) const override {
    return moved(*lay(whole(g.dims(g.input(id, 0))), g.attrs(id), g.dims(id)));
  }
};

/// The shape of a broadcast's source, with ones in front for the axes that it does not have.
Dims aligned_source(const Graph& g, NodeId broadcast);
/// Whether shapes differ in axes of size one alone.
bool differ_in_ones(const Dims& a, const Dims& b);
/// Numbers by axis of a shape, as numbers by axis of one that differs from it in ones alone: those
/// of its own axes of size one are `of_ones`.
Dims without_ones(const Dims& values, const Dims& from, const Dims& to, int64_t of_ones);

}  // namespace gradcell

// The family of matrix products.
#pragma once

#include "ir/spec.h"

namespace gradcell {

struct ProductAttributes {
  bool transpose_a, transpose_b;
  static constexpr auto fields() {
    return std::tuple{Field{"transpose_a", AttributeKind::Flag, &ProductAttributes::transpose_a},
                      Field{"transpose_b", AttributeKind::Flag, &ProductAttributes::transpose_b}};
  }
};

/// [..., m, k] x [..., k, n] with equal batch dimensions; a flag reads that operand transposed.
NodeId matmul(Graph& g, NodeId a, NodeId b, bool transpose_a, bool transpose_b);
/// The same where a may be a block among zeros, which are taken for structural ones: they are not
/// multiplied.
NodeId product_of_placed(Graph& g, NodeId a, NodeId b, ProductAttributes p);
/// That node, if it is there.
NodeId find_matmul(const Graph& g, NodeId a, NodeId b, ProductAttributes p);
/// What `a @ b` is on the user's tensors: NumPy's matmul.
NodeId numpy_matmul(Graph& g, NodeId a, NodeId b);
/// The sum of products of several pairs, a0 b0 + a1 b1 + ..., as planners make it: nothing is
/// simplified.
NodeId sum_of_products(Graph& g, std::span<const NodeId> pairs, ProductAttributes a);

inline bool is_product(const Graph& g, NodeId id) { return form(g, id) == Form::Product; }

/// Whether a product contracts the rows of both factors, as the gradient of a weight does.
inline bool is_weight_gradient(const Graph& g, NodeId id) {
  return is_product(g, id) && attributes<ProductAttributes>(g, id).transpose_a;
}

/// Rows, columns and terms of a product of matrices of these shapes.
struct ProductSizes {
  int64_t m, n, k;
};
ProductSizes sizes_of(const Dims& a, const Dims& out, ProductAttributes p);

}  // namespace gradcell

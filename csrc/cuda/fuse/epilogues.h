// Sums that a matrix product can leave behind itself: product plus a bias along its columns, which
// cuBLASLt adds before it writes (CUBLASLT_EPILOGUE_BIAS), and product plus a matrix, its C.
#pragma once

#include <map>

#include "cuda/fuse/fusion.h"

namespace gradcell::cuda {

struct ProductSum {
  NodeId product;
  NodeId bias = kNoNode;  ///< one of these two
  NodeId matrix = kNoNode;
};

/// The sums whose products write them, by the sum's node: those that have a buffer, of a product
/// that nothing else needs. In `f` they become Role::Alone, in the product's stage and place, and a
/// matrix that is added gets a buffer; a sum without a buffer costs nothing where it is computed,
/// and stays there.
std::map<NodeId, ProductSum> sums_of_products(const Graph& g, std::span<const NodeId> roots,
                                              Fusion& f);

}  // namespace gradcell::cuda

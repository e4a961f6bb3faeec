// Sums that a matrix product can leave behind itself: product plus a bias along its columns, which
// cuBLASLt adds before it writes (CUBLASLT_EPILOGUE_BIAS).
#pragma once

#include <map>

#include "cuda/fusion.h"

namespace gradcell::cuda {

struct BiasSum {
  NodeId product, bias;
};

/// The sums whose products write them, by the sum's node: those that have a buffer, of a product
/// that nothing else needs. In `f` they become Role::Alone, in the product's stage and place; a sum
/// without a buffer costs nothing where it is computed, and stays there.
std::map<NodeId, BiasSum> sums_of_products(const Graph& g, std::span<const NodeId> roots,
                                           Fusion& f);

}  // namespace gradcell::cuda

// Which products wait for each other: those that share their right factor and do not need one
// another can be one product over all their rows (product_joins.h), but only if they run in one
// stage. What is ready earlier waits, where no cycle comes of it.
#pragma once

#include "cuda/fuse/fusion.h"

namespace gradcell::cuda {

/// Disjoint groups of products that can run together, by the first stages in which each can.
std::vector<std::vector<NodeId>> products_to_join(const Graph& g, std::span<const NodeId> roots,
                                                  const Fusion& f);

}  // namespace gradcell::cuda

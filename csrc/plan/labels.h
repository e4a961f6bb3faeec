// Which nodes can run row by row, over how many rows, and in which stage: the input of the region
// builder. `Labels` refers to a cleaned graph (no aliases; every node live).
#pragma once

#include <algorithm>
#include <iterator>

#include "plan/plan.h"

namespace gradcell {

/// How a region reads an input of a node.
enum class Access : uint8_t { Rows, Uniform };

/// A tensor with more features a row than this is no row tensor: its tile would leave the cache.
inline constexpr int64_t kMaxFeatures = 4096;

/// What two ascending sets have in common, of row counts or of ways that rows lie.
template <class Set>
Set intersect(const Set& a, const Set& b) {
  Set out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

struct NodeLabel {
  bool in_region = false;
  bool reducing = false;      ///< its result exists only when all rows are done
  bool materialised = false;  ///< needs a buffer
  bool elsewhere = false;     ///< only regions of other stages compute it, where they need it
  int64_t rows = 0;           ///< N, if in a region
  int64_t block = 1;          ///< see Region
  int32_t stage = 0;
  int32_t component = -1;
  int32_t wait = -1;  ///< a collective: the stage before which it has to have ended
};

struct Labels {
  std::vector<NodeLabel> node;
  bool whole = false;  ///< all regions have one row, which is the whole of each of their tensors
  int64_t rows = 0;    ///< all regions have so many; 0: each has its own number
  /// The node whose buffer or tile value holds a node's elements: in the same order, or where a
  /// view of an input has them (such a view is read uniformly alone).
  std::vector<NodeId> storage;
  /// Stored nodes that are read in later stages than those of the nodes that they are inputs of.
  struct Reread {
    NodeId id;
    int32_t stage;
  };
  std::vector<Reread> reread;
  int32_t stage_count = 0;
};

/// How node `id` reads its k-th input when run by rows.
Access access(const Graph& g, const Labels& l, NodeId id, int k);

/// Whether a node is a view of what is stored that a region, of one element a row, reads where it
/// lies.
bool loads_view(const Graph& g, const Labels& l, NodeId id);

/// Whether a stage makes the node's elements: those of others stand elsewhere, or are given.
bool is_made(const Graph& g, const Labels& l, NodeId id);

/// Whether the value of `producer` flows to `consumer` inside a tile.
bool flows_in_tile(const Graph& g, const Labels& l, NodeId producer, NodeId consumer, int k);

/// whole, rows: as Labels has them. whole: longer tensors than kMaxFeatures are left to calls, and
/// so are products, but for those of one row where that is the number of rows asked for. rows: what
/// can run by so many is in a region, and nothing else.
Labels label(const Graph& g, std::span<const NodeId> roots, bool whole = false, int64_t rows = 0);

}  // namespace gradcell

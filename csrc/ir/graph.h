// The graph: an append-only arena of nodes. A node's inputs always have smaller ids, so ascending
// ids are a topological order; nothing is ever changed or removed. Pure nodes are hash-consed: the
// same op on the same inputs with the same attributes is the same node.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/types.h"

namespace gradcell {

enum class Op : uint16_t {
#define ROW(Name, ...) Name,
#define UNARY ROW
#define BINARY ROW
#define COMPARE ROW
#define PREDICATE ROW
#define TERNARY ROW
#define STRUCTURED ROW
#include "ir/ops.def"
#include "ir/undef.h"
#undef ROW
  Count
};

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = UINT32_MAX;

using Dims = std::vector<int64_t>;

int64_t element_count(std::span<const int64_t> dims);
std::string to_string(std::span<const int64_t> dims);  // "[2, 3]"

/// Where the user's code made a node. Opaque to the core: the binding stores a code object and an
/// instruction offset, and turns them into text only when asked.
struct Location {
  const void* code = nullptr;
  int32_t offset = 0;
};

struct Node {
  Op op;
  DType dtype;
  uint8_t order = 0;         ///< 0: forward; n: made by the n-th differentiation
  uint32_t shape = 0;        ///< index into the graph's shapes
  uint32_t input_begin = 0;  ///< into the graph's input pool
  uint32_t attr_begin = 0;   ///< into the graph's attribute pool
  uint16_t input_count = 0;
  uint16_t attr_count = 0;
  uint64_t bits = 0;  ///< Const: the value; Leaf and Alias: a serial number
  Location location;
};

/// The value of a Const: a double for floating dtypes, an int64 for the others.
union Scalar {
  double f;
  int64_t i;
  uint64_t bits;
};

class Graph {
 public:
  Graph();

  size_t size() const { return nodes_.size(); }
  const Node& operator[](NodeId id) const { return nodes_[id]; }
  std::span<const NodeId> inputs(NodeId id) const {
    const Node& n = nodes_[id];
    return {input_pool_.data() + n.input_begin, n.input_count};
  }
  NodeId input(NodeId id, int k) const { return input_pool_[nodes_[id].input_begin + k]; }
  std::span<const int64_t> attrs(NodeId id) const {
    const Node& n = nodes_[id];
    return {attr_pool_.data() + n.attr_begin, n.attr_count};
  }
  const Dims& dims(NodeId id) const { return shapes_[nodes_[id].shape]; }
  int64_t count(NodeId id) const { return counts_[nodes_[id].shape]; }
  DType dtype(NodeId id) const { return nodes_[id].dtype; }

  /// The node with these contents, a new one unless an equal one is there. `inputs` and `attrs` may
  /// point into this graph.
  NodeId intern(Op op, DType dtype, std::span<const int64_t> dims, std::span<const NodeId> inputs,
                std::span<const int64_t> attrs = {}, uint64_t bits = 0);
  /// The node with these contents; kNoNode if there is none.
  NodeId find(Op op, DType dtype, std::span<const int64_t> dims, std::span<const NodeId> inputs,
              std::span<const int64_t> attrs = {}, uint64_t bits = 0) const;
  /// A node that is equal to no other: a leaf or an alias.
  NodeId unique(Op op, DType dtype, std::span<const int64_t> dims, std::span<const NodeId> inputs);

  /// Stamped on each node made from now on.
  Location location;
  uint8_t order = 0;

 private:
  uint32_t shape_id(std::span<const int64_t> dims);
  std::optional<uint32_t> known_shape(std::span<const int64_t> dims) const;

  struct Contents {
    Op op;
    DType dtype;
    uint32_t shape;
    std::span<const NodeId> inputs;
    std::span<const int64_t> attrs;
    uint64_t bits;
    uint32_t hash() const;
  };
  /// Where in the table the node is, or would be.
  size_t slot(const Contents& contents, uint32_t hash) const;
  NodeId append(Op op, DType dtype, uint32_t shape, std::span<const NodeId> inputs,
                std::span<const int64_t> attrs, uint64_t bits);
  void grow_table();

  std::vector<Node> nodes_;
  std::vector<NodeId> input_pool_;
  std::vector<int64_t> attr_pool_;
  std::vector<Dims> shapes_;
  std::vector<int64_t> counts_;
  std::vector<uint32_t> hashes_;
  std::vector<NodeId> table_;  ///< open addressing, power-of-two size
  uint64_t next_serial_ = 0;
};

/// The nodes that the roots need, ascending.
std::vector<NodeId> live_nodes(const Graph& g, std::span<const NodeId> roots);

}  // namespace gradcell

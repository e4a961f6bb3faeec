// The graph: an append-only arena of nodes. A node's inputs always have smaller ids, so ascending
// ids are a topological order; nothing is ever changed or removed. Pure nodes are hash-consed: the
// same op on the same inputs with the same attributes is the same node.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dims.h"
#include "base/types.h"

namespace gradcell {

enum class Op : uint16_t {
#define ROW(Name, ...) Name,
#define STRUCTURED ROW
#include "ir/rows.h"
  Count
};

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = UINT32_MAX;

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
  uint64_t bits = 0;  ///< a constant: its value; an effect: its place; of leaves: a serial number
  Location location;
};

class Rule;

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
  /// A node that is equal to no other.
  NodeId unique(Op op, DType dtype, std::span<const int64_t> dims, std::span<const NodeId> inputs);
  /// An effect: a node that takes place once, in the order of `place`, whether or not its value is
  /// used. 0: after all others. A place that is taken goes over to the new node.
  NodeId effect(Op op, DType dtype, std::span<const int64_t> dims, std::span<const NodeId> inputs,
                std::span<const int64_t> attrs, uint64_t place = 0);
  struct Effect {
    uint64_t place;
    NodeId id;
  };
  std::span<const Effect> effects() const { return effects_; }  ///< by place

  /// Keeps the derivative that a call has of its own; returns the call's number.
  int64_t add_rule(std::shared_ptr<const Rule> rule);
  std::shared_ptr<const Rule> rule(int64_t call) const {
    return rules_.at(static_cast<size_t>(call));
  }
  /// Nothing is differentiated any more: what the rules hold may go.
  void drop_rules() { rules_.clear(); }

 private:
  friend class Stamp;
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
  std::vector<std::shared_ptr<const Rule>> rules_;
  uint64_t next_serial_ = 0, next_place_ = 1;
  std::vector<Effect> effects_;
  Location location_;
  uint8_t order_ = 0;
};

/// What nodes made while it lives say of themselves; afterwards it is as before.
class Stamp {
 public:
  explicit Stamp(Graph& g) : g_(g), location_(g.location_), order_(g.order_) {}
  ~Stamp() { g_.location_ = location_, g_.order_ = order_; }
  Stamp(const Stamp&) = delete;
  Stamp& operator=(const Stamp&) = delete;
  void at(const Location& location) { g_.location_ = location; }
  void order(uint8_t order) { g_.order_ = order; }
  void like(const Node& n) { at(n.location), order(n.order); }

 private:
  Graph& g_;
  Location location_;
  uint8_t order_;
};

/// The nodes that the roots need, ascending.
std::vector<NodeId> live_nodes(const Graph& g, std::span<const NodeId> roots);

}  // namespace gradcell

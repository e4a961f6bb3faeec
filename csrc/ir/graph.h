// The graph: an append-only arena of nodes. A node's inputs always have smaller ids, so ascending
// ids are a topological order; nothing is ever changed or removed, and inputs, attributes and
// shapes stay where they are while nodes are added. Pure nodes are hash-consed: the same op on the
// same inputs with the same attributes is the same node.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dims.h"
#include "base/types.h"
#include "ir/settings.h"

namespace gradcell {

enum class Op : uint16_t {
#define NAMES_ALONE
#define ROW(Name, ...) Name,
#define STRUCTURED ROW
#include "ir/rows.h"
  Count
};

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = UINT32_MAX;

/// Code of the user's, which can say where an instruction of it is: "file.py:12". Never freed.
class Code {
 public:
  virtual std::string line_of(int32_t offset) const = 0;

 protected:
  ~Code() = default;
};

/// Where the user's code made a node.
struct Location {
  const Code* code = nullptr;
  int32_t offset = 0;
  std::string text() const { return code ? code->line_of(offset) : std::string(); }
};

/// A shape that nodes of a graph have.
struct Shape {
  uint32_t number;  ///< among the graph's
  int64_t count;    ///< of elements
  Dims dims;
};

struct Node {
  Op op;
  DType dtype;
  uint8_t order = 0;  ///< 0: forward; n: made by the n-th differentiation
  int32_t input_count = 0;
  uint32_t attr_count = 0;
  const Shape* shape = nullptr;
  const NodeId* inputs = nullptr;
  const int64_t* attrs = nullptr;
  uint64_t bits = 0;  ///< a constant: its value; an effect: its place; of leaves: a serial number
  Location location;
};

class Rule;

/// Runs of numbers that stay where they are.
template <class T>
class Pool {
 public:
  const T* add(std::span<const T> run) {
    if (run.size() > room_) {
      room_ = std::max<size_t>(run.size(), 256);
      blocks_.push_back(std::make_unique_for_overwrite<T[]>(room_));
      next_ = blocks_.back().get();
    }
    T* const begin = next_;
    next_ = std::copy(run.begin(), run.end(), begin);
    room_ -= run.size();
    return begin;
  }

 private:
  std::vector<std::unique_ptr<T[]>> blocks_;
  T* next_ = nullptr;
  size_t room_ = 0;
};

class Graph {
 public:
  explicit Graph(const Settings& settings = kFirstSettings);

  const Settings& settings() const { return *settings_; }
  size_t size() const { return nodes_.size(); }
  const Node& operator[](NodeId id) const { return nodes_[id]; }
  std::span<const NodeId> inputs(NodeId id) const {
    const Node& n = nodes_[id];
    return {n.inputs, static_cast<size_t>(n.input_count)};
  }
  NodeId input(NodeId id, int k) const { return nodes_[id].inputs[k]; }
  std::span<const int64_t> attrs(NodeId id) const {
    const Node& n = nodes_[id];
    return {n.attrs, n.attr_count};
  }
  const Dims& dims(NodeId id) const { return nodes_[id].shape->dims; }
  int64_t count(NodeId id) const { return nodes_[id].shape->count; }
  DType dtype(NodeId id) const { return nodes_[id].dtype; }

  /// The node with these contents, a new one unless an equal one is there.
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

  /// A leaf that stands for any value: what is recorded of it holds for all of them.
  NodeId unknown(DType dtype, std::span<const int64_t> dims);
  std::span<const NodeId> unknowns() const { return unknowns_; }

  /// Keeps the derivative that a call has of its own; returns the call's number.
  int64_t add_rule(std::shared_ptr<const Rule> rule);
  int64_t next_rule() const { return static_cast<int64_t>(rules_.size()); }
  std::shared_ptr<const Rule> rule(int64_t call) const {
    return rules_.at(static_cast<size_t>(call));
  }
  /// Nothing is differentiated any more: what the rules hold may go.
  void drop_rules() { rules_.clear(); }

 private:
  friend class Stamp;
  const Shape* shape(Op op, std::span<const int64_t> dims);
  /// Where in the table of shapes the one with these dims is, or would be.
  size_t shape_slot(std::span<const int64_t> dims) const;

  struct Contents {
    Op op;
    DType dtype;
    const Shape* shape;
    std::span<const NodeId> inputs;
    std::span<const int64_t> attrs;
    uint64_t bits;
    uint32_t hash() const;
  };
  /// Where in the table the node is, or would be.
  size_t slot(const Contents& contents, uint32_t hash) const;
  NodeId append(Op op, DType dtype, const Shape* shape, std::span<const NodeId> inputs,
                std::span<const int64_t> attrs, uint64_t bits);

  std::vector<Node> nodes_;
  Pool<NodeId> inputs_;
  Pool<int64_t> attrs_;
  std::deque<Shape> shapes_;
  std::vector<const Shape*> shape_table_;  ///< as table_
  std::vector<uint32_t> hashes_;
  std::vector<NodeId> table_;  ///< open addressing, power-of-two size
  std::vector<std::shared_ptr<const Rule>> rules_;
  std::vector<NodeId> unknowns_;
  uint64_t next_serial_ = 0, next_place_ = 1;
  std::vector<Effect> effects_;
  Location location_;
  uint8_t order_ = 0;
  const Settings* settings_;
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

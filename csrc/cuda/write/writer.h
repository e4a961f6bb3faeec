// The common part of all kernels' text: parameters, scopes, and values on demand.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "cuda/write/expressions.h"
#include "cuda/write/kernel_writers.h"
#include "ops/ops.h"

namespace gradcell::cuda {

/// Threads a block at most.
constexpr uint32_t kMaxBlock = 512;
/// Threads a block where nothing asks for another number.
constexpr uint32_t kBlock = 256;

/// Blocks enough for the items, at most as many as keep any GPU busy.
uint32_t grid_for(int64_t items, int64_t each);

/// Where an element stands: a C++ expression for its row-major place; in a row kernel also its row
/// and its place in the row, where it has them.
struct Index {
  std::string linear;
  std::string row, feature;  ///< empty: unknown
  std::string key() const { return row.empty() ? linear : row + ":" + feature; }
};

class Writer {
 public:
  Writer(const WriterInputs& in, int32_t stage)
      : in_(in), g_(in.graph), f_(in.fusion), stage_(stage) {
    scopes_.push_back(&body_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

 protected:
  struct Scope {
    std::string text;
    std::string indent;
    std::unordered_map<std::string, std::string> names;  ///< what is there already
  };

  struct Parameter {
    std::string type, name;
  };

  // Parameters -----------------------------------------------------------------------------------
  void parameter(std::string type, std::string name, Argument a);
  /// A parameter for a number of at least 2; smaller ones stay literals.
  std::string index_parameter(Argument::Kind kind, const char* type, const char* letter,
                              int64_t value);
  std::string reads(NodeId id);  ///< the pointer to a node's buffer
  std::string writes(NodeId id);
  std::string buffer(BufferId b, const char* type, bool written, const std::string& name);
  std::string size(int64_t value);     ///< "1" and "0" stay literals
  std::string divisor(int64_t value);  ///< what a gc_index is divided by
  std::string constant(NodeId id);
  std::string constant(uint32_t index, DType type);  ///< of the plan's
  std::string status();
  std::string packs(int64_t value);
  /// The parameter of a launch of several segments: an array with one for each.
  static Parameter of_each(const Parameter& p, const std::string& segments);

  // Text -----------------------------------------------------------------------------------------
  void line(const std::string& text);
  /// A name for an expression of the given type; the same name for the same expression.
  std::string let(const char* type, const std::string& expression, const char* prefix);
  /// What `write` writes inside the present scope, to be put there by `block`: what it finds to be
  /// needed before comes first.
  template <class F>
  Scope nested(F write) {
    Scope inside{"", scopes_.back()->indent + "  ", {}};
    scopes_.push_back(&inside);
    write();
    scopes_.pop_back();
    return inside;
  }
  void block(const std::string& head, const Scope& inside);

  // Values ---------------------------------------------------------------------------------------
  /// An atom: the value of a node at an index, in its compute type.
  std::string value(NodeId id, const Index& at);
  std::string input(NodeId id, int k, const Index& at) {
    return value(f_.storage[g_.input(id, k)], at);
  }
  /// In the present scope a node has this value at an index.
  void know(NodeId id, const Index& at, const std::string& name) {
    scopes_.back()->names[value_key(id, at)] = name;
  }
  /// The same of a node that a kernel of its own stores, from its inputs.
  std::string compute(NodeId id, const Index& at);
  std::string linear(NodeId id, const Index& at);
  /// The same for a tensor of so many elements.
  std::string linear(int64_t count, const Index& at);
  Index flat(std::string place) { return {std::move(place), "", ""}; }
  /// The index that a view reads at.
  Index seen(const View& v, int64_t source_count, const Index& at);
  /// Coordinates of a place in a box; those not wanted are empty.
  std::vector<std::string> coordinates(const Dims& dims, const std::vector<uint8_t>& wanted,
                                       const std::string& place);
  /// sum of c[k] * strides[k] + offset for the coordinates of a place, neighbours joined first.
  std::string place_in(const View& v, size_t begin, size_t end, const std::string& place,
                       int64_t offset);

  /// How an element of a buffer is read; flat kernels read some of them in packs.
  virtual std::string load(NodeId id, const Index& at);
  virtual std::string reduced(NodeId id, const Index& at);
  /// Whether the operands of a commuting op are written the other way about.
  virtual bool swapped(NodeId) { return false; }

  /// `threads`: the most that a block of the launch has. `blocks`: what says how many of them a
  /// multiprocessor is to have registers for.
  Written written(const std::string& text_of_body, const char* fallback_title,
                  uint32_t threads = kMaxBlock, const char* blocks = "1");
  void count_node(NodeId id);
  size_t bytes(NodeId id) const {
    return static_cast<size_t>(g_.count(id)) * item_size(g_.dtype(id));
  }
  /// Whether kernels of this stage read the node from its buffer.
  bool in_memory(NodeId id) const {
    const Fused& node = f_.node[id];
    return node.role == Role::Source || (node.stored && node.stage < stage_);
  }

  const WriterInputs& in_;
  const Graph& g_;
  const Fusion& f_;
  int32_t stage_;
  int64_t rows_ = 0;  ///< of a row kernel; 0: none
  Scope body_;
  std::vector<Scope*> scopes_;
  Step step_;
  std::vector<Parameter> parameters_;
  int next_ = 0;

 private:
  static std::string value_key(NodeId id, const Index& at) {
    return "node " + std::to_string(id) + " at " + at.key();
  }
  const char* type_of(NodeId id) const;

  // By form: the column `value` of forms.def.
  std::string no_value(NodeId id, const Index& at);
  std::string by_row(NodeId id, const Index& at);
  std::string cast(NodeId id, const Index& at);
  std::string moved(NodeId id, const Index& at);
  std::string ranged(NodeId id, const Index& at);
  std::string random(NodeId id, const Index& at);
  std::string of_integers(NodeId id, const Index& at);
  std::string taken(NodeId id, const Index& at);
  std::string multiplied(NodeId id, const Index& at);

  std::string placed_in_zeros(NodeId id, const Piece& p, const Index& at);
  /// How many leading dimensions are the row, which stays as it is; 0: the piece has other rows.
  size_t dimensions_of_row(NodeId id, const Piece& p, const Index& at) const;
  /// Where place d along an axis is in a piece of n elements; `inside`: if it is there.
  std::string place_in_piece(const std::string& d, int64_t start, int64_t step, int64_t n,
                             std::string& inside);
  std::string joined(NodeId id, const Movement& m, const Index& at);

  std::unordered_map<std::string, std::string> known_;  ///< parameters by what they stand for
  std::unordered_set<NodeId> counted_;
  std::map<BufferId, size_t> read_;
  std::vector<std::string> title_;
  size_t length_ = 0;  ///< of all lines
  std::string moved_;  ///< the first movement op: a title where there is no other
  int reads_ = 0, writes_ = 0, constants_ = 0;
  std::map<char, int> index_parameters_;  ///< how many, by the letter of their names
};

}  // namespace gradcell::cuda

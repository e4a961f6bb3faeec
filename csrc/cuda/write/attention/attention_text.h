// What kernels of attention's sums (ops/combining/attention.h) have in common: where heads and rows
// lie, which rows see which, what dropout keeps.
#pragma once

#include <bit>
#include <cstdio>

#include "cuda/write/single_node_writer.h"
#include "ops/combining/attention.h"

namespace gradcell::cuda {

class AttentionText : protected AloneWriter {
 public:
  /// `side`: rows of a block; `others`: that it takes at a time.
  AttentionText(const WriterInputs& in, NodeId id, int64_t side, int64_t others)
      : AloneWriter(in, id),
        op_(g_[id].op),
        a_(attributes<AttentionAttributes>(g_, id)),
        at_(attention_inputs(op_, a_)),
        by_keys_(attention_by_keys(op_)),
        side_(side),
        others_(others) {
    require(!a_.written, ErrorKind::NotImplemented, info(op_).name,
            " as it was written of a softmax has no kernel for a GPU");
    const Dims q = outside(node(0)), k = outside(node(1));
    rank_ = q.size();
    lead_ = Dims(q.begin(), q.end() - 2);
    heads_ = product(q, 0, rank_ - 2);
    queries_ = q[rank_ - 2], keys_ = k[rank_ - 2];
    type_ = type_name(compute_type(dtype_));
  }

 protected:
  NodeId node(int k) const { return g_.input(id_, k); }
  /// [..., heads, rows, features]
  Dims outside(NodeId x) const { return heads_outside(g_.dims(x), a_.inside); }
  int64_t rows() const { return by_keys_ ? keys_ : queries_; }
  int64_t inner() const { return by_keys_ ? queries_ : keys_; }

  /// How many queries see how many keys, but for what a mask hides.
  int64_t pairs() const {
    int64_t n = 0;
    for (int64_t m = 0; m < queries_; ++m)
      n += std::max<int64_t>(0, std::min(keys_, m + std::min(a_.ahead, keys_) + 1) -
                                    std::max<int64_t>(0, m - std::min(a_.behind, queries_)));
    return n * heads_;
  }

  /// Where a head's elements of so many rows of `features` begin, and how far its rows are apart.
  std::pair<std::string, std::string> head_of(int64_t rows, int64_t features) {
    const std::string row = size(features);
    if (!a_.inside) return {"head * " + size(rows) + " * " + row, row};
    const std::string heads = size(lead_.back()), d = divisor(lead_.back());
    return {"(head / " + d + " * " + size(rows) + " * " + heads + " + head % " + d + ") * " + row,
            heads + " * " + row};
  }

  /// A pointer to the head's elements of a node; returns how far its rows are apart.
  std::string head_pointer(const std::string& name, NodeId x) {
    const Dims dims = outside(x);
    const auto [first, stride] = head_of(dims[rank_ - 2], dims.back());
    line("const " + std::string(stored_type(g_.dtype(x))) + "* const " + name + " = " +
         reads(f_.storage[x]) + " + " + first + ";");
    return stride;
  }
  void mask_pointer() {
    if (at_.mask < 0) return;
    const Dims& dims = g_.dims(node(at_.mask));
    View heads{lead_, row_major(dims), 0};
    heads.strides.resize(rank_ - 2);
    for (size_t k = 0; k + 2 < rank_; ++k)
      if (dims[k] == 1) heads.strides[k] = 0;
    const std::string first = Writer::place_in(heads, 0, rank_ - 2, "head", 0);
    line(str("const ", stored_type(g_.dtype(node(at_.mask))),
             "* const mask = ", reads(f_.storage[node(at_.mask)]), " + ", first, ";"));
  }

  /// How far the mask's rows are apart: not at all where one is for all queries.
  std::string mask_stride() { return g_.dims(node(at_.mask))[rank_ - 2] == 1 ? "0" : size(keys_); }
  /// Of a query and a key.
  std::string mask_place(const std::string& query, const std::string& key) {
    const std::string stride = mask_stride();
    return "mask[" + (stride == "0" ? "" : query + " * " + stride + " + ") + key + "]";
  }
  bool hides() const { return at_.mask >= 0 && g_.dtype(node(at_.mask)) == DType::Bool; }

  /// Which rows see which: what a block goes through, `outside`: whether a score is none by where
  /// it is, and `inside`: whether that is so nowhere in the tile at `next`.
  void bounds() {
    const int64_t far = std::max(queries_, keys_);
    auto least = [&](int64_t n) { return std::clamp(n, -far, far); };
    const int64_t behind = least(a_.behind), ahead = least(a_.ahead);
    auto shifted = [&](const std::string& from, int64_t by) {
      return by == 0 ? from : by > 0 ? from + " + " + size(by) : from + " - " + size(-by);
    };
    const std::string n = size(inner());
    line("const gc_index first = gc_later(0, " + shifted("top", by_keys_ ? -ahead : -behind) +
         ");");
    line("const gc_index end = gc_sooner(" + n + ", " +
         shifted(str("top + ", side_), by_keys_ ? behind : ahead) + ");");
    const std::string m = by_keys_ ? "j" : "i", key = by_keys_ ? "i" : "j";
    const std::string last_row = str("top + ", side_ - 1), last = str("next + ", others_ - 1);
    std::string outside = "i >= " + size(rows()) + " || j >= " + n;
    std::string inside = last_row + " < " + size(rows()) + " && " + last + " < " + n;
    auto limit = [&](const std::string& a, const std::string& b, const std::string& last_a,
                     const std::string& first_b, int64_t most) {
      if (most >= far) return;
      outside += " || " + a + " - " + b + " > " + signed_size(most);
      inside += " && " + last_a + " - " + first_b + " <= " + signed_size(most);
    };
    limit(key, m, by_keys_ ? last_row : last, by_keys_ ? "next" : "top", ahead);
    limit(m, key, by_keys_ ? last : last_row, by_keys_ ? "top" : "next", behind);
    line("auto outside = [&](gc_index i, gc_index j) { return " + outside + "; };");
    line("auto inside = [&](gc_index next) { return " + inside + "; };");
  }
  std::string signed_size(int64_t n) { return n < 0 ? "-" + size(-n) : size(n); }

  /// Whether dropout keeps the score of i and j, and what it then multiplies with.
  struct Kept {
    std::string condition, factor;
  };
  Kept kept() {
    const std::string m = by_keys_ ? "j" : "i", n = by_keys_ ? "i" : "j";
    const NodeId state = f_.storage[node(at_.state)];
    const double keep = std::bit_cast<double>(a_.keep);
    char literals[2][40];
    std::snprintf(literals[0], 40, "%.9g", static_cast<double>(static_cast<float>(keep)));
    std::snprintf(literals[1], 40, "%.17g", 1 / keep);
    const std::string key = value(state, flat("0")), offset = value(state, flat("1"));
    return {"gc_uniform(" + key + ", " + offset + ", ((gc_long)(head % " + divisor(a_.period) +
                ") * " + size(queries_) + " + " + m + ") * " + size(keys_) + " + " + n +
                ") < float(" + literals[0] + ")",
            type_ + "(" + literals[1] + ")"};
  }

  const Op op_;
  const AttentionAttributes a_;
  const AttentionInputs at_;
  const bool by_keys_;  ///< the result's rows are keys
  const int64_t side_, others_;
  size_t rank_ = 0;
  Dims lead_;
  int64_t heads_ = 0, queries_ = 0, keys_ = 0;
  std::string type_;
};

}  // namespace gradcell::cuda

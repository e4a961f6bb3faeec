#include "ad/row_dots.h"

#include "ops/ops.h"

namespace gradcell::ad {

namespace {

class RowDots {
 public:
  explicit RowDots(Graph& g) : g_(g) {}

  NodeId run(NodeId derivative) {
    const Dims dims = g_.dims(derivative);
    const DType dtype = g_.dtype(derivative);
    const NodeId one = find_constant(g_, dtype, dims, 1);
    if (one == kNoNode) return derivative;
    expand(one, derivative, false);
    // A single product is no more than the sum that it would become, and where none was there this
    // is no second derivative.
    if (moved_ < 2 || found_ == 0) return derivative;
    NodeId sum = kNoNode;
    for (size_t i = 0; i < terms_.size(); ++i)
      if (terms_[i].e != kNoNode) sum = accumulate(g_, sum, dot_of_features(i));
    return sum;
  }

 private:
  struct Term {  // the dot product of e and z, or minus that
    NodeId e, z;
    bool negative;
  };

  /// Adds terms whose sum is +-<e, z>. Whether a product has moved from z to e; if not, it is one
  /// term as it stands.
  bool expand(NodeId e, NodeId z, bool negative) {
    const size_t before = terms_.size();
    if (--budget_ > 0 && moves(e, z, negative)) return true;
    terms_.resize(before);
    terms_.push_back({e, z, negative});
    return false;
  }

  bool moves(NodeId e, NodeId z, bool negative) {
    auto in = [&](int k) { return g_.input(z, k); };
    if (is_product(g_, z)) return moves_product(e, z, negative);
    switch (g_[z].op) {
      case Op::Neg:
        return expand(e, in(0), !negative);
      case Op::Add:
      case Op::Sub: {
        const bool first = expand(e, in(0), negative);
        const bool second = expand(e, in(1), negative != (g_[z].op == Op::Sub));
        return first || second;
      }
      case Op::Mul:
        for (int k : {0, 1}) {
          const size_t before = terms_.size();
          const NodeId scaled = product(e, in(k));
          if (scaled != kNoNode && expand(scaled, in(1 - k), negative)) return true;
          terms_.resize(before);
        }
        return false;
      case Op::Slice: {
        const bool all_rows =
            same_row_count(z, in(0)) && attributes<SliceAttributes>(g_, z).start[0] == 0;
        if (!all_rows) return false;
        const NodeId spread = placed(e, z);
        return spread != kNoNode && expand(spread, in(0), negative);
      }
      default:
        return false;
    }
  }

  bool moves_product(NodeId e, NodeId z, bool negative) {
    auto in = [&](int k) { return g_.input(z, k); };
    auto p = attributes<ProductAttributes>(g_, z);
    if (g_[z].input_count != 2 || p.transpose_a || !same_row_count(z, in(0))) return false;
    p.transpose_b = !p.transpose_b;
    const bool one_row = same_rows(e);  // takes next to nothing: it need not be there
    const NodeId moved =
        one_row ? matmul(g_, e, in(1), p.transpose_a, p.transpose_b) : find_matmul(g_, e, in(1), p);
    if (moved == kNoNode) return false;
    ++moved_;
    found_ += !one_row;
    expand(moved, in(0), negative);
    return true;
  }

  /// Whether all rows of a matrix are the same.
  bool same_rows(NodeId e) const {
    return is_constant(g_, e) ||
           (is_broadcast(g_, e) && source_dim(g_.dims(g_.input(e, 0)), g_.dims(e), 0) == 1);
  }

  /// The slice z's adjoint of e, if it is there or the same in all rows.
  NodeId placed(NodeId e, NodeId z) {
    const Dims& full = g_.dims(g_.input(z, 0));
    const auto a = attributes<SliceAttributes>(g_, z);
    if (same_rows(e)) return slice_scatter(g_, e, full, a.start, a.step);
    return g_.find(Op::SliceScatter, g_.dtype(e), full, {&e, 1}, g_.attrs(z));
  }

  bool same_row_count(NodeId a, NodeId b) const {
    return g_.dims(b).size() == 2 && g_.dims(a)[0] == g_.dims(b)[0];
  }

  /// e * f, if it is there.
  NodeId product(NodeId e, NodeId f) {
    if (is_constant(g_, e) && constant_value(g_, e) == 1) return f;
    if (same_rows(e) && same_rows(f)) return binary(g_, Op::Mul, e, f);
    const NodeId one_way[] = {e, f}, other_way[] = {f, e};
    const NodeId found = g_.find(Op::Mul, g_.dtype(e), g_.dims(e), one_way);
    return found != kNoNode ? found : g_.find(Op::Mul, g_.dtype(e), g_.dims(e), other_way);
  }

  /// The sum over features of the i-th term and all later ones of as many features, which are then
  /// done with.
  NodeId dot_of_features(size_t i) {
    const Dims dims = g_.dims(terms_[i].z);
    const bool negative = terms_[i].negative;
    NodeId sum = kNoNode;
    for (; i < terms_.size(); ++i) {
      Term& t = terms_[i];
      if (t.e == kNoNode || g_.dims(t.z) != dims) continue;
      const NodeId term = binary(g_, Op::Mul, t.e, t.z);
      const Op with_sign = t.negative == negative ? Op::Add : Op::Sub;
      sum = sum == kNoNode ? term : binary(g_, with_sign, sum, term);
      t.e = kNoNode;
    }
    const NodeId dot = reshape(g_, gradcell::sum(g_, sum, Dims{1}), Dims{dims[0], 1});
    return negative ? unary(g_, Op::Neg, dot) : dot;
  }

  Graph& g_;
  std::vector<Term> terms_;
  int moved_ = 0;      // products
  int found_ = 0;      // those of them that were there
  int budget_ = 1000;  // nodes looked at: sums of sums can be large
};

}  // namespace

NodeId with_fewer_products(Graph& g, NodeId derivative) {
  const Dims& dims = g.dims(derivative);
  const bool a_number_a_row = dims.size() == 2 && dims[1] == 1;
  return a_number_a_row ? RowDots(g).run(derivative) : derivative;
}

}  // namespace gradcell::ad

#include <algorithm>
#include <map>
#include <optional>

#include "ops/ops.h"
#include "plan/rewrite/rewrite.h"
#include "plan/rewrite/taken_over.h"

namespace gradcell {

namespace {

/// Fewer multiplications are not worth a call.
constexpr int64_t kFewest = 2048;

/// A factor of a sum of products: what is spread over the shape of the products, and the axes (of
/// more than one element) along which it differs.
struct Factor {
  NodeId from;
  std::vector<uint8_t> differs;
};

Factor factor_of(const Graph& g, NodeId id) {
  const Dims& dims = g.dims(id);
  Factor f{id, std::vector<uint8_t>(dims.size(), 1)};
  if (is_broadcast(g, id)) {
    const View from = spec(g, id).movement(g, id).pieces[0].from;
    f.from = g.input(id, 0);
    for (size_t k = 0; k < dims.size(); ++k) f.differs[k] = from.strides[k] != 0;
  }
  for (size_t k = 0; k < dims.size(); ++k) f.differs[k] &= dims[k] > 1;
  return f;
}

/// Axes of sum(a * b): kept where both differ, kept where one differs, summed where both differ.
enum class Kind : uint8_t { Batch, Own, Summed };

/// A factor as the matrices of a product: [batch, own, summed], or, transposed, [batch, summed,
/// own].
struct Matrices {
  Dims dims;
  bool transposed;
};

struct Contraction {
  NodeId a, b;
  Matrices left, right;
};

class Contractor {
 public:
  explicit Contractor(const PlanGraph& from)
      : from_(from), g_(from.graph), out_(g_.settings()), uses_(g_.size(), 0) {}

  bool finds_any() {
    for (NodeId id = 0; id < g_.size(); ++id)
      for (NodeId i : g_.inputs(id)) ++uses_[i];
    for (NodeId r : from_.roots) ++uses_[r];
    for (NodeId id = 0; id < g_.size(); ++id)
      if (const auto c = contraction(id)) found_.emplace(id, *c);
    return !found_.empty();
  }

  PlanGraph run() {
    std::vector<NodeId> to(g_.size(), kNoNode), in;
    for (NodeId id = 0; id < g_.size(); ++id) {
      in.clear();
      for (NodeId i : g_.inputs(id)) in.push_back(to[i]);
      const auto c = found_.find(id);
      to[id] = c != found_.end() ? product(c->second, to, id) : rebuild(out_, g_, id, in);
    }
    PlanGraph out;
    take_over(out, from_, to);
    out.graph = std::move(out_);
    return out;
  }

 private:
  /// What sum(a * b) is as a product of matrices. a is the factor whose own axes come first in it.
  std::optional<Contraction> contraction(NodeId id) const {
    if (!is_sum(g_, id)) return {};
    const NodeId x = g_.input(id, 0);
    if (g_[x].op != Op::Mul || uses_[x] != 1) return {};
    if (g_.dtype(x) != DType::Float32 && g_.dtype(x) != DType::Float64) return {};
    Factor a = factor_of(g_, g_.input(x, 0)), b = factor_of(g_, g_.input(x, 1));
    if (is_constant(g_, a.from) || is_constant(g_, b.from)) return {};
    const Dims& dims = g_.dims(x);
    const auto first = [&](const Factor& f, const Factor& other) {
      for (size_t k = 0; k < dims.size(); ++k)
        if (f.differs[k] && !other.differs[k]) return k;
      return dims.size();
    };
    if (first(a, b) > first(b, a)) std::swap(a, b);
    const auto left = matrices(dims, g_.attrs(id), a, b),
               right = matrices(dims, g_.attrs(id), b, a);
    if (!left || !right || !results_in_order(dims, g_.attrs(id), a, b)) return {};
    const Dims &m = left->dims, &n = right->dims;
    const int64_t rows = m[left->transposed ? 2 : 1], columns = n[right->transposed ? 2 : 1];
    if (rows == 1 || columns == 1 || m[0] * rows * columns * m[left->transposed ? 1 : 2] < kFewest)
      return {};
    return Contraction{a.from, b.from, *left, *right};
  }

  static std::optional<Kind> kind(bool summed, bool f, bool other) {
    if (!f || (summed && !other)) return {};
    return summed ? Kind::Summed : other ? Kind::Batch : Kind::Own;
  }

  /// Nothing where axes of one kind do not lie side by side, or one sums a factor alone.
  static std::optional<Matrices> matrices(const Dims& dims, std::span<const int64_t> summed,
                                          const Factor& f, const Factor& other) {
    int64_t size[] = {1, 1, 1};
    std::vector<Kind> order;  // each once
    for (size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] == 1 || !f.differs[k]) continue;
      const auto what = kind(contains(summed, k), true, other.differs[k]);
      if (!what) return {};
      size[static_cast<size_t>(*what)] *= dims[k];
      if (!order.empty() && order.back() == *what) continue;
      if (std::ranges::find(order, *what) != order.end()) return {};
      if (*what == Kind::Batch && !order.empty()) return {};
      order.push_back(*what);
    }
    if (std::ranges::find(order, Kind::Summed) == order.end()) return {};
    const bool transposed = order.back() == Kind::Own;
    return Matrices{{size[0], size[transposed ? 2 : 1], size[transposed ? 1 : 2]}, transposed};
  }

  /// Whether the axes that are kept are those of the batch, then all of a's own, then all of b's.
  static bool results_in_order(const Dims& dims, std::span<const int64_t> summed, const Factor& a,
                               const Factor& b) {
    int now = 0;
    for (size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] == 1 || contains(summed, k)) continue;
      if (!a.differs[k] && !b.differs[k]) return false;
      const int next = !b.differs[k] ? 1 : !a.differs[k] ? 2 : 0;
      if (next < now) return false;
      now = next;
    }
    return true;
  }

  NodeId product(const Contraction& c, std::span<const NodeId> to, NodeId id) {
    Stamp stamp(out_);
    stamp.like(g_[id]);
    const NodeId pair[] = {as(to[c.a], c.left.dims), as(to[c.b], c.right.dims)};
    const NodeId y = sum_of_products(out_, pair, {c.left.transposed, !c.right.transposed});
    return as(y, g_.dims(id));
  }

  /// (One batch needs no axis.)
  NodeId as(NodeId x, Dims dims) {
    if (dims.size() == 3 && dims[0] == 1) dims.erase(dims.begin());
    return reshape(out_, x, dims);
  }

  const PlanGraph& from_;
  const Graph& g_;
  Graph out_;
  std::vector<uint32_t> uses_;
  std::map<NodeId, Contraction> found_;
};

}  // namespace

PlanGraph contract_sums(PlanGraph from) {
  Contractor contractor(from);
  return contractor.finds_any() ? contractor.run() : std::move(from);
}

}  // namespace gradcell

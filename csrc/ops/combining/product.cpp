#include "ops/combining/product.h"

#include "base/broadcast.h"
#include "base/promotion.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/identity.h"
#include "ops/moving/movement.h"

namespace gradcell {

namespace {

constexpr Parameter kMultiplied[] = {tensor("a"), tensor("b"), attribute("transpose_a", "False"),
                                     attribute("transpose_b", "False")};

[[noreturn]] void fail_shapes(const Dims& a, const Dims& b, ProductAttributes p) {
  fail(ErrorKind::Value, "MatMul: shapes ", to_string(a), p.transpose_a ? " (transposed)" : "",
       " and ", to_string(b), p.transpose_b ? " (transposed)" : "", " do not multiply");
}

class MatrixProduct : public Spec {
 public:
  explicit MatrixProduct(Op op)
      : Spec(op, Form::Product, kAttributes<ProductAttributes>, kMultiplied) {}

  size_t input_count() const override { return kMany; }
  /// Of one pair, or of several that are added up.
  Type infer(const Graph& g, const Draft& d) const override {
    const auto p = decode<ProductAttributes>(d.attributes);
    require(d.inputs.size() >= 2 && d.inputs.size() % 2 == 0, ErrorKind::Value,
            "MatMul: expected pairs of inputs");
    Type type = of_pair(g, d.inputs[0], d.inputs[1], p);
    for (size_t k = 2; k < d.inputs.size(); k += 2) {
      const Type other = of_pair(g, d.inputs[k], d.inputs[k + 1], p);
      check_same_dtype("MatMul", type.dtype, other.dtype);
      require(type.dims == other.dims, ErrorKind::Value, "MatMul: products of shapes ",
              listed(type.dims), " and ", listed(other.dims), " do not add up");
    }
    return type;
  }

  NodeId simplify(Graph& g, Draft& d, const Type& type) const override {
    const NodeId a = d.inputs[0], b = d.inputs[1];
    auto p = decode<ProductAttributes>(d.attributes);
    if (g[a].op == Op::Neg)  // exact but for a zero's sign; it may meet a sum
      return unary(g, Op::Neg, matmul(g, g.input(a, 0), b, p.transpose_a, p.transpose_b));
    if (g[b].op == Op::Neg)
      return unary(g, Op::Neg, matmul(g, a, g.input(b, 0), p.transpose_a, p.transpose_b));
    if (NodeId x = transposed_matrix(g, a); x != kNoNode)
      return matmul(g, x, b, !p.transpose_a, p.transpose_b);
    if (NodeId x = transposed_matrix(g, b); x != kNoNode)
      return matmul(g, a, x, p.transpose_a, !p.transpose_b);
    const NodeId picked = of_same_rows(g, a, b, p);
    if (picked != kNoNode || type.dims.size() != 2 || type.dims[1] != 1) return picked;
    const NodeId row = reshape(g, b, Dims{1, g.count(b)});  // a column is a row of the transposed
    const NodeId column = of_same_rows(g, row, a, {false, !p.transpose_a});
    return column == kNoNode ? kNoNode : reshape(g, column, type.dims);
  }

  NodeId adjoint(Graph& g, NodeId id, int k, NodeId dy) const override {
    const NodeId a = g.input(id, 0), b = g.input(id, 1);
    const auto [ta, tb] = gradcell::attributes<ProductAttributes>(g, id);
    if (k == 0) return ta ? matmul(g, b, dy, tb, true) : matmul(g, dy, b, false, !tb);
    return tb ? matmul(g, dy, a, true, ta) : matmul(g, a, dy, !ta, false);
  }

  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    const NodeId a = g.input(id, 0), b = g.input(id, 1);
    const auto [ta, tb] = gradcell::attributes<ProductAttributes>(g, id);
    const NodeId first = dx[0] == kNoNode ? kNoNode : product_of_placed(g, dx[0], b, {ta, tb});
    return accumulate(g, first, dx[1] == kNoNode ? kNoNode : matmul(g, a, dx[1], ta, tb));
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    const auto p = gradcell::attributes<ProductAttributes>(g, id);
    NodeId total = kNoNode;
    for (size_t k = 0; k < b.inputs.size(); k += 2)
      total = accumulate(g, total, pair_over_batch(g, b, k, p));
    return total;
  }
  Law law() const override { return Law::Bilinear; }

  /// NumPy's matmul: vectors, matrices, broadcast batches; flags transpose the last two dimensions.
  NodeId apply(Graph& g, Draft d) const override {
    const DType dtype = promote(g.dtype(d.inputs[0]), g.dtype(d.inputs[1]));
    const NodeId a = cast(g, d.inputs[0], dtype), b = cast(g, d.inputs[1], dtype);
    const auto given = decode<ProductAttributes>(d.attributes);
    auto p = given;
    const Dims shape_a = g.dims(a), shape_b = g.dims(b);
    if (shape_a.empty() || shape_b.empty()) fail_shapes(shape_a, shape_b, given);
    require(dtype != DType::Bool, ErrorKind::Type, "MatMul: not defined for bool");
    const bool vector_a = shape_a.size() == 1, vector_b = shape_b.size() == 1;
    const Dims da = vector_a ? Dims{1, shape_a[0]} : shape_a;
    const Dims db = vector_b ? Dims{shape_b[0], 1} : shape_b;
    p.transpose_a &= !vector_a, p.transpose_b &= !vector_b;
    const NodeId x = reshape(g, a, da), y = reshape(g, b, db);
    auto last_two = [](const Dims& n, bool swap) {
      const int64_t rows = n[n.size() - 2], columns = n.back();
      return swap ? std::pair{columns, rows} : std::pair{rows, columns};
    };
    const auto [m, inner] = last_two(da, p.transpose_a);
    const auto [inner_b, n] = last_two(db, p.transpose_b);
    if (inner != inner_b) fail_shapes(shape_a, shape_b, given);
    const Dims batch_a(da.begin(), da.end() - 2), batch_b(db.begin(), db.end() - 2);
    Dims out;
    NodeId z;
    if (batch_b.empty() && !batch_a.empty() && !p.transpose_a) {  // rows of all batches at once
      out = batch_a;
      const int64_t rows = element_count(batch_a) * m;
      z = matmul(g, reshape(g, x, Dims{rows, inner}), y, false, p.transpose_b);
    } else {
      const auto batch = broadcast(batch_a, batch_b);
      if (!batch) fail_shapes(shape_a, shape_b, given);
      out = *batch;
      auto spread = [&](NodeId v, const Dims& n) {
        Dims to = out;
        to.insert(to.end(), n.end() - 2, n.end());
        return broadcast_to(g, v, to);
      };
      z = matmul(g, spread(x, da), spread(y, db), p.transpose_a, p.transpose_b);
    }
    if (!vector_a) out.push_back(m);
    if (!vector_b) out.push_back(n);
    return reshape(g, z, out);
  }

 private:
  /// A matrix whose rows are all the same is multiplied once. One that has ones alone, or is zero
  /// but for one row's piece, picks from the other.
  static NodeId of_same_rows(Graph& g, NodeId a, NodeId b, ProductAttributes p) {
    const Dims da = g.dims(a);
    if (da.size() != 2 || p.transpose_a || element_count(da) == 0) return kNoNode;
    const int64_t m = da[0], k = da[1], n = g.dims(b)[p.transpose_b ? 0 : 1];
    if (m > 1) {
      NodeId row = kNoNode;
      if (is_constant(g, a)) row = constant_bits(g, g.dtype(a), Dims{1, k}, g[a].bits);
      if (is_broadcast(g, a) && source_dim(g.dims(g.input(a, 0)), da, 0) == 1) {
        const int64_t width = source_dim(g.dims(g.input(a, 0)), da, 1);
        row = broadcast_to(g, reshape(g, g.input(a, 0), Dims{1, width}), Dims{1, k});
      }
      if (row == kNoNode) return kNoNode;
      return broadcast_to(g, matmul(g, row, b, false, p.transpose_b), Dims{m, n});
    }
    if (k == 1 && is_constant(g, a) && constant_value(g, a) == 1) return reshape(g, b, Dims{1, n});
    const auto box = placement(g, a);
    if (!box) return kNoNode;
    const NodeId piece = box->from;
    const int64_t width = g.dims(piece)[1], axis = p.transpose_b ? 1 : 0;
    SliceSpec rows{{0, 0}, {n, n}, {1, 1}};
    rows.start[axis] = box->start[1], rows.size[axis] = width, rows.step[axis] = box->step[1];
    return matmul(g, piece, slice(g, b, rows), false, p.transpose_b);
  }

  /// One pair's product over the batch. A factor that is the same for all examples is multiplied
  /// with the rows of all of them at once.
  static NodeId pair_over_batch(Graph& g, const Batch& batch, size_t k, ProductAttributes p) {
    const NodeId a = batch.inputs[k], b = batch.inputs[k + 1];
    const bool batched_a = batch.batched[k], batched_b = batch.batched[k + 1];
    if (batched_a && batched_b) return of_examples(g, a, b, p);
    if (batched_a) return rows_of_all(g, p.transpose_a ? swapped(g, a) : a, b, p.transpose_b);
    if (batched_b)  // the transposed product of the transposed factors
      return swapped(g, rows_of_all(g, p.transpose_b ? b : swapped(g, b), a, !p.transpose_a));
    const NodeId y = matmul(g, a, b, p.transpose_a, p.transpose_b);
    return broadcast_to(g, y, behind_batch(batch.size, g.dims(y)));
  }

  /// a [N, ..., m, k] and b [..., k, n], or transposed: [N, ..., m, n].
  static NodeId rows_of_all(Graph& g, NodeId a, NodeId b, bool transpose_b) {
    const size_t rank = g.dims(b).size();
    const NodeId inner = move_axis(g, a, 0, rank - 2);
    const Dims split = g.dims(inner);
    Dims folded(split.begin(), split.end() - 3);
    folded.insert(folded.end(), {split[rank - 2] * split[rank - 1], split[rank]});
    const NodeId y = matmul(g, reshape(g, inner, folded), b, false, transpose_b);
    Dims to(split.begin(), split.end() - 1);
    to.push_back(g.dims(y).back());
    return move_axis(g, reshape(g, y, to), rank - 2, 0);
  }

  /// Each example has factors of its own. Products of a single term are elementwise, so that rows
  /// can run with what is around them; large ones are written once, by the product.
  static NodeId of_examples(Graph& g, NodeId a, NodeId b, ProductAttributes p) {
    constexpr int64_t kLarge = 256;
    const Dims da = g.dims(a), db = g.dims(b);
    const size_t rank = da.size();
    const int64_t m = da[rank - (p.transpose_a ? 1 : 2)], k = da[rank - (p.transpose_a ? 2 : 1)];
    const int64_t n = db[rank - (p.transpose_b ? 2 : 1)];
    if (k != 1 || m * n > kLarge) return matmul(g, a, b, p.transpose_a, p.transpose_b);
    const NodeId column = p.transpose_a ? swapped(g, a) : a;
    const NodeId row = p.transpose_b ? swapped(g, b) : b;
    Dims to = g.dims(column);
    to.back() = g.dims(row).back();
    return binary(g, Op::Mul, broadcast_to(g, column, to), broadcast_to(g, row, to));
  }

  /// The last two axes transposed.
  static NodeId swapped(Graph& g, NodeId x) {
    const size_t rank = g.dims(x).size();
    return move_axis(g, x, rank - 1, rank - 2);
  }

  static Type of_pair(const Graph& g, NodeId a, NodeId b, ProductAttributes p) {
    const Dims &da = g.dims(a), &db = g.dims(b);
    const size_t r = da.size();
    bool ok = r >= 2 && db.size() == r && std::equal(da.begin(), da.end() - 2, db.begin());
    int64_t m = 0, k = 0, k2 = 0, n = 0;
    if (ok) {
      m = da[r - 2], k = da[r - 1], k2 = db[r - 2], n = db[r - 1];
      if (p.transpose_a) std::swap(m, k);
      if (p.transpose_b) std::swap(k2, n);
    }
    if (!ok || k != k2) fail_shapes(da, db, p);
    check_same_dtype("MatMul", g.dtype(a), g.dtype(b));
    Dims to(da.begin(), da.end() - 2);
    to.push_back(m);
    to.push_back(n);
    return {g.dtype(a), to};
  }
};

}  // namespace

SPEC(MatMul, MatrixProduct)

NodeId matmul(Graph& g, NodeId a, NodeId b, bool transpose_a, bool transpose_b) {
  const NodeId in[] = {a, b};
  return make(g, Op::MatMul, {in, encode(ProductAttributes{transpose_a, transpose_b})});
}

NodeId find_matmul(const Graph& g, NodeId a, NodeId b, ProductAttributes p) {
  const NodeId in[] = {a, b};
  const Dims attributes = encode(p);
  const Type type = spec(Op::MatMul).infer(g, {in, attributes});
  return g.find(Op::MatMul, type.dtype, type.dims, in, attributes);
}

NodeId product_of_placed(Graph& g, NodeId a, NodeId b, ProductAttributes p) {
  const auto box = placement(g, a);
  if (!box || p.transpose_a) return matmul(g, a, b, p.transpose_a, p.transpose_b);
  const size_t r = g.dims(a).size();
  const Dims full = g.dims(a), inner = g.dims(box->from);
  SliceSpec rows{Dims(r, 0), g.dims(b), Dims(r, 1)};  // of b: those that the block meets
  const size_t contracted = p.transpose_b ? r - 1 : r - 2;
  for (size_t k = 0; k + 2 < r; ++k)
    rows.start[k] = box->start[k], rows.size[k] = inner[k], rows.step[k] = box->step[k];
  rows.start[contracted] = box->start[r - 1];
  rows.size[contracted] = inner[r - 1];
  rows.step[contracted] = box->step[r - 1];
  const NodeId met = slice(g, b, rows);
  Dims to = inner, out = full, start = box->start, step = box->step;
  to[r - 1] = out[r - 1] = g.dims(b)[p.transpose_b ? r - 2 : r - 1];
  start[r - 1] = 0, step[r - 1] = 1;
  NodeId y;
  if (inner[r - 1] == 1 && is_floating(g.dtype(b))) {  // an outer product
    Dims row = rows.size;
    row[r - 2] = 1, row[r - 1] = to[r - 1];
    y = binary(g, Op::Mul, broadcast_to(g, box->from, to),
               broadcast_to(g, reshape(g, met, row), to));
  } else {
    y = matmul(g, box->from, met, false, p.transpose_b);
  }
  return slice_scatter(g, y, out, start, step);
}

NodeId numpy_matmul(Graph& g, NodeId a, NodeId b) {
  const NodeId in[] = {a, b};
  return spec(Op::MatMul).apply(g, {in, encode(ProductAttributes{})});
}

NodeId sum_of_products(Graph& g, std::span<const NodeId> pairs, ProductAttributes p) {
  const Dims attributes = encode(p);
  const Type type = spec(Op::MatMul).infer(g, {pairs, attributes});
  return g.intern(Op::MatMul, type.dtype, type.dims, pairs, attributes);
}

ProductSizes sizes_of(const Dims& a, const Dims& out, ProductAttributes p) {
  const size_t r = out.size();
  return {out[r - 2], out[r - 1], a[p.transpose_a ? r - 2 : r - 1]};
}

}  // namespace gradcell

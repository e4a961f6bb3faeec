// Shape, movement, reduction and contraction nodes: checks, inferred shapes, simplification.
#include <algorithm>

#include "ir/builder.h"

namespace gradcell {

namespace {

bool is_identity(std::span<const int64_t> perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

bool full(const Graph& g, NodeId x, const SliceSpec& s) {
  const Dims& d = g.dims(x);
  for (size_t i = 0; i < d.size(); ++i)
    if (s.start[i] != 0 || s.size[i] != d[i] || s.step[i] != 1) return false;
  return true;
}

Dims slice_attrs(std::span<const int64_t> start, std::span<const int64_t> step) {
  Dims attrs(start.begin(), start.end());
  attrs.insert(attrs.end(), step.begin(), step.end());
  return attrs;
}

Dims without(std::span<const int64_t> dims, std::span<const int64_t> axes) {
  Dims out;
  for (size_t i = 0; i < dims.size(); ++i)
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end())
      out.push_back(dims[i]);
  return out;
}

/// Throws unless `count` places from start on, step apart, lie inside `dims`.
void check_box(const char* op, const Dims& dims, std::span<const int64_t> start,
               std::span<const int64_t> count, std::span<const int64_t> step) {
  size_t rank = dims.size();
  bool ok = start.size() == rank && count.size() == rank && step.size() == rank;
  for (size_t i = 0; ok && i < rank; ++i) {
    int64_t n = count[i];
    if (n > 0) {
      int64_t last;
      ok = !__builtin_mul_overflow(n - 1, step[i], &last) &&
           !__builtin_add_overflow(last, start[i], &last) && start[i] >= 0 && start[i] < dims[i] &&
           last >= 0 && last < dims[i];
    } else {
      ok = n == 0;
    }
  }
  if (!ok)
    fail(ErrorKind::Index, op, ": start ", to_string(start), ", size ", to_string(count),
         " and step ", to_string(step), " reach outside a tensor of shape ", to_string(dims));
}

/// The dimension of a broadcast's source that stands at axis i of its result; 1 where it has none.
int64_t source_dim(const Dims& from, const Dims& to, size_t i) {
  size_t missing = to.size() - from.size();
  return i < missing ? 1 : from[i - missing];
}

void check_index(const char* op, DType t) {
  require(t == DType::Int32 || t == DType::Int64, ErrorKind::Type, op,
          ": indices must be int32 or int64, got ", name(t));
}

}  // namespace

NodeId reshape(Graph& g, NodeId x, std::span<const int64_t> dims) {
  Dims to(dims.begin(), dims.end());
  if (element_count(to) != g.count(x))
    fail(ErrorKind::Value, "Reshape: a tensor of shape ", to_string(g.dims(x)),
         " cannot take shape ", to_string(to));
  if (g[x].op == Op::Reshape) x = g.input(x, 0);
  if (g.dims(x) == to) return x;
  if (is_constant(g, x)) return constant_bits(g, g.dtype(x), to, g[x].bits);
  NodeId in[] = {x};
  return g.intern(Op::Reshape, g.dtype(x), to, in);
}

NodeId transpose(Graph& g, NodeId x, std::span<const int64_t> perm) {
  Dims p(perm.begin(), perm.end());
  if (g[x].op == Op::Transpose) {
    auto inner = g.attrs(x);
    for (auto& axis : p) axis = inner[axis];
    x = g.input(x, 0);
  }
  if (is_identity(p)) return x;
  const Dims& from = g.dims(x);
  Dims to;
  int64_t last = -1;
  bool order_kept = true;
  for (int64_t axis : p) {
    to.push_back(from[axis]);
    if (from[axis] == 1) continue;
    order_kept &= axis > last;
    last = axis;
  }
  if (order_kept) return reshape(g, x, to);
  if (is_constant(g, x)) return constant_bits(g, g.dtype(x), to, g[x].bits);
  NodeId in[] = {x};
  return g.intern(Op::Transpose, g.dtype(x), to, in, p);
}

NodeId broadcast_to(Graph& g, NodeId x, std::span<const int64_t> dims) {
  Dims to(dims.begin(), dims.end());
  const Dims& from = g.dims(x);
  bool ok = from.size() <= to.size();
  for (size_t i = 0; ok && i < to.size(); ++i) {
    int64_t d = source_dim(from, to, i);
    ok = d == to[i] || d == 1;
  }
  if (!ok)
    fail(ErrorKind::Value, "BroadcastTo: a tensor of shape ", to_string(from),
         " does not broadcast to ", to_string(to));
  if (is_constant(g, x)) return constant_bits(g, g.dtype(x), to, g[x].bits);
  if (g[x].op == Op::BroadcastTo) x = g.input(x, 0);
  if (g.count(x) == element_count(to)) return reshape(g, x, to);
  NodeId in[] = {x};
  return g.intern(Op::BroadcastTo, g.dtype(x), to, in);
}

NodeId slice(Graph& g, NodeId x, const SliceSpec& spec) {
  check_box("Slice", g.dims(x), spec.start, spec.size, spec.step);
  if (full(g, x, spec)) return x;
  if (is_constant(g, x)) return constant_bits(g, g.dtype(x), spec.size, g[x].bits);
  Dims attrs = slice_attrs(spec.start, spec.step);
  if (g[x].op == Op::SliceScatter && g.dims(g.input(x, 0)) == spec.size) {
    auto placed = g.attrs(x);
    if (std::equal(attrs.begin(), attrs.end(), placed.begin(), placed.end())) return g.input(x, 0);
  }
  if (g[x].op == Op::Slice) {  // a slice of a slice
    size_t rank = spec.start.size();
    auto inner = g.attrs(x);
    SliceSpec merged = spec;
    for (size_t i = 0; i < rank; ++i) {
      merged.start[i] = inner[i] + spec.start[i] * inner[rank + i];
      merged.step[i] = spec.step[i] * inner[rank + i];
    }
    return slice(g, g.input(x, 0), merged);
  }
  NodeId in[] = {x};
  return g.intern(Op::Slice, g.dtype(x), spec.size, in, attrs);
}

NodeId slice_scatter(Graph& g, NodeId x, std::span<const int64_t> dims,
                     std::span<const int64_t> start, std::span<const int64_t> step) {
  Dims attrs = slice_attrs(start, step);
  Dims to(dims.begin(), dims.end());
  check_box("SliceScatter", to, start, g.dims(x), step);
  bool whole = g.dims(x) == to;
  for (size_t i = 0; whole && i < to.size(); ++i) whole = start[i] == 0 && step[i] == 1;
  if (whole) return x;
  NodeId in[] = {x};
  return g.intern(Op::SliceScatter, g.dtype(x), to, in, attrs);
}

NodeId concat(Graph& g, std::span<const NodeId> xs, int axis) {
  require(!xs.empty(), ErrorKind::Value, "Concat: needs at least one tensor");
  if (xs.size() == 1) return xs[0];
  require(xs.size() < 65536, ErrorKind::Value, "Concat: more than 65535 tensors");
  Dims to = g.dims(xs[0]);
  require(axis >= 0 && axis < static_cast<int>(to.size()), ErrorKind::Value, "Concat: axis ", axis,
          " is out of range for tensors of shape ", to_string(to));
  for (NodeId x : xs.subspan(1)) {
    Dims d = g.dims(x);
    bool ok = d.size() == to.size();
    for (size_t i = 0; ok && i < d.size(); ++i) ok = d[i] == to[i] || static_cast<int>(i) == axis;
    require(ok, ErrorKind::Value, "Concat: shapes ", to_string(g.dims(xs[0])), " and ",
            to_string(d), " differ elsewhere than on axis ", axis);
    require(g.dtype(x) == g.dtype(xs[0]), ErrorKind::Type, "Concat: dtypes ", name(g.dtype(xs[0])),
            " and ", name(g.dtype(x)), " differ");
    to[axis] += d[axis];
  }
  int64_t attrs[] = {axis};
  return g.intern(Op::Concat, g.dtype(xs[0]), to, xs, attrs);
}

NodeId matmul(Graph& g, NodeId a, NodeId b, bool transpose_a, bool transpose_b) {
  if (g[a].op == Op::Neg || g[b].op == Op::Neg) {  // exact but for a zero's sign; it may meet a sum
    bool first = g[a].op == Op::Neg;
    NodeId x = first ? g.input(a, 0) : a, y = first ? b : g.input(b, 0);
    return unary(g, Op::Neg, matmul(g, x, y, transpose_a, transpose_b));
  }
  auto swaps_last_two = [&](NodeId x) {
    if (g[x].op != Op::Transpose) return false;
    auto p = g.attrs(x);
    int64_t r = static_cast<int64_t>(p.size());
    return is_identity(p.first(p.size() - 2)) && p[r - 2] == r - 1 && p[r - 1] == r - 2;
  };
  if (swaps_last_two(a)) a = g.input(a, 0), transpose_a = !transpose_a;
  if (swaps_last_two(b)) b = g.input(b, 0), transpose_b = !transpose_b;
  Dims da = g.dims(a), db = g.dims(b);
  size_t r = da.size();
  bool ok = r >= 2 && db.size() == r && std::equal(da.begin(), da.end() - 2, db.begin());
  int64_t m = 0, k = 0, k2 = 0, n = 0;
  if (ok) {
    m = da[r - 2], k = da[r - 1], k2 = db[r - 2], n = db[r - 1];
    if (transpose_a) std::swap(m, k);
    if (transpose_b) std::swap(k2, n);
  }
  if (!ok || k != k2)
    fail(ErrorKind::Value, "MatMul: shapes ", to_string(da), transpose_a ? " (transposed)" : "",
         " and ", to_string(db), transpose_b ? " (transposed)" : "", " do not multiply");
  require(g.dtype(a) == g.dtype(b), ErrorKind::Type, "MatMul: dtypes ", name(g.dtype(a)), " and ",
          name(g.dtype(b)), " differ");
  Dims to(da.begin(), da.end() - 2);
  to.push_back(m);
  to.push_back(n);
  NodeId in[] = {a, b};
  int64_t attrs[] = {transpose_a, transpose_b};
  return g.intern(Op::MatMul, g.dtype(a), to, in, attrs);
}

NodeId reduce(Graph& g, Op op, NodeId x, std::span<const int64_t> axes) {
  if (axes.empty()) return x;
  Dims from = g.dims(x);
  Dims to = without(from, axes);
  int64_t n = 1;
  for (int64_t axis : axes) n *= from[axis];
  if (op != Op::ReduceSum)
    require(n > 0 || element_count(to) == 0, ErrorKind::Value, info(op).name,
            ": no identity for an empty reduction of shape ", to_string(from));
  if (n == 0) return constant(g, g.dtype(x), to, 0);
  if (n == 1) return reshape(g, x, to);
  bool constant_along = is_constant(g, x);
  if (g[x].op == Op::BroadcastTo) {
    constant_along = true;
    const Dims& source = g.dims(g.input(x, 0));
    for (int64_t axis : axes) constant_along &= source_dim(source, from, axis) == 1;
  }
  if (constant_along) {  // every element along the axes is the same
    NodeId one;
    if (is_constant(g, x)) {
      one = constant_bits(g, g.dtype(x), to, g[x].bits);
    } else {
      NodeId s = g.input(x, 0);
      Dims kept;
      for (size_t i = 0; i < from.size(); ++i)
        if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end())
          kept.push_back(source_dim(g.dims(s), from, i));
      one = broadcast_to(g, reshape(g, s, kept), to);
    }
    if (op != Op::ReduceSum) return one;
    // A count may be beyond what a half type holds.
    DType t = g.dtype(x), wide = t == DType::Float16 || t == DType::BFloat16 ? DType::Float32 : t;
    NodeId sum =
        binary(g, Op::Mul, cast(g, one, wide), constant(g, wide, to, static_cast<double>(n)));
    return cast(g, sum, t);
  }
  if (g[x].op == op) {  // a reduction of a reduction
    auto inner = g.attrs(x);
    Dims merged(inner.begin(), inner.end());
    NodeId source = g.input(x, 0);
    Dims kept;
    for (size_t i = 0; i < g.dims(source).size(); ++i)
      if (std::find(inner.begin(), inner.end(), static_cast<int64_t>(i)) == inner.end())
        kept.push_back(static_cast<int64_t>(i));
    for (int64_t axis : axes) merged.push_back(kept[axis]);
    std::sort(merged.begin(), merged.end());
    return reduce(g, op, source, merged);
  }
  NodeId in[] = {x};
  return g.intern(op, g.dtype(x), to, in, axes);
}

NodeId arg_reduce(Graph& g, Op op, NodeId x, int axis) {
  Dims from = g.dims(x);
  require(from[axis] > 0, ErrorKind::Value, info(op).name, ": axis ", axis, " of shape ",
          to_string(from), " is empty");
  int64_t attrs[] = {axis};
  NodeId in[] = {x};
  return g.intern(op, DType::Int32, without(from, attrs), in, attrs);
}

NodeId cumsum(Graph& g, NodeId x, int axis, bool exclusive, bool reverse) {
  int64_t attrs[] = {axis, exclusive, reverse};
  NodeId in[] = {x};
  return g.intern(Op::CumSum, g.dtype(x), Dims(g.dims(x)), in, attrs);
}

NodeId gather(Graph& g, NodeId x, NodeId indices, int axis) {
  check_index("Gather", g.dtype(indices));
  Dims from = g.dims(x), at = g.dims(indices);
  require(axis >= 0 && axis < static_cast<int>(from.size()), ErrorKind::Value, "Gather: axis ",
          axis, " is out of range for shape ", to_string(from));
  Dims to(from.begin(), from.begin() + axis);
  to.insert(to.end(), at.begin(), at.end());
  to.insert(to.end(), from.begin() + axis + 1, from.end());
  int64_t attrs[] = {axis};
  NodeId in[] = {x, indices};
  return g.intern(Op::Gather, g.dtype(x), to, in, attrs);
}

NodeId scatter_add(Graph& g, NodeId indices, NodeId updates, int axis, int64_t size) {
  check_index("ScatterAdd", g.dtype(indices));
  Dims at = g.dims(indices), from = g.dims(updates);
  bool ok = axis >= 0 && axis + at.size() <= from.size() &&
            std::equal(at.begin(), at.end(), from.begin() + axis);
  require(size >= 0, ErrorKind::Value, "ScatterAdd: size ", size, " is negative");
  require(ok, ErrorKind::Value, "ScatterAdd: updates of shape ", to_string(from),
          " do not fit indices of shape ", to_string(at), " on axis ", axis);
  Dims to(from.begin(), from.begin() + axis);
  to.push_back(size);
  to.insert(to.end(), from.begin() + axis + static_cast<int64_t>(at.size()), from.end());
  int64_t attrs[] = {axis};
  NodeId in[] = {indices, updates};
  return g.intern(Op::ScatterAdd, g.dtype(updates), to, in, attrs);
}

NodeId last_writer(Graph& g, NodeId indices, int64_t size) {
  check_index("LastWriter", g.dtype(indices));
  require(size >= 0, ErrorKind::Value, "LastWriter: size ", size, " is negative");
  NodeId in[] = {indices};
  return g.intern(Op::LastWriter, DType::Int64, Dims{size}, in);
}

}  // namespace gradcell

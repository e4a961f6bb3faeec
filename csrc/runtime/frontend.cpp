#include "runtime/frontend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "ad/row_dots.h"
#include "base/half.h"

namespace gradcell {

namespace {

/// The trace an op goes to: the current one, or one of its own that runs at once.
class Recorder {
 public:
  Recorder() : own_(current_trace() ? nullptr : std::make_shared<Trace>()) {
    if (!own_) graph().location = user_location();
  }
  Trace& trace() { return own_ ? *own_ : *current_trace(); }
  Graph& graph() { return trace().graph; }
  bool eager() const { return own_ != nullptr; }
  NodeId in(const TensorPtr& t) { return t->in(trace()); }

  TensorPtr result(NodeId id) {
    if (!own_) return std::make_shared<Tensor>(current_trace()->shared_from_this(), id);
    if (const Array* a = own_->known(id)) return std::make_shared<Tensor>(*a);
    NodeId out[] = {id};
    return std::make_shared<Tensor>(own_->finish(out)[0]);
  }

 private:
  TracePtr own_;
};

int family(DType t) { return t == DType::Bool ? 0 : is_floating(t) ? 2 : 1; }

/// The kind of what is weak; null for a tensor.
const Number::Kind* weak_kind(const Operand2& o) {
  if (auto* n = std::get_if<Number>(&o)) return &n->kind;
  if (auto* n = std::get_if<Numbers>(&o)) return &n->kind;
  return nullptr;
}

DType dtype_of(Number::Kind kind) {
  switch (kind) {
    case Number::Kind::Bool:
      return DType::Bool;
    case Number::Kind::Int:
      return DType::Int64;
    default:
      return DType::Float32;
  }
}

DType common_dtype(const Operand2& a, const Operand2& b) {
  const Number::Kind *ka = weak_kind(a), *kb = weak_kind(b);
  auto strong = [](const Operand2& o) { return std::get<TensorPtr>(o)->dtype(); };
  if (ka && kb) return promote(dtype_of(*ka), dtype_of(*kb));
  if (kb) return promote(strong(a), *kb);
  return ka ? promote(strong(b), *ka) : promote(strong(a), strong(b));
}

/// False for a number that is no value of an integer dtype.
bool fits(const Number& n, DType dtype) {
  if (is_floating(dtype) || dtype == DType::Bool) return true;
  const auto bits = static_cast<int>(8 * item_size(dtype)) - (dtype != DType::UInt8);
  const double end = std::ldexp(1.0, bits), begin = dtype == DType::UInt8 ? 0 : -end;
  if (n.kind == Number::Kind::Float) return std::trunc(n.f) >= begin && n.f < end;  // false for NaN
  return dtype == DType::Int64 ||
         (static_cast<double>(n.i) >= begin && static_cast<double>(n.i) < end);
}

bool fits(const Operand2& o, DType dtype) {
  auto* n = std::get_if<Number>(&o);
  return !n || fits(*n, dtype);
}

/// The number, rounded once to the dtype; integers wrap where the op's results do.
NodeId lower_number(Graph& g, const char* op, const Number& n, DType dtype, const Dims& dims,
                    bool wraps) {
  if (!wraps && !fits(n, dtype)) {
    if (n.kind == Number::Kind::Float)
      fail(ErrorKind::Value, op, ": ", n.f, " does not fit into ", name(dtype));
    fail(ErrorKind::Value, op, ": ", n.i, " does not fit into ", name(dtype));
  }
  const bool half = dtype == DType::Float16 || dtype == DType::BFloat16;
  if (n.kind == Number::Kind::Float) return constant(g, dtype, dims, half ? to_odd(n.f) : n.f);
  if (dtype == DType::Float64) return constant(g, dtype, dims, static_cast<double>(n.i));
  if (is_floating(dtype)) return constant(g, dtype, dims, half ? to_odd(to_odd(n.i)) : to_odd(n.i));
  Dims d = dims;
  return gradcell::cast(g, constant_bits(g, DType::Int64, d, static_cast<uint64_t>(n.i)), dtype);
}

/// A tensor or what is weak as a node of this dtype and shape.
NodeId lower(Recorder& r, const char* op, const Operand2& o, DType dtype, const Dims& dims,
             bool wraps = false) {
  Graph& g = r.graph();
  if (auto* n = std::get_if<Number>(&o)) return lower_number(g, op, *n, dtype, dims, wraps);
  auto* list = std::get_if<Numbers>(&o);
  NodeId x = gradcell::cast(g, r.in(list ? list->in(dtype) : std::get<TensorPtr>(o)), dtype);
  return g.dims(x) == dims ? x : gradcell::broadcast_to(g, x, dims);
}

/// Whether an integer divisor of dtype t is known to hold a zero: numbers, a tensor with a value.
bool known_zero(const Operand2& o, DType t) {
  if (auto* n = std::get_if<Number>(&o)) return n->i == 0;
  auto* list = std::get_if<Numbers>(&o);
  const TensorPtr x = list ? list->in(t) : std::get<TensorPtr>(o);
  if (x->traced()) return false;
  const Array a = x->value();
  const size_t size = item_size(a.dtype);
  const auto* p = static_cast<const char*>(a.data());
  constexpr char kZero[8] = {};
  for (size_t at = 0; at < a.bytes(); at += size)
    if (std::memcmp(p + at, kZero, size) == 0) return true;
  return false;
}

const Dims& operand_dims(const Operand2& o) {
  static const Dims scalar;
  if (auto* list = std::get_if<Numbers>(&o)) return list->dims;
  auto* t = std::get_if<TensorPtr>(&o);
  return t ? (*t)->dims() : scalar;
}

/// Arithmetic on two bools, as MindSpore has it.
Op on_bools(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Maximum:
      return Op::LogicalOr;
    case Op::Mul:
    case Op::Minimum:
      return Op::LogicalAnd;
    case Op::Sub:
      return Op::LogicalXor;
    default:
      return op;
  }
}

int normal_axis(const char* op, int64_t axis, size_t rank) {
  auto r = static_cast<int64_t>(rank);
  int64_t limit = std::max<int64_t>(r, 1);
  require(axis >= -limit && axis < limit, ErrorKind::Value, op, ": axis ", axis,
          " is out of range for a tensor of ", rank, " dimensions");
  return static_cast<int>(axis < 0 ? axis + r : axis);
}

Dims normal_axes(const char* op, const std::optional<Dims>& axes, size_t rank) {
  Dims out;
  if (!axes || axes->empty()) {
    out.resize(rank);
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  for (int64_t a : *axes) {
    int64_t n = normal_axis(op, a, rank);
    require(std::find(out.begin(), out.end(), n) == out.end(), ErrorKind::Value, op, ": axis ", a,
            " appears twice");
    if (rank > 0) out.push_back(n);
  }
  std::sort(out.begin(), out.end());
  return out;
}

NodeId keep(Graph& g, NodeId y, Dims dims, const Dims& axes) {
  for (int64_t a : axes) dims[a] = 1;
  return reshape(g, y, dims);
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (family(a) != family(b)) return family(a) > family(b) ? a : b;
  if (a > b) std::swap(a, b);
  if (a == DType::Float16 && b == DType::BFloat16) return DType::Float32;
  if (a == DType::UInt8 && b == DType::Int8) return DType::Int16;
  return b;
}

DType promote(DType t, Number::Kind number) {
  if (is_floating(t)) return t;
  if (number == Number::Kind::Float) return DType::Float32;
  if (t == DType::Bool && number == Number::Kind::Int) return DType::Int64;
  return t;
}

Dims broadcast_shapes(const char* op, const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    require(x == y || x == 1 || y == 1, ErrorKind::Value, op, ": shapes ", to_string(a), " and ",
            to_string(b), " do not broadcast");
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

namespace ops {

TensorPtr unary(Op op, const TensorPtr& x) {
  Recorder r;
  const OpInfo& row = info(op);
  NodeId n = r.in(x);
  DType t = x->dtype();
  if (row.cls == OpClass::Float && !is_floating(t))
    n = gradcell::cast(r.graph(), n, DType::Float32);
  if (row.cls == OpClass::Bool) n = gradcell::cast(r.graph(), n, DType::Bool);
  if (row.cls == OpClass::Number && row.kind == OpKind::Unary && t == DType::Bool) {
    require(op == Op::Abs || op == Op::ReLU || op == Op::Sign, ErrorKind::Type, row.name,
            ": not defined for bool");
    return x;
  }
  return r.result(gradcell::unary(r.graph(), op, n));
}

TensorPtr binary(Op op, const Operand2& a, const Operand2& b) {
  Recorder r;
  const OpInfo& row = info(op);
  DType t = common_dtype(a, b);
  if (row.cls == OpClass::Float && !is_floating(t)) t = DType::Float32;
  if (row.cls == OpClass::Bool) t = DType::Bool;
  if (t == DType::Bool && row.kind == OpKind::Binary) {
    op = on_bools(op);
    require(info(op).cls == OpClass::Bool, ErrorKind::Type, row.name, ": not defined for bool");
  }
  if (row.kind == OpKind::Compare && !(fits(a, t) && fits(b, t))) t = DType::Int64;
  if ((op == Op::FloorDiv || op == Op::Mod) && !is_floating(t))
    require(!known_zero(b, t), ErrorKind::Value, row.name, ": integer division by zero");
  // Sums and products wrap, and are right modulo 2^n if their operands are.
  const bool wraps = op == Op::Add || op == Op::Sub || op == Op::Mul;
  Dims dims = broadcast_shapes(row.name, operand_dims(a), operand_dims(b));
  NodeId x = lower(r, row.name, a, t, dims, wraps), y = lower(r, row.name, b, t, dims, wraps);
  return r.result(gradcell::binary(r.graph(), op, x, y));
}

TensorPtr select(const TensorPtr& c, const Operand2& a, const Operand2& b) {
  Recorder r;
  DType t = common_dtype(a, b);
  Dims dims = broadcast_shapes("Select", operand_dims(a), operand_dims(b));
  dims = broadcast_shapes("Select", c->dims(), dims);
  NodeId w = lower(r, "Select", c, DType::Bool, dims);
  NodeId x = lower(r, "Select", a, t, dims), y = lower(r, "Select", b, t, dims);
  return r.result(gradcell::select(r.graph(), w, x, y));
}

TensorPtr cast(const TensorPtr& x, DType dtype) {
  if (x->dtype() == dtype) return x;
  Recorder r;
  return r.result(gradcell::cast(r.graph(), r.in(x), dtype));
}

TensorPtr stop_gradient(const TensorPtr& x) {
  Recorder r;
  if (r.eager()) return x;
  return r.result(gradcell::stop_gradient(r.graph(), r.in(x)));
}

TensorPtr full(const Dims& dims, DType dtype, Number value) {
  for (int64_t d : dims)
    require(d >= 0, ErrorKind::Value, "a shape cannot have the negative dimension ", d);
  Recorder r;
  return r.result(lower(r, "full", value, dtype, dims));
}

TensorPtr iota(const Dims& dims, DType dtype, int axis) {
  Recorder r;
  return r.result(gradcell::iota(r.graph(), dtype, dims, axis));
}

TensorPtr random_uniform(const TensorPtr& state, const Dims& dims) {
  Recorder r;
  require(state->dtype() == DType::Int64 && state->dims() == Dims{2}, ErrorKind::Type,
          "RandomUniform: the state must be int64 of shape [2]");
  return r.result(gradcell::random_uniform(r.graph(), r.in(state), dims));
}

TensorPtr reshape(const TensorPtr& x, Dims dims) {
  int64_t known = 1, open = -1, total = element_count(x->dims());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1) {
      require(open < 0, ErrorKind::Value, "Reshape: only one dimension of ", to_string(dims),
              " can be -1");
      open = static_cast<int64_t>(i);
    } else {
      require(dims[i] >= 0, ErrorKind::Value, "Reshape: negative dimension in ", to_string(dims));
      known *= dims[i];
    }
  }
  if (open >= 0) {
    require(known > 0 && total % known == 0, ErrorKind::Value, "Reshape: a tensor of shape ",
            to_string(x->dims()), " cannot take shape ", to_string(dims));
    dims[open] = total / known;
  }
  Recorder r;
  return r.result(gradcell::reshape(r.graph(), r.in(x), dims));
}

TensorPtr transpose(const TensorPtr& x, Dims perm) {
  size_t rank = x->dims().size();
  require(perm.size() == rank, ErrorKind::Value, "Transpose: ", perm.size(),
          " axes given for a tensor of shape ", to_string(x->dims()));
  std::vector<uint8_t> seen(rank, 0);
  for (auto& p : perm) {
    p = normal_axis("Transpose", p, rank);
    require(!seen[p], ErrorKind::Value, "Transpose: axis ", p, " appears twice");
    seen[p] = 1;
  }
  Recorder r;
  return r.result(gradcell::transpose(r.graph(), r.in(x), perm));
}

TensorPtr broadcast_to(const TensorPtr& x, Dims dims) {
  const Dims& from = x->dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != -1) continue;
    auto at = static_cast<int64_t>(i) - static_cast<int64_t>(dims.size()) +
              static_cast<int64_t>(from.size());
    require(at >= 0, ErrorKind::Value, "BroadcastTo: -1 stands for no dimension of shape ",
            to_string(from));
    dims[i] = from[at];
  }
  Recorder r;
  return r.result(gradcell::broadcast_to(r.graph(), r.in(x), dims));
}

TensorPtr slice(const TensorPtr& x, const SliceSpec& spec) {
  const Dims& dims = x->dims();
  bool ok = spec.start.size() == dims.size() && spec.size.size() == dims.size() &&
            spec.step.size() == dims.size();
  for (size_t i = 0; ok && i < dims.size(); ++i) {
    if (spec.size[i] == 0) continue;
    int64_t first = spec.start[i], last = first + (spec.size[i] - 1) * spec.step[i];
    ok = spec.size[i] > 0 && std::min(first, last) >= 0 && std::max(first, last) < dims[i];
  }
  require(ok, ErrorKind::Index, "Slice: start ", to_string(spec.start), ", size ",
          to_string(spec.size), ", step ", to_string(spec.step), " leave the tensor of shape ",
          to_string(dims));
  Recorder r;
  const NodeId part = gradcell::slice(r.graph(), r.in(x), spec);
  return r.result(ad::with_fewer_products(r.graph(), part));  // it may be one of a gradient
}

TensorPtr slice_scatter(const TensorPtr& x, const Dims& dims, const Dims& start, const Dims& step) {
  const Dims& size = x->dims();
  bool ok = size.size() == dims.size() && start.size() == dims.size() && step.size() == dims.size();
  for (size_t i = 0; ok && i < dims.size(); ++i) {
    if (size[i] == 0) continue;
    int64_t first = start[i], last = first + (size[i] - 1) * step[i];
    ok = std::min(first, last) >= 0 && std::max(first, last) < dims[i] &&
         (step[i] != 0 || size[i] == 1);
  }
  require(ok, ErrorKind::Index, "SliceScatter: a tensor of shape ", to_string(size), " at start ",
          to_string(start), ", step ", to_string(step), " leaves the shape ", to_string(dims));
  Recorder r;
  return r.result(gradcell::slice_scatter(r.graph(), r.in(x), dims, start, step));
}

TensorPtr concat(const std::vector<TensorPtr>& xs, int axis) {
  Recorder r;
  require(!xs.empty(), ErrorKind::Value, "Concat: needs at least one tensor");
  size_t rank = xs[0]->dims().size();
  require(rank > 0, ErrorKind::Value, "Concat: a tensor without dimensions cannot be concatenated");
  DType t = xs[0]->dtype();
  for (const TensorPtr& x : xs) t = promote(t, x->dtype());
  std::vector<NodeId> in;
  for (const TensorPtr& x : xs) in.push_back(gradcell::cast(r.graph(), r.in(x), t));
  return r.result(gradcell::concat(r.graph(), in, normal_axis("Concat", axis, rank)));
}

TensorPtr matmul(const TensorPtr& a, const TensorPtr& b, bool transpose_a, bool transpose_b) {
  Dims da = a->dims(), db = b->dims();
  auto shapes = [&] {
    return str("MatMul: shapes ", to_string(a->dims()), transpose_a ? " (transposed)" : "", " and ",
               to_string(b->dims()), transpose_b ? " (transposed)" : "", " do not multiply");
  };
  require(!da.empty() && !db.empty(), ErrorKind::Value, shapes());
  require(a->dtype() == b->dtype(), ErrorKind::Type, "MatMul: dtypes ", name(a->dtype()), " and ",
          name(b->dtype()), " differ");
  require(a->dtype() != DType::Bool, ErrorKind::Type, "MatMul: not defined for bool");
  bool vector_a = da.size() == 1, vector_b = db.size() == 1;
  if (vector_a) da.insert(da.begin(), 1), transpose_a = false;
  if (vector_b) db.push_back(1), transpose_b = false;
  Recorder r;
  Graph& g = r.graph();
  NodeId x = gradcell::reshape(g, r.in(a), da), y = gradcell::reshape(g, r.in(b), db);
  int64_t inner = transpose_a ? da[da.size() - 2] : da.back();
  int64_t inner_b = transpose_b ? db.back() : db[db.size() - 2];
  require(inner == inner_b, ErrorKind::Value, shapes());
  int64_t m = transpose_a ? da.back() : da[da.size() - 2],
          n = transpose_b ? db[db.size() - 2] : db.back();
  Dims batch_a(da.begin(), da.end() - 2), batch_b(db.begin(), db.end() - 2), batch;
  NodeId z;
  if (batch_b.empty() && !batch_a.empty() && !transpose_a) {  // rows of all batches at once
    batch = batch_a;
    int64_t rows = element_count(da) / std::max<int64_t>(inner, 1);
    if (inner == 0) rows = element_count(batch) * m;
    z = gradcell::matmul(g, gradcell::reshape(g, x, Dims{rows, inner}), y, false, transpose_b);
  } else {
    for (size_t i = 1; i <= std::min(batch_a.size(), batch_b.size()); ++i) {
      int64_t p = batch_a[batch_a.size() - i], q = batch_b[batch_b.size() - i];
      require(p == q || p == 1 || q == 1, ErrorKind::Value, shapes());
    }
    batch = broadcast_shapes("MatMul", batch_a, batch_b);
    auto spread = [&](NodeId v, const Dims& d) {
      Dims to = batch;
      to.insert(to.end(), d.end() - 2, d.end());
      return gradcell::broadcast_to(g, v, to);
    };
    z = gradcell::matmul(g, spread(x, da), spread(y, db), transpose_a, transpose_b);
  }
  Dims out = batch;
  if (!vector_a) out.push_back(m);
  if (!vector_b) out.push_back(n);
  return r.result(gradcell::reshape(g, z, out));
}

TensorPtr reduce(Op op, const TensorPtr& x, const std::optional<Dims>& axes, bool keep_dims) {
  Recorder r;
  Graph& g = r.graph();
  Dims dims = x->dims(), along = normal_axes(info(op).name, axes, dims.size());
  NodeId in = r.in(x);
  if (op == Op::ReduceSum && x->dtype() == DType::Bool) in = gradcell::cast(g, in, DType::Int64);
  NodeId y = gradcell::reduce(g, op, in, along);
  return r.result(keep_dims ? keep(g, y, dims, along) : y);
}

TensorPtr mean(const TensorPtr& x, const std::optional<Dims>& axes, bool keep_dims) {
  Recorder r;
  Graph& g = r.graph();
  Dims dims = x->dims(), along = normal_axes("ReduceMean", axes, dims.size());
  DType t = x->dtype();
  require(t != DType::Bool, ErrorKind::Type, "ReduceMean: not defined for bool");
  DType wide = t == DType::Float16 || t == DType::BFloat16 ? DType::Float32 : t;
  int64_t n = 1;
  for (int64_t a : along) n *= dims[a];
  NodeId sum = gradcell::reduce(g, Op::ReduceSum, gradcell::cast(g, r.in(x), wide), along);
  NodeId count = constant(g, wide, Dims(g.dims(sum)), static_cast<double>(n));
  NodeId y = gradcell::binary(g, is_floating(wide) ? Op::Div : Op::FloorDiv, sum, count);
  y = gradcell::cast(g, y, t);
  return r.result(keep_dims ? keep(g, y, dims, along) : y);
}

TensorPtr arg_reduce(Op op, const TensorPtr& x, int axis, bool keep_dims) {
  Recorder r;
  Graph& g = r.graph();
  Dims dims = x->dims();
  NodeId in = r.in(x);
  if (dims.empty()) in = gradcell::reshape(g, in, Dims{1}), dims = {1}, keep_dims = false;
  int a = normal_axis(info(op).name, axis, dims.size());
  NodeId y = gradcell::arg_reduce(g, op, in, a);
  return r.result(keep_dims ? keep(g, y, dims, Dims{a}) : y);
}

TensorPtr cumsum(const TensorPtr& x, int axis, bool exclusive, bool reverse) {
  require(!x->dims().empty(), ErrorKind::Value, "CumSum: a tensor without dimensions has no axis");
  Recorder r;
  NodeId in = r.in(x);
  if (x->dtype() == DType::Bool) in = gradcell::cast(r.graph(), in, DType::Int32);
  int a = normal_axis("CumSum", axis, x->dims().size());
  return r.result(gradcell::cumsum(r.graph(), in, a, exclusive, reverse));
}

TensorPtr gather(const TensorPtr& x, const TensorPtr& indices, int axis) {
  require(!x->dims().empty(), ErrorKind::Value, "Gather: a tensor without dimensions has no axis");
  Recorder r;
  int a = normal_axis("Gather", axis, x->dims().size());
  return r.result(gradcell::gather(r.graph(), r.in(x), r.in(indices), a));
}

TensorPtr scatter_add(const TensorPtr& indices, const TensorPtr& updates, int axis, int64_t size) {
  Recorder r;
  int a = normal_axis("ScatterAdd", axis, updates->dims().size() - indices->dims().size() + 1);
  return r.result(gradcell::scatter_add(r.graph(), r.in(indices), r.in(updates), a, size));
}

TensorPtr last_writer(const TensorPtr& indices, int64_t size) {
  Recorder r;
  return r.result(gradcell::last_writer(r.graph(), r.in(indices), size));
}

}  // namespace ops
}  // namespace gradcell

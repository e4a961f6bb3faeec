#include "runtime/frontend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "ad/row_dots.h"
#include "base/broadcast.h"
#include "base/element.h"
#include "base/promotion.h"
#include "base/thread_pool.h"
#include "cpu/calls/integers.h"
#include "ops/families.h"
#include "ops/moving/order.h"
#include "ops/ops.h"
#include "ops/value_of.h"

namespace gradcell {

namespace {

/// The trace an op goes to: the current one, or one of its own that runs at once.
class Recorder {
 public:
  Recorder() : own_(current_trace() ? nullptr : std::make_shared<Trace>()), stamp_(graph()) {
    if (!own_) stamp_.at(trace().here());
  }
  Trace& trace() { return own_ ? *own_ : *current_trace(); }
  Graph& graph() { return trace().graph; }
  void at(const Location& l) { stamp_.at(l); }
  NodeId in(const TensorPtr& t) { return t->in(trace()); }

  TensorPtr result(NodeId id) {
    if (!own_) {
      if (records_constants()) id = stop_gradient(graph(), id);
      return std::make_shared<Tensor>(current_trace()->shared_from_this(), id);
    }
    if (own_->known(id)) return std::make_shared<Tensor>(shared(own_->value(id)));
    NodeId out[] = {id};
    return std::make_shared<Tensor>(own_->finish(out)[0]);
  }

 private:
  TracePtr own_;
  Stamp stamp_;
};

/// The kind of what is weak; null for a tensor.
const Number::Kind* weak_kind(const TensorOrNumber& o) {
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
    case Number::Kind::Complex:
      return default_float() == DType::Float64 ? DType::Complex128 : DType::Complex64;
    default:
      return default_float();
  }
}

DType common_dtype(const TensorOrNumber& a, const TensorOrNumber& b) {
  const Number::Kind *ka = weak_kind(a), *kb = weak_kind(b);
  auto strong = [](const TensorOrNumber& o) { return std::get<TensorPtr>(o)->dtype(); };
  if (ka && kb) return promote(dtype_of(*ka), dtype_of(*kb));
  if (kb) return promote(strong(a), *kb);
  return ka ? promote(strong(b), *ka) : promote(strong(a), strong(b));
}

/// False for a number that is no value of an integer dtype.
bool fits(const Number& n, DType dtype) {
  if (is_floating(dtype) || dtype == DType::Bool) return true;
  const auto bits = narrow<int>(8 * item_size(dtype)) - !is_unsigned(dtype);
  const double end = std::ldexp(1.0, bits), begin = is_unsigned(dtype) ? 0 : -end;
  if (n.kind == Number::Kind::Float) return std::trunc(n.f) >= begin && n.f < end;  // false for NaN
  return dtype == DType::Int64 ||
         (static_cast<double>(n.i) >= begin && static_cast<double>(n.i) < end);
}

bool fits(const TensorOrNumber& o, DType dtype) {
  if (auto* list = std::get_if<Numbers>(&o); list && !is_floating(dtype)) {
    try {
      list->in(dtype);
    } catch (const std::overflow_error&) {
      return false;
    }
  }
  auto* n = std::get_if<Number>(&o);
  return !n || fits(*n, dtype);
}

/// The number, rounded once to the dtype. Throws std::overflow_error for one that an integer dtype
/// does not hold.
NodeId lower_number(Graph& g, const char* op, const Number& n, DType dtype, const Dims& dims) {
  if (!fits(n, dtype)) {
    const std::string value = n.kind == Number::Kind::Float ? str(n.f) : str(n.i);
    throw std::overflow_error(str(op, ": ", value, " does not fit into ", name(dtype)));
  }
  if (is_complex(dtype)) return cast(g, lower_number(g, op, n, part_dtype(dtype), dims), dtype);
  const bool narrow = is_narrow_float(dtype);
  if (n.kind == Number::Kind::Float) return constant(g, dtype, dims, narrow ? to_odd(n.f) : n.f);
  if (dtype == DType::Float64) return constant(g, dtype, dims, static_cast<double>(n.i));
  if (is_floating(dtype))
    return constant(g, dtype, dims, narrow ? to_odd(to_odd(n.i)) : to_odd(n.i));
  Dims d = dims;
  return cast(g, constant_bits(g, DType::Int64, d, static_cast<uint64_t>(n.i)), dtype);
}

/// A tensor or what is weak as a node of this dtype and shape.
NodeId lower(Recorder& r, const char* op, const TensorOrNumber& o, DType dtype, const Dims& dims) {
  Graph& g = r.graph();
  if (auto* n = std::get_if<Number>(&o)) return lower_number(g, op, *n, dtype, dims);
  auto* list = std::get_if<Numbers>(&o);
  NodeId x = cast(g, r.in(list ? list->in(dtype) : std::get<TensorPtr>(o)), dtype);
  return g.dims(x) == dims ? x : broadcast_to(g, x, dims);
}

/// Throws Value if integers of dtype t hold one that an op does not permit: numbers, or a tensor
/// with a value. Whether that is not known yet.
bool check_permitted(const TensorOrNumber& o, DType t, IntegerLimit limit) {
  bool holds = true;
  if (auto* n = std::get_if<Number>(&o)) {
    holds = permits(limit, n->i);
  } else {
    auto* list = std::get_if<Numbers>(&o);
    const TensorPtr x = list ? list->in(t) : std::get<TensorPtr>(o);
    if (is_floating(x->dtype()) || is_complex(x->dtype())) return false;
    if (x->traced()) return true;
    const Array a = x->value();
    holds = cpu::all_permitted(a.dtype, a.data(), a.count(), limit);
  }
  require(holds, ErrorKind::Value, broken(limit));
  return false;
}

const Dims& operand_dims(const TensorOrNumber& o) {
  static const Dims scalar;
  if (auto* list = std::get_if<Numbers>(&o)) return list->dims;
  auto* t = std::get_if<TensorPtr>(&o);
  return t ? (*t)->dims() : scalar;
}

/// Whether these are tensors of uint64 and of a signed dtype.
bool across_signs(const TensorOrNumber& natural, const TensorOrNumber& whole) {
  auto *a = std::get_if<TensorPtr>(&natural), *b = std::get_if<TensorPtr>(&whole);
  if (!a || !b || (*a)->dtype() != DType::UInt64) return false;
  const DType t = (*b)->dtype();
  return t != DType::Bool && !is_floating(t) && !is_unsigned(t);
}

/// A comparison of uint64 and signed numbers, which no dtype holds both: of numbers below 0 it is
/// known. swapped: the signed ones come first.
NodeId compare_across_signs(Recorder& r, Op op, const TensorOrNumber& natural,
                            const TensorOrNumber& whole, const Dims& dims, bool swapped) {
  Graph& g = r.graph();
  const char* name = info(op).name;
  auto compared = [&](NodeId a, NodeId b) {
    return swapped ? binary(g, op, b, a) : binary(g, op, a, b);
  };
  const NodeId x = lower(r, name, natural, DType::UInt64, dims);
  const NodeId y = lower(r, name, whole, DType::Int64, dims);
  const NodeId zero = constant(g, DType::Int64, dims, 0), one = constant(g, DType::Int64, dims, 1);
  return select(g, binary(g, Op::Less, y, zero), compared(one, zero),
                compared(x, cast(g, y, DType::UInt64)));
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

Dims broadcast_shapes(const char* op, const Dims& a, const Dims& b) {
  auto both = broadcast(a, b);
  if (!both)
    fail(ErrorKind::Value, op, ": shapes ", to_string(a), " and ", to_string(b),
         " do not broadcast");
  return std::move(*both);
}

int64_t normal_axis(const char* op, int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank), limit = std::max<int64_t>(r, 1);
  require(axis >= -limit && axis < limit, ErrorKind::Value, op, ": axis ", axis,
          " is out of range for a tensor of ", rank, " dimensions");
  return rank == 0 ? 0 : axis < 0 ? axis + r : axis;
}

/// Sorted, without any of them twice; none: all.
Dims normal_axes(const char* op, const std::optional<Dims>& axes, size_t rank) {
  Dims out;
  if (!axes || axes->empty()) {
    out.resize(rank);
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  for (int64_t a : *axes) {
    const int64_t n = normal_axis(op, a, rank);
    require(!contains(out, static_cast<size_t>(n)), ErrorKind::Value, op, ": axis ", a,
            " appears twice");
    if (rank > 0) out.push_back(n);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Dims normal(const Spec& s, const Attribute& a, const std::optional<Dims>& given, size_t rank) {
  const char* op = info(s.op).name;
  if (a.kind == AttributeKind::Axes) return normal_axes(op, given, rank);
  Dims values = given ? *given : Dims{0};
  if (a.kind == AttributeKind::Axis || a.kind == AttributeKind::Perm)
    for (int64_t& axis : values) axis = normal_axis(op, axis, rank);
  return values;
}

NodeId keep(Graph& g, NodeId y, Dims dims, const Dims& axes) {
  for (int64_t a : axes)
    if (a < static_cast<int64_t>(dims.size())) dims[a] = 1;
  return reshape(g, y, dims);
}

}  // namespace

DType default_float() {
  const Trace* t = current_trace();
  return t ? t->default_float : settings().default_float;
}

void set_default_float(DType t) {
  require(is_floating(t) && !is_complex(t), ErrorKind::Type,
          "set_default_dtype: a floating dtype is needed, got ", name(t));
  change_settings([&](Settings& s) { s.default_float = t; });
  if (Trace* trace = current_trace()) trace->default_float = t;
}

DType promote(DType t, Number::Kind number) {
  if (number == Number::Kind::Complex)
    return is_complex(t) ? t : t == DType::Float64 ? DType::Complex128 : dtype_of(number);
  if (is_floating(t)) return t;
  if (number == Number::Kind::Float) return default_float();
  if (t == DType::Bool && number == Number::Kind::Int) return DType::Int64;
  return t;
}

TensorPtr unary(Op op, const TensorPtr& x) {
  Recorder r;
  const OpInfo& row = info(op);
  NodeId n = r.in(x);
  DType t = x->dtype();
  if (row.cls == OpClass::Float && !is_floating(t)) n = cast(r.graph(), n, default_float());
  if (row.cls == OpClass::Bool) n = cast(r.graph(), n, DType::Bool);
  if (row.cls == OpClass::Number && row.kind == OpKind::Unary && t == DType::Bool) {
    require(op == Op::Abs || op == Op::ReLU || op == Op::Sign, ErrorKind::Type, row.name,
            ": not defined for bool");
    return copy(x);
  }
  return r.result(unary(r.graph(), op, n));
}

TensorPtr binary(Op op, const TensorOrNumber& a, const TensorOrNumber& b) {
  Recorder r;
  const OpInfo& row = info(op);
  DType t = common_dtype(a, b);
  if (row.kind == OpKind::Compare && t == DType::Float64)
    if (const bool swapped = across_signs(b, a); swapped || across_signs(a, b)) {
      const Dims dims = broadcast_shapes(row.name, operand_dims(a), operand_dims(b));
      return r.result(compare_across_signs(r, op, swapped ? b : a, swapped ? a : b, dims, swapped));
    }
  if (row.cls == OpClass::Float && !is_floating(t)) t = default_float();
  if (row.cls == OpClass::Bool) t = DType::Bool;
  if (t == DType::Bool && row.kind == OpKind::Binary) {
    op = on_bools(op);
    require(info(op).cls == OpClass::Bool, ErrorKind::Type, row.name, ": not defined for bool");
  }
  if (row.kind == OpKind::Compare && !(fits(a, t) && fits(b, t)))
    t = t == DType::UInt64 ? DType::Float64 : DType::Int64;
  const bool integers = !is_floating(t) && !is_complex(t);
  const auto limit = op == Op::FloorDiv ? IntegerLimit::FloorDiv
                     : op == Op::Mod    ? IntegerLimit::Mod
                     : op == Op::Fmod   ? IntegerLimit::Fmod
                                        : IntegerLimit::Pow;
  const bool limited = integers && (limit != IntegerLimit::Pow || op == Op::Pow);
  const bool unchecked = limited && check_permitted(b, t, limit);
  Dims dims = broadcast_shapes(row.name, operand_dims(a), operand_dims(b));
  NodeId x = lower(r, row.name, a, t, dims), y = lower(r, row.name, b, t, dims);
  if (unchecked && is_constant(r.graph(), y))
    require(permits(limit, constant_value(r.graph(), y)), ErrorKind::Value, broken(limit));
  else if (unchecked)
    y = permitted(r.graph(), y, limit);
  return r.result(binary(r.graph(), op, x, y));
}

TensorPtr bits(Op op, const TensorOrNumber& a, const TensorOrNumber& b) {
  const DType t = common_dtype(a, b);
  if (t == DType::Bool) return binary(op, a, b);
  const auto function = op == Op::LogicalAnd  ? IntegerFunction::And
                        : op == Op::LogicalOr ? IntegerFunction::Or
                                              : IntegerFunction::Xor;
  static constexpr const char* kNames[] = {"bitwise_and", "bitwise_or", "bitwise_xor"};
  const char* name = kNames[static_cast<size_t>(function)];
  require(!is_floating(t), ErrorKind::Type, name, ": integers or bools are needed, got ",
          gradcell::name(t));
  Recorder r;
  const Dims dims = broadcast_shapes(name, operand_dims(a), operand_dims(b));
  // (A number stays one: it is repeated where it is read.)
  auto of = [&](const TensorOrNumber& o) {
    return lower(r, name, o, t, operand_dims(o).empty() ? Dims{} : dims);
  };
  const NodeId x = of(a), y = of(b);
  return r.result(of_integers(r.graph(), function, x, y));
}

TensorPtr value_of(Function f, const TensorOrNumber& a, const TensorOrNumber& b) {
  Recorder r;
  DType t = common_dtype(a, b);
  if (!is_floating(t)) t = default_float();
  const Dims dims = broadcast_shapes("ValueOf", operand_dims(a), operand_dims(b));
  const NodeId x = lower(r, "ValueOf", a, t, dims), y = lower(r, "ValueOf", b, t, dims);
  Graph& g = r.graph();
  return r.result(symbolic::value_of(f, symbolic::wrap(g, x), symbolic::wrap(g, y)).id);
}

TensorPtr select(const TensorPtr& c, const TensorOrNumber& a, const TensorOrNumber& b) {
  Recorder r;
  DType t = common_dtype(a, b);
  Dims dims = broadcast_shapes("Select", operand_dims(a), operand_dims(b));
  dims = broadcast_shapes("Select", c->dims(), dims);
  NodeId w = lower(r, "Select", c, DType::Bool, dims);
  NodeId x = lower(r, "Select", a, t, dims), y = lower(r, "Select", b, t, dims);
  return r.result(select(r.graph(), w, x, y));
}

namespace {

/// The op on nodes, its attributes normalised.
NodeId applied(Graph& g, const Spec& s, const Arguments& a, const std::vector<NodeId>& in) {
  Draft draft{in, {}, a.asked};
  const size_t rank = in.empty() && s.input_count() > 0 ? 0 : s.rank(g, draft);
  Dims attributes, axes;
  size_t length = SIZE_MAX;
  for (size_t i = 0; i < s.attributes.size(); ++i) {
    const Attribute& attribute = s.attributes[i];
    const Dims values = normal(s, attribute, a.attributes[i], rank);
    if (is_list(attribute.kind)) {
      require(length == SIZE_MAX || length == values.size(), ErrorKind::Index, info(s.op).name,
              ": ", attribute.name, " ", listed(values),
              " is not as long as what stands before it");
      length = values.size();
    }
    if (attribute.kind == AttributeKind::Axis || attribute.kind == AttributeKind::Axes)
      axes = values;
    attributes.insert(attributes.end(), values.begin(), values.end());
  }
  draft.attributes = attributes;
  NodeId y = s.apply(g, draft);
  return a.keep_dims ? keep(g, y, g.dims(in[0]), axes) : y;
}

}  // namespace

TensorPtr apply(Op op, const Arguments& a) {
  const Spec& s = spec(op);
  Recorder r;
  if (s.effect()) r.at(a.at);
  Graph& g = r.graph();
  std::vector<NodeId> in;
  for (const TensorPtr& t : a.tensors) in.push_back(r.in(t));
  const NodeId y = applied(g, s, a, in);
  // A column that is picked out of a gradient may be had for less.
  const bool picks = s.form == Form::Move || s.form == Form::Same;
  return r.result(picks ? ad::with_fewer_products(g, y) : y);
}

namespace {

/// A leaf of the tensor's shape, for the steps of a view, which are the same for all dtypes. (Of a
/// complex one they would be those of its parts.)
NodeId stand_in(Graph& g, const Tensor& x) { return leaf(g, part_dtype(x.dtype()), x.dims()); }

}  // namespace

TensorPtr view(Op op, const Arguments& a) {
  const TensorPtr& x = a.tensors[0];
  Graph g;
  const std::vector<NodeId> in = {stand_in(g, *x)};
  return view(x, steps_between(g, in[0], applied(g, spec(op), a, in)));
}

TensorPtr index(const TensorPtr& x, const Dims& start, const Dims& size, const Dims& step,
                const Dims& shape) {
  Graph g;
  const NodeId from = stand_in(g, *x);
  return view(x, steps_between(g, from, reshape(g, slice(g, from, {start, size, step}), shape)));
}

std::vector<TensorPtr> unstack(const TensorPtr& x, int64_t axis) {
  Graph g;
  const NodeId from = stand_in(g, *x);
  const Dims dims = x->dims();
  const auto a = static_cast<size_t>(axis);
  Dims start(dims.size(), 0), size = dims, shape = dims;
  size[a] = 1;
  shape.erase(shape.begin() + axis);
  std::vector<TensorPtr> slices;
  for (; start[a] < dims[a]; ++start[a]) {
    const NodeId to = slice(g, from, {start, size, Dims(dims.size(), 1)});
    slices.push_back(view(x, steps_between(g, from, reshape(g, to, shape))));
  }
  return slices;
}

TensorPtr diagonal(const TensorPtr& x, int64_t offset, int64_t axis1, int64_t axis2) {
  const Dims& dims = x->dims();
  const auto a = static_cast<size_t>(normal_axis("diagonal", axis1, dims.size()));
  const auto b = static_cast<size_t>(normal_axis("diagonal", axis2, dims.size()));
  require(dims.size() > 1 && a != b, ErrorKind::Value,
          "diagonal: two different dimensions are needed, got ", axis1, " and ", axis2,
          " of shape ", listed(dims));
  const int64_t rows = dims[a], columns = dims[b];
  const int64_t count = std::max<int64_t>(
      0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns));
  const int64_t pair[] = {static_cast<int64_t>(a), static_cast<int64_t>(b)};
  View lies = x->window() ? x->window()->layout : whole(dims);
  Dims order;
  for (size_t k = 0; k < dims.size(); ++k)
    if (k != a && k != b) order.push_back(static_cast<int64_t>(k));
  const size_t rest = order.size();
  order.insert(order.end(), pair, pair + 2);
  // As strides have it, and as movements: of the two axes as one, every (columns + 1)th element.
  View diagonal{pick(dims, pair, false), pick(lies.strides, pair, false), lies.offset};
  SliceSpec box{Dims(rest, 0), diagonal.dims, Dims(rest, 1)};
  Dims joined = diagonal.dims;
  joined.push_back(rows * columns);
  diagonal.dims.push_back(count);
  diagonal.strides.push_back(lies.strides[a] + lies.strides[b]);
  if (count > 0)
    diagonal.offset += offset >= 0 ? offset * lies.strides[b] : -offset * lies.strides[a];
  box.start.push_back(count == 0 ? 0 : offset >= 0 ? offset : -offset * columns);
  box.size.push_back(count);
  box.step.push_back(count == 0 ? 1 : columns + 1);
  Graph g;
  const NodeId from = stand_in(g, *x);
  const NodeId to = slice(g, reshape(g, transpose(g, from, order), joined), box);
  return view(x, steps_between(g, from, to), std::move(diagonal));
}

TensorPtr full(const Dims& dims, DType dtype, Number value) {
  check_shape("full", dims);
  Recorder r;
  return r.result(lower(r, "full", value, dtype, dims));
}

TensorPtr cast(const TensorPtr& x, DType dtype) {
  if (x->dtype() == dtype) return copy(x);
  Recorder r;
  return r.result(cast(r.graph(), r.in(x), dtype));
}

TensorPtr matmul(const TensorPtr& a, const TensorPtr& b) {
  Recorder r;
  return r.result(numpy_matmul(r.graph(), r.in(a), r.in(b)));
}

TensorPtr mean(const TensorPtr& x, const std::optional<Dims>& axes, bool keep_dims) {
  Recorder r;
  Graph& g = r.graph();
  Dims dims = x->dims(), along = normal_axes("ReduceMean", axes, dims.size());
  DType t = x->dtype();
  require(t != DType::Bool, ErrorKind::Type, "ReduceMean: not defined for bool");
  const auto n = static_cast<double>(element_count(pick(dims, along, true)));
  const NodeId from = cast(g, r.in(x), wide(t));
  auto count = [&](NodeId like) { return constant(g, g.dtype(like), Dims(g.dims(like)), n); };
  auto divided = [&](Op op, NodeId sum) { return binary(g, op, sum, count(sum)); };
  NodeId y;
  if (t == DType::UInt64) {  // whose sum may be beyond 2^64: of quotients, and of what they leave
    const NodeId rest = sum(g, binary(g, Op::Mod, from, count(from)), along);
    y = binary(g, Op::Add, sum(g, divided(Op::FloorDiv, from), along), divided(Op::FloorDiv, rest));
  } else {
    y = divided(is_floating(t) ? Op::Div : Op::FloorDiv, sum(g, from, along));
  }
  y = cast(g, y, t);
  return r.result(keep_dims ? keep(g, y, dims, along) : y);
}

}  // namespace gradcell

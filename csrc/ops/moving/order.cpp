#include "ops/moving/order.h"

#include "ops/combining/reduction.h"
#include "ops/combining/scan.h"
#include "ops/elementwise.h"
#include "ops/identity.h"
#include "ops/moving/movement.h"
#include "ops/moving/window.h"
#include "ops/routine.h"

namespace gradcell {

namespace {

constexpr Parameter kOrder[] = {kX, attribute("descending", "False")};
constexpr Parameter kFirst[] = {kX, attribute("count"), attribute("largest", "True"),
                                attribute("sorted", "True")};
constexpr Parameter kRunning[] = {kX, attribute("inner"), attribute("largest"),
                                  attribute("values", "False")};
constexpr Parameter kSegments[] = {tensor("rows"), tensor("ids"), attribute("count"),
                                   attribute("largest"), attribute("values", "False")};
constexpr Parameter kLine[] = {tensor("line"), kX, attribute("right", "False")};
constexpr Parameter kAmong[] = {kX, tensor("tests")};
constexpr Parameter kBetween[] = {kX, tensor("edges")};
constexpr Parameter kDrawn[] = {tensor("weights"), tensor("u")};
constexpr Parameter kPermitted[] = {kX, attribute("limit"), attribute("rank")};
constexpr Parameter kIntegers[] = {tensor("a"), tensor("b"), attribute("function")};

/// Routines over rows.
class OfRows : public Routine {
 public:
  using Routine::Routine;
  size_t problem_rank(std::span<const int64_t>, size_t) const override { return 1; }
  const char* not_in_onnx() const override {
    return "it orders NaN and equal elements in other ways, or does not search";
  }

 protected:
  void check_ordered(const Graph& g, NodeId x) const {
    require(!is_complex(g.dtype(x)), ErrorKind::Type, name(), ": numbers of ",
            gradcell::name(g.dtype(x)), " have no order");
    for (int64_t n : g.dims(x))
      require(n < INT32_MAX, ErrorKind::Value, name(), ": ", n, " elements along a dimension");
  }
  int64_t row(const Graph& g, const Draft& d, size_t k) const { return problem(g, d, k).back(); }
  Type of_rows(const Graph& g, const Draft& d, DType dtype, int64_t length) const {
    return {dtype, in_front(problems(g, d), length)};
  }
  static Dims in_front(Dims dims, int64_t length) {
    dims.push_back(length);
    return dims;
  }
  static NodeId placed(Graph& g, NodeId line, NodeId x, bool right) {
    const NodeId in[] = {line, x};
    return make(g, Op::PlaceInLine, {in, encode(LineAttributes{right})});
  }
  /// `count` elements of each row.
  static NodeId part(Graph& g, NodeId x, int64_t begin, int64_t count) {
    SliceSpec all{Dims(g.dims(x).size(), 0), g.dims(x), Dims(g.dims(x).size(), 1)};
    all.start.back() = begin, all.size.back() = count;
    return slice(g, x, all);
  }
  /// x, plus zeros that fail where a row's condition, of one element, does not hold.
  static NodeId permitted_if(Graph& g, NodeId x, NodeId condition, IntegerLimit limit) {
    const NodeId truth = cast(g, condition, g.dtype(x));
    const NodeId zero =
        make(g, Op::Permitted,
             {{&truth, 1}, encode(PermittedAttributes{static_cast<int64_t>(limit), 1})});
    Dims dims = g.dims(x);
    dims.back() = 1;
    return binary(g, Op::Add, x, broadcast_to(g, reshape(g, zero, dims), g.dims(x)));
  }
};

/// The places of all elements of each row in order, of equal ones the first first.
class InOrder : public OfRows {
 public:
  explicit InOrder(Op op) : OfRows(op, kAttributes<OrderAttributes>, kOrder, Form::Ordered) {}
  Type infer(const Graph& g, const Draft& d) const override {
    check_ordered(g, d.inputs[0]);
    return of_rows(g, d, DType::Int32, row(g, d, 0));
  }
};

/// The places of the first of each row in order.
class First : public OfRows {
 public:
  explicit First(Op op) : OfRows(op, kAttributes<FirstAttributes>, kFirst, Form::Ordered) {}
  Type infer(const Graph& g, const Draft& d) const override {
    check_ordered(g, d.inputs[0]);
    const int64_t n = row(g, d, 0), count = d.attributes[0];
    require(count >= 0 && count <= n, ErrorKind::Value, name(), ": there are no ", count,
            " elements in rows of ", n);
    return of_rows(g, d, DType::Int32, count);
  }
};

/// The largest (smallest) element up to each, or its place, of equal ones the last. A NaN stays the
/// best until the next one.
class Running : public OfRows {
 public:
  explicit Running(Op op) : OfRows(op, kAttributes<RunningAttributes>, kRunning, Form::Running) {}
  size_t problem_rank(std::span<const int64_t> attributes, size_t) const override {
    return static_cast<size_t>(attributes[0]) + 1;
  }
  Type infer(const Graph& g, const Draft& d) const override {
    check_ordered(g, d.inputs[0]);
    problems(g, d);
    return {d.attributes[2] ? g.dtype(d.inputs[0]) : DType::Int32, g.dims(d.inputs[0])};
  }
};

/// For rows [n, m] with ids [n] the row of the largest (smallest) element of each column among
/// those of one segment, of equal ones the first, or that element: [count, m]; -1, or the dtype's
/// limit, where a segment has no row. Ids below 0 count nowhere. A NaN stays if it comes first, and
/// else is passed over.
class Segments : public OfRows {
 public:
  explicit Segments(Op op)
      : OfRows(op, kAttributes<SegmentAttributes>, kSegments, Form::BestOfRows) {}
  size_t problem_rank(std::span<const int64_t>, size_t k) const override { return k == 0 ? 2 : 1; }
  Type infer(const Graph& g, const Draft& d) const override {
    check_ordered(g, d.inputs[0]);
    check_index(name(), g.dtype(d.inputs[1]));
    check_size(name(), d.attributes[0]);
    const Dims rows = problem(g, d, 0);
    require(rows[0] == row(g, d, 1), ErrorKind::Value, name(), ": ", rows[0], " rows and ",
            row(g, d, 1), " ids");
    Dims dims = in_front(problems(g, d), d.attributes[0]);
    dims.push_back(rows[1]);
    return {d.attributes[2] ? g.dtype(d.inputs[0]) : DType::Int32, dims};
  }
};

/// For each element how many of a line in ascending order come before it; right: or are equal to
/// it.
class InLine : public OfRows {
 public:
  explicit InLine(Op op) : OfRows(op, kAttributes<LineAttributes>, kLine, Form::Search) {}
  Type infer(const Graph& g, const Draft& d) const override {
    for (NodeId x : d.inputs) check_ordered(g, x);
    check_same_dtype(name(), g.dtype(d.inputs[0]), g.dtype(d.inputs[1]));
    return of_rows(g, d, DType::Int32, row(g, d, 1));
  }
};

/// Whether each element is among others, NaN among none.
class IsAmong : public OfRows {
 public:
  explicit IsAmong(Op op) : OfRows(op, {}, kAmong, Form::Counted) {}
  Type infer(const Graph& g, const Draft& d) const override {
    for (NodeId x : d.inputs) check_ordered(g, x);
    check_same_dtype(name(), g.dtype(d.inputs[0]), g.dtype(d.inputs[1]));
    return of_rows(g, d, DType::Bool, row(g, d, 0));
  }
  /// Those before and up to it in the line of the others are not the same number.
  NodeId apart(Graph& to, const Graph&, NodeId, std::span<const NodeId> in) const override {
    const NodeId x = in[0], line = ordered(to, in[1]);
    const NodeId found =
        binary(to, Op::Less, placed(to, line, x, false), placed(to, line, x, true));
    if (!is_floating(to.dtype(x))) return found;
    return binary(to, Op::LogicalAnd, found, unary(to, Op::LogicalNot, unary(to, Op::IsNan, x)));
  }

 private:
  static NodeId ordered(Graph& g, NodeId line) {
    const Dims dims = g.dims(line);
    if (g.count(line) == 0) return line;
    const Dims lines{g.count(line) / dims.back(), dims.back()};
    const NodeId order = make(g, Op::Order, {{&line, 1}, encode(OrderAttributes{false})});
    return reshape(g, take_along(g, reshape(g, line, lines), reshape(g, order, lines)), dims);
  }
};

/// How many elements lie in each interval [edges[i], edges[i + 1]), the last one closed; what lies
/// in none does not count. Edges in ascending order, float64.
class Between : public OfRows {
 public:
  explicit Between(Op op) : OfRows(op, {}, kBetween, Form::Counted) {}
  Type infer(const Graph& g, const Draft& d) const override {
    check_ordered(g, d.inputs[0]);
    const DType t = g.dtype(d.inputs[1]);
    require(t == DType::Float64, ErrorKind::Type, name(), ": edges of float64 are needed, got ",
            gradcell::name(t));
    const int64_t edges = row(g, d, 1);
    require(edges > 1, ErrorKind::Value, name(), ": at least 2 edges are needed, got ", edges);
    return of_rows(g, d, DType::Int64, edges - 1);
  }
  /// Ones and zeros, added up at the places that the inner edges say.
  NodeId apart(Graph& to, const Graph& from, NodeId id, std::span<const NodeId> in) const override {
    const NodeId edges = in[1], x = cast(to, in[0], DType::Float64);
    const int64_t bins = from.dims(id).back(), n = to.dims(x).back();
    const NodeId low = part(to, edges, 0, 1), high = part(to, edges, bins, 1);
    auto both = [&](NodeId a, NodeId b) { return binary(to, Op::LogicalAnd, a, b); };
    const NodeId within = both(binary(to, Op::LessEqual, broadcast_to(to, low, to.dims(x)), x),
                               binary(to, Op::LessEqual, x, broadcast_to(to, high, to.dims(x))));
    const Dims lines{from.count(id) / bins, n};
    const NodeId at = placed(to, part(to, edges, 1, bins - 1), x, true);
    const NodeId counts = put_along(to, reshape(to, at, lines),
                                    reshape(to, cast(to, within, DType::Int64), lines), bins);
    const NodeId finite = both(unary(to, Op::IsFinite, low), unary(to, Op::IsFinite, high));
    return permitted_if(to, reshape(to, counts, from.dims(id)),
                        both(finite, binary(to, Op::LessEqual, low, high)), IntegerLimit::Edges);
  }
};

/// For numbers u in [0, 1) the first place up to which the weights sum to more than u of their
/// whole.
class Drawn : public OfRows {
 public:
  explicit Drawn(Op op) : OfRows(op, {}, kDrawn, Form::Counted) {}
  Type infer(const Graph& g, const Draft& d) const override {
    for (NodeId x : d.inputs)
      require(g.dtype(x) == DType::Float32, ErrorKind::Type, name(), ": needs float32, got ",
              gradcell::name(g.dtype(x)));
    check_ordered(g, d.inputs[0]);
    return of_rows(g, d, DType::Int32, row(g, d, 1));
  }
  /// Places among sums. What rounding leaves at the end goes to the first place at which the whole
  /// is reached.
  NodeId apart(Graph& to, const Graph& from, NodeId id, std::span<const NodeId> in) const override {
    const NodeId w = cast(to, in[0], DType::Float64);
    const int64_t n = to.dims(w).back();
    const auto axis = narrow<int64_t>(to.dims(w).size()) - 1;
    const NodeId sums = cumsum(to, w, {axis, false, false});
    const NodeId whole = n == 0 ? total(to, w, axis) : part(to, sums, n - 1, 1);
    const Dims& dims = from.dims(id);
    const NodeId wanted =
        binary(to, Op::Mul, cast(to, in[1], DType::Float64), broadcast_to(to, whole, dims));
    const NodeId last = broadcast_to(to, placed(to, sums, whole, false), dims);
    const NodeId place = binary(to, Op::Minimum, placed(to, sums, wanted, true), last);
    const NodeId below = binary(to, Op::Less, w, unary(to, Op::Neg, w));
    const NodeId fit[] = {
        unary(to, Op::IsFinite, whole), binary(to, Op::Less, unary(to, Op::Neg, whole), whole),
        unary(to, Op::LogicalNot,
              cast(to, total(to, cast(to, below, DType::Int32), axis), DType::Bool))};
    return permitted_if(
        to, place, binary(to, Op::LogicalAnd, binary(to, Op::LogicalAnd, fit[0], fit[1]), fit[2]),
        IntegerLimit::Weights);
  }

 private:
  static NodeId total(Graph& g, NodeId x, int64_t axis) {
    const int64_t axes[] = {axis};
    Dims dims = g.dims(x);
    dims.back() = 1;
    return reshape(g, sum(g, x, axes), dims);
  }
};

/// 0, once all integers of a problem are known to be permitted.
class Checked : public Routine {
 public:
  explicit Checked(Op op)
      : Routine(op, kAttributes<PermittedAttributes>, kPermitted, Form::Check) {}
  size_t problem_rank(std::span<const int64_t> attributes, size_t) const override {
    return static_cast<size_t>(attributes[1]);
  }
  Type infer(const Graph& g, const Draft& d) const override {
    return {g.dtype(d.inputs[0]), problems(g, d)};
  }
};

/// Elementwise, of two tensors of one shape, or of one and a number.
class Integers : public Routine {
 public:
  explicit Integers(Op op)
      : Routine(op, kAttributes<IntegersAttributes>, kIntegers, Form::Integers) {}
  size_t problem_rank(std::span<const int64_t>, size_t) const override { return 0; }
  const char* not_in_onnx() const override {
    return "it has no divisors, and shifts of unsigned integers only";
  }
  Type infer(const Graph& g, const Draft& d) const override {
    const DType t = g.dtype(d.inputs[0]);
    check_same_dtype(name(), t, g.dtype(d.inputs[1]));
    require(!is_floating(t) && !is_complex(t) && t != DType::Bool, ErrorKind::Type, name(),
            ": integers are needed, got ", gradcell::name(t));
    const Dims &a = g.dims(d.inputs[0]), &b = g.dims(d.inputs[1]);
    require(a == b || a.empty() || b.empty(), ErrorKind::Value, name(), ": shapes ", listed(a),
            " and ", listed(b), " differ");
    return {t, a.empty() ? b : a};
  }
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    const Dims all = behind_batch(b.size, g.dims(id));
    std::vector<NodeId> in;
    for (size_t k = 0; k < b.inputs.size(); ++k) {
      NodeId x = b.inputs[k];
      if (!b.batched[k] && g.dims(x).empty()) {
        in.push_back(x);
        continue;
      }
      if (b.batched[k]) {
        Dims one = g.dims(x);
        one.resize(all.size(), 1);
        x = reshape(g, x, one.size() == g.dims(x).size() ? g.dims(x) : one);
      }
      in.push_back(broadcast_to(g, x, all));
    }
    const Dims attributes(g.attrs(id).begin(), g.attrs(id).end());
    return make(g, op, {in, attributes, {g.dtype(id), all}});
  }
};

}  // namespace

SPEC(Order, InOrder)
SPEC(FirstInOrder, First)
SPEC(RunningBest, Running)
SPEC(SegmentBest, Segments)
SPEC(PlaceInLine, InLine)
SPEC(Among, IsAmong)
SPEC(CountBetween, Between)
SPEC(DrawByWeights, Drawn)
SPEC(OfIntegers, Integers)
SPEC(Permitted, Checked)

Wanted wanted_of(const Graph& g, NodeId id) {
  if (g[id].op == Op::Order)
    return {g.dims(id).back(), attributes<OrderAttributes>(g, id).descending};
  const auto a = attributes<FirstAttributes>(g, id);
  return {a.count, a.largest};
}

NodeId of_integers(Graph& g, IntegerFunction function, NodeId a, NodeId b) {
  const NodeId in[] = {a, b};
  const Dims attributes = encode(IntegersAttributes{static_cast<int64_t>(function)});
  return make(g, Op::OfIntegers, {in, attributes});
}

NodeId permitted(Graph& g, NodeId x, IntegerLimit limit) {
  const Dims dims = g.dims(x);
  const int64_t attributes[] = {static_cast<int64_t>(limit), static_cast<int64_t>(dims.size())};
  const NodeId zero = make(g, Op::Permitted, {{&x, 1}, attributes});
  return binary(g, Op::Add, x, broadcast_to(g, zero, dims));
}

}  // namespace gradcell

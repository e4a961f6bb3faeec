#include "ops/moving/window.h"

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/moving/movement.h"

namespace gradcell {

namespace {

constexpr Parameter kPlacesAlong = tensor("places"), kAxisSize = attribute("size");
constexpr Parameter kWindowed[] = {
    kX,       attribute("kernel"), attribute("stride"), attribute("dilation"), attribute("before"),
    kAxisSize};
constexpr Parameter kTakenAlong[] = {kX, kPlacesAlong};
constexpr Parameter kPut[] = {kPlacesAlong, tensor("updates"), kAxisSize};

/// [rows, elements], the windowed dimensions being the last `count`.
NodeId as_rows(Graph& g, NodeId x, size_t count) {
  const Dims& dims = g.dims(x);
  const size_t lead = dims.size() - count;
  const Dims to{product(dims, 0, lead), product(dims, lead, dims.size())};
  return reshape(g, x, to);
}

template <class Base>
class Windowed : public Base {
 public:
  explicit Windowed(Op op)
      : Base(op, Form::Window, kAttributes<WindowAttributes>, kWindowed, Combine::Max) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const NodeId x = d.inputs[0];
    const Dims& from = g.dims(x);
    const auto a = decode<WindowAttributes>(d.attributes);
    const size_t count = a.size.size();
    require(g.dtype(x) != DType::Bool, ErrorKind::Type, this->name(), ": not defined for bool");
    require(count >= 1 && count <= from.size(), ErrorKind::Value, this->name(), ": ", count,
            " windowed dimensions of a tensor of shape ", listed(from));
    constexpr int64_t kLimit = int64_t{1} << 31;
    check_numbers(this->name(), "kernel", a.kernel, 1);
    check_numbers(this->name(), "stride", a.stride, 1);
    check_numbers(this->name(), "dilation", a.dilation, 1);
    check_numbers(this->name(), "before", a.before, 1 - kLimit);
    check_numbers(this->name(), "size", a.size, 0);
    Dims to(from.begin(), from.end() - static_cast<ptrdiff_t>(count));
    require(product(from, to.size(), from.size()) < kLimit, ErrorKind::Value, this->name(),
            ": an image of shape ", listed(from), " has too many elements");
    to.insert(to.end(), a.size.begin(), a.size.end());
    return {this->op == Op::WindowArgMax ? DType::Int32 : g.dtype(x), to};
  }

  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    return make(g, this->op, {b.inputs, g.attrs(id)});
  }
};

class Largest : public Windowed<Spec> {
 public:
  using Windowed::Windowed;

  /// What reaches an element is what its windows' results got, where it is the first largest.
  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    const NodeId x = g.input(id, 0), places = found(g, id);
    const Dims& full = g.dims(x);
    const size_t n = windowed(g, id);
    const int64_t size = product(full, full.size() - n, full.size());
    return reshape(g, put_along(g, as_rows(g, places, n), as_rows(g, dy, n), size), full);
  }

  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override {
    const size_t n = windowed(g, id);
    const NodeId places = as_rows(g, found(g, id), n);
    return reshape(g, take_along(g, as_rows(g, dx[0], n), places), g.dims(id));
  }

  Law law() const override { return Law::Linear; }  // which elements are largest does not move

 private:
  static size_t windowed(const Graph& g, NodeId id) {
    return gradcell::attributes<WindowAttributes>(g, id).size.size();
  }
  static NodeId found(Graph& g, NodeId id) {
    const NodeId x = g.input(id, 0);
    return make(g, Op::WindowArgMax, {{&x, 1}, g.attrs(id)});
  }
};

void check_places(const Graph& g, const char* op, NodeId places) {
  require(g.dtype(places) == DType::Int32 && g.dims(places).size() == 2, ErrorKind::Type, op,
          ": places must be an int32 matrix");
}

/// The rows of all examples, one after the other.
NodeId rows_of_batch(Graph& g, const Batch& b, size_t k) {
  return join_axes(g, over_batch(g, b, k), 0);
}

/// y[r, i] = x[r, places[r, i]]; 0 where that is -1.
class TakingAlong : public Linear {
 public:
  explicit TakingAlong(Op op) : Linear(op, Form::TakePlaces, {}, kTakenAlong) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const Dims &x = g.dims(d.inputs[0]), &at = g.dims(d.inputs[1]);
    check_places(g, name(), d.inputs[1]);
    require(x.size() == 2 && x[0] == at[0], ErrorKind::Value, name(), ": shapes ", listed(x),
            " and ", listed(at), " must be matrices of as many rows");
    return {g.dtype(d.inputs[0]), at};
  }
  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    return put_along(g, g.input(id, 1), dy, g.dims(g.input(id, 0))[1]);
  }
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    const NodeId made = take_along(g, rows_of_batch(g, b, 0), rows_of_batch(g, b, 1));
    return reshape(g, made, behind_batch(b.size, g.dims(id)));
  }
  bool computes_with(int k) const override { return k == 0; }
};

/// Zeros with updates[r, i] added at [r, places[r, i]], in order; those at -1 are dropped.
class Putting : public Linear {
 public:
  explicit Putting(Op op) : Linear(op, Form::AddPlaces, kAttributes<SizeAttributes>, kPut) {}

  Type infer(const Graph& g, const Draft& d) const override {
    const Dims &at = g.dims(d.inputs[0]), &from = g.dims(d.inputs[1]);
    check_places(g, name(), d.inputs[0]);
    require(at == from, ErrorKind::Value, name(), ": shapes ", listed(at), " and ", listed(from),
            " differ");
    check_size(name(), d.attributes[0]);
    return {g.dtype(d.inputs[1]), {from[0], d.attributes[0]}};
  }
  NodeId adjoint(Graph& g, NodeId id, int, NodeId dy) const override {
    return take_along(g, dy, g.input(id, 0));
  }
  NodeId batch(Graph& g, NodeId id, const Batch& b) const override {
    const NodeId places = rows_of_batch(g, b, 0), updates = rows_of_batch(g, b, 1);
    const NodeId made = put_along(g, places, updates, g.attrs(id)[0]);
    return reshape(g, made, behind_batch(b.size, g.dims(id)));
  }
  bool computes_with(int k) const override { return k == 1; }
};

}  // namespace

SPEC(WindowMax, Largest)
SPEC(WindowArgMax, Windowed<Constant>)
SPEC(TakeAlong, TakingAlong)
SPEC(PutAlong, Putting)

NodeId take_along(Graph& g, NodeId x, NodeId places) {
  const NodeId in[] = {x, places};
  return make(g, Op::TakeAlong, {in, {}});
}

NodeId put_along(Graph& g, NodeId places, NodeId updates, int64_t size) {
  const NodeId in[] = {places, updates};
  return make(g, Op::PutAlong, {in, encode(SizeAttributes{size})});
}

bool finds_places(Op op) { return op == Op::WindowArgMax; }

std::vector<WindowAxis> window_axes(const Dims& input, const WindowAttributes& a) {
  std::vector<WindowAxis> axes;
  const size_t lead = input.size() - a.size.size();
  for (size_t k = 0; k < a.size.size(); ++k)
    axes.push_back(
        {input[lead + k], a.kernel[k], a.size[k], a.stride[k], a.dilation[k], a.before[k]});
  return axes;
}

}  // namespace gradcell

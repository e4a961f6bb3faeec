#include "ops/source.h"

#include "ir/fold.h"
#include "ops/families.h"
#include "ops/identity.h"
#include "ops/moving/movement.h"

namespace gradcell {

namespace {

constexpr Parameter kRange[] = {kShape, {Parameter::Kind::DType, "dtype"}, kAxis};
constexpr Parameter kRandom[] = {tensor("state"), kShape};

/// Without inputs there is nothing to differentiate by.
class Source : public Constant {
 public:
  using Constant::Constant;
  bool differentiable() const override { return true; }
  /// (never asked: no input differs from example to example)
  NodeId batch(Graph&, NodeId, const Batch&) const override { lacks("inputs to batch"); }
};

/// Leaves and constants.
class Given : public Source {
 public:
  Given(Op op, Form form) : Source(op, form, {}, {}) {}
  Type infer(const Graph&, const Draft& d) const override { return d.asked; }
  bool unique() const override { return form == Form::Input; }
};

class Ranges : public Source {
 public:
  explicit Ranges(Op op) : Source(op, Form::Range, kAttributes<AxisAttributes>, kRange) {}
  Type infer(const Graph&, const Draft& d) const override {
    check_shape(name(), d.asked.dims);
    require(!is_complex(d.asked.dtype), ErrorKind::Type, name(), ": not defined for ",
            gradcell::name(d.asked.dtype));
    if (!d.asked.dims.empty()) {
      check_axis(name(), d.attributes[0], d.asked.dims.size());
      check_counts(d.asked.dtype, d.asked.dims[static_cast<size_t>(d.attributes[0])]);
    }
    return d.asked;
  }
  /// That an integer dtype holds all numbers below n.
  void check_counts(DType dtype, int64_t n) const {
    if (is_floating(dtype) || dtype == DType::Bool || dtype == DType::Int64) return;
    const auto bits = narrow<int>(8 * item_size(dtype)) - !is_unsigned(dtype);
    require(std::ldexp(1.0, bits) >= static_cast<double>(n), ErrorKind::Value, name(), ": ",
            gradcell::name(dtype), " does not count ", n, " elements");
  }
  /// A vector, which is spread over the other axes.
  NodeId simplify(Graph& g, Draft& d, const Type& type) const override {
    if (type.dims.empty()) return constant(g, type.dtype, type.dims, 0);
    const auto axis = static_cast<size_t>(d.attributes[0]);
    const int64_t n = type.dims[axis];
    if (element_count(type.dims) == n) return kNoNode;
    Dims line(type.dims.size(), 1);
    line[axis] = n;
    return broadcast_to(g, iota(g, type.dtype, line, narrow<int>(axis)), type.dims);
  }
};

class RandomNumbers : public Constant {
 public:
  explicit RandomNumbers(Op op) : Constant(op, Form::Random, {}, kRandom) {}
  const char* not_in_onnx() const override {
    return "its random numbers are others; is the network in training mode (set_train(False))?";
  }
  Type infer(const Graph& g, const Draft& d) const override {
    const NodeId state = d.inputs[0];
    require(g.dtype(state) == DType::Int64 && g.dims(state) == Dims{2}, ErrorKind::Type, name(),
            ": the state must be int64 of shape [2]");
    check_shape(name(), d.asked.dims);
    return {DType::Float32, d.asked.dims};
  }
  /// Numbers are the same for every example, as in MindSpore: their state is no example's.
  NodeId batch(Graph&, NodeId, const Batch&) const override {
    fail(ErrorKind::Value, name(), ": the state of random numbers cannot differ between examples");
  }
};

}  // namespace

SPEC(Leaf, Given, Form::Input)
SPEC(Const, Given, Form::Constant)
SPEC(Iota, Ranges)
SPEC(RandomUniform, RandomNumbers)

NodeId leaf(Graph& g, DType dtype, std::span<const int64_t> dims) {
  return g.unique(Op::Leaf, dtype, dims, {});
}

NodeId constant_bits(Graph& g, DType dtype, std::span<const int64_t> dims, uint64_t bits) {
  if (is_complex(dtype)) return cast(g, constant_bits(g, part_dtype(dtype), dims, bits), dtype);
  return g.intern(Op::Const, dtype, dims, {}, {}, bits);
}

NodeId constant(Graph& g, DType dtype, std::span<const int64_t> dims, double value) {
  return constant_bits(g, dtype, dims, to_bits(dtype, value));
}

NodeId find_constant(const Graph& g, DType dtype, std::span<const int64_t> dims, double value) {
  return g.find(Op::Const, dtype, dims, {}, {}, to_bits(dtype, value));
}

double constant_value(const Graph& g, NodeId id) {
  return from_bits<double>(g.dtype(id), g[id].bits);
}

NodeId iota(Graph& g, DType dtype, std::span<const int64_t> dims, int axis) {
  const int64_t attributes[] = {axis};
  return make(g, Op::Iota, {{}, attributes, {dtype, Dims(dims.begin(), dims.end())}});
}

NodeId random_uniform(Graph& g, NodeId state, std::span<const int64_t> dims) {
  return make(g, Op::RandomUniform,
              {{&state, 1}, {}, {DType::Float32, Dims(dims.begin(), dims.end())}});
}

}  // namespace gradcell

// What the families of structured ops share.
#pragma once

#include "ir/op_info.h"
#include "ir/spec.h"

namespace gradcell {

/// Defines the spec of op Name: SPEC(CumSum, Scan, Combine::Sum). Exactly one for each structured
/// row of the op table, or the program does not link.
#define SPEC(Name, Family, ...)                                      \
  const Spec& spec_of_##Name() {                                     \
    static const Family family{Op::Name __VA_OPT__(, ) __VA_ARGS__}; \
    return family;                                                   \
  }

/// Ops that are linear in their floating inputs jointly: the tangent is the op of the tangents.
class Linear : public Spec {
 public:
  using Spec::Spec;
  NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const override;
  Law law() const override { return Law::Linear; }
};

/// Ops with no derivative: integers, sources, gradient stops.
class Constant : public Spec {
 public:
  using Spec::Spec;
  NodeId adjoint(Graph&, NodeId, int, NodeId) const override { return kNoNode; }
  NodeId tangent(Graph&, NodeId, std::span<const NodeId>) const override { return kNoNode; }
  bool differentiable() const override { return false; }
  Law law() const override { return Law::Constant; }
};

/// Why ONNX files cannot hold what is made of complex numbers (Spec::not_in_onnx).
inline constexpr const char* kNoComplexNumbers = "it has no complex numbers";

/// Input k over the batch: repeated for every example if it is the same for all.
NodeId over_batch(Graph& g, const Batch& b, size_t k);
/// The dimensions behind a batch axis of `size` places.
Dims behind_batch(int64_t size, std::span<const int64_t> dims);
/// Axes of one example, counted behind the batch axis.
Dims behind_batch(std::span<const int64_t> axes);

// Arguments that several families have.
constexpr Parameter tensor(const char* name) { return {Parameter::Kind::Tensor, name}; }
constexpr Parameter attribute(const char* name, const char* standard = nullptr) {
  return {Parameter::Kind::Attribute, name, standard};
}
inline constexpr Parameter kX = tensor("x"), kAxis = attribute("axis");
inline constexpr Parameter kShape{Parameter::Kind::Shape, "dims"};
inline constexpr Parameter kKeepDims{Parameter::Kind::KeepDims, "keep_dims", "False"};

/// Throws Value unless the axis is one of `rank`.
void check_axis(const char* op, int64_t axis, size_t rank);
/// Throws Value for a negative dimension; for a negative size.
void check_shape(const char* op, const Dims& dims);
void check_size(const char* op, int64_t size);
/// Throws Value unless all numbers are at least `least` and below 2^31.
void check_numbers(const char* op, const char* what, std::span<const int64_t> numbers,
                   int64_t least);
/// Throws Type unless t is int32 or int64.
void check_index(const char* op, DType t);
/// Throws Type where tensors of several dtypes meet.
void check_same_dtype(const char* op, DType a, DType b);
inline DType wide(DType t) { return is_narrow_float(t) ? DType::Float32 : t; }

}  // namespace gradcell

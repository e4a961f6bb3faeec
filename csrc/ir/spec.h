// What is particular to an op, in one object: an op without one does not link, a family without one
// of the pure functions does not compile, and the others fail by the op's name.
//
// Families derive from Spec in csrc/ops, a file each. The rest of the core asks the spec, or looks
// at the op's form: engines know forms, not ops.
#pragma once

#include "ir/attributes.h"
#include "ir/forms.h"
#include "ir/graph.h"
#include "ir/view.h"

namespace gradcell {

/// What reductions and scans combine elements with.
enum class Combine : uint8_t { Sum, Product, Max, Min };
inline const char* combine_name(Combine c) {
  static constexpr const char* kNames[] = {"sum", "product", "max", "min"};
  return kNames[static_cast<size_t>(c)];
}

/// How a node depends on the inputs that it computes with: what its power series follows from.
enum class Law : uint8_t {
  Constant,  ///< not at all
  Linear,    ///< linearly in all of them jointly, if need be piece by piece: as its tangent does
  Bilinear,  ///< as a product of its first and its last input
  Quotient,  ///< as its first input over its last
  Smooth,    ///< in some other way that its tangent says
};

struct Type {
  DType dtype;
  Dims dims;
};

/// A node to be: its dtype and shape are inferred, from what was asked for where inputs and
/// attributes leave them open.
struct Draft {
  std::span<const NodeId> inputs;
  std::span<const int64_t> attributes;
  Type asked{DType::Float32, {}};
};

/// An argument of an op's function in Python, in order.
struct Parameter {
  enum class Kind : uint8_t { Tensor, Tensors, Attribute, Shape, DType, KeepDims } kind;
  const char* name;
  const char* standard = nullptr;  ///< a default, as Python writes it: "None", "False"
};

/// A node's inputs over a batch of `size` examples: those that `batched` names have a leading axis
/// for it, the others are the same for every example.
struct Batch {
  int64_t size;
  std::span<const NodeId> inputs;
  std::span<const uint8_t> batched;
};

/// The node of a draft: inferred, simplified, hash-consed.
NodeId make(Graph& g, Op op, Draft draft);

class Spec;
/// That of a draft with complex tensors, in terms of their real and imaginary parts. Throws Type if
/// the op is not defined for them. (Defined above this folder, in ops/complex.cpp.)
NodeId make_of_parts(Graph& g, const Spec& s, const Draft& draft);
/// That of a draft that orders uint64, on int64 in the same order. (Defined in
/// ops/elementwise.cpp.)
NodeId make_in_order(Graph& g, const Spec& s, const Draft& draft);

class Spec {
 public:
  Spec(Op op, Form form, std::span<const Attribute> attributes,
       std::span<const Parameter> parameters, Combine combine = Combine::Sum)
      : op(op), form(form), combine(combine), attributes(attributes), parameters(parameters) {}
  virtual ~Spec() = default;
  Spec(const Spec&) = delete;
  Spec& operator=(const Spec&) = delete;

  const Op op;
  const Form form;
  const Combine combine;  ///< Reduce, Scan; Extremum: Max or Min
  const std::span<const Attribute> attributes;
  const std::span<const Parameter> parameters;  ///< of the user's function; none: there is none

  /// How many inputs a node has; kMany: one or more.
  virtual size_t input_count() const;
  static constexpr size_t kMany = SIZE_MAX;

  /// Dtype and shape. Throws what the user is to read if the inputs or attributes do not fit.
  virtual Type infer(const Graph& g, const Draft& draft) const = 0;
  /// A node that exists or is cheaper and gives the same; kNoNode: there is none. May change what
  /// the draft refers to.
  virtual NodeId simplify(Graph&, Draft&, const Type&) const { return kNoNode; }

  /// The adjoint of input k, given the node's (not kNoNode). kNoNode stands for zero.
  virtual NodeId adjoint(Graph& g, NodeId id, int k, NodeId dy) const = 0;
  /// The node's tangent, given its inputs', of which kNoNode are zero, but not all.
  virtual NodeId tangent(Graph& g, NodeId id, std::span<const NodeId> dx) const = 0;
  virtual Law law() const = 0;
  /// Whether a node is equal to no other, whatever it looks like.
  virtual bool unique() const { return false; }
  /// Whether a node takes place once, in the order recorded, used or not: others wait for it.
  virtual bool effect() const { return false; }
  /// Whether input k is one whose elements the op computes with, not indices or a condition.
  virtual bool computes_with(int) const { return true; }
  /// Whether derivatives pass through.
  virtual bool differentiable() const { return true; }
  /// The node over a batch of examples: with a leading axis for them, which at least one of the
  /// inputs has. It has the dtype and, behind that axis, the shape that it has for one example.
  virtual NodeId batch(Graph& g, NodeId id, const Batch& b) const = 0;

  /// Of what a routine computes: how many trailing dimensions of input k are one problem's. Those
  /// before them count the problems; all inputs have them, and the result.
  virtual size_t problem_rank(std::span<const int64_t> attributes, size_t k) const;
  /// KernelForm::Absent only: a node's value on inputs in another graph, made of other ops and of
  /// no constants, which no run would bring.
  virtual NodeId apart(Graph& to, const Graph& from, NodeId id,
                       std::span<const NodeId> inputs) const;
  /// Form::Move only.
  virtual Movement movement(const Graph& g, NodeId id) const;
  /// Whether results can be views of the one input: then `lay` and `put` are there.
  virtual bool views() const { return false; }
  /// How the result lies in memory if the input lies as `x` says; none: no strides say it.
  virtual std::optional<View> lay(const View& x, std::span<const int64_t> attributes,
                                  const Dims& to) const;
  /// x with the elements that the op would read replaced by those of y.
  virtual NodeId put(Graph& g, NodeId x, std::span<const int64_t> attributes, NodeId y) const;

  /// Why ONNX files cannot hold it, as the user reads it who exports a network; null: they can, by
  /// a rule in train/onnx_rules.py.
  virtual const char* not_in_onnx() const { return nullptr; }

  /// How many axes attributes count from.
  virtual size_t rank(const Graph& g, const Draft& draft) const;
  /// What the user's call becomes, its inputs being as they came: dtypes that the op does not have
  /// are cast, shapes broadcast, as the family says.
  virtual NodeId apply(Graph& g, Draft draft) const { return make(g, op, draft); }

 protected:
  /// Throws NotImplemented: the spec says nothing of `what`.
  [[noreturn]] void lacks(const char* what) const;
  const char* name() const;
};

/// The specs of all ops, by number. (Defined above this folder, where the families are.)
const Spec* const* specs();
inline const Spec& spec(Op op) {
  static const Spec* const* const all = specs();
  return *all[static_cast<size_t>(op)];
}
inline const Spec& spec(const Graph& g, NodeId id) { return spec(g[id].op); }
inline Form form(const Graph& g, NodeId id) { return spec(g, id).form; }

/// A node's attributes as its family has them.
template <class A>
A attributes(const Graph& g, NodeId id) {
  return decode<A>(g.attrs(id));
}

/// The same op and attributes on other inputs, in this graph or another: no simplification.
NodeId rebuild(Graph& to, const Graph& from, NodeId id, std::span<const NodeId> inputs);

}  // namespace gradcell

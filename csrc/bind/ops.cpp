// The ops as Python functions of gradcell._core.ops, and the operators of Tensor.
#include "bind/bind.h"

namespace gradcell::bind {

namespace {

using OptionalDims = std::optional<Dims>;

Dims to_dims(py::handle value, const char* op) {
  if (PyLong_Check(value.ptr())) return {value.cast<int64_t>()};
  try {
    return value.cast<Dims>();
  } catch (const py::cast_error&) {
    fail(ErrorKind::Type, op, ": expected integers, got ", std::string(py::str(value)));
  }
}

OptionalDims to_axes(py::handle value, const char* op) {
  if (value.is_none()) return std::nullopt;
  return to_dims(value, op);
}

void bind_operator(py::class_<Tensor, TensorPtr>& tensor, const char* method, const char* reflected,
                   Op op) {
  tensor.def(method, [op](const TensorPtr& a, py::handle b) -> py::object {
    if (!is_operand(b)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
    return py::cast(ops::binary(op, a, to_operand(b, info(op).name)));
  });
  if (reflected)
    tensor.def(reflected, [op](const TensorPtr& a, py::handle b) -> py::object {
      if (!is_operand(b)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
      return py::cast(ops::binary(op, to_operand(b, info(op).name), a));
    });
}

void bind_rows(py::module_& m, py::class_<Tensor, TensorPtr>& tensor) {
#define UNARY(Name, fn, ...)                                                         \
  m.def(                                                                             \
      #fn, [](py::handle x) { return ops::unary(Op::Name, only_tensor(x, #Name)); }, \
      py::arg("input"));                                                             \
  tensor.def(                                                                        \
      #fn, [](const TensorPtr& x) { return ops::unary(Op::Name, x); },               \
      row_text(Op::Name).c_str());
#define BINARY(Name, fn, ...)                                                     \
  m.def(                                                                          \
      #fn,                                                                        \
      [](py::handle a, py::handle b) {                                            \
        return ops::binary(Op::Name, to_operand(a, #Name), to_operand(b, #Name)); \
      },                                                                          \
      py::arg("input"), py::arg("other"));                                        \
  tensor.def(                                                                     \
      #fn,                                                                        \
      [](const TensorPtr& a, py::handle b) {                                      \
        return ops::binary(Op::Name, a, to_operand(b, #Name));                    \
      },                                                                          \
      py::arg("other"), row_text(Op::Name).c_str());
#define COMPARE BINARY
#define PREDICATE UNARY
#define TERNARY(Name, fn, ...)                                                                 \
  m.def(                                                                                       \
      #fn,                                                                                     \
      [](py::handle c, py::handle a, py::handle b) {                                           \
        return ops::select(only_tensor(c, #Name), to_operand(a, #Name), to_operand(b, #Name)); \
      },                                                                                       \
      py::arg("condition"), py::arg("input"), py::arg("other"));
#define STRUCTURED(...)
#include "ir/ops.def"
#include "ir/undef.h"
}

Number to_number(py::handle value) {
  Operand2 o = to_operand(value, "full");
  if (auto* n = std::get_if<Number>(&o)) return *n;
  fail(ErrorKind::Type, "full: the value must be a number");
}

}  // namespace

void bind_ops(py::module_& m) {
  py::module_ o = m.def_submodule("ops", "Ops of the core.");
  auto tensor = py::reinterpret_borrow<py::class_<Tensor, TensorPtr>>(m.attr("Tensor"));
  bind_rows(o, tensor);
  o.def("cast",
        [](py::handle x, DTypeObject t) { return ops::cast(to_tensor(x, "Cast"), t.value); });
  o.def("stop_gradient",
        [](py::handle x) { return ops::stop_gradient(to_tensor(x, "StopGradient")); });
  o.def("full", [](py::handle dims, py::handle value, DTypeObject t) {
    return ops::full(to_dims(dims, "full"), t.value, to_number(value));
  });
  o.def("iota", [](py::handle dims, DTypeObject t, int axis) {
    return ops::iota(to_dims(dims, "Iota"), t.value, axis);
  });
  o.def("random_uniform", [](const TensorPtr& state, py::handle dims) {
    return ops::random_uniform(state, to_dims(dims, "RandomUniform"));
  });
  o.def("reshape", [](py::handle x, py::handle dims) {
    return ops::reshape(to_tensor(x, "Reshape"), to_dims(dims, "Reshape"));
  });
  o.def("transpose", [](py::handle x, py::handle perm) {
    return ops::transpose(to_tensor(x, "Transpose"), to_dims(perm, "Transpose"));
  });
  o.def("broadcast_to", [](py::handle x, py::handle dims) {
    return ops::broadcast_to(to_tensor(x, "BroadcastTo"), to_dims(dims, "BroadcastTo"));
  });
  o.def("slice", [](const TensorPtr& x, Dims start, Dims size, Dims step) {
    return ops::slice(x, {std::move(start), std::move(size), std::move(step)});
  });
  o.def("slice_scatter", [](const TensorPtr& x, const Dims& dims, const Dims& start,
                            const Dims& step) { return ops::slice_scatter(x, dims, start, step); });
  o.def("concat", [](const py::sequence& xs, int axis) {
    std::vector<TensorPtr> in;
    for (py::handle x : xs) in.push_back(only_tensor(x, "Concat"));
    return ops::concat(in, axis);
  });
  o.def(
      "matmul",
      [](py::handle a, py::handle b, bool ta, bool tb) {
        return ops::matmul(only_tensor(a, "MatMul"), only_tensor(b, "MatMul"), ta, tb);
      },
      py::arg("a"), py::arg("b"), py::arg("transpose_a") = false, py::arg("transpose_b") = false);
  auto reduction = [&](const char* function, Op op) {
    o.def(
        function,
        [op](py::handle x, py::handle axes, bool keep) {
          return ops::reduce(op, to_tensor(x, info(op).name), to_axes(axes, info(op).name), keep);
        },
        py::arg("x"), py::arg("axes") = py::none(), py::arg("keep_dims") = false);
  };
  reduction("reduce_sum", Op::ReduceSum);
  reduction("reduce_max", Op::ReduceMax);
  reduction("reduce_min", Op::ReduceMin);
  o.def(
      "mean",
      [](py::handle x, py::handle axes, bool keep) {
        return ops::mean(to_tensor(x, "ReduceMean"), to_axes(axes, "ReduceMean"), keep);
      },
      py::arg("x"), py::arg("axes") = py::none(), py::arg("keep_dims") = false);
  auto arg_reduction = [&](const char* function, Op op) {
    o.def(
        function,
        [op](py::handle x, int axis, bool keep) {
          return ops::arg_reduce(op, to_tensor(x, info(op).name), axis, keep);
        },
        py::arg("x"), py::arg("axis"), py::arg("keep_dims") = false);
  };
  arg_reduction("argmax", Op::ArgMax);
  arg_reduction("argmin", Op::ArgMin);
  o.def(
      "cumsum",
      [](py::handle x, int axis, bool exclusive, bool reverse) {
        return ops::cumsum(to_tensor(x, "CumSum"), axis, exclusive, reverse);
      },
      py::arg("x"), py::arg("axis"), py::arg("exclusive") = false, py::arg("reverse") = false);
  o.def("gather", [](py::handle x, py::handle indices, int axis) {
    return ops::gather(to_tensor(x, "Gather"), to_tensor(indices, "Gather"), axis);
  });
  o.def("scatter_add", [](const TensorPtr& indices, const TensorPtr& updates, int axis,
                          int64_t size) { return ops::scatter_add(indices, updates, axis, size); });
  o.def("last_writer", &ops::last_writer);

  bind_operator(tensor, "__add__", "__radd__", Op::Add);
  bind_operator(tensor, "__sub__", "__rsub__", Op::Sub);
  bind_operator(tensor, "__mul__", "__rmul__", Op::Mul);
  bind_operator(tensor, "__truediv__", "__rtruediv__", Op::Div);
  bind_operator(tensor, "__floordiv__", "__rfloordiv__", Op::FloorDiv);
  bind_operator(tensor, "__mod__", "__rmod__", Op::Mod);
  bind_operator(tensor, "__pow__", "__rpow__", Op::Pow);
  bind_operator(tensor, "__and__", "__rand__", Op::LogicalAnd);
  bind_operator(tensor, "__or__", "__ror__", Op::LogicalOr);
  bind_operator(tensor, "__xor__", "__rxor__", Op::LogicalXor);
  bind_operator(tensor, "__lt__", nullptr, Op::Less);
  bind_operator(tensor, "__le__", nullptr, Op::LessEqual);
  bind_operator(tensor, "__gt__", nullptr, Op::Greater);
  bind_operator(tensor, "__ge__", nullptr, Op::GreaterEqual);
  bind_operator(tensor, "__eq__", nullptr, Op::Equal);
  bind_operator(tensor, "__ne__", nullptr, Op::NotEqual);
  tensor.def("__neg__", [](const TensorPtr& x) { return ops::unary(Op::Neg, x); });
  tensor.def("__pos__", [](const TensorPtr& x) { return x; });
  tensor.def("__abs__", [](const TensorPtr& x) { return ops::unary(Op::Abs, x); });
  tensor.def("__invert__", [](const TensorPtr& x) { return ops::unary(Op::LogicalNot, x); });
  auto matrix = [](py::handle v) {
    return py::isinstance<Tensor>(v) || py::isinstance<py::array>(v);
  };
  tensor.def("__matmul__", [matrix](const TensorPtr& a, py::handle b) -> py::object {
    if (!matrix(b)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
    return py::cast(ops::matmul(a, to_tensor(b, "MatMul"), false, false));
  });
  tensor.def("__rmatmul__", [matrix](const TensorPtr& a, py::handle b) -> py::object {
    if (!matrix(b)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
    return py::cast(ops::matmul(to_tensor(b, "MatMul"), a, false, false));
  });
  tensor.def("__hash__",
             [](py::handle self) { return reinterpret_cast<intptr_t>(self.ptr()) >> 4; });
}

}  // namespace gradcell::bind

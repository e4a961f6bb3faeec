// The ops as Python functions of gradcell._core.ops, and the operators of Tensor.
#include "bind/bind.h"
#include "ops/value_of.h"

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

/// The method f(tensor, other), for others that `accepts` says it has a meaning for.
template <class Test, class F>
void bind_method(py::class_<Tensor, TensorPtr>& tensor, const char* method, Test accepts, F f) {
  tensor.def(method, [accepts, f](const TensorPtr& a, py::handle b) -> py::object {
    if (!accepts(b)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
    return py::cast(f(a, b));
  });
}

void bind_operator(py::class_<Tensor, TensorPtr>& tensor, const char* method, const char* reflected,
                   Op op, decltype(&bits) apply = binary) {
  bind_method(tensor, method, is_operand, [op, apply](const TensorPtr& a, py::handle b) {
    return apply(op, a, to_operand(b, info(op).name, Lists::Joined));
  });
  if (!reflected) return;
  bind_method(tensor, reflected, is_operand, [op, apply](const TensorPtr& a, py::handle b) {
    return apply(op, to_operand(b, info(op).name, Lists::Joined), a);
  });
}

/// One function for all rows of a kind: one for each row would take a tenth of a second to compile.
void bind_row(py::module_& m, py::class_<Tensor, TensorPtr>& tensor, Op op) {
  const char *const name = info(op).name, *const fn = info(op).function;
  switch (info(op).kind) {
    case OpKind::Unary:
    case OpKind::Predicate:
      m.def(
          fn, [op, name](py::handle x) { return unary(op, only_tensor(x, name)); },
          py::arg("input"));
      tensor.def(fn, [op](const TensorPtr& x) { return unary(op, x); }, row_text(op).c_str());
      break;
    case OpKind::Binary:
    case OpKind::Compare:
      m.def(
          fn,
          [op, name](py::handle a, py::handle b) {
            return binary(op, to_operand(a, name), to_operand(b, name));
          },
          py::arg("input"), py::arg("other"));
      tensor.def(
          fn,
          [op, name](const TensorPtr& a, py::handle b) {
            return binary(op, a, to_operand(b, name));
          },
          py::arg("other"), row_text(op).c_str());
      break;
    case OpKind::Ternary:
      m.def(
          fn,
          [name](py::handle c, py::handle a, py::handle b) {
            return select(only_tensor(c, name), to_operand(a, name), to_operand(b, name));
          },
          py::arg("condition"), py::arg("input"), py::arg("other"));
      break;
    case OpKind::Structured:
      break;
  }
}

Number to_number(py::handle value) {
  TensorOrNumber o = to_operand(value, "full");
  if (auto* n = std::get_if<Number>(&o)) return *n;
  fail(ErrorKind::Type, "full: the value must be a number");
}

// Structured ops --------------------------------------------------------------------------------

size_t attribute_index(const Spec& s, const char* name) {
  for (size_t i = 0; i < s.attributes.size(); ++i)
    if (std::string_view(s.attributes[i].name) == name) return i;
  fail(ErrorKind::Runtime, info(s.op).name, " has no attribute ", name);
}

/// How Python writes a parameter's type.
const char* type_text(const Spec& s, const Parameter& p) {
  switch (p.kind) {
    case Parameter::Kind::Attribute:
      switch (s.attributes[attribute_index(s, p.name)].kind) {
        case AttributeKind::Axis:
        case AttributeKind::Size:
          return "int";
        case AttributeKind::Flag:
          return "bool";
        default:
          return "object";
      }
    case Parameter::Kind::KeepDims:
      return "bool";
    case Parameter::Kind::DType:
      return "gradcell._core.DType";
    case Parameter::Kind::Tensor:
    case Parameter::Kind::Tensors:
    case Parameter::Kind::Shape:
      return "object";
  }
  return "object";
}

std::string signature(const Spec& s) {
  std::string text;
  for (const Parameter& p : s.parameters) {
    text += str(text.empty() ? "" : ", ", p.name, ": ", type_text(s, p));
    if (p.standard) text += str(" = ", p.standard);
  }
  return str(info(s.op).function, "(", text, ") -> gradcell._core.Tensor");
}

/// What was given for each parameter, by position or name; null: its default.
std::vector<py::handle> bound(const Spec& s, const py::args& args, const py::kwargs& kwargs) {
  const size_t n = s.parameters.size();
  auto refuse = [&s](const auto&... what) { fail(ErrorKind::Type, signature(s), ": ", what...); };
  if (args.size() > n) refuse("got ", args.size(), " arguments by position");
  std::vector<py::handle> values(n);
  for (size_t i = 0; i < args.size(); ++i) values[i] = args[i];
  for (auto [key, value] : kwargs) {
    const auto name = key.cast<std::string>();
    size_t i = 0;
    while (i < n && name != s.parameters[i].name) ++i;
    if (i == n) refuse("no argument is called ", name);
    if (values[i]) refuse(name, " is given twice");
    values[i] = value;
  }
  for (size_t i = 0; i < n; ++i)
    if (!values[i] && !s.parameters[i].standard) refuse(s.parameters[i].name, " is missing");
  return values;
}

/// The value as a T, which users call `wanted`.
template <class T>
T read(py::handle value, const char* op, const char* name, const char* wanted) {
  try {
    return value.cast<T>();
  } catch (const py::cast_error&) {
    std::string got = py::repr(value);
    if (got.size() > 40) got = "a " + std::string(py::str(py::type::of(value).attr("__name__")));
    fail(ErrorKind::Type, op, ": ", name, " must be ", wanted, ", got ", got);
  }
}

std::optional<Dims> to_attribute(AttributeKind kind, py::handle value, const char* op,
                                 const char* name) {
  switch (kind) {
    case AttributeKind::Axis:
    case AttributeKind::Size:
      return Dims{read<int64_t>(value, op, name, "an integer")};
    case AttributeKind::Flag:
      return Dims{read<bool>(value, op, name, "a bool")};
    case AttributeKind::Axes:
      return to_axes(value, op);
    case AttributeKind::Perm:
    case AttributeKind::Box:
    case AttributeKind::Body:
      return to_dims(value, op);
  }
  return {};
}

TensorPtr call(const Spec& s, const py::args& args, const py::kwargs& kwargs, bool as_view) {
  const char* op = info(s.op).name;
  const std::vector<py::handle> values = bound(s, args, kwargs);
  Arguments a;
  if (s.effect()) a.at = python_location();
  a.attributes.resize(s.attributes.size());
  py::object asked = py::none();  // numbers are rounded once, to the dtype that is asked for
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] && s.parameters[i].kind == Parameter::Kind::DType)
      asked = py::reinterpret_borrow<py::object>(values[i]);
  for (size_t i = 0; i < values.size(); ++i) {
    const Parameter& p = s.parameters[i];
    if (!values[i]) {  // a default: no flag, all axes, or a flag
      if (p.standard == std::string_view("True"))
        a.attributes[attribute_index(s, p.name)] = Dims{1};
      continue;
    }
    switch (p.kind) {
      case Parameter::Kind::Tensor:
        a.tensors.push_back(to_tensor(values[i], op, asked));
        break;
      case Parameter::Kind::Tensors:
        for (py::handle x : values[i]) a.tensors.push_back(only_tensor(x, op));
        break;
      case Parameter::Kind::Attribute: {
        const size_t k = attribute_index(s, p.name);
        a.attributes[k] = to_attribute(s.attributes[k].kind, values[i], op, p.name);
        break;
      }
      case Parameter::Kind::Shape:
        a.asked.dims = to_dims(values[i], op);
        break;
      case Parameter::Kind::DType:
        a.asked.dtype = read<DTypeObject>(values[i], op, p.name, "a dtype").value;
        break;
      case Parameter::Kind::KeepDims:
        a.keep_dims = read<bool>(values[i], op, p.name, "a bool");
        break;
    }
  }
  return as_view ? view(s.op, a) : apply(s.op, a);
}

/// The functions of all specs that have parameters; or of those that can be views, as views.
void bind_structured(py::module_& m, bool views) {
  py::options options;
  options.disable_function_signatures();
  for (uint16_t i = 0; i < narrow<uint16_t>(Op::Count); ++i) {
    const Spec& s = spec(static_cast<Op>(i));
    if (views ? !s.views() : s.parameters.empty()) continue;
    m.def(
        info(s.op).function,
        [&s, views](const py::args& args, const py::kwargs& kwargs) {
          return call(s, args, kwargs, views);
        },
        signature(s).c_str());
  }
}

/// What a key of ints, slices of ints, None and Ellipsis picks from one dimension after another.
class BasicIndex {
 public:
  /// False for any other key, and for what is out of bounds or too much.
  bool read(const Dims& dims, py::handle key) {
    const bool several = PyTuple_Check(key.ptr());
    const auto count = several ? static_cast<size_t>(PyTuple_GET_SIZE(key.ptr())) : size_t{1};
    auto entry = [&](size_t i) {
      return several ? PyTuple_GET_ITEM(key.ptr(), static_cast<Py_ssize_t>(i)) : key.ptr();
    };
    size_t used = 0, ellipses = 0;
    for (size_t i = 0; i < count; ++i) {
      PyObject* const k = entry(i);
      used += is_int(k) || PySlice_Check(k);
      ellipses += k == Py_Ellipsis;
    }
    if (used > dims.size() || ellipses > 1 || (dims.empty() && !several && key.ptr() != Py_None))
      return false;
    for (size_t i = 0; i < count; ++i) {
      PyObject* const k = entry(i);
      if (k == Py_None) {
        shape.push_back(1);
      } else if (k == Py_Ellipsis) {
        for (size_t d = used; d < dims.size(); ++d) whole_axis(dims);
      } else if (is_int(k)) {
        if (!pick(dims[start.size()], PyLong_AsLongLong(k))) return false;
      } else if (!PySlice_Check(k) || !range(dims[start.size()], k)) {
        return false;
      }
    }
    while (start.size() < dims.size()) whole_axis(dims);
    return true;
  }

  Dims start, size, step, shape;

 private:
  static bool is_int(PyObject* k) { return PyLong_Check(k) && !PyBool_Check(k); }

  void add(int64_t from, int64_t count, int64_t by) {
    start.push_back(from), size.push_back(count), step.push_back(by);
  }
  void whole_axis(const Dims& dims) {
    const int64_t n = dims[start.size()];
    add(0, n, 1), shape.push_back(n);
  }
  bool pick(int64_t n, int64_t k) {
    if (k == -1 && PyErr_Occurred()) {  // (too large for 64 bits)
      PyErr_Clear();
      return false;
    }
    if (k < -n || k >= n) return false;
    add(k < 0 ? k + n : k, 1, 1);
    return true;
  }
  bool range(int64_t n, PyObject* k) {
    const auto* const slice = reinterpret_cast<PySliceObject*>(k);
    for (PyObject* part : {slice->start, slice->stop, slice->step})
      if (part != Py_None && !is_int(part)) return false;
    Py_ssize_t first = 0, last = 0, by = 0;
    if (PySlice_Unpack(k, &first, &last, &by) < 0) {  // (a step of 0)
      PyErr_Clear();
      return false;
    }
    const Py_ssize_t count = PySlice_AdjustIndices(n, &first, &last, by);
    add(count ? first : 0, count, by), shape.push_back(count);
    return true;
  }
};

/// What functions and methods that return views are made of; `ops` has the same as copies.
void bind_views(py::module_& m) {
  bind_structured(m, true);
  m.def("index", &index, py::arg("x"), py::arg("start"), py::arg("size"), py::arg("step"),
        py::arg("shape"), "A slice in another shape.");
  m.def(
      "at",
      [](const TensorPtr& x, py::handle key) -> TensorPtr {
        BasicIndex k;
        return k.read(x->dims(), key) ? index(x, k.start, k.size, k.step, k.shape) : nullptr;
      },
      py::arg("x"), py::arg("key"),
      "x[key] for a key of ints, slices of ints, None and Ellipsis that fits; None for others.");
  m.def(
      "unstack",
      [](const TensorPtr& x, int64_t axis) { return py::tuple(py::cast(unstack(x, axis))); },
      py::arg("x"), py::arg("axis"), "The slices along an axis >= 0, without it.");
  m.def("diagonal", &diagonal, py::arg("x"), py::arg("offset"), py::arg("axis1"), py::arg("axis2"),
        "The elements along two axes whose indices differ by offset.");
}

}  // namespace

void bind_ops(py::module_& m) {
  py::module_ o = m.def_submodule("ops", "Ops of the core.");
  auto tensor = py::reinterpret_borrow<py::class_<Tensor, TensorPtr>>(m.attr("Tensor"));
  for (uint16_t i = 0; i < narrow<uint16_t>(Op::Count); ++i)
    bind_row(o, tensor, static_cast<Op>(i));
  bind_structured(o, false);
  py::module_ views = m.def_submodule("views", "Movements as views of their tensor.");
  bind_views(views);
  o.def("full", [](py::handle dims, py::handle value, DTypeObject t) {
    return full(to_dims(dims, "full"), t.value, to_number(value));
  });
  o.def(
      "mean",
      [](py::handle x, py::handle axes, bool keep) {
        return mean(to_tensor(x, "ReduceMean"), to_axes(axes, "ReduceMean"), keep);
      },
      py::arg("x"), py::arg("axes") = py::none(), py::arg("keep_dims") = false);
  const std::pair<const char*, Function> marked[] = {{"hypot", Function::Hypot},
                                                     {"xlogy", Function::XLogY},
                                                     {"lower_gamma", Function::LowerGamma},
                                                     {"root", Function::Root}};
  for (const auto& [name, f] : marked)
    o.def(
        name,
        [f, name](py::handle a, py::handle b) {
          return value_of(f, to_operand(a, name), to_operand(b, name));
        },
        py::arg("input"), py::arg("other") = 0.0);

  bind_operator(tensor, "__add__", "__radd__", Op::Add);
  bind_operator(tensor, "__sub__", "__rsub__", Op::Sub);
  bind_operator(tensor, "__mul__", "__rmul__", Op::Mul);
  bind_operator(tensor, "__truediv__", "__rtruediv__", Op::Div);
  bind_operator(tensor, "__floordiv__", "__rfloordiv__", Op::FloorDiv);
  bind_operator(tensor, "__mod__", "__rmod__", Op::Mod);
  bind_operator(tensor, "__pow__", "__rpow__", Op::Pow);
  const std::tuple<const char*, const char*, const char*, Op> of_bits[] = {
      {"__and__", "__rand__", "bitwise_and", Op::LogicalAnd},
      {"__or__", "__ror__", "bitwise_or", Op::LogicalOr},
      {"__xor__", "__rxor__", "bitwise_xor", Op::LogicalXor}};
  for (const auto& [method, reflected, name, op] : of_bits) {
    bind_operator(tensor, method, reflected, op, bits);
    o.def(
        name,
        [op, name](py::handle a, py::handle b) {
          return bits(op, to_operand(a, name), to_operand(b, name));
        },
        py::arg("input"), py::arg("other"));
  }
  bind_operator(tensor, "__lt__", nullptr, Op::Less);
  bind_operator(tensor, "__le__", nullptr, Op::LessEqual);
  bind_operator(tensor, "__gt__", nullptr, Op::Greater);
  bind_operator(tensor, "__ge__", nullptr, Op::GreaterEqual);
  bind_operator(tensor, "__eq__", nullptr, Op::Equal);
  bind_operator(tensor, "__ne__", nullptr, Op::NotEqual);
  tensor.def("__neg__", [](const TensorPtr& x) { return unary(Op::Neg, x); });
  tensor.def("__pos__", [](const TensorPtr& x) { return copy(x); });
  tensor.def("__abs__", [](const TensorPtr& x) { return unary(Op::Abs, x); });
  tensor.def("__invert__", [](const TensorPtr& x) { return unary(Op::LogicalNot, x); });
  auto matrix = [](py::handle v) { return py::isinstance<Tensor>(v) || is_array(v); };
  bind_method(tensor, "__matmul__", matrix,
              [](const TensorPtr& a, py::handle b) { return matmul(a, to_tensor(b, "matmul")); });
  bind_method(tensor, "__rmatmul__", matrix,
              [](const TensorPtr& a, py::handle b) { return matmul(to_tensor(b, "matmul"), a); });
  tensor.def("__hash__",
             [](py::handle self) { return reinterpret_cast<intptr_t>(self.ptr()) >> 4; });
}

}  // namespace gradcell::bind

// What C++ functions of a program's own, written for MindSpore's CustomOpBuilder, include: its
// names, over NumPy's arrays. Tensors come in and go out through Python's; what is in one lies in
// rows.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace py = pybind11;
using ShapeVector = std::vector<int64_t>;

namespace mindspore {
// clang-format off
enum TypeId {
  kNumberTypeBool, kNumberTypeInt8, kNumberTypeInt16, kNumberTypeInt32, kNumberTypeInt64, kNumberTypeUInt8,
  kNumberTypeUInt16, kNumberTypeUInt32, kNumberTypeUInt64, kNumberTypeFloat16, kNumberTypeFloat32,
  kNumberTypeFloat64, kNumberTypeComplex64, kNumberTypeComplex128,
};
// clang-format on
}  // namespace mindspore

namespace ms {
using mindspore::TypeId;
/// NumPy's names of the dtypes, in TypeId's order.
inline const char* const kNames[] = {"bool", "i1", "i2", "i4", "i8", "u1", "u2",
                                     "u4",   "u8", "f2", "f4", "f8", "c8", "c16"};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const py::array& values)
      : defined_(true), values_(py::array::ensure(values, py::array::c_style)) {
    shape_.assign(values_.shape(), values_.shape() + values_.ndim());
    while (!values_.dtype().equal(py::dtype(kNames[type_]))) {
      if (++type_ == std::size(kNames))
        throw py::type_error("a tensor of a dtype that C++ functions do not take");
    }
  }
  Tensor(TypeId type, const ShapeVector& shape)
      : Tensor(py::array(py::dtype(kNames[type]), shape)) {}

  bool is_defined() const { return defined_; }
  TypeId data_type() const { return static_cast<TypeId>(type_); }
  const ShapeVector& shape() const { return shape_; }
  size_t numel() const { return static_cast<size_t>(values_.size()); }
  ShapeVector stride() const {
    ShapeVector steps(values_.strides(), values_.strides() + values_.ndim());
    for (int64_t& step : steps) step /= values_.itemsize();
    return steps;
  }
  int64_t storage_offset() const { return 0; }
  bool is_contiguous() const { return true; }
  void SetNeedContiguous(bool) const {}
  Tensor contiguous() const { return *this; }
  Tensor cast(TypeId type) const {
    return Tensor(values_.attr("astype")(kNames[type]).cast<py::array>());
  }
  Tensor reshape(const ShapeVector& shape) const {
    return Tensor(values_.attr("reshape")(shape).cast<py::array>());
  }
  void* GetDataPtr() const { return const_cast<void*>(values_.data()); }
  template <class T>
  T* data_ptr() const {
    return static_cast<T*>(GetDataPtr());
  }
  const py::array& values() const { return values_; }

 private:
  bool defined_ = false;
  py::array values_;
  ShapeVector shape_;
  size_t type_ = 0;
};

namespace pynative {
/// A kernel: Run hands it tensors and calls LaunchKernel, which fills the outputs.
class PyboostRunner : public std::enable_shared_from_this<PyboostRunner> {
 public:
  explicit PyboostRunner(const std::string& op_name) : name_(op_name) {}
  virtual ~PyboostRunner() = default;

  /// func's result as Python's object; None where it has no outputs.
  template <int OUT_NUM, class F, class... A,
            std::enable_if_t<std::is_invocable_v<F, A...>, int> = 0>
  static py::object Call(F func, A&&... args) {
    if constexpr (OUT_NUM == 0) {
      func(std::forward<A>(args)...);
      return py::none();
    } else {
      return py::cast(func(std::forward<A>(args)...));
    }
  }
  template <int OUT_NUM, class F, class... A>
  static py::object Call(const std::string&, F func, A&&... args) {
    return Call<OUT_NUM>(func, std::forward<A>(args)...);
  }

  void Run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    inputs_ = inputs, outputs_ = outputs;
    workspace_.resize(CalcWorkspace());
    LaunchKernel();
  }
  virtual size_t CalcWorkspace() { return 0; }
  virtual void LaunchKernel() = 0;
  const std::string& op_name() const { return name_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  void* workspace_ptr() { return workspace_.data(); }

 private:
  std::string name_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<char> workspace_;
};

template <int OUT_NUM, class R, class... A>
auto caller(R (*func)(A...)) {
  return [func](std::decay_t<A>... args) { return PyboostRunner::Call<OUT_NUM>(func, args...); };
}
}  // namespace pynative
}  // namespace ms

#define PYBOOST_CALLER(OUT_NUM, FUNC) ms::pynative::caller<OUT_NUM>(FUNC)

namespace pybind11::detail {
template <>
struct type_caster<ms::Tensor> {
  PYBIND11_TYPE_CASTER(ms::Tensor, const_name("Tensor"));
  bool load(handle source, bool) {
    if (!isinstance(source, module_::import("gradcell").attr("Tensor"))) return false;
    value = ms::Tensor(source.attr("asnumpy")().cast<array>());
    return true;
  }
  static handle cast(const ms::Tensor& tensor, return_value_policy, handle) {
    return module_::import("gradcell").attr("Tensor")(tensor.values()).release();
  }
};
}  // namespace pybind11::detail

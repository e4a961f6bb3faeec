"""ops.CustomOpBuilder: C++ functions of a program's own, written for MindSpore."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcell import Tensor, float32, grad, int32, ops

SOURCE = """
#include "ms_extension/api.h"

namespace {
// x y + 1, and the sum of a row by a workspace.
class Scaled : public ms::pynative::PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  size_t CalcWorkspace() override { return sizeof(float); }
  void LaunchKernel() override {
    const ms::Tensor &x = inputs()[0], &y = inputs()[1], &z = outputs()[0], &sum = outputs()[1];
    const float *a = static_cast<const float *>(x.GetDataPtr());
    const float *b = static_cast<const float *>(y.GetDataPtr());
    float *c = static_cast<float *>(z.GetDataPtr());
    float *total = static_cast<float *>(workspace_ptr());
    *total = 0;
    for (size_t i = 0; i < x.numel(); ++i) *total += c[i] = a[i] * b[i] + 1.0f;
    *static_cast<float *>(sum.GetDataPtr()) = *total;
  }
};

std::vector<ms::Tensor> Both(const ms::Tensor &x, const ms::Tensor &y) {
  ms::Tensor z(x.data_type(), x.shape()), sum(x.data_type(), {});
  std::make_shared<Scaled>("Scaled")->Run({x, y}, {z, sum});
  return {z, sum};
}
ms::Tensor First(const ms::Tensor &x, const std::optional<ms::Tensor> &y) {
  return Both(x, y.has_value() ? y.value() : x)[0];
}
}  // namespace

py::object both(const ms::Tensor &x, const ms::Tensor &y) {
  return ms::pynative::PyboostRunner::Call<2>("Both", Both, x, y);
}
std::vector<int64_t> about(const ms::Tensor &x) {
  auto found = x.stride();
  found.push_back(x.data_type() == ms::TypeId::kNumberTypeInt32);
  return found;
}

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("both", &both);
  m.def("first", PYBOOST_CALLER(1, First), py::arg("x"), py::arg("y") = py::none());
  m.def("about", &about);
}
"""


def built(name: str, source: str, folder: Path, **options: Any) -> Any:
    pytest.importorskip("pybind11")
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    path = folder / "functions.cpp"
    path.write_text(source)
    return ops.CustomOpBuilder(name, str(path), "CPU", build_dir=str(folder), **options)


@pytest.mark.slow
def test_functions_in_cpp(tmp_path: Path) -> None:
    made = built("both_in_cpp", SOURCE, tmp_path, cflags="-O0").load()
    x, y = (Tensor(v, float32) for v in ([[1.0, 2.0], [3.0, 4.0]], [[2.0, 0.5], [1.0, -1.0]]))
    z, total = made.both(x, y)
    want = x.asnumpy() * y.asnumpy() + 1
    np.testing.assert_array_equal(z.asnumpy(), want)
    assert (tuple(total.shape), float(total)) == ((), want.sum())
    np.testing.assert_array_equal(made.first(x.T).asnumpy(), x.T.asnumpy() ** 2 + 1)
    assert made.about(Tensor([[1, 2, 3]], int32)) == [3, 1, 1]

    square = ops.Custom(
        lambda a: made.first(Tensor(a)).asnumpy(), bprop=lambda x, out, dout: (2 * x * dout,)
    )
    np.testing.assert_array_equal(grad(square)(x).asnumpy(), 2 * x.asnumpy())


def test_what_does_not_compile_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="broken does not compile"):
        built("broken", "no C++\n", tmp_path).load()


def test_kernels_of_other_devices_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="Ascend"):
        ops.CustomOpBuilder("a", "a.cpp", "Ascend")


def test_the_compiler_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pybind11")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match=r"needs a C\+\+ compiler"):
        ops.CustomOpBuilder("a", "a.cpp").build()

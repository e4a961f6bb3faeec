"""Ops of a program's own: Custom runs a Python function on arrays; what describes kernels for Ascend
only keeps its description."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell
from gradcell._core import Tensor, in_trace
from gradcell.base import fail, tree, unsupported
from gradcell.derivatives.custom_rules import gradients_of
from gradcell.derivatives.own_derivatives import Pullback, Tensors, call, defined_at, filled
from gradcell.ops.primitive import Primitive

__all__ = [
    "AiCPURegOp", "AkgGpuRegOp", "CpuRegOp", "Custom", "CustomOpBuilder", "CustomRegOp", "DataType",
    "PyFunc", "TBERegOp", "custom_info_register", "op_info_register", "prim_attr_register",
]  # fmt: skip


class Custom(Primitive):
    """An op whose function gets NumPy arrays and gives one or several: func_type 'pyfunc'.

    bprop(*inputs, output, gradient), in gradcell.ops, is its derivative, as Cell.bprop is a cell's.
    A function that uses it is recorded at every call, since the arrays depend on values. func: a
    function of NumPy arrays. func_type: 'pyfunc', the only one there is. bprop: a function, or
    None. out_shape, out_dtype and reg_info have no effect. Raises NotImplementedError for other
    kinds of functions, which are kernels for MindSpore's compilers; when a derivative is taken,
    RuntimeError without a bprop.
    """

    def __init__(
        self, func: Any, out_shape: Any = None, out_dtype: Any = None, func_type: str = "pyfunc",
        bprop: Any = None, reg_info: Any = None,
    ) -> None:  # fmt: skip
        if func_type != "pyfunc" or not callable(func):
            unsupported(
                f"ops.Custom: func_type {func_type!r} is a kernel for MindSpore's own compilers; write the "
                "function in gradcell.ops, or as func_type 'pyfunc' in NumPy"
            )
        super().__init__("Custom", func_type=func_type)
        self.func: Any = func
        self.bprop: Any = bprop

    def __call__(self, *inputs: Any) -> Any:
        """The function's results as tensors."""
        out = self.func(*(x.asnumpy() if isinstance(x, Tensor) else x for x in inputs))
        several = isinstance(out, (tuple, list))
        values = [Tensor(np.asarray(o)) for o in (out if several else [out])]
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        if in_trace() and tensors:
            values = call(values, tensors, self._rule(inputs, several))
        return tuple(values) if several else values[0]

    def _rule(self, inputs: tuple[Any, ...], several: bool) -> Pullback:
        outline, bprop = tree.outline(inputs), self.bprop
        name = f"ops.Custom {defined_at(self.func)}"

        def pull(xs: list[Tensor], outputs: list[Tensor], cotangents: Tensors, _: Any) -> Tensors:
            if bprop is None:
                fail(
                    f"Illegal primitive Custom's bprop not defined: {name} is a function on arrays, which "
                    "has no derivative without one"
                )
            dout = filled(cotangents, outputs)
            found = bprop(
                *tree.refill(outline, xs),
                tuple(outputs) if several else outputs[0],
                tuple(dout) if several else dout[0],
            )
            if not isinstance(found, (tuple, list)):
                found = (found,)
            if len(found) != len(outline):
                fail(
                    f"{defined_at(bprop)} must give a gradient for each of the {len(outline)} inputs of "
                    f"{name}, got {len(found)}"
                )
            return gradients_of(found, outline, xs, defined_at(bprop))

        return Pullback(name, pull)


class PyFunc(Custom):
    """An op whose function gets NumPy arrays; the results come as a tuple, also a single one.

    fn: a function of NumPy arrays. in_types, in_shapes, out_types, out_shapes: the dtypes and shapes of the
    arguments and results, which the function itself decides here. stateful has no effect. Raises RuntimeError
    when a derivative is taken.
    """

    def __init__(
        self, fn: Any, in_types: Any, in_shapes: Any, out_types: Any, out_shapes: Any, stateful: bool = True
    ) -> None:  # fmt: skip
        super().__init__(fn)

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """The function's results as tensors."""
        found = super().__call__(*inputs)
        return found if isinstance(found, tuple) else (found,)


class CustomOpBuilder:
    """C++ functions of a program's own, compiled and loaded: they include "ms_extension/api.h", which has
    MindSpore's Tensor and PyboostRunner, on the CPU.

    name: the module's. sources: a file's path, or several. backend: 'CPU' or None; else NotImplementedError
    is raised. include_paths: further folders of headers. cflags, ldflags: words for the compiler and the
    linker. kwargs: build_dir, a folder, by default kernel_meta/name, or below MS_COMPILER_CACHE_PATH. What
    calls such a function is traced at every call; it has no derivative, unless Custom runs it, with a bprop.
    """

    def __init__(
        self, name: str, sources: Any, backend: str | None = None, include_paths: Any = None,
        cflags: str | None = None, ldflags: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        if backend not in (None, "CPU"):
            unsupported(
                f"ops.CustomOpBuilder: the backend {backend!r}; C++ functions run on the CPU"
            )
        self.name: str = name
        self.build_dir: str | None = kwargs.get("build_dir")
        self.sources: list[str] = [sources] if isinstance(sources, str) else list(sources)
        more = [include_paths] if isinstance(include_paths, str) else include_paths
        self.include_paths: list[str] = list(more or ())
        self.cflags: list[str] = (cflags or "").split()
        self.ldflags: list[str] = (ldflags or "").split()

    def build(self) -> str:
        """The path of the compiled module. Raises ImportError without pybind11, RuntimeError without a
        compiler and where it fails."""
        try:
            import pybind11
        except ImportError as error:
            raise ImportError(
                "ops.CustomOpBuilder needs pybind11: pip install gradcell[cpp]"
            ) from error
        compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
        if compiler is None:
            fail("ops.CustomOpBuilder needs a C++ compiler, such as g++")
        above = os.environ.get("MS_COMPILER_CACHE_PATH", "kernel_meta")
        folder = self.build_dir or os.path.join(above, self.name)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, self.name + sysconfig.get_config_var("EXT_SUFFIX"))
        ours = os.path.join(os.path.dirname(gradcell.__file__), "mindspore")
        headers = [ours, pybind11.get_include(), sysconfig.get_path("include"), *self.include_paths]
        command = [
            *compiler.split(), "-std=c++17", "-O2", "-shared", "-fPIC", f"-DMS_EXTENSION_NAME={self.name}",
            *(f"-I{folder}" for folder in headers), *self.cflags, *self.sources, "-o", path, *self.ldflags,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            fail(f"ops.CustomOpBuilder: {self.name} does not compile: {done.stderr}")
        return path

    def load(self) -> Any:
        """The module, compiled first."""
        spec: Any = importlib.util.spec_from_file_location(self.name, self.build())
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


_KINDS = {
    "None": "", "BOOL": "bool", "I8": "int8", "U8": "uint8", "I16": "int16", "U16": "uint16",
    "I32": "int32", "U32": "uint32", "I64": "int64", "U64": "uint64", "F16": "float16",
    "F32": "float32", "F64": "float64", "BF16": "bfloat16", "C64": "complex64", "C128": "complex128",
}  # fmt: skip


class _DataTypes(type):
    def __getattr__(cls, name: str) -> tuple[str, str]:
        kind, _, layout = name.partition("_")
        if kind not in _KINDS or not layout:
            raise AttributeError(f"DataType has no {name!r}")
        return _KINDS[kind], {"None": "", "Default": "DefaultFormat"}.get(layout, layout)


class DataType(metaclass=_DataTypes):
    """(dtype, layout) pairs in descriptions of kernels: DataType.F32_Default is ('float32',
    'DefaultFormat')."""


class RegOp:
    """A description of a kernel: every method keeps its arguments and returns the object."""

    def __init__(self, op_name: str = "Custom") -> None:
        self.op_name = op_name
        self.settings: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., RegOp]:
        if name.startswith("_"):
            raise AttributeError(name)

        def keep(*args: Any, **kwargs: Any) -> RegOp:
            self.settings.append((name, args))
            return self

        return keep

    def get_op_info(self) -> dict[str, Any]:
        """Return the description made so far."""
        return {"op_name": self.op_name, "settings": list(self.settings)}


class CustomRegOp(RegOp):
    """A description of a program's own kernel."""


class TBERegOp(RegOp):
    """A description of a kernel for Ascend."""


class AiCPURegOp(RegOp):
    """A description of a kernel for Ascend's CPU."""


class CpuRegOp(RegOp):
    """A description of a kernel for MindSpore's CPU engine."""


class AkgGpuRegOp(RegOp):
    """A description of a kernel for MindSpore's GPU engine."""


def custom_info_register(*reg_info: Any) -> Callable[[Any], Any]:
    """Keeps descriptions of kernels with a function.

    reg_info: descriptions.
    """

    def register(function: Any) -> Any:
        function.reg_info = reg_info
        return function

    return register


def op_info_register(op_info: Any) -> Callable[[Any], Any]:
    """Keeps the description of a kernel with its function.

    op_info: a dict, or its JSON text.
    """
    return custom_info_register(op_info)


class _Unregistered(Primitive):
    """An op that MindSpore has kernels of for Ascend alone: it can be made, and raises when called."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(type(self).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises RuntimeError."""
        fail(f"The kernel {self.name} is for Ascend alone, which gradcell does not have")


def unregistered(name: str) -> type[Primitive]:
    """The class of an op that is for Ascend alone."""
    text = f"{name}: for Ascend alone, in MindSpore too. Raises RuntimeError when it is called."
    return type(name, (_Unregistered,), {"__doc__": text, "__module__": "gradcell.ops"})


def prim_attr_register(fn: Any) -> Any:
    """A primitive's __init__ that keeps its arguments as attributes.

    fn: the method __init__ of a Primitive.
    """
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(list(bound.arguments.items())[1:])
        if not hasattr(self, "attributes"):
            Primitive.__init__(self, type(self).__name__, **given)
        for key, value in given.items():
            setattr(self, key, value)
        fn(self, *args, **kwargs)

    return init

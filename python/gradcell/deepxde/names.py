"""The names of PyTorch, TensorFlow and JAX that DeepXDE and its users' residuals ask for, as
functions of gradcell: tables over gradcell.mint, which has most of PyTorch's with its arguments."""

from __future__ import annotations

import itertools
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import _core, mint, ops
from gradcell._core import Tensor
from gradcell.base import tree, where
from gradcell.base.whole_file import whole_file
from gradcell.files import pytorch
from gradcell.tensors.parameter import Parameter


class Names(ModuleType):
    """A module made of names; behind them stand the modules whose names it has too."""

    def __init__(self, name: str, names: dict[str, Any], *behind: Any) -> None:
        super().__init__(name, f"{name}, as gradcell.deepxde has it.")
        self.__dict__.update(names)
        self.__path__: list[str] = []
        self._behind = behind

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            for module in self._behind:
                if hasattr(module, name):
                    return getattr(module, name)
        raise AttributeError(f"gradcell.deepxde has no {self.__name__}.{name}{where()}")


# State ----------------------------------------------------------------------------------------------

_numbers = itertools.count()
_state: dict[str, Any] = {"float": gc.float32, "random": np.random.default_rng(), "halves": False}

#: What is being differentiated by in functions that record now, the innermost last.
SCOPES: list[ExitStack] = []


def default_float() -> Any:
    """The dtype of tensors made of Python's numbers."""
    return _state["float"]


@contextmanager
def in_halves(mixed: bool = True) -> Iterator[None]:
    """Products of matrices that are recorded meanwhile are of float16, as PyTorch's autocast has them."""
    before = _state["halves"]
    _state["halves"] = mixed
    try:
        yield
    finally:
        _state["halves"] = before


def halved(*tensors: Any) -> tuple[Any, ...]:
    """The tensors; of float32 ones their values in float16, within in_halves."""
    if not _state["halves"]:
        return tensors
    narrow = [isinstance(t, Tensor) and t.dtype == gc.float32 for t in tensors]
    return tuple(ops.cast(t, gc.float16) if n else t for t, n in zip(tensors, narrow, strict=True))


def _product(function: Callable[..., Any]) -> Callable[..., Any]:
    """A product of matrices, of which autocast takes halves."""

    def product(*args: Any, **kwargs: Any) -> Any:
        return function(*halved(*args), **kwargs)

    return product


def random() -> np.random.Generator:
    """Return the generator of initial weights."""
    return _state["random"]  # type: ignore[no-any-return]


def _seed(seed: int) -> None:
    _state["random"] = np.random.default_rng(seed)
    gc.set_seed(seed)


# Making tensors -------------------------------------------------------------------------------------


def parameter(data: Any, dtype: Any = None, requires_grad: bool = True) -> Parameter:
    """A Parameter with a name of its own."""
    value = as_tensor(data, dtype)
    return Parameter(value, name=f"parameter{next(_numbers)}", requires_grad=requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    """A tensor of anything; Python's floats have the default dtype."""
    if isinstance(data, Tensor):
        return data if dtype is None or data.dtype == dtype else data.astype(dtype)
    if isinstance(data, (list, tuple)) and any(isinstance(d, Tensor) for d in data):
        return ops.stack([as_tensor(d, dtype or default_float()) for d in data], 0)
    array = np.asarray(data)
    if dtype is None and not isinstance(data, (np.ndarray, np.generic)) and array.dtype.kind == "f":
        dtype = default_float()
    return Tensor(array) if dtype is None else Tensor(array, dtype)


def _tensor(data: Any, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    if requires_grad:
        return parameter(data, dtype)
    return as_tensor(data.copy() if isinstance(data, (Tensor, np.ndarray)) else data, dtype)


def _sizes(shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(shape)


def _filled(fill: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def made(*shape: Any, dtype: Any = None, **_: Any) -> Tensor:
        return fill(_sizes(shape), dtype or default_float())

    return made


# Gradients ------------------------------------------------------------------------------------------


def _autograd(
    outputs: Any, inputs: Any, grad_outputs: Any = None, allow_unused: bool = False, **_: Any
) -> tuple[Tensor, ...]:
    """torch.autograd.grad: a tuple, by one tensor too."""
    ys = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    xs = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    if grad_outputs is not None and not isinstance(grad_outputs, (tuple, list)):
        grad_outputs = [grad_outputs]
    return tuple(gc.gradients(ys, xs, grad_outputs))


def _tf_gradients(ys: Any, xs: Any, grad_ys: Any = None, **_: Any) -> list[Tensor]:
    return list(_autograd(ys, xs, grad_ys))


def _requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """The tensor to differentiate by: where something is recorded, one that stands apart."""
    if not requires_grad or not SCOPES or isinstance(self, Parameter) or _core.apart(self):
        return self
    return SCOPES[-1].enter_context(gc.watch(self))  # type: ignore[no-any-return]


def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with what it computes recorded, so that requires_grad_ and gradients work in it."""

    def scope(*args: Any, **kwargs: Any) -> Any:
        def body(trace: Any) -> Any:
            with ExitStack() as opened:
                SCOPES.append(opened)
                try:
                    out = function(*args, **kwargs)
                finally:
                    SCOPES.pop()
            trace.finish(tree.leaves(out))
            return out

        if _core.in_trace():
            return function(*args, **kwargs)
        return _core.with_trace(body)

    scope.__wrapped__ = function  # type: ignore[attr-defined]
    return scope


# Sparse matrices ------------------------------------------------------------------------------------


class Sparse:
    """A matrix [rows, columns] of elements at positions, to multiply dense ones by."""

    def __init__(self, places: Any, values: Any, shape: Sequence[int], **_: Any) -> None:
        rows, columns = (np.asarray(p, np.int32) for p in places)
        self.rows: Tensor = Tensor(rows)
        self.columns: Tensor = Tensor(columns)
        self.values: Tensor = as_tensor(values)
        self.shape: tuple[int, ...] = tuple(int(n) for n in shape)

    def __matmul__(self, dense: Tensor) -> Tensor:
        parts = ops.gather(dense, self.columns, 0) * ops.reshape(self.values, (-1, 1))
        return ops.unsorted_segment_sum(parts, self.rows, self.shape[0])


def _sparse_product(a: Any, b: Tensor) -> Tensor:
    return a @ b  # type: ignore[no-any-return]


def _tf_sparse(indices: Any, values: Any, dense_shape: Any) -> Sparse:
    places = np.asarray(indices, np.int32).reshape(-1, 2)
    return Sparse((places[:, 0], places[:, 1]), values, dense_shape)


# Files ----------------------------------------------------------------------------------------------


def save(tree_of_arrays: Any, path: Any, **_: Any) -> None:
    """Writes dicts and lists of arrays and numbers: NumPy's format, with the structure as JSON."""
    arrays: list[Any] = []

    def outline(value: Any) -> Any:
        if isinstance(value, (Tensor, np.ndarray)):
            arrays.append(value.asnumpy() if isinstance(value, Tensor) else value)
            return {"array": len(arrays) - 1}
        if isinstance(value, dict):
            return {"dict": [[k, outline(v)] for k, v in value.items()]}
        if isinstance(value, (list, tuple)):
            return {"list": [outline(v) for v in value]}
        return {"value": value}

    text = json.dumps(outline(tree_of_arrays))
    with whole_file(path) as temporary, open(temporary, "xb") as file:
        np.savez(file, structure=np.array(text), **{f"a{i}": a for i, a in enumerate(arrays)})


def load(path: Any, **_: Any) -> Any:
    """Read a file of `save` or of PyTorch's. Raises ValueError for a file of another program."""
    if pytorch.is_pytorchs(path):
        return pytorch.read(path)
    try:
        with open(path, "rb") as whole, np.load(whole, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        structure = json.loads(str(arrays["structure"]))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(
            f"{path} was not written by gradcell.deepxde or PyTorch{where()}"
        ) from error

    def filled(node: dict[str, Any]) -> Any:
        if "array" in node:
            return arrays[f"a{node['array']}"]
        if "dict" in node:
            return {k: filled(v) for k, v in node["dict"]}
        return [filled(v) for v in node["list"]] if "list" in node else node["value"]

    return filled(structure)


# Tables ---------------------------------------------------------------------------------------------


class _NoEffect:
    """A context manager and decorator that changes nothing."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> _NoEffect:
        return self

    def __exit__(self, *_: Any) -> None: ...

    def __call__(self, function: Any) -> Any:
        return function


def _norm(x: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Tensor:
    return mint.norm(x, 2 if ord is None else ord, dim, keepdim)


_cpu = SimpleNamespace(type="cpu", index=None)
_dtypes = {
    n: getattr(gc, n) for n in "float16 float32 float64 uint8 int8 int16 int32 int64".split()
}

#: Names of PyTorch that gradcell.mint has not, or with other arguments.
TORCH: dict[str, Any] = {
    **_dtypes,
    "bool": gc.bool_, "float": gc.float32, "double": gc.float64, "int": gc.int32, "long": gc.int64,
    "Tensor": Tensor, "dtype": type(gc.float32), "pi": math.pi, "inf": math.inf, "nan": math.nan,
    "__version__": "2.9.0+gradcell",
    "as_tensor": as_tensor, "tensor": _tensor, "from_numpy": as_tensor,
    "zeros": _filled(ops.zeros), "ones": _filled(ops.ones), "empty": _filled(ops.zeros),
    "rand": _filled(lambda shape, dtype: Tensor(random().random(shape), dtype)),
    "randn": _filled(lambda shape, dtype: Tensor(random().standard_normal(shape), dtype)),
    "is_tensor": lambda x: isinstance(x, Tensor), "numel": lambda x: int(x.size),
    "lgamma": lambda x: ops.lgamma(x), "mm": _product(mint.matmul), "matmul": _product(mint.matmul),
    "bmm": _product(mint.bmm), "einsum": _product(mint.einsum),
    "no_grad": _NoEffect, "enable_grad": _NoEffect,
    "manual_seed": _seed, "save": save, "load": load, "sparse_coo_tensor": Sparse,
    "set_default_dtype": lambda d: _state.update(float=d), "get_default_dtype": default_float,
    "set_default_device": lambda device: None, "get_default_device": lambda: _cpu,
    "device": lambda *a: _cpu,
    "cuda": Names("torch.cuda", {"is_available": lambda: False}),
    "backends": Names("torch.backends", {"mps": SimpleNamespace(is_available=lambda: False)}),
    "sparse": Names("torch.sparse", {"mm": _sparse_product}),
    "linalg": Names("torch.linalg", {"norm": _norm, "LinAlgError": np.linalg.LinAlgError}, mint.linalg),
    "func": Names("torch.func", {"jvp": gc.jvp, "vmap": gc.vmap, "grad": gc.grad}),
    "autograd": Names("torch.autograd", {
        "grad": _autograd,
        "functional": Names("torch.autograd.functional", {
            "jvp": lambda f, x, v, **_: gc.jvp(f, x, v)}),
    }),
}  # fmt: skip


def _converting(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its first argument made a tensor, as TensorFlow and JAX do."""

    def of_anything(x: Any, *args: Any, **kwargs: Any) -> Any:
        return function(as_tensor(x), *args, **kwargs)

    return of_anything


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(x: Any, axis: Any = None, keepdims: bool = False, **_: Any) -> Any:
        return function(as_tensor(x), axis, keepdims)

    return reduced


def _joined(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tensors, axis=0, **_: function(tuple(map(as_tensor, tensors)), axis)


def _transposed(x: Tensor, perm: Any = None, **_: Any) -> Tensor:
    return ops.transpose(x, tuple(perm) if perm is not None else tuple(range(x.ndim))[::-1])


_UNARY = """sin cos tan sinh cosh tanh asin acos atan exp log log1p sqrt rsqrt square abs sign floor
    sigmoid erf zeros_like ones_like"""
_ELEMENTWISE = {n: _converting(getattr(mint, n)) for n in _UNARY.split()}
_BINARY = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b, "pow": lambda a, b: a**b, "maximum": mint.maximum,
    "minimum": mint.minimum, "matmul": mint.matmul, "where": mint.where, "einsum": mint.einsum,
}  # fmt: skip

#: Names of TensorFlow.
TF: dict[str, Any] = {
    **_dtypes, **_ELEMENTWISE, **_BINARY,
    "bool": gc.bool_, "Tensor": Tensor, "gradients": _tf_gradients,
    "cast": lambda x, dtype: as_tensor(x, dtype), "constant": as_tensor,
    "convert_to_tensor": as_tensor, "Variable": parameter, "lgamma": lambda x: ops.lgamma(x),
    "concat": _joined(ops.concat), "stack": _joined(lambda xs, axis: ops.stack(list(xs), axis)),
    "reduce_sum": _reduced(ops.sum), "reduce_mean": _reduced(ops.mean),
    "reduce_max": _reduced(ops.amax), "reduce_min": _reduced(ops.amin),
    "reduce_prod": _reduced(ops.prod),
    "norm": lambda x, ord=2, axis=None, keepdims=False: _norm(x, ord, axis, keepdims),
    "transpose": _transposed, "reshape": lambda x, shape: ops.reshape(x, tuple(shape)),
    "expand_dims": lambda x, axis: ops.expand_dims(x, axis),
    "squeeze": lambda x, axis=None: ops.squeeze(x, axis),
    "tile": lambda x, multiples: ops.tile(x, tuple(multiples)),
    "gather": lambda x, indices, axis=0: ops.gather(x, as_tensor(indices), axis),
    "roll": lambda x, shift, axis: mint.roll(x, shift, axis),
    "pad": lambda x, paddings: ops.pad(
        x, [int(n) for pair in reversed(np.asarray(paddings).tolist()) for n in pair]),
    "zeros": lambda shape, dtype=None: ops.zeros(tuple(shape), dtype or default_float()),
    "ones": lambda shape, dtype=None: ops.ones(tuple(shape), dtype or default_float()),
    "fill": lambda shape, value: ops.full(tuple(shape), value),
    "shape": lambda x: list(x.shape), "size": lambda x: int(x.size), "rank": lambda x: x.ndim,
    "SparseTensor": _tf_sparse, "sparse_tensor_dense_matmul": _sparse_product,
    "sparse": Names("tensorflow.sparse", {"sparse_dense_matmul": _sparse_product}),
    "nn": mint.nn.functional,
}  # fmt: skip

#: Names of jax.numpy.
JNP: dict[str, Any] = {
    **_dtypes, **_ELEMENTWISE, **_BINARY,
    "pi": math.pi, "power": lambda a, b: a**b, "array": as_tensor, "asarray": as_tensor,
    "concatenate": _joined(ops.concat), "stack": _joined(lambda xs, axis: ops.stack(list(xs), axis)),
    "hstack": lambda xs: ops.concat(tuple(xs), 0 if xs[0].ndim == 1 else 1),
    "sum": _reduced(ops.sum), "mean": _reduced(ops.mean), "prod": _reduced(ops.prod),
    "max": _reduced(ops.amax), "min": _reduced(ops.amin), "transpose": _transposed,
    "arcsin": _converting(mint.asin), "arccos": _converting(mint.acos),
    "arctan": _converting(mint.atan),
    "reshape": lambda x, shape: ops.reshape(x, shape), "roll": lambda x, s, axis=None: mint.roll(x, s, axis),
    "linalg": Names("jax.numpy.linalg", {
        "norm": lambda x, ord=None, axis=None, keepdims=False: _norm(x, ord, axis, keepdims)}),
}  # fmt: skip


def _itself(self: Tensor, *_: Any) -> Tensor:
    """The tensor: there is one device."""
    return self


#: What tensors can do besides.
METHODS: dict[str, Any] = {
    "requires_grad_": _requires_grad_,
    "requires_grad": property(
        lambda self: True, doc="True: a scope says what is differentiated by."
    ),
    "cpu": _itself,
    "cuda": _itself,
    "device": property(lambda self: _cpu, doc="The one device that there is."),
}


def add_methods() -> None:
    """Add PyTorch's methods to tensors."""
    for name, method in METHODS.items():
        if not hasattr(Tensor, name) or name == "requires_grad_":
            setattr(Tensor, name, method)

"""NumPy's elementwise functions: ops of tensors, numbers or nested lists, in the dtype that is asked for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base.spelling import named, spelling, text_of
from gradcell.base.types import DTypeLike, TensorLike
from gradcell.numpy.conversion import floating, pair, tensor, typed

__all__ = [
    "abs",
    "absolute",
    "add",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "divide",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "float_power",
    "floor",
    "floor_divide",
    "fmod",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "lcm",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "not_equal",
    "power",
    "rad2deg",
    "radians",
    "reciprocal",
    "remainder",
    "rint",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
]  # fmt: skip


class _OfOne(Protocol):
    def __call__(self, x: TensorLike, dtype: DTypeLike | None = None) -> Tensor: ...


class _OfTwo(Protocol):
    def __call__(
        self, x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None
    ) -> Tensor: ...


def _of_floats(op: Callable[..., Tensor], name: str = "", taken: Any = floating) -> _OfOne:
    """NumPy's function that is an op of floats: of integers in float32."""

    def function(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor: ...

    function.__name__ = function.__qualname__ = name or op.__name__
    return spelling(op, x=taken, then=typed)(function)


def _of_one(op: Callable[..., Tensor], name: str = "") -> _OfOne:
    """NumPy's function that is an op of one tensor of any dtype."""
    return _of_floats(op, name, tensor)


def _of_two(op: Callable[..., Tensor], name: str = "") -> _OfTwo:
    """NumPy's function that is an op of two tensors or numbers."""

    def function(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
        return typed(op(*pair(x1, x2)), dtype)  # type: ignore[no-any-return]

    first, second = list(inspect.signature(op).parameters)[:2]
    function.__doc__ = text_of(op, {"x1": first, "x2": second})
    return named(function, name or op.__name__)


sin: _OfOne = _of_floats(ops.sin)
cos: _OfOne = _of_floats(ops.cos)
tan: _OfOne = _of_floats(ops.tan)
sinh: _OfOne = _of_floats(ops.sinh)
cosh: _OfOne = _of_floats(ops.cosh)
tanh: _OfOne = _of_floats(ops.tanh)
arcsin: _OfOne = _of_floats(ops.asin, "arcsin")
arctan: _OfOne = _of_floats(ops.atan, "arctan")
arcsinh: _OfOne = _of_floats(ops.asinh, "arcsinh")
arccosh: _OfOne = _of_floats(ops.acosh, "arccosh")
arctanh: _OfOne = _of_floats(ops.atanh, "arctanh")
exp: _OfOne = _of_floats(ops.exp)
expm1: _OfOne = _of_floats(ops.expm1)
log: _OfOne = _of_floats(ops.log)
log2: _OfOne = _of_floats(ops.log2)
log10: _OfOne = _of_floats(ops.log10)
log1p: _OfOne = _of_floats(ops.log1p)
sqrt: _OfOne = _of_floats(ops.sqrt)
reciprocal: _OfOne = _of_floats(ops.reciprocal)
ceil: _OfOne = _of_floats(ops.ceil)
floor: _OfOne = _of_floats(ops.floor)
exp2: _OfOne = _of_floats(ops.exp2)
cbrt: _OfOne = _of_floats(ops.cbrt)
deg2rad: _OfOne = _of_floats(ops.deg2rad)
rad2deg: _OfOne = _of_floats(ops.rad2deg)
radians: _OfOne = _of_floats(ops.deg2rad, "radians")
rint: _OfOne = _of_floats(ops.round, "rint")

abs: _OfOne = _of_one(ops.abs)
absolute: _OfOne = _of_one(ops.abs, "absolute")
fabs: _OfOne = _of_one(ops.abs, "fabs")
square: _OfOne = _of_one(ops.square)
sign: _OfOne = _of_one(ops.sign)
trunc: _OfOne = _of_one(ops.trunc)
isnan: _OfOne = _of_one(ops.isnan)
isinf: _OfOne = _of_one(ops.isinf)
isfinite: _OfOne = _of_one(ops.isfinite)
signbit: _OfOne = _of_one(ops.signbit)
invert: _OfOne = _of_one(ops.bitwise_not, "invert")
bitwise_not: _OfOne = _of_one(ops.bitwise_not)

add: _OfTwo = _of_two(ops.add)
subtract: _OfTwo = _of_two(ops.sub, "subtract")
multiply: _OfTwo = _of_two(ops.mul, "multiply")
divide: _OfTwo = _of_two(ops.div, "divide")
true_divide: _OfTwo = _of_two(ops.div, "true_divide")
power: _OfTwo = _of_two(ops.pow, "power")
mod: _OfTwo = _of_two(ops.mod)
remainder: _OfTwo = _of_two(ops.mod, "remainder")
fmod: _OfTwo = _of_two(ops.fmod)
floor_divide: _OfTwo = _of_two(ops.floor_div, "floor_divide")
maximum: _OfTwo = _of_two(ops.maximum)
minimum: _OfTwo = _of_two(ops.minimum)
arctan2: _OfTwo = _of_two(ops.atan2, "arctan2")
hypot: _OfTwo = _of_two(ops.hypot)
logaddexp: _OfTwo = _of_two(ops.logaddexp)
logaddexp2: _OfTwo = _of_two(ops.logaddexp2)
copysign: _OfTwo = _of_two(ops.copysign)
heaviside: _OfTwo = _of_two(ops.heaviside)
float_power: _OfTwo = _of_two(ops.float_power)
greater: _OfTwo = _of_two(ops.greater)
greater_equal: _OfTwo = _of_two(ops.greater_equal)
less: _OfTwo = _of_two(ops.less)
less_equal: _OfTwo = _of_two(ops.less_equal)
equal: _OfTwo = _of_two(ops.equal)
not_equal: _OfTwo = _of_two(ops.not_equal)
logical_and: _OfTwo = _of_two(ops.logical_and)
logical_or: _OfTwo = _of_two(ops.logical_or)
logical_xor: _OfTwo = _of_two(ops.logical_xor)
bitwise_and: _OfTwo = _of_two(ops.bitwise_and)
bitwise_or: _OfTwo = _of_two(ops.bitwise_or)
bitwise_xor: _OfTwo = _of_two(ops.bitwise_xor)
gcd: _OfTwo = _of_two(ops.gcd)
lcm: _OfTwo = _of_two(ops.lcm)


@spelling(ops.acos, input=floating, then=typed)
def arccos(input: Any, dtype: Any = None) -> Tensor: ...

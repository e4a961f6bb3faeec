"""NumPy's elementwise functions: ops of tensors, numbers or nested lists, in the dtype that is asked for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base.spelling import named, spelling, text_of
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
    def __call__(self, x: Any, dtype: Any = None) -> Tensor: ...


class _OfTwo(Protocol):
    def __call__(self, x1: Any, x2: Any, dtype: Any = None) -> Tensor: ...


def _of_floats(op: Callable[..., Tensor], name: str = "", taken: Any = floating) -> _OfOne:
    """NumPy's function that is an op of floats: of integers in float32."""

    def function(x: Any, dtype: Any = None) -> Tensor: ...

    function.__name__ = function.__qualname__ = name or op.__name__
    return spelling(op, x=taken, then=typed)(function)


def _of_one(op: Callable[..., Tensor], name: str = "") -> _OfOne:
    """NumPy's function that is an op of one tensor of any dtype."""
    return _of_floats(op, name, tensor)


def _of_two(op: Callable[..., Tensor], name: str = "") -> _OfTwo:
    """NumPy's function that is an op of two tensors or numbers."""

    def function(x1: Any, x2: Any, dtype: Any = None) -> Tensor:
        return typed(op(*pair(x1, x2)), dtype)  # type: ignore[no-any-return]

    first, second = list(inspect.signature(op).parameters)[:2]
    function.__doc__ = text_of(op, {"x1": first, "x2": second})
    return named(function, name or op.__name__)


sin = _of_floats(ops.sin)
cos = _of_floats(ops.cos)
tan = _of_floats(ops.tan)
sinh = _of_floats(ops.sinh)
cosh = _of_floats(ops.cosh)
tanh = _of_floats(ops.tanh)
arcsin = _of_floats(ops.asin, "arcsin")
arctan = _of_floats(ops.atan, "arctan")
arcsinh = _of_floats(ops.asinh, "arcsinh")
arccosh = _of_floats(ops.acosh, "arccosh")
arctanh = _of_floats(ops.atanh, "arctanh")
exp = _of_floats(ops.exp)
expm1 = _of_floats(ops.expm1)
log = _of_floats(ops.log)
log2 = _of_floats(ops.log2)
log10 = _of_floats(ops.log10)
log1p = _of_floats(ops.log1p)
sqrt = _of_floats(ops.sqrt)
reciprocal = _of_floats(ops.reciprocal)
ceil = _of_floats(ops.ceil)
floor = _of_floats(ops.floor)
exp2 = _of_floats(ops.exp2)
cbrt = _of_floats(ops.cbrt)
deg2rad = _of_floats(ops.deg2rad)
rad2deg = _of_floats(ops.rad2deg)
radians = _of_floats(ops.deg2rad, "radians")
rint = _of_floats(ops.round, "rint")

abs = _of_one(ops.abs)
absolute = _of_one(ops.abs, "absolute")
fabs = _of_one(ops.abs, "fabs")
square = _of_one(ops.square)
sign = _of_one(ops.sign)
trunc = _of_one(ops.trunc)
isnan = _of_one(ops.isnan)
isinf = _of_one(ops.isinf)
isfinite = _of_one(ops.isfinite)
signbit = _of_one(ops.signbit)
invert = _of_one(ops.bitwise_not, "invert")
bitwise_not = _of_one(ops.bitwise_not)

add = _of_two(ops.add)
subtract = _of_two(ops.sub, "subtract")
multiply = _of_two(ops.mul, "multiply")
divide = _of_two(ops.div, "divide")
true_divide = _of_two(ops.div, "true_divide")
power = _of_two(ops.pow, "power")
mod = _of_two(ops.mod)
remainder = _of_two(ops.mod, "remainder")
fmod = _of_two(ops.fmod)
floor_divide = _of_two(ops.floor_div, "floor_divide")
maximum = _of_two(ops.maximum)
minimum = _of_two(ops.minimum)
arctan2 = _of_two(ops.atan2, "arctan2")
hypot = _of_two(ops.hypot)
logaddexp = _of_two(ops.logaddexp)
logaddexp2 = _of_two(ops.logaddexp2)
copysign = _of_two(ops.copysign)
heaviside = _of_two(ops.heaviside)
float_power = _of_two(ops.float_power)
greater = _of_two(ops.greater)
greater_equal = _of_two(ops.greater_equal)
less = _of_two(ops.less)
less_equal = _of_two(ops.less_equal)
equal = _of_two(ops.equal)
not_equal = _of_two(ops.not_equal)
logical_and = _of_two(ops.logical_and)
logical_or = _of_two(ops.logical_or)
logical_xor = _of_two(ops.logical_xor)
bitwise_and = _of_two(ops.bitwise_and)
bitwise_or = _of_two(ops.bitwise_or)
bitwise_xor = _of_two(ops.bitwise_xor)
gcd = _of_two(ops.gcd)
lcm = _of_two(ops.lcm)


@spelling(ops.acos, input=floating, then=typed)
def arccos(input: Any, dtype: Any = None) -> Tensor: ...

"""NumPy's elementwise functions: ops of tensors, numbers or nested lists, in a chosen dtype."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base import DTypeLike, TensorLike, publish
from gradcell.base.spelling import named, spelling, text_of
from gradcell.numpy.conversion import floating, operands, tensor, tensors, typed


class _OfOne(Protocol):
    def __call__(self, x: TensorLike, dtype: DTypeLike | None = None) -> Tensor: ...


class _OfTwo(Protocol):
    def __call__(
        self, x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None
    ) -> Tensor: ...
    def outer(self, x1: TensorLike, x2: TensorLike) -> Tensor: ...
    def reduce(self, a: TensorLike, axis: Any = 0, keepdims: bool = False) -> Tensor: ...
    def accumulate(self, a: TensorLike, axis: int = 0) -> Tensor: ...


def _of_floats(op: Callable[..., Tensor], name: str = "", taken: Any = floating) -> _OfOne:
    """NumPy's function that is an op of floats: of integers in float32."""

    def function(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor: ...

    function.__name__ = function.__qualname__ = name or op.__name__
    return spelling(op, x=taken, then=typed)(function)


def _of_one(op: Callable[..., Tensor], name: str = "") -> _OfOne:
    """NumPy's function that is an op of one tensor of any dtype."""
    return _of_floats(op, name, tensor)


def _outer(function: Any, x1: TensorLike, x2: TensorLike) -> Tensor:
    """The function of each element of x1 with each of x2, [*shape of x1, *shape of x2]."""
    first = tensor(x1)
    rank = tensor(x2).ndim
    return function(ops.reshape(first, (*first.shape, *[1] * rank)), x2)  # type: ignore[no-any-return]


def _of_two(
    op: Callable[..., Tensor], name: str = "", reduce: Any = None, accumulate: Any = None
) -> _OfTwo:
    """NumPy's function that is an op of two tensors or numbers, with its sums along an axis."""

    def function(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
        return typed(op(*operands(x1, x2)), dtype)  # type: ignore[no-any-return]

    first, second = list(inspect.signature(op).parameters)[:2]
    function.__doc__ = function.__doc__ or text_of(op, {"x1": first, "x2": second})
    call: Any = named(function, name or op.__name__)
    call.outer = functools.partial(_outer, call)
    if reduce is not None:
        call.reduce = lambda a, axis=0, keepdims=False: reduce(tensor(a), axis, keepdims)
        call.accumulate = lambda a, axis=0: accumulate(tensor(a), axis)
    return call  # type: ignore[no-any-return]


def _running(op: Any) -> Callable[..., Tensor]:
    return lambda x, axis: op(x, axis)[0]


def _without_nan(op: Callable[..., Tensor], text: str) -> Callable[..., Tensor]:
    """op of the two numbers, or the one that is not NaN."""

    def function(x1: Any, x2: Any) -> Tensor:
        a, b = tensors(x1, x2)
        return ops.where(ops.isnan(a), b, ops.where(ops.isnan(b), a, op(a, b)))

    function.__doc__ = text
    return function


def _abs(x: Any) -> Tensor:
    """The absolute value, elementwise; real also of complex numbers."""
    return ops.real(ops.abs(x)) if x.dtype.is_complex else ops.abs(x)


def _conj(x: Any) -> Tensor:
    """The complex conjugate; of real numbers the numbers."""
    return ops.conj(x)


def _imag(x: Any) -> Tensor:
    """The imaginary part; of real numbers 0."""
    return ops.imag(x) if x.dtype.is_complex else ops.zeros_like(x)


def _real(x: Any) -> Tensor:
    """The real part; of real numbers the numbers."""
    return ops.real(x) if x.dtype.is_complex else x


def _iscomplex(x: Any) -> Tensor:
    """Return whether the imaginary part is not zero."""
    return ops.logical_not(ops.isreal(x))


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
sinc: _OfOne = _of_floats(ops.sinc)
i0: _OfOne = _of_floats(ops.bessel_i0, "i0")
degrees: _OfOne = _of_floats(ops.rad2deg, "degrees")
asin: _OfOne = _of_floats(ops.asin, "asin")
acos: _OfOne = _of_floats(ops.acos, "acos")
atan: _OfOne = _of_floats(ops.atan, "atan")
asinh: _OfOne = _of_floats(ops.asinh, "asinh")
acosh: _OfOne = _of_floats(ops.acosh, "acosh")
atanh: _OfOne = _of_floats(ops.atanh, "atanh")

abs: _OfOne = _of_one(_abs, "abs")
absolute: _OfOne = _of_one(_abs, "absolute")
fabs: _OfOne = _of_one(_abs, "fabs")
square: _OfOne = _of_one(ops.square)
sign: _OfOne = _of_one(ops.sign)
trunc: _OfOne = _of_one(ops.trunc)
isnan: _OfOne = _of_one(ops.isnan)
isinf: _OfOne = _of_one(ops.isinf)
isfinite: _OfOne = _of_one(ops.isfinite)
signbit: _OfOne = _of_one(ops.signbit)
invert: _OfOne = _of_one(ops.bitwise_not, "invert")
bitwise_invert: _OfOne = _of_one(ops.bitwise_not, "bitwise_invert")
conj: _OfOne = _of_one(_conj, "conj")
conjugate: _OfOne = _of_one(_conj, "conjugate")
real: _OfOne = _of_one(_real, "real")
imag: _OfOne = _of_one(_imag, "imag")
iscomplex: _OfOne = _of_one(_iscomplex, "iscomplex")
isreal: _OfOne = _of_one(ops.isreal, "isreal")
bitwise_not: _OfOne = _of_one(ops.bitwise_not)

add: _OfTwo = _of_two(ops.add, "", ops.sum, ops.cumsum)
subtract: _OfTwo = _of_two(ops.sub, "subtract")
multiply: _OfTwo = _of_two(ops.mul, "multiply", ops.prod, ops.cumprod)
divide: _OfTwo = _of_two(ops.div, "divide")
true_divide: _OfTwo = _of_two(ops.div, "true_divide")
power: _OfTwo = _of_two(ops.pow, "power")
mod: _OfTwo = _of_two(ops.mod)
remainder: _OfTwo = _of_two(ops.mod, "remainder")
fmod: _OfTwo = _of_two(ops.fmod)
floor_divide: _OfTwo = _of_two(ops.floor_div, "floor_divide")
maximum: _OfTwo = _of_two(ops.maximum, "", ops.amax, _running(ops.cummax))
minimum: _OfTwo = _of_two(ops.minimum, "", ops.amin, _running(ops.cummin))
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
fmax: _OfTwo = _of_two(
    _without_nan(ops.maximum, "The larger of two numbers, of NaN and a number the number."), "fmax"
)
fmin: _OfTwo = _of_two(
    _without_nan(ops.minimum, "The smaller of two numbers, of NaN and a number the number."), "fmin"
)
pow: _OfTwo = _of_two(ops.pow, "pow")
atan2: _OfTwo = _of_two(ops.atan2, "atan2")
ldexp: _OfTwo = _of_two(ops.ldexp, "ldexp")
left_shift: _OfTwo = _of_two(ops.bitwise_left_shift, "left_shift")
right_shift: _OfTwo = _of_two(ops.bitwise_right_shift, "right_shift")
bitwise_left_shift: _OfTwo = _of_two(ops.bitwise_left_shift, "bitwise_left_shift")
bitwise_right_shift: _OfTwo = _of_two(ops.bitwise_right_shift, "bitwise_right_shift")
gcd: _OfTwo = _of_two(ops.gcd)
lcm: _OfTwo = _of_two(ops.lcm)


@spelling(ops.acos, input=floating, then=typed)
def arccos(input: Any, dtype: Any = None) -> Tensor: ...


def modf(x: Any) -> tuple[Tensor, Tensor]:
    """(what stands behind the point, the whole part), both with the sign of x."""
    t = floating(x)
    return ops.frac(t), ops.trunc(t)


publish(globals())

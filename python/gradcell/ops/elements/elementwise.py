"""Elementwise ops, one for each row of the core's op table: a function, a Primitive and a Tensor
method; and a few composed of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import Array, TensorLike, arguments, bad_type
from gradcell.base.convert import all_bits
from gradcell.base.spelling import spelling
from gradcell.ops.decorators import method, one_plan, wide_plan
from gradcell.ops.elements.row_texts import text_of

__all__ = []


def _function(row: dict[str, Any]) -> Callable[..., Tensor]:
    function = getattr(_ops, row["function"])
    kind = row["kind"]
    if kind in ("unary", "predicate"):

        def op(input: Array) -> Tensor:
            return function(input)  # type: ignore[no-any-return]
    elif kind == "ternary":

        def op(condition: TensorLike, input: TensorLike, other: TensorLike) -> Tensor:  # type: ignore[misc]
            return function(condition, input, other)  # type: ignore[no-any-return]
    else:

        def op(input: TensorLike, other: TensorLike) -> Tensor:  # type: ignore[misc]
            return function(input, other)  # type: ignore[no-any-return]

    op.__name__ = op.__qualname__ = row["function"]
    op.__doc__ = text_of(row["function"], row["text"])
    return op


def _export(name: str, function: Callable[..., Any]) -> None:
    globals()[name] = function
    __all__.append(name)
    if not hasattr(Tensor, name):
        setattr(Tensor, name, function)


# Forms with more arguments than the row -----------------------------------------------------------


def pow(input: TensorLike, exponent: TensorLike) -> Tensor:
    """input to the power of exponent, elementwise; tensors or numbers, which broadcast."""
    return _ops.pow(input, exponent)


@method(wide_plan)
def logit(input: Tensor, eps: Any = None) -> Tensor:
    """log(x / (1 - x)), x first brought within eps and 1 - eps."""
    x = arguments.floating(arguments.tensor(input, "logit"))
    if eps is not None:
        x = _ops.minimum(_ops.maximum(x, eps), 1 - eps)
    return _ops.logit(x)


@one_plan
def trunc(input: Tensor) -> Tensor:
    """Without the fraction, towards zero."""
    x = arguments.tensor(input, "trunc")
    if not x.dtype.is_floating:
        return x
    return _ops.trunc(x)


def copysign(x: TensorLike, other: TensorLike) -> Tensor:
    """The size of x with the sign of other, that of -0 included."""
    a, sign = arguments.operands(x, other, "copysign", ("x", "other"))
    size = arguments.floating(a)
    return _ops.copysign(size, sign if sign.dtype == size.dtype else _ops.cast(sign, size.dtype))


def div(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """The quotient input / other, elementwise. rounding_mode: None, 'floor' or 'trunc' (towards
    zero)."""
    if rounding_mode is None:
        return _ops.div(input, other)
    arguments.one_of(rounding_mode, ("floor", "trunc"), "div", "rounding_mode")
    if rounding_mode == "floor":
        return _ops.floor_div(input, other)
    return _truncated(input, other)


@one_plan
def _truncated(input: Any, other: Any) -> Tensor:
    a, b = arguments.operands(input, other, "div")
    common = _core.promote(a.dtype, b.dtype)
    if common.is_floating or common == _core.bool:
        return trunc(_ops.div(a, b))
    down, rest = _ops.floor_div(a, b), _ops.mod(a, b)
    inexact = _ops.logical_and(
        _ops.not_equal(rest, 0), _ops.not_equal(_ops.less(a, 0), _ops.less(b, 0))
    )
    return _ops.where(inexact, _ops.add(down, 1), down)


def round(input: Tensor, decimals: int = 0) -> Tensor:
    """Rounds to the nearest multiple of 10^-decimals, and halves to the even one."""
    if decimals == 0:
        return _ops.round(input)
    return _rounded(input, 10.0 ** arguments.integer(decimals, "round", "decimals"))


@one_plan
def _rounded(input: Any, scale: float) -> Tensor:
    return _ops.div(_ops.round(_ops.mul(input, scale)), scale)


@wide_plan
def hypot(input: Any, other: Any) -> Tensor:
    """$sqrt(input^2 + other^2)$, also where a square overflows the dtype."""
    x, y = map(arguments.floating, arguments.operands(input, other, "hypot"))
    return _ops.hypot(x, y)


@wide_plan
def xlogy(input: Any, other: Any) -> Tensor:
    """input * log(other), 0 where input is 0 and other a number."""
    x, y = map(arguments.floating, arguments.operands(input, other, "xlogy"))
    return _ops.xlogy(x, y)


@one_plan
def lerp(input: Any, end: Any, weight: Any) -> Tensor:
    """Linear interpolation, input + weight * (end - input)."""
    start, stop = map(arguments.floating, arguments.operands(input, end, "lerp", ("input", "end")))
    return _ops.add(start, _ops.mul(weight, _ops.sub(stop, start)))


@one_plan
def squared_difference(x: Any, y: Any) -> Tensor:
    """(x - y)^2, elementwise."""
    return _ops.square(_ops.sub(x, y))


@one_plan
def div_no_nan(x: Any, y: Any) -> Tensor:
    """The quotient x / y, and 0 where y is 0."""
    a, b = arguments.operands(x, y, "div_no_nan", ("x", "y"))
    zero = _ops.equal(b, 0)
    return _ops.where(zero, 0, _ops.div(a, _ops.where(zero, 1, b)))


@one_plan
def invert(x: Any) -> Tensor:
    """Each bit of integers inverted; of bools, not x. Raises TypeError for floats."""
    bits = arguments.tensor(x, "invert", "x")
    if bits.dtype.is_floating:
        bad_type(f"invert: x must be of integers or bools, got {bits.dtype}")
    if bits.dtype == _core.bool:
        return _ops.logical_not(bits)
    return _ops.sub(all_bits(bits.dtype), bits)


@one_plan
def inv(x: Any) -> Tensor:
    """The reciprocal 1 / x; of integers without the fraction, in their dtype. Raises ValueError for
    integers that are known to hold a zero."""
    divisor = arguments.tensor(x, "Inv", "x")
    if divisor.dtype.is_floating or divisor.dtype == _core.bool:
        return _ops.reciprocal(divisor)
    return _ops.where(_ops.less(divisor, -1), 0, _ops.floor_div(1, divisor))


def written(input: Any, out: Tensor, inplace: bool, owner: str) -> Tensor:
    """The result; with inplace, input with it written there. Raises TypeError unless that is a bool, and
    where input is the array of another library."""
    if not arguments.boolean(inplace, owner, "inplace"):
        return out
    if not isinstance(input, Tensor):
        bad_type(
            f"{owner}: a {type(input).__name__} cannot be written to, only a Tensor; leave inplace out"
        )
    return input.copy_(out)


def relu(input: Any, inplace: bool = False) -> Tensor:
    """$max(x, 0)$ for each element x; NaN stays NaN. inplace: written to input, which is returned."""
    out = _ops.relu(input)
    return written(input, out, inplace, "relu")


@one_plan
def subtract(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input - alpha * other, elementwise; tensors or numbers, which broadcast."""
    return _ops.sub(input, other if alpha == 1 else _ops.mul(other, alpha))


for _op in (
    pow, trunc, copysign, div, round, hypot, xlogy, lerp, squared_difference, div_no_nan, invert, inv,
    subtract, relu, logit,
):  # fmt: skip
    __all__ += [_op.__name__]
    setattr(Tensor, _op.__name__, _op)

# The rows themselves ------------------------------------------------------------------------------

#: The functions of the op table's rows, by name.
ROWS = {row["function"]: _function(row) for row in _core.op_table() if row["kind"] != "structured"}
for _name, _op in ROWS.items():
    if _name not in __all__:  # there is no form with more arguments
        _export(_name, _op)


# Other names --------------------------------------------------------------------------------------

_SYNONYMS = {
    "negative": "neg", "absolute": "abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "multiply": "mul", "divide": "div", "true_divide": "div", "remainder": "mod",
    "floor_mod": "mod", "floor_divide": "floor_div", "eq": "equal", "ne": "not_equal",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "tensor_add": "add",
    "tensor_sub": "sub", "tensor_mul": "mul", "tensor_div": "div", "tensor_pow": "pow",
    "tensor_floordiv": "floor_div", "tensor_mod": "mod", "tensor_exp": "exp", "tensor_lt": "less",
    "tensor_le": "less_equal", "tensor_gt": "greater", "tensor_ge": "greater_equal",
}  # fmt: skip
for _alias, _name in _SYNONYMS.items():
    _export(_alias, globals()[_name])

# MindSpore's names of parameters, where they are not input and other.


@spelling(globals()["sqrt"])
def sqrt(x: Any) -> Tensor: ...
@spelling(globals()["asin"])
def arcsin(x: Any) -> Tensor: ...
@spelling(globals()["ldexp"])
def ldexp(x: Any, other: Any) -> Tensor: ...
@spelling(globals()["floor_div"])
def floor_div(x: Any, y: Any) -> Tensor: ...
@spelling(globals()["mod"])
def floor_mod(x: Any, y: Any) -> Tensor: ...
@spelling(div)
def tensor_div(x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensor: ...
@spelling(globals()["mod"])
def tensor_mod(x: Any, y: Any) -> Tensor: ...
@spelling(div)
def true_divide(dividend: Any, divisor: Any, *, rounding_mode: str | None = None) -> Tensor: ...

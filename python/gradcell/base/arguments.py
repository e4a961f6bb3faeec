"""Checks of arguments, for all Python code.

Each takes the value, who was called and the argument's name, and returns the value as what it is to
be. MindSpore's kinds of errors and its wording: For 'Dense', the 'in_channels' must be int, but got
'str'; then the user's file and line.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from gradcell import _core
from gradcell._core import DType, Tensor
from gradcell.base.convert import to_dtype
from gradcell.base.errors import bad_type, bad_value, where


def _refuse(
    kind: type[Exception], owner: str, name: str, wanted: str, got: str, last: str = ""
) -> NoReturn:
    raise kind(_core.located(f"For '{owner}', the '{name}' must be {wanted}, but got {got}{last}"))


def _wrong_type(value: Any, owner: str, name: str, wanted: str) -> NoReturn:
    _refuse(TypeError, owner, name, wanted, f"'{type(value).__name__}'")


# Tensors --------------------------------------------------------------------------------------------


def tensor(value: Any, owner: str, name: str = "input") -> Tensor:
    """The value, an array of another library as a tensor. Raises TypeError for anything else."""
    if isinstance(value, Tensor):
        return value
    if _core.is_array(value) or isinstance(value, np.generic):
        return Tensor(value)
    got = f"'{type(value).__name__}'"
    if isinstance(value, (int, float, complex, list, tuple)):
        got += "; gradcell.Tensor(x) makes one of it"
    _refuse(TypeError, owner, name, "Tensor", got)


def dtype_beside(dtype: DType, number: Any) -> DType:
    """Return the dtype that a number of Python's or NumPy's gets beside a tensor of a dtype."""
    if isinstance(number, (complex, np.complexfloating)):
        return _core.promote(dtype, _core.complex64)
    return _core.promote_number(dtype, number)


def operand(value: Any, owner: str, name: str = "input", like: Any = None) -> Tensor:
    """The value, a number made into a tensor: of the dtype that it takes beside `like`, a tensor.

    Raises TypeError for anything else.
    """
    if isinstance(value, (bool, int, float, np.generic)):
        return beside(value, like) if isinstance(like, Tensor) else Tensor(value)
    return tensor(value, owner, name)


def beside(value: Any, like: Tensor) -> Any:
    """A number or list of them as a tensor, of the dtype that it takes beside `like`; other things as they
    are."""
    if isinstance(value, (bool, int, float, complex, list, tuple, np.generic)):
        return Tensor(value, dtype_beside(like.dtype, value))
    return value


def operands(
    a: Any, b: Any, owner: str, names: tuple[str, str] = ("input", "other")
) -> list[Tensor]:
    """Two tensors, or a tensor and a number, which is rounded once, to the dtype it ends in."""
    return [operand(a, owner, names[0], b), operand(b, owner, names[1], a)]


def tensors(values: Any, owner: str, name: str = "tensors") -> list[Tensor]:
    """The members of a list or tuple of tensors. Raises TypeError for anything else."""
    if not isinstance(values, (list, tuple)):
        _wrong_type(values, owner, name, "a tuple or list of Tensors")
    return [tensor(v, owner, f"{name}[{i}]") for i, v in enumerate(values)]


def of_rank(x: Any, ranks: Sequence[int], owner: str) -> Tensor:
    """A tensor with one of some numbers of dimensions. Raises TypeError, ValueError."""
    found = tensor(x, owner)
    if found.ndim not in ranks:
        bad_value(
            f"For '{owner}', the input must have {' or '.join(map(str, ranks))} dimensions, but got shape "
            f"{list(found.shape)}."
        )
    return found


def of_shape(x: Any, shape: Sequence[int], owner: str, name: str, whose: str) -> Tensor:
    """A tensor of that shape, which is `whose`. Raises TypeError, ValueError."""
    found = tensor(x, owner, name)
    if list(found.shape) != list(shape):
        bad_value(
            f"For '{owner}', the '{name}' must have {whose} shape {list(shape)}, but got shape "
            f"{list(found.shape)}."
        )
    return found


def floating(x: Tensor) -> Tensor:
    """The tensor, integers and bools cast to float32."""
    return x if x.dtype.is_floating else _core.ops.cast(x, _core.default_dtype())


def single(x: Tensor) -> Tensor:
    """The tensor, half types cast to float32."""
    return _core.ops.cast(x, _core.float32) if x.dtype.is_narrow_float else x


def vector(x: Tensor) -> Tensor:
    """The tensor, one without dimensions as a vector of its element."""
    return x if x.ndim else _core.ops.reshape(x, [1])


# Calls ----------------------------------------------------------------------------------------------


def function(value: Any, owner: str, name: str = "fn") -> Any:
    """The value. Raises TypeError unless it can be called."""
    if not callable(value):
        _wrong_type(value, owner, name, "a function")
    return value


def explain_misfit(
    owner: str,
    callee: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    skip: int = 1,
) -> None:
    """For a call that has failed: raises TypeError with the signature and the user's line if it was
    for the number of arguments or their names. The first `skip` of args are not in what is shown."""
    signature = inspect.signature(callee)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        shown = signature.replace(
            parameters=[
                p.replace(annotation=p.empty) for p in list(signature.parameters.values())[skip:]
            ],
            return_annotation=signature.empty,
        )
        raise TypeError(_core.located(f"{owner}{shown}: {error}")) from None


# Flags and numbers ----------------------------------------------------------------------------------


def boolean(value: Any, owner: str, name: str) -> bool:
    """The flag. Raises TypeError if it is not a bool."""
    if not isinstance(value, (bool, np.bool_)):
        _wrong_type(value, owner, name, "bool")
    return bool(value)


def integer(value: Any, owner: str, name: str, least: int | None = None) -> int:
    """Return the integer, also of an integer tensor of one element.

    Raises TypeError for anything that is not an integer, ValueError for less than `least`.
    """
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        _wrong_type(value, owner, name, "int")
    found = int(value.__index__())
    if least is not None and found < least:
        _refuse(ValueError, owner, name, f"at least {least}", str(found))
    return found


def integers(value: Any, owner: str, name: str) -> list[int]:
    """The integers of a list, tuple, array or integer tensor, or of one integer. Raises TypeError
    for anything else, sets and dicts among it, which have no order."""
    if isinstance(value, (Tensor, np.ndarray)):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str):
        return [integer(value, owner, name)]
    return [integer(v, owner, name) for v in value]


#: More bytes have no addresses in a process.
_MOST_ELEMENTS = 1 << 48


def addressable(dims: Sequence[int], owner: str) -> list[int]:
    """dims, the shape of a tensor to be made. Raises MemoryError for more elements than can be
    addressed."""
    if math.prod(dims) > _MOST_ELEMENTS:
        raise MemoryError(
            f"{owner}: a tensor of shape {list(dims)} has more elements than can be addressed{where()}"
        )
    return list(dims)


def shape(value: Any, owner: str, name: str = "shape") -> list[int]:
    """The shape of a tensor to be made, as `integers` and `addressable` have it."""
    return addressable(integers(value, owner, name), owner)


def option(value: Any, owner: str, name: str) -> Any:
    """A number as it is given, or a tensor, which may be differentiated by. Raises TypeError for others."""
    if not isinstance(value, (int, float, np.integer, np.floating, Tensor)):
        _wrong_type(value, owner, name, "a number")
    return value


def number(
    value: Any,
    owner: str,
    name: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """The number. Bounds: one, or one from below and one from above.

    Raises TypeError for anything that is not an int or float, ValueError if it is not finite or outside the
    bounds given.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        _wrong_type(value, owner, name, "a number")
    found = float(value)
    bounds = [
        (above, ">", found > (above or 0)),
        (least, ">=", found >= (least or 0)),
        (below, "<", found < (below or 0)),
        (most, "<=", found <= (most or 0)),
    ]
    asked = [(sign, bound, holds) for bound, sign, holds in bounds if bound is not None]
    if asked and not (math.isfinite(found) and all(holds for _, _, holds in asked)):
        if len(asked) == 2:
            (first, low, _), (last, high, _) = asked
            opening, closing = "(" if first == ">" else "[", ")" if last == "<" else "]"
            wanted = f"a number in range {opening}{low:g}, {high:g}{closing}"
        else:
            wanted = f"finite and {asked[0][0]} {asked[0][1]:g}"
        _refuse(ValueError, owner, name, wanted, str(value))
    return found


# Axes -----------------------------------------------------------------------------------------------


def axis_of(axis: Any, rank: int, owner: str, name: str = "axis") -> int:
    """The axis counted from the front. Raises TypeError or, out of range, ValueError."""
    a = integer(axis, owner, name)
    limit = max(rank, 1)
    if not -limit <= a < limit:
        _refuse(
            ValueError, owner, name, f"in range of [{-limit}, {limit})", str(a),
            f" for a tensor of {rank} dimensions",
        )  # fmt: skip
    return a % limit


def axis_in(x: Tensor, axis: Any, owner: str, name: str = "axis") -> int:
    """As axis_of, for a tensor that must have an axis. Raises ValueError if it has no dimensions."""
    if not x.ndim:
        bad_value(f"For '{owner}', a tensor with dimensions is needed, but got one of shape []")
    return axis_of(axis, x.ndim, owner, name)


def axes_of(axis: Any, rank: int, owner: str, name: str = "axis") -> list[int]:
    """The axes counted from the front, in the given order; None and () stand for all of them. A tensor
    without dimensions has none, though 0 and -1 may be asked for."""
    axes = [] if axis is None else differing(axis, rank, owner, name)
    return axes if axes and rank else list(range(rank))


def differing(axis: Any, rank: int, owner: str, name: str = "axis") -> list[int]:
    """The axes counted from the front, in the given order, none twice."""
    axes = [axis_of(a, rank, owner, name) for a in integers(axis, owner, name)]
    if len(set(axes)) != len(axes):
        _refuse(ValueError, owner, name, "axes that differ", str(axis))
    return axes


# Words and dtypes -----------------------------------------------------------------------------------


def one_of(value: Any, allowed: Sequence[Any], owner: str, name: str) -> Any:
    """The value. Raises ValueError unless it is one of the allowed ones, in type too."""
    if not any(value is a or (type(value) is type(a) and value == a) for a in allowed):
        _refuse(ValueError, owner, name, f"in {list(allowed)}", str(value), ".")
    return value


def dtype_or(dtype: Any, default: DType) -> DType:
    """The dtype, or the default for None."""
    return default if dtype is None else to_dtype(dtype)


def floating_dtype(value: Any, owner: str, name: str = "dtype") -> DType:
    """The dtype; for None the default one. Raises TypeError if it is not a floating dtype."""
    if value is None:
        return _core.default_dtype()
    if not isinstance(value, DType) or not value.is_floating:
        _refuse(TypeError, owner, name, "a floating dtype", repr(value))
    return value


def same_dtype(x: Tensor, weight: Tensor, owner: str) -> None:
    """Raises TypeError where x and the weight differ in dtype: a layer does not promote its weight."""
    if x.dtype != weight.dtype:
        name = getattr(weight, "name", "")
        whole = (
            ", or have the whole network compute in its dtype: "
            f"net.to_float(gradcell.{x.dtype.name})"
            if x.dtype.is_floating
            else ""
        )
        bad_type(
            f"For '{owner}', the type of 'x2' should be same as 'x1', but got 'x1' with type "
            f"Tensor[{x.dtype}] and 'x2' with type "
            f"Tensor[{weight.dtype}]{f', the parameter {name!r}' if name else ''}. Cast the input, as by "
            f"x.astype(gradcell.{weight.dtype.name}){whole}"
        )

"""Bits, greatest common divisors and least common multiples of integers, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type
from gradcell.base.convert import all_bits
from gradcell.base.spelling import named
from gradcell.ops.decorators import method, one_plan

__all__ = [
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "gcd", "lcm",
]  # fmt: skip


#: In the order of the core's.
_FUNCTIONS = ["and", "or", "xor", "left_shift", "right_shift", "gcd", "lcm"]


@one_plan
def _of_integers(name: str, a: Tensor, b: Tensor) -> Tensor:
    dims = list(np.broadcast_shapes(tuple(a.shape), tuple(b.shape)))
    a, b = (x if x.ndim == 0 else _ops.broadcast_to(x, dims) for x in (a, b))
    return _ops.of_integers(a, b, _FUNCTIONS.index(name))


def _integers(name: str, text: str) -> Callable[..., Tensor]:
    function = name.removeprefix("bitwise_")

    def op(input: Any, other: Any) -> Tensor:
        a, b = arguments.operands(input, other, name)
        for x in (a, b):
            if x.dtype.is_floating:
                bad_type(f"{name}: integers are needed, got {x.dtype}")
        dtype = _core.promote(a.dtype, b.dtype)
        if dtype == _core.bool:
            bad_type(f"{name}: not defined for bool")
        return _of_integers(function, _ops.cast(a, dtype), _ops.cast(b, dtype))

    op.__doc__ = f"{text}, elementwise over integers, which broadcast. Raises TypeError for others."
    return named(op, name)


def _bits(name: str, text: str) -> Callable[..., Tensor]:
    """The function of an operator of Tensors, which is the core's."""
    of_core = getattr(_ops, name)

    def op(input: Any, other: Any) -> Tensor:
        return of_core(input, other)  # type: ignore[no-any-return]

    op.__doc__ = f"{text}, of bools or integers, which broadcast. Raises TypeError for others."
    return named(op, name)


bitwise_and: Callable[..., Tensor] = method()(_bits("bitwise_and", "The bits that both have"))
bitwise_or: Callable[..., Tensor] = method()(_bits("bitwise_or", "The bits that one of both has"))
bitwise_xor: Callable[..., Tensor] = method()(
    _bits("bitwise_xor", "The bits that only one of both has")
)
bitwise_left_shift: Callable[..., Tensor] = method()(
    _integers("bitwise_left_shift", "input times 2^other")
)
bitwise_right_shift: Callable[..., Tensor] = method()(
    _integers("bitwise_right_shift", "input over 2^other, down")
)


@method()
def bitwise_not(input: Any) -> Tensor:
    """All bits turned over: -1 - input for integers, not for bool."""
    x = arguments.tensor(input, "bitwise_not")
    if x.dtype == _core.bool:
        return _ops.logical_not(x)
    return _ops.sub(all_bits(x.dtype), x)


gcd: Callable[..., Tensor] = method()(_integers("gcd", "The greatest common divisor"))
lcm: Callable[..., Tensor] = method()(_integers("lcm", "The least common multiple"))

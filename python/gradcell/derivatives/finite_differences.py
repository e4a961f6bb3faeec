"""check_grads: compares a function's derivatives with finite differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, door, tree, where
from gradcell.derivatives.own_derivatives import defined_at
from gradcell.derivatives.transform import grad, jvp

__all__ = ["CheckedDerivative", "check_grads"]

#: f(x - 2 h), f(x - h), f(x + h), f(x + 2 h), over h: the fourth-order central difference.
_STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
#: The step and the tolerance by the bytes of a number.
_STEPS = {8: 1e-3, 4: 3e-2, 2: 2e-1}
_TOLERANCES = {8: 1e-7, 4: 5e-3, 2: 2e-1}


class CheckedDerivative(NamedTuple):
    """One line of check_grads: the derivative along the random direction, of an order, by modes ('rev'
    and 'fwd', the outermost last); what finite differences say; and whether the two agree."""

    order: int
    modes: str
    derivative: float
    numeric: float
    difference: float
    tolerated: float
    agrees: bool

    def __str__(self) -> str:
        sign = "ok" if self.agrees else "WRONG"
        return (
            f"order {self.order}  {self.modes:<14} derivative {self.derivative: .9e}  finite difference "
            f"{self.numeric: .9e}  apart {self.difference:.1e}, tolerated {self.tolerated:.1e}  {sign}"
        )


def check_grads(
    fn: Callable[..., Any],
    args: Any,
    order: int = 2,
    modes: Sequence[str] = ("rev", "fwd"),
    tolerance: float | None = None,
    step: float | None = None,
    seed: int = 0,
) -> list[CheckedDerivative]:
    """Compares fn's derivatives, up to an order, with finite differences, and returns the
    comparisons.

    fn: a function of tensors that gives a tensor or a tree of tensors. args: a floating tensor (or
    array), or a tuple of them. order: the highest order. modes: 'rev' for grad, 'fwd' for jvp, or
    both. step: the step of the differences. tolerance: the largest difference, relative to the
    derivative, or to the smaller one of 1 and the values and lower derivatives, where that is larger: a
    function of size 1e-9 is held to its own size. Like step it has a default for each dtype. Use float64
    for sharp tests. seed: of the random weights and the direction.

    The outputs of fn are weighted with random numbers into one scalar, and differentiated along one
    random direction, in all nestings of the modes. An error in any element shows, except for a set
    of measure zero. A derivative of order k is compared with the central difference, of fourth
    order, of the derivative of order k - 1.

    Raises AssertionError, with one line for each comparison, where they differ; TypeError for
    arguments without derivatives, ValueError for other modes or an order below 1.
    """
    if not callable(fn):
        bad_type(f"check_grads: expected a function, got {type(fn).__name__}")
    if order < 1 or not modes or any(m not in _ALONG for m in modes):
        bad_value(
            f"check_grads: order {order} must be at least 1, and modes {tuple(modes)} of 'rev' and 'fwd'"
        )
    given = args if isinstance(args, (tuple, list)) else (args,)
    xs = [x if isinstance(x, Tensor) else Tensor(x) for x in door.numbers_too(given, fn)]
    for i, x in enumerate(xs):
        if not x.dtype.is_floating:
            bad_type(
                f"check_grads: cannot differentiate with respect to argument {i} of dtype {x.dtype}; cast it "
                "to a floating dtype"
            )
    size = min(x.dtype.itemsize for x in xs)
    h, most = step or _STEPS[size], tolerance or _TOLERANCES[size]
    random = np.random.default_rng(seed)

    def drawn(like: Tensor) -> Tensor:
        numbers = random.normal(size=tuple(like.shape)) / math.sqrt(max(1, like.size))
        return Tensor(numbers, like.dtype)

    weights = [drawn(y) if y.dtype.is_floating else None for y in tree.leaves(fn(*xs))]
    if not any(w is not None for w in weights):
        bad_type(f"check_grads: {defined_at(fn)} gives no floating tensor to differentiate")
    direction = [drawn(x) for x in xs]

    def scalar(*points: Tensor) -> Tensor:
        total: Any = 0.0
        for y, w in zip(tree.leaves(fn(*points)), weights, strict=True):
            if w is not None:
                total = total + (y * w).sum()
        return total  # type: ignore[no-any-return]

    def moved(t: float) -> list[Tensor]:
        pairs = zip(xs, direction, strict=True)
        return [Tensor(_numbers(x) + t * _numbers(v), x.dtype) for x, v in pairs]

    lines: list[CheckedDerivative] = []
    lower: dict[tuple[str, ...], Any] = {(): scalar}
    largest = 0.0
    for k in range(1, order + 1):
        near = {n: [float(f(*moved(s * h))) for s, _ in _STENCIL] for n, f in lower.items()}
        largest = max(largest, *(abs(y) for values in near.values() for y in values))
        higher = {}
        for nest, mode in itertools.product(lower, modes):
            longer = (*nest, mode)
            higher[longer] = _ALONG[mode](lower[nest], direction)
            exact = float(higher[longer](*xs))
            found = sum(c * y for (_, c), y in zip(_STENCIL, near[nest], strict=True)) / h
            apart, bound = abs(exact - found), most * max(min(1.0, largest), abs(exact), abs(found))
            lines.append(
                CheckedDerivative(k, " ".join(longer), exact, found, apart, bound, apart <= bound)
            )
        lower = higher
    if not all(line.agrees for line in lines):
        text = "\n".join(map(str, lines))
        raise AssertionError(
            f"check_grads: derivatives of {defined_at(fn)} do not match its values{where()}\n{text}"
        )
    return lines


def _numbers(x: Tensor) -> np.ndarray[Any, Any]:
    return x.asnumpy().astype(np.float64)


def _reverse_along(f: Callable[..., Any], direction: list[Tensor]) -> Callable[..., Any]:
    gradient = grad(f, tuple(range(len(direction))))

    def along(*xs: Tensor) -> Any:
        slopes = tree.leaves(gradient(*xs))
        parts = [(g * v).sum() for g, v in zip(slopes, direction, strict=True)]
        return sum(parts[1:], parts[0])

    return along


def _forward_along(f: Callable[..., Any], direction: list[Tensor]) -> Callable[..., Any]:
    def along(*xs: Tensor) -> Any:
        single = len(xs) == 1
        return jvp(f, xs[0] if single else xs, direction[0] if single else tuple(direction))[1]

    return along


_ALONG = {"rev": _reverse_along, "fwd": _forward_along}

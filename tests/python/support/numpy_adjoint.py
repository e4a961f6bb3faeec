"""An independent derivative: forward over reverse in plain NumPy, float64.

`Var` records the ops of one evaluation, as a tape. Its numbers are `Dual`: a value and its
derivative along one fixed direction of the inputs. So one reverse sweep gives the gradient, and in
the gradients' tangents the Hessian times that direction. Nothing here comes from gradcell; the file
is itself checked by finite differences in test_random_graphs.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray


class Dual:
    """value + tangent * epsilon, with epsilon ** 2 = 0."""

    def __init__(self, value: Any, tangent: Any) -> None:
        self.value = np.asarray(value, dtype=np.float64)
        self.tangent = np.asarray(tangent, dtype=np.float64)

    def linear(self, fn: Callable[[Array], Array]) -> Dual:
        return Dual(fn(self.value), fn(self.tangent))

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, self.tangent + other.tangent)

    def __sub__(self, other: Dual) -> Dual:
        return Dual(self.value - other.value, self.tangent - other.tangent)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(
            self.value * other.value, self.tangent * other.value + self.value * other.tangent
        )

    def __matmul__(self, other: Dual) -> Dual:
        return Dual(
            self.value @ other.value, self.tangent @ other.value + self.value @ other.tangent
        )

    def __neg__(self) -> Dual:
        return self.linear(np.negative)

    def reciprocal(self) -> Dual:
        return Dual(1 / self.value, -self.tangent / self.value**2)


Pullback = Callable[[Dual], Dual]


class Var:
    """One result of the tape, with how its cotangent goes back to each operand."""

    def __init__(self, dual: Dual, parents: Sequence[tuple[Var, Pullback]] = ()) -> None:
        self.dual = dual
        self.parents = parents

    @property
    def value(self) -> Array:
        return self.dual.value

    @property
    def shape(self) -> tuple[int, ...]:
        return self.dual.value.shape


def sum_to(dual: Dual, shape: tuple[int, ...]) -> Dual:
    """Undoes broadcasting: sums over what was added or widened."""

    def fn(x: Array) -> Array:
        x = x.sum(axis=tuple(range(x.ndim - len(shape))))
        return x.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)

    return dual.linear(fn)


def erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

#: f, f', f''
UNARY: dict[str, tuple[Callable[[Array], Array], ...]] = {
    "neg": (np.negative, lambda x: -np.ones_like(x), np.zeros_like),
    "abs": (np.abs, np.sign, np.zeros_like),
    "square": (np.square, lambda x: 2 * x, lambda x: 2 * np.ones_like(x)),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x), lambda x: -0.25 * x**-1.5),
    "rsqrt": (lambda x: x**-0.5, lambda x: -0.5 * x**-1.5, lambda x: 0.75 * x**-2.5),
    "reciprocal": (lambda x: 1 / x, lambda x: -(x**-2), lambda x: 2 * x**-3),
    "exp": (np.exp, np.exp, np.exp),
    "expm1": (np.expm1, np.exp, np.exp),
    "log": (np.log, lambda x: 1 / x, lambda x: -(x**-2)),
    "log1p": (np.log1p, lambda x: 1 / (1 + x), lambda x: -((1 + x) ** -2)),
    "sin": (np.sin, np.cos, lambda x: -np.sin(x)),
    "cos": (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)),
    "atan": (np.arctan, lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    "asinh": (np.arcsinh, lambda x: (1 + x * x) ** -0.5, lambda x: -x * (1 + x * x) ** -1.5),
    "sinh": (np.sinh, np.cosh, np.sinh),
    "tanh": (
        np.tanh,
        lambda x: np.cosh(x) ** -2,
        lambda x: -2 * np.tanh(x) * np.cosh(x) ** -2,
    ),
    "sigmoid": (
        sigmoid,
        lambda x: sigmoid(x) * sigmoid(-x),
        lambda x: sigmoid(x) * sigmoid(-x) * (sigmoid(-x) - sigmoid(x)),
    ),
    "erf": (
        erf,
        lambda x: TWO_OVER_ROOT_PI * np.exp(-x * x),
        lambda x: -2 * x * TWO_OVER_ROOT_PI * np.exp(-x * x),
    ),
    "relu": (lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0), np.zeros_like),
    "floor": (np.floor, np.zeros_like, np.zeros_like),
}


class NumpyTape:
    """The ops that random programs use, recorded for differentiation."""

    def constant(self, value: Any) -> Var:
        return Var(Dual(value, np.zeros_like(np.asarray(value, dtype=np.float64))))

    def unary(self, name: str, x: Var) -> Var:
        fn, first, second = UNARY[name]
        slope = Dual(first(x.value), second(x.value) * x.dual.tangent)
        result = Dual(fn(x.value), slope.value * x.dual.tangent)
        return Var(result, [(x, lambda dy: dy * slope)])

    def _broadcasting(self, result: Dual, *parents: tuple[Var, Pullback]) -> Var:
        return Var(
            result,
            [
                (x, lambda dy, x=x, pullback=pullback: sum_to(pullback(dy), x.shape))
                for x, pullback in parents
            ],
        )

    def add(self, x: Var, y: Var) -> Var:
        return self._broadcasting(x.dual + y.dual, (x, lambda dy: dy), (y, lambda dy: dy))

    def sub(self, x: Var, y: Var) -> Var:
        return self._broadcasting(x.dual - y.dual, (x, lambda dy: dy), (y, lambda dy: -dy))

    def mul(self, x: Var, y: Var) -> Var:
        return self._broadcasting(
            x.dual * y.dual, (x, lambda dy: dy * y.dual), (y, lambda dy: dy * x.dual)
        )

    def div(self, x: Var, y: Var) -> Var:
        inverse = y.dual.reciprocal()
        result = x.dual * inverse
        return self._broadcasting(
            result, (x, lambda dy: dy * inverse), (y, lambda dy: -(dy * result * inverse))
        )

    def where(self, condition: Array, x: Var, y: Var) -> Var:
        def pick(a: Array, b: Any) -> Array:
            return np.where(condition, a, b)

        result = Dual(
            pick(x.dual.value, y.dual.value),
            pick(
                np.broadcast_to(x.dual.tangent, x.shape), np.broadcast_to(y.dual.tangent, y.shape)
            ),
        )
        return self._broadcasting(
            result,
            (x, lambda dy: dy.linear(lambda g: pick(g, 0.0))),
            (y, lambda dy: dy.linear(lambda g: np.where(condition, 0.0, g))),
        )

    def greater(self, x: Var, y: Var) -> Array:
        return x.value > y.value

    def maximum(self, x: Var, y: Var) -> Var:
        return self.where(x.value > y.value, x, y)

    def minimum(self, x: Var, y: Var) -> Var:
        return self.where(x.value < y.value, x, y)

    def matmul(self, x: Var, y: Var) -> Var:
        """At least two dimensions each; the leading ones broadcast."""

        def t(dual: Dual) -> Dual:
            return dual.linear(lambda a: np.swapaxes(a, -1, -2))

        return self._broadcasting(
            x.dual @ y.dual, (x, lambda dy: dy @ t(y.dual)), (y, lambda dy: t(x.dual) @ dy)
        )

    def linear(self, x: Var, fn: Callable[[Array], Array], back: Callable[[Array], Array]) -> Var:
        return Var(x.dual.linear(fn), [(x, lambda dy: dy.linear(back))])

    def reshape(self, x: Var, shape: tuple[int, ...]) -> Var:
        return self.linear(x, lambda a: a.reshape(shape), lambda g: g.reshape(x.shape))

    def transpose(self, x: Var, order: tuple[int, ...]) -> Var:
        inverse = np.argsort(order)
        return self.linear(x, lambda a: a.transpose(order), lambda g: g.transpose(inverse))

    def broadcast_to(self, x: Var, shape: tuple[int, ...]) -> Var:
        return self._broadcasting(
            x.dual.linear(lambda a: np.broadcast_to(a, shape)), (x, lambda dy: dy)
        )

    def index(self, x: Var, index: Any) -> Var:
        def back(g: Array) -> Array:
            whole = np.zeros(x.shape)
            np.add.at(whole, index, g)
            return whole

        return self.linear(x, lambda a: a[index], back)

    def gather(self, x: Var, indices: Array, axis: int) -> Var:
        return self.index(x, (slice(None),) * axis + (indices,))

    def concat(self, xs: Sequence[Var], axis: int) -> Var:
        result = Dual(
            np.concatenate([x.dual.value for x in xs], axis),
            np.concatenate([x.dual.tangent for x in xs], axis),
        )
        ends = np.cumsum([x.shape[axis] for x in xs])
        parents = []
        for x, end in zip(xs, ends, strict=True):
            at = (slice(None),) * axis + (slice(end - x.shape[axis], end),)
            parents.append((x, lambda dy, at=at: dy.linear(lambda g: g[at])))
        return Var(result, parents)

    def cumsum(self, x: Var, axis: int) -> Var:
        return self.linear(
            x,
            lambda a: np.cumsum(a, axis),
            lambda g: np.flip(np.cumsum(np.flip(g, axis), axis), axis),
        )

    def reduce_sum(self, x: Var, axes: tuple[int, ...], keep: bool) -> Var:
        kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        return self.linear(
            x,
            lambda a: a.sum(axes, keepdims=keep),
            lambda g: np.broadcast_to(g.reshape(kept), x.shape),
        )

    def reduce_mean(self, x: Var, axes: tuple[int, ...], keep: bool) -> Var:
        count = math.prod(x.shape[i] for i in axes)
        return self.mul(self.reduce_sum(x, axes, keep), self.constant(1 / count))

    def reduce_max(self, x: Var, axes: tuple[int, ...], keep: bool, sign: int = 1) -> Var:
        """No ties: the sum of x where it is the extreme."""
        extreme = sign * np.max(sign * x.value, axes, keepdims=True)
        chosen = self.constant(1.0 * (x.value == extreme))
        return self.reduce_sum(self.mul(x, chosen), axes, keep)

    def reduce_min(self, x: Var, axes: tuple[int, ...], keep: bool) -> Var:
        return self.reduce_max(x, axes, keep, sign=-1)


def sweep(result: Var, inputs: Sequence[Var]) -> list[Dual]:
    """The cotangents of `inputs` for the scalar `result`."""
    order: list[Var] = []
    seen: set[int] = set()

    def visit(var: Var) -> None:
        if id(var) in seen:
            return
        seen.add(id(var))
        for parent, _ in var.parents:
            visit(parent)
        order.append(var)

    visit(result)
    cotangents = {id(result): Dual(np.ones(()), np.zeros(()))}
    for var in reversed(order):
        dy = cotangents.get(id(var))
        if dy is None:
            continue
        for parent, pullback in var.parents:
            contribution = pullback(dy)
            known = cotangents.get(id(parent))
            cotangents[id(parent)] = contribution if known is None else known + contribution
    nothing = [Dual(np.zeros(x.shape), np.zeros(x.shape)) for x in inputs]
    return [cotangents.get(id(x), zero) for x, zero in zip(inputs, nothing, strict=True)]


def value_gradient_hessian(
    fn: Callable[..., Any], arrays: Sequence[Array], direction: Sequence[Array]
) -> tuple[float, list[Array], list[Array]]:
    """fn(tape, *variables) at `arrays`: its value, its gradient, and the Hessian times
    `direction`."""
    inputs = [Var(Dual(x, v)) for x, v in zip(arrays, direction, strict=True)]
    result = fn(NumpyTape(), *inputs)
    gradients = sweep(result, inputs)
    first = [np.broadcast_to(g.value, x.shape) for g, x in zip(gradients, inputs, strict=True)]
    second = [np.broadcast_to(g.tangent, x.shape) for g, x in zip(gradients, inputs, strict=True)]
    return float(result.value), first, second

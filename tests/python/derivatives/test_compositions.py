"""Transforms of transforms: every pair in both modes, and some of three, beside SymPy.

Each transform makes a function of one variable from another; what that is, is a formula.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import gradcell as ms
from gradcell import Tensor, ops

T = sympy.Symbol("t")
X = np.float64(0.7)
Function = Callable[[Tensor], Tensor]


def two() -> Tensor:
    return Tensor(np.float64(2.0))


def by_batch(f: Function) -> Function:
    """f(t) + 3 f(2 t), both as one batch."""
    weights = Tensor(np.array([1.0, 3.0]))
    return lambda t: (ms.vmap(f)(ops.stack([t, 2 * t])) * weights).sum()


def by_own_rule(f: Function) -> Function:
    """f with a derivative of its own, which is f's."""
    made = ms.custom_vjp(f)
    made.defvjp(lambda t: (made(t), t), lambda t, dout: (dout * ms.grad(f)(t),))
    return made


def by_own_tangent(f: Function) -> Function:
    made = ms.custom_jvp(f)
    made.defjvp(lambda xs, dxs: (made(xs[0]), ms.jvp(f, xs[0], dxs[0])[1]))
    return made


def by_series(f: Function) -> Function:
    """The second derivative along the curve with derivatives (2, 3)."""
    return lambda t: ops.jet(f, t, Tensor(np.array([2.0, 3.0])))[1][1]


def derivative(f: Any, order: int = 1) -> Any:
    return sympy.diff(f, T, order)


#: By name: the transform, and what it makes of a formula in T.
TRANSFORMS: dict[str, tuple[Callable[[Function], Function], Callable[[Any], Any]]] = {
    "grad": (ms.grad, derivative),
    "value_and_grad": (lambda f: lambda t: sum(ms.value_and_grad(f)(t)),
                       lambda e: e + derivative(e)),
    "jvp": (lambda f: lambda t: ms.jvp(f, t, two())[1], lambda e: 2 * derivative(e)),
    "vjp": (lambda f: lambda t: ms.vjp(f, t)[1](two())[0], lambda e: 2 * derivative(e)),
    "linearize": (lambda f: lambda t: ms.linearize(f, t)[1](two()), lambda e: 2 * derivative(e)),
    "jacrev": (ms.jacrev, derivative),
    "jacfwd": (ms.jacfwd, derivative),
    "hessian": (ms.hessian, lambda e: derivative(e, 2)),
    "hvp": (lambda f: lambda t: ms.hvp(f, t, two())[1], lambda e: 2 * derivative(e, 2)),
    "vmap": (by_batch, lambda e: e + 3 * e.subs(T, 2 * T)),
    "jet": (by_series, lambda e: 4 * derivative(e, 2) + 3 * derivative(e)),
    "derivative": (lambda f: lambda t: ops.derivative(f, t, 3)[1], lambda e: derivative(e, 3)),
    "laplacian": (ms.laplacian, lambda e: derivative(e, 2)),
    "custom_vjp": (by_own_rule, lambda e: e),
    "custom_jvp": (by_own_tangent, lambda e: e),
    "recompute": (lambda f: lambda t: ms.recompute(f, t), lambda e: e),
    "jit": (ms.jit, lambda e: e),
}  # fmt: skip


def start(t: Tensor) -> Tensor:
    return ops.sin(t) * ops.exp(t / 2) + t**3


START = sympy.sin(T) * sympy.exp(T / 2) + T**3


def check(names: tuple[str, ...]) -> None:
    """names: the outermost transform first."""
    function, formula = start, START
    for name in reversed(names):
        transform, of_formula = TRANSFORMS[name]
        function, formula = transform(function), of_formula(formula)
    wanted = float(formula.subs(T, sympy.Float(float(X), 30)).evalf(25))
    got = function(Tensor(X))
    assert got.dtype == ms.float64 and got.shape == ()
    assert abs(float(got) - wanted) <= 1e-11 * max(1, abs(wanted)), (names, float(got), wanted)


@pytest.mark.one_in(24)
@pytest.mark.parametrize("names", list(itertools.product(TRANSFORMS, repeat=2)), ids="-of-".join)
def test_a_transform_of_a_transform(mode, names):
    check(names)


THREE = sorted(random.Random(5).sample(list(itertools.product(TRANSFORMS, repeat=3)), 60))


@pytest.mark.one_in(24)
@pytest.mark.parametrize("names", THREE, ids="-of-".join)
def test_three_transforms(mode, names):
    check(names)

"""Rows that only parts of a program need are computed by part: values and gradients beside NumPy.

The reference is a network written in NumPy whose gradients are taken by complex steps in float64.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import ops

pytestmark = pytest.mark.one_in(4)  # kernels at many sizes

ROWS, WIDE = 160, 7
Cut = tuple[int, int]


def network(x: Any, w: list[Any], tanh: Any) -> Any:
    return tanh(tanh(x @ w[0] + w[1]) @ w[2]) @ w[3]


def weights(seed: int, outputs: int = 2) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [
        random.normal(size=(2, WIDE)) * 0.7,
        random.normal(size=WIDE) * 0.3,
        random.normal(size=(WIDE, WIDE)) * 0.5,
        random.normal(size=(WIDE, outputs)),
    ]


def slopes(x: np.ndarray, w: list[np.ndarray]) -> np.ndarray:
    """d(first output)/dx of each row, by hand."""
    h = np.tanh(x @ w[0] + w[1])
    k = np.tanh(h @ w[2])
    return (((1 - k * k) * w[3][:, 0]) @ w[2].T * (1 - h * h)) @ w[0].T


def loss_in_numpy(w: list[np.ndarray], x: np.ndarray, edges: list[Cut], inside: Cut) -> Any:
    y = network(x, w, np.tanh)
    loss = 0
    for k, (a, b) in enumerate(edges):
        loss = loss + ((y[a:b, k % 2] - 0.1 * k) ** 2).mean()
    a, b = inside
    residual = y[:, 1] * slopes(x, w)[:, 0] - slopes(x, w)[:, 1]
    return loss + (residual[a:b] ** 2).mean()


def loss_in_gradcell(w: list[gc.Tensor], x: gc.Tensor, edges: list[Cut], inside: Cut) -> Any:
    y = network(x, w, ops.tanh)
    loss = 0
    for k, (a, b) in enumerate(edges):
        loss = loss + ((y[a:b, k % 2] - 0.1 * k) ** 2).mean()
    a, b = inside
    slope = gc.grad(lambda x: network(x, w, ops.tanh)[:, 0].sum())(x)
    residual = y[:, 1] * slope[:, 0] - slope[:, 1]
    return loss + (residual[a:b] ** 2).mean()


def by_complex_steps(f: Any, w: list[np.ndarray]) -> list[np.ndarray]:
    found = []
    for k, one in enumerate(w):
        gradient = np.empty(one.shape)
        for at in np.ndindex(one.shape):
            moved = [v.astype(complex) for v in w]
            moved[k][at] += 1e-30j
            gradient[at] = f(moved).imag / 1e-30
        found.append(gradient)
    return found


CUTS: list[tuple[list[Cut], Cut]] = [
    ([(0, 30), (30, 50)], (50, ROWS)),  # as collocation scripts have it
    ([(0, 40)], (40, 130)),  # the last rows are of no use
    ([(100, ROWS), (20, 60)], (0, 100)),
    ([(10, 90), (50, 120)], (70, 150)),  # overlapping
    ([(0, ROWS)], (120, ROWS)),  # values of all rows
    ([(5, 6)], (7, 8)),
]


def of(values: list[np.ndarray], dtype: str = "float64") -> list[gc.Tensor]:
    return [gc.Tensor(v.astype(dtype)) for v in values]


@pytest.mark.parametrize(("edges", "inside"), CUTS)
def test_values_and_gradients(edges: list[Cut], inside: Cut) -> None:
    w, x = weights(3), np.random.default_rng(4).uniform(-1, 1, (ROWS, 2))
    given = gc.Tensor(x)

    def loss(w: list[gc.Tensor]) -> gc.Tensor:
        return loss_in_gradcell(w, given, edges, inside)

    value, gradient = gc.jit(gc.value_and_grad(loss))(of(w))
    np.testing.assert_allclose(value.asnumpy(), loss_in_numpy(w, x, edges, inside), rtol=1e-12)
    expected = by_complex_steps(lambda w: loss_in_numpy(w, x, edges, inside), w)
    for ours, theirs in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-10, atol=1e-13)


def regions(plan: Any) -> dict[int, int]:
    """Products by the number of rows of the region that they are in."""
    found: dict[int, int] = {}
    rows = 0
    for line in str(plan).splitlines():
        if starts := re.match(r"\s*region rows=(\d+)", line):
            rows = int(starts[1])
        elif re.search(r"= matmul|weight_grad", line):
            found[rows] = found.get(rows, 0) + 1
    return found


def test_nothing_is_made_of_rows_that_nobody_needs() -> None:
    w, x = weights(3), gc.Tensor(np.zeros((ROWS, 2), np.float32))
    step = gc.grad(lambda w: loss_in_gradcell(w, x, [(0, 30), (30, 60)], (60, ROWS)))
    products = regions(gc.plan_text(step, of(w, "float32")))
    assert ROWS not in products
    assert products[60] <= 9  # three products up, their adjoints
    assert products[100] >= 12


def test_parts_that_need_the_same_stay_together() -> None:
    """Slices alone are no reason to take a network apart."""
    w, x = weights(3), gc.Tensor(np.zeros((ROWS, 2), np.float32))

    def loss(w: list[gc.Tensor]) -> gc.Tensor:
        y = network(x, w, ops.tanh)
        return (y[:50] ** 2).mean() + (y[50:] ** 2).mean() * 3

    assert set(regions(gc.plan_text(gc.grad(loss), of(w, "float32")))) == {ROWS}


def test_what_a_part_does_not_reach_may_be_infinite() -> None:
    """Rows that a loss leaves out have no part in its gradient, whatever is there."""
    x = np.linspace(-1, 1, ROWS)[:, None] * [1.0, 2.0]
    x[:20] = np.inf
    w = weights(5)
    given = gc.Tensor(x)

    def loss(w: list[gc.Tensor]) -> gc.Tensor:
        return (network(given, w, ops.tanh)[20:] ** 2).mean()

    got = gc.jit(gc.grad(loss))(of(w))
    expected = by_complex_steps(lambda w: (network(x[20:], w, np.tanh) ** 2).mean(), w)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-10, atol=1e-13)


def test_features_turned_round_where_rows_are_cut() -> None:
    w, x = weights(8), np.random.default_rng(9).uniform(-1, 1, (ROWS, 2))

    def program(w: list[Any], x: Any, tanh: Any) -> Any:
        y = network(x, w, tanh)
        turned = y[60:, ::-1]
        slope = turned[:, :1] * 2.0 + turned[:, 1:]
        some = tanh(y[:, ::-1] @ w[3][:2])  # which the first rows do not need
        return (slope**3).sum() + (y[:60, 0] ** 2).sum() + (some[60:] ** 2).sum()

    value, gradient = gc.jit(gc.value_and_grad(lambda w: program(w, gc.Tensor(x), ops.tanh)))(of(w))
    np.testing.assert_allclose(value.asnumpy(), program(w, x, np.tanh), rtol=1e-12)
    expected = by_complex_steps(lambda w: program(w, x, np.tanh), w)
    for ours, theirs in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-10, atol=1e-12)


def test_a_plan_is_for_other_constants_too() -> None:
    """Constants of a part's shape are the program's, whose values the next trace may change."""
    w, x = weights(6), np.random.default_rng(7).uniform(-1, 1, (ROWS, 2))
    for a, b in ((2.0, 3.0), (3.0, 2.0), (2.0, 2.0), (1.0, 5.0)):

        def loss(w: list[gc.Tensor], a: float = a, b: float = b) -> gc.Tensor:
            y = network(gc.Tensor(x), w, ops.tanh) * a + 1.0
            return (y[60:] * b + a).sum() + (y[:60, 0] ** 2).sum()

        def in_numpy(w: list[np.ndarray], a: float = a, b: float = b) -> Any:
            y = network(x, w, np.tanh) * a + 1.0
            return (y[60:] * b + a).sum() + (y[:60, 0] ** 2).sum()

        value, gradient = gc.jit(gc.value_and_grad(loss))(of(w))
        np.testing.assert_allclose(value.asnumpy(), in_numpy(w), rtol=1e-12)
        for ours, theirs in zip(gradient, by_complex_steps(in_numpy, w), strict=True):
            np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-10, atol=1e-12)


def unary(random: np.random.Generator) -> tuple[Any, Any]:
    pairs = [
        (ops.tanh, np.tanh),
        (ops.sin, np.sin),
        (lambda x: x * x, lambda x: x * x),
        (lambda x: -x, lambda x: -x),
        (lambda x: x / (x * x + 2.0), lambda x: x / (x * x + 2.0)),
        (lambda x: ops.concat((x[:, :3], x[:, 3:] * 2.0), 1), None),
        (lambda x: x.reshape(ROWS, 1, WIDE).reshape(ROWS, WIDE), lambda x: x),
        (lambda x: x - x.mean(1, True), None),
    ]
    other = {5: lambda x: np.concatenate((x[:, :3], x[:, 3:] * 2.0), 1)}
    other[7] = lambda x: x - x.sum(1, keepdims=True) / WIDE
    k = int(random.integers(len(pairs)))
    return pairs[k][0], pairs[k][1] or other[k]


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    """Of layers, sums, products and cuts in any order; what is cut is used beside the rest."""
    random = np.random.default_rng(seed)
    start = random.normal(size=(ROWS, WIDE))
    matrices = [random.normal(size=(WIDE, WIDE)) * 0.5 for _ in range(3)]
    recipe = [
        (unary(random), random.integers(0, 6), np.sort(random.integers(0, ROWS + 1, 2)))
        for _ in range(7)
    ]

    def program(w: list[Any], x: Any, ours: bool) -> Any:
        values, total = [x @ w[0]], 0
        for step, (both, kind, (a, b)) in enumerate(recipe):
            f, last = both[0 if ours else 1], values[-1]
            if kind == 0:
                values.append(f(last) @ w[1 + step % 2])
            elif kind == 1:
                values.append(f(last) + values[step // 2])
            elif kind == 2:
                values.append(last * f(values[step // 2]) * 0.3)
            elif kind == 3:
                values.append(f(last) - values[0])
            elif kind == 4 and b > a:  # some rows beside zeros
                pieces = last[:a] * 0.0, f(last)[a:b], last[b:] * 0.0
                values.append(ops.concat(pieces, 0) if ours else np.concatenate(pieces, 0))
            else:
                values.append(f(last) @ w[1] * 0.5)
            if b > a and step % 2:
                total = total + (values[-1][a:b] * values[-1][a:b]).sum() / (b - a)
        return total + values[-1][b:].sum()

    def loss(w: list[gc.Tensor]) -> gc.Tensor:
        return program(w, gc.Tensor(start), True)

    value, gradient = gc.jit(gc.value_and_grad(loss))(of(matrices))
    np.testing.assert_allclose(value.asnumpy(), program(matrices, start, False), rtol=1e-11)
    expected = by_complex_steps(lambda w: program(w, start, False), matrices)
    for got, wanted in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(got.asnumpy(), wanted, rtol=1e-9, atol=1e-11)

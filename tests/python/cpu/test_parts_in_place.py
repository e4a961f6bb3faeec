"""What is pieced together of results: these are made where the whole stands, and nothing else changes.
Against NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops
from gradcell.show.inspect import plan_text

pytestmark = pytest.mark.one_in(4)  # kernels at many sizes

#: Rows of parts, the last of which are no whole number of vectors.
COUNTS = (64, 37, 5)
FEATURES = 24


def _stack(parts: list[Any]) -> Any:
    return ops.stack(parts, 0) if isinstance(parts[0], Tensor) else np.stack(parts)


def _concat(parts: list[Any], axis: int = 0) -> Any:
    of_tensors = isinstance(parts[0], Tensor)
    return ops.concat(parts, axis) if of_tensors else np.concatenate(parts, axis)


def _tanh(x: Any) -> Any:
    return ops.tanh(x) if isinstance(x, Tensor) else np.tanh(x)


#: Of parts [n, FEATURES], of which one has been computed by a product, another row by row.
PROGRAMS: dict[str, Callable[[list[Any]], Any]] = {
    "one behind the other": _concat,
    "a part of a part": lambda p: _concat([_concat([p[0], p[1]]), p[2]]),
    "parts of parts": lambda p: _concat([_concat([p[2], p[0]]), _concat([p[1], p[2]])]),
    "a part twice": lambda p: _concat([p[1], p[0], p[1]]),
    "a part that is read again": lambda p: _concat([p[0], p[1] * p[1]]) + _concat([p[0], p[1]]),
    "backwards": lambda p: _concat([p[0][::-1], p[1]]),
    "a slice of a part": lambda p: _concat([p[0][3:40], p[1]]),
    "side by side": lambda p: _concat([p[0][:5], p[1][:5], p[2]], 1).reshape((15, FEATURES)),
    "stacked": lambda p: _stack([p[0][:5] * 2.0, p[2]]).reshape((10, FEATURES)),
    "of another shape": lambda p: _concat([p[0].reshape((-1,)), p[1].reshape((-1,))]).reshape(
        (COUNTS[0] + COUNTS[1], FEATURES)
    ),
    "in two wholes": lambda p: _concat([_concat([p[0], p[1]]) * 2.0, _concat([p[1], p[0]])]),
    "none": lambda p: _concat([p[0], p[1][:0], p[2]]),
}


def _parts(xs: list[Any], w: Any) -> list[Any]:
    return [xs[0] @ w, _tanh(xs[1]) * 3.0, _tanh(xs[2] @ w)]


def _data(dtype: Any) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(1)
    xs = [rng.standard_normal((n, FEATURES)).astype(dtype) for n in COUNTS]
    return xs, rng.standard_normal((FEATURES, FEATURES)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name: str, dtype: Any) -> None:
    program = PROGRAMS[name]
    xs, w = _data(dtype)

    def through(xs: list[Any], w: Any) -> Any:
        whole = program(_parts(xs, w))
        return (whole.T @ whole).T @ w

    tensors = list(map(Tensor, xs))
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    wanted = through([x.astype(np.float64) for x in xs], w.astype(np.float64))
    size = np.abs(wanted).max()
    got = gc.jit(through)(tensors, Tensor(w)).asnumpy()
    np.testing.assert_allclose(got, wanted, tolerance, tolerance * size)
    if dtype == np.float32:
        return
    gradient = gc.grad(lambda w: ops.sum(through(tensors, w)))(Tensor(w)).asnumpy()
    step, direction = 1e-6, np.random.default_rng(2).standard_normal(w.shape)
    change = through(xs, w + step * direction).sum() - through(xs, w - step * direction).sum()
    np.testing.assert_allclose((gradient * direction).sum(), change / (2 * step), 1e-7)


def _places(text: str, op: str) -> list[list[int]]:
    """For each call of an op where its operands and then its result begin in the plan's memory."""
    lines = [line for line in text.splitlines() if f"call {op} " in line]
    return [[int(at) for at in re.findall(r"temp\+(\d+)", line)] for line in lines]


def test_parts_stand_where_the_whole_does() -> None:
    xs, w = _data(np.float64)

    def through(xs: list[Any], w: Any) -> Any:
        whole = _concat(_parts(xs, w))
        return whole.T @ whole

    (found,) = _places(plan_text(through, list(map(Tensor, xs)), Tensor(w)), "Concat")
    *parts, whole = found
    row = FEATURES * 8
    assert parts == [whole, whole + COUNTS[0] * row, whole + (COUNTS[0] + COUNTS[1]) * row]


def test_what_is_not_made_is_copied() -> None:
    xs, w = _data(np.float64)

    def through(x: Any, given: Any, w: Any) -> Any:
        whole = _concat([x @ w, given])  # the second part is the caller's
        return whole.T @ whole

    (x, given), weights = map(Tensor, xs[:2]), Tensor(w)
    (found,) = _places(plan_text(through, x, given, weights), "Concat")
    assert len(found) == 2 and found[0] == found[1]
    whole = np.concatenate([xs[0] @ w, xs[1]])
    got = gc.jit(through)(x, given, weights).asnumpy()
    np.testing.assert_allclose(got, whole.T @ whole, 1e-12, 1e-10)


def test_a_part_that_is_a_result_too() -> None:
    xs, w = _data(np.float64)

    def through(x: Any, y: Any, w: Any) -> Any:
        parts = [x @ w, _tanh(y)]
        whole = _concat(parts)
        return parts[0], whole.T @ whole, parts[1]

    got = gc.jit(through)(Tensor(xs[0]), Tensor(xs[1]), Tensor(w))
    parts = [xs[0] @ w, np.tanh(xs[1])]
    whole = np.concatenate(parts)
    for a, b in zip(got, (parts[0], whole.T @ whole, parts[1]), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b, 1e-12, 1e-10)

"""Sorts, searches and counts under every transform, against NumPy and float64 differences; and no trace
that asks for a value."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

RNG = np.random.default_rng(23)
IDS = np.array([1, 0, 3, 1, -1, 0, 3])
LINE = np.array([-1.0, -0.2, 0.1, 0.9])
Function = Callable[[Any], Any]


def segment(largest: bool) -> Function:
    def f(a: np.ndarray) -> np.ndarray:
        limits = np.finfo(np.float64)
        out = np.full((5, *a.shape[1:]), limits.min if largest else limits.max)
        for s in range(4):
            if (IDS == s).any():
                out[s] = (a[IDS == s].max if largest else a[IDS == s].min)(0)
        return np.maximum(np.minimum(out, 10), -10)

    return f


def bounded(x: Tensor) -> Tensor:
    return ops.maximum(ops.minimum(x, 10.0), -10.0)


#: name: (the function, what NumPy gives) of [7, 3].
VALUES: dict[str, tuple[Function, Function]] = {
    "sort": (lambda x: ops.sort(x, 0)[0], lambda a: np.sort(a, 0)),
    "sort, descending": (lambda x: ops.sort(x, 1, True)[0], lambda a: -np.sort(-a, 1)),
    "topk": (lambda x: ops.topk(x, 2)[0], lambda a: -np.sort(-a, 1)[:, :2]),
    "topk, smallest along 0": (
        lambda x: ops.topk(x, 3, 0, False)[0], lambda a: np.sort(a, 0)[:3],
    ),
    "median": (lambda x: ops.median(x, 0)[0], lambda a: np.sort(a, 0)[3]),
    "nanmedian": (lambda x: ops.nanmedian(x, 1)[0], lambda a: np.sort(a, 1)[:, 1]),
    "quantile": (
        lambda x: ops.quantile(x, [0.25, 0.6], 0), lambda a: np.quantile(a, [0.25, 0.6], 0),
    ),
    "quantile of all": (lambda x: ops.quantile(x, 0.3), lambda a: np.quantile(a, 0.3)),
    "cummax": (lambda x: ops.cummax(x, 0)[0], lambda a: np.maximum.accumulate(a, 0)),
    "cummin": (lambda x: ops.cummin(x, 1)[0], lambda a: np.minimum.accumulate(a, 1)),
    "unsorted_segment_max": (
        lambda x: bounded(ops.unsorted_segment_max(x, Tensor(IDS), 5)), segment(True),
    ),
    "unsorted_segment_min": (
        lambda x: bounded(ops.unsorted_segment_min(x, Tensor(IDS), 5)), segment(False),
    ),
}  # fmt: skip
#: Of integers: (the function, what NumPy gives) of an int64 [7, 3].
WHOLE = RNG.integers(-50, 50, (7, 3))
PLACES: dict[str, tuple[Function, Function]] = {
    "argsort": (lambda x: ops.argsort(x, 0), lambda a: np.argsort(a, 0, kind="stable")),
    "searchsorted": (
        lambda x: ops.searchsorted(Tensor(LINE * 30), x), lambda a: np.searchsorted(LINE * 30, a),
    ),
    "searchsorted, whole": (
        lambda x: ops.searchsorted(Tensor([-20, 0, 5]), x, right=True),
        lambda a: np.searchsorted([-20, 0, 5], a, "right"),
    ),
    "bucketize": (lambda x: ops.bucketize(x, [-20, 0, 5]), lambda a: np.digitize(a, [-20, 0, 5])),
    "isin": (lambda x: ops.isin(x, Tensor(WHOLE[0])), lambda a: np.isin(a, WHOLE[0])),
    "isin, floats": (lambda x: ops.isin(x, [1.5, 2.0]), lambda a: np.isin(a, [1.5, 2.0])),
    "histc": (lambda x: ops.histc(x, 5, -20, 20), lambda a: np.histogram(a, 5, (-20, 20))[0]),
    "histc, own range": (lambda x: ops.histc(x, 4), lambda a: np.histogram(a, 4)[0]),
    "bitwise_and": (lambda x: ops.bitwise_and(x, 12), lambda a: a & 12),
    "bitwise_left_shift": (lambda x: ops.bitwise_left_shift(x, Tensor(3)), lambda a: a << 3),
    "gcd": (lambda x: ops.gcd(x, Tensor([6, 10, 4])), lambda a: np.gcd(a, [6, 10, 4])),
}  # fmt: skip


def difference(f: Function, x: np.ndarray, v: np.ndarray, h: float = 1e-4) -> np.ndarray:
    return (f(x + h * v) - f(x - h * v)) / (2 * h)  # type: ignore[no-any-return]


def silent(f: Function) -> Function:
    """f compiled, without a warning that it asks for a value."""

    def call(*args: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return gc.jit(f)(*args)

    return call


def numbers() -> np.ndarray:
    """Distinct, further apart than a difference's step."""
    return RNG.permutation(np.linspace(-1.5, 1.5, 21)).reshape(7, 3)


@pytest.mark.parametrize("name", VALUES)
def test_values_and_derivatives(name: str) -> None:
    f, reference = VALUES[name]
    x, v = numbers(), RNG.standard_normal((7, 3))
    t = Tensor(x)
    np.testing.assert_allclose(f(t).asnumpy(), reference(x), rtol=1e-14)
    np.testing.assert_allclose(silent(f)(t).asnumpy(), reference(x), rtol=1e-14)
    wanted = difference(reference, x, v)
    np.testing.assert_allclose(gc.jvp(f, t, Tensor(v))[1].asnumpy(), wanted, atol=1e-9)
    _, linear = gc.linearize(f, t)
    for scale in (1.0, -3.0):
        np.testing.assert_allclose(linear(Tensor(scale * v)).asnumpy(), scale * wanted, atol=1e-9)
    weights = RNG.standard_normal(wanted.shape)
    total = lambda a: (f(a) ** 3 * Tensor(weights)).sum()  # noqa: E731
    exact = lambda a: (reference(a) ** 3 * weights).sum()  # noqa: E731
    gradient = lambda a: gc.grad(total)(Tensor(a)).asnumpy()  # noqa: E731
    along = difference(exact, x, v)
    assert float((gradient(x) * v).sum()) == pytest.approx(float(along), rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(silent(gc.grad(total))(t).asnumpy(), gradient(x), rtol=1e-12)
    np.testing.assert_allclose(
        gc.grad(lambda a: gc.recompute(total, a))(t).asnumpy(), gradient(x), rtol=1e-12
    )
    units = np.eye(21).reshape(21, 7, 3)
    columns = np.stack([difference(reference, x, u) for u in units], -1)
    for transform in (gc.jacrev, gc.jacfwd):
        got = transform(f)(t).asnumpy().reshape(columns.shape)
        np.testing.assert_allclose(got, columns, atol=1e-9)
    second = np.stack([difference(gradient, x, u) for u in units])
    np.testing.assert_allclose(
        gc.hessian(total)(t).asnumpy().reshape(second.shape), second, atol=1e-6
    )
    trace = np.einsum("aa->", second.reshape(21, 21))
    assert float(gc.laplacian(total)(t)) == pytest.approx(trace, rel=1e-6, abs=1e-5)
    many = np.stack([numbers() for _ in range(5)])
    np.testing.assert_allclose(
        gc.vmap(f)(Tensor(many)).asnumpy(), np.stack([reference(m) for m in many]), rtol=1e-14
    )
    np.testing.assert_allclose(
        gc.vmap(gc.grad(total))(Tensor(many)).asnumpy(), np.stack([gradient(m) for m in many]),
        rtol=1e-12,
    )  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_places_and_counts(name: str) -> None:
    f, reference = PLACES[name]
    for dtype in (np.int64, np.int32):
        x = WHOLE.astype(dtype)
        np.testing.assert_array_equal(f(Tensor(x)).asnumpy(), reference(x))
        np.testing.assert_array_equal(silent(f)(Tensor(x)).asnumpy(), reference(x))
        many = np.stack([x, x[::-1], x + 3])
        wanted = np.stack([reference(m) for m in many])
        np.testing.assert_array_equal(gc.vmap(f)(Tensor(many)).asnumpy(), wanted)


@pytest.mark.parametrize("largest", [True, False])
def test_segments_of_half_types(largest: bool) -> None:
    x = numbers()
    f = ops.unsorted_segment_max if largest else ops.unsorted_segment_min
    for dtype in (gc.bfloat16, gc.float16):
        got = f(Tensor(x, dtype), Tensor(IDS), 4).float().asnumpy()
        rounded = Tensor(x, dtype).float().asnumpy()
        wanted = np.stack([
            (rounded[IDS == s].max if largest else rounded[IDS == s].min)(0)
            for s in range(4) if (IDS == s).any()
        ])  # fmt: skip
        np.testing.assert_array_equal(got[[0, 1, 3]], wanted)
        assert (
            got[2] == Tensor(-np.inf if largest else np.inf, dtype).float().asnumpy()
        ).sum() == 0
        assert np.abs(got[2]).min() > 6e4


def test_searches_in_rows_and_of_large_integers() -> None:
    line, x = np.sort(RNG.standard_normal((3, 5)), -1), RNG.standard_normal((3, 4))
    wanted = np.stack([np.searchsorted(a, v) for a, v in zip(line, x, strict=True)])
    np.testing.assert_array_equal(ops.searchsorted(Tensor(line), Tensor(x)).asnumpy(), wanted)
    large = np.array([2**62, 2**62 + 1, 2**62 + 2])
    got = ops.searchsorted(Tensor(large), Tensor(large), right=True).asnumpy()
    np.testing.assert_array_equal(got, [1, 2, 3])
    with pytest.raises(ValueError, match="leading dimensions"):
        ops.searchsorted(Tensor(line), Tensor(x[:2]))


def test_what_has_no_order() -> None:
    z = Tensor(np.array([1 + 1j, 2.0]))
    for f in (ops.sort, ops.argsort, lambda z: ops.topk(z, 1), lambda z: ops.cummax(z, 0)):
        with pytest.raises(TypeError, match="no order"):
            f(z)
    with pytest.raises(ValueError, match="finite"):
        ops.histc(Tensor(np.array([1.0, np.nan])), 3)
    with pytest.raises(IndexError, match="segment id 3"):
        ops.unsorted_segment_max(Tensor(np.ones((2, 2))), Tensor([0, 3]), 2)

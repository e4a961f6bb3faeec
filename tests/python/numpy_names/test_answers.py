"""Functions of gradcell.numpy and gradcell.scipy answer what NumPy and SciPy answer, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import gradcell as gc
import gradcell.numpy as gnp
from gradcell import Tensor, mint, ops

X = np.array([[0.5, -1.25, 2.0], [3.5, 0.25, -0.75], [1.5, 4.0, -2.5]])
V = np.array([1.0, 2.5, 4.0, 7.5, 5.0, 3.0])
W = np.array([0.0, 0.5, 2.0, 2.25, 4.0, 7.0])


def plain(x: Any) -> Any:
    """Tensors as arrays, in tuples and lists too."""
    if isinstance(x, (tuple, list)):
        return [plain(part) for part in x]
    return x.asnumpy() if isinstance(x, Tensor) else np.asarray(x)


def alike(got: Any, expected: Any, bound: float = 1e-12) -> None:
    got, expected = plain(got), plain(expected)
    if isinstance(expected, list):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            alike(a, b, bound)
        return
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, bound, bound)


def checked(f: Any, *xs: np.ndarray) -> None:
    """The gradient of a function of tensors, along a direction, beside a difference of its values."""
    rng = np.random.default_rng(3)
    directions = [rng.normal(size=x.shape) for x in xs]
    weigh = rng.normal(size=plain(f(*map(Tensor, xs))).shape)

    def loss(*ts: Tensor) -> Tensor:
        return ops.sum(f(*ts) * Tensor(weigh))

    slopes = gc.grad(loss, 0 if len(xs) == 1 else tuple(range(len(xs))))(*map(Tensor, xs))
    slopes = slopes if isinstance(slopes, tuple) else (slopes,)
    slope = sum(np.sum(g.asnumpy() * d) for g, d in zip(slopes, directions, strict=True))
    h = 1e-5
    ends = [
        loss(*(Tensor(x + s * h * d) for x, d in zip(xs, directions, strict=True))).item()
        for s in (1, -1)
    ]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), 1e-6, 1e-7)


DIGITIZED = np.array([-1.0, 0.0, 0.3, 1.0, 2.0, 2.5, 9.0])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[0.0, 0.3, 2.0], [2.0, 0.3, 0.0], [2.0, 2.0, 0.3], [1.0], [1, 1]])
def test_bins_rise_or_fall(bins: Any, right: bool) -> None:
    expected = np.digitize(DIGITIZED, bins, right)
    alike(gnp.digitize(Tensor(DIGITIZED), bins, right), expected)
    alike(
        gc.jit(lambda x, b: gnp.digitize(x, b, right))(Tensor(DIGITIZED), Tensor(np.array(bins))),
        expected,
    )


def test_bins_without_an_order_are_refused() -> None:
    with pytest.raises(ValueError, match=r"digitize: the bins must rise or fall"):
        gnp.digitize(Tensor(V), [1.0, 3.0, 2.0])


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("steps", [(), (0.1,), (W,), (list(W),), (np.arange(6.0),)])
def test_gradient_takes_coordinates(steps: Any, order: int) -> None:
    for f in (V, V[:3]):
        mine = tuple(s[: len(f)] if np.ndim(s) else s for s in steps)
        as_tensors = [Tensor(s) if isinstance(s, np.ndarray) else s for s in mine]
        alike(
            gnp.gradient(Tensor(f), *as_tensors, edge_order=order),
            np.gradient(f, *mine, edge_order=order),
        )


def test_gradient_of_a_plane_and_its_derivative() -> None:
    grid = W[:3], 0.5
    for axis in (None, 0, 1, (1, 0)):
        steps = grid if axis is None or axis == (1, 0) else grid[1:]
        steps = steps[::-1] if axis == (1, 0) else steps
        alike(gnp.gradient(Tensor(X), *steps, axis=axis), np.gradient(X, *steps, axis=axis))
    checked(lambda x, w: gnp.gradient(x, w, axis=0), X, W[:3])
    checked(lambda x, w: gnp.gradient(x, w, axis=0, edge_order=2), X, W[:3])


def test_gradient_says_what_does_not_fit() -> None:
    with pytest.raises(TypeError, match=r"3 distances do not fit 2 axes"):
        gnp.gradient(Tensor(X), 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"axis 0 has 3 places, not \[6\]"):
        gnp.gradient(Tensor(X), W, 1.0)
    with pytest.raises(ValueError, match="edge_order"):
        gnp.gradient(Tensor(X), edge_order=3)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    "given", [{"prepend": 0.5}, {"append": 3}, {"prepend": X[:1], "append": 0.1}]
)
def test_numbers_are_joined_before_differences(axis: int, given: Any) -> None:
    if axis and len(given) > 1:
        given = {**given, "prepend": X[:, :1]}
    mine = {k: Tensor(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}
    alike(gnp.diff(Tensor(X), axis=axis, **mine), np.diff(X, axis=axis, **given))
    alike(ops.diff(Tensor(X), axis=axis, **mine), np.diff(X, axis=axis, **given))


def test_a_number_joined_to_integers_keeps_its_value() -> None:
    alike(gnp.diff(Tensor([1, 2]), prepend=0.5), np.diff([1, 2], prepend=0.5))
    checked(lambda x, p: gnp.diff(x, prepend=p), V, np.array(0.25))


@pytest.mark.parametrize("kind", [Tensor, np.asarray, list, tuple])
@pytest.mark.parametrize("name", ["split", "array_split", "hsplit", "vsplit"])
def test_cuts_are_given_as_any_sequence(name: str, kind: Any) -> None:
    for x in (X, np.arange(24.0).reshape(4, 6)):
        alike(getattr(gnp, name)(Tensor(x), kind([1, 2])), getattr(np, name)(x, [1, 2]))


@pytest.mark.filterwarnings("ignore:Degrees of freedom", "ignore:.*encountered in divide")
@pytest.mark.parametrize("ddof", [0.5, 1.5, 0, 1, 2.9, 3, 5, True])
def test_degrees_of_freedom_need_not_be_whole(ddof: Any) -> None:
    t = Tensor(X)
    for name in ("var", "std"):
        expected = getattr(np, name)(X, 0, ddof=ddof)
        expected = np.where(np.isnan(expected), np.inf, expected)
        for got in (
            getattr(gnp, name)(t, 0, ddof=ddof),
            getattr(mint, name)(t, 0, correction=ddof),
            getattr(ops, name)(t, 0, ddof=ddof),
            getattr(ops, f"{name}_mean")(t, 0, ddof=ddof)[0],
            getattr(t, name)(0, ddof=ddof),
        ):
            alike(got, expected)
    if ddof < 3:
        alike(gnp.nanvar(t, 0, ddof=ddof), np.nanvar(X, 0, ddof=ddof))


def spectrum(*values: float) -> np.ndarray:
    q = np.linalg.qr(X)[0]
    return q @ np.diag(values) @ q.T


def test_pseudo_inverses_of_hermitian_matrices_and_of_several_limits() -> None:
    a = spectrum(3.0, -2.0, 1e-3)
    spoiled = a + np.triu(np.full((3, 3), 7.0), 1)
    alike(ops.pinv(Tensor(spoiled), hermitian=True), np.linalg.pinv(spoiled, hermitian=True), 1e-9)
    z = a + 0.25j * (np.tril(X, -1) - np.tril(X, -1).T)
    alike(ops.pinv(Tensor(z), hermitian=True), np.linalg.pinv(z), 1e-9)
    both, limits = np.stack([a, a]), np.array([1e-2, 1e-5])
    alike(ops.pinv(Tensor(both), rtol=Tensor(limits)), np.linalg.pinv(both, rcond=limits), 1e-9)
    alike(ops.pinv(Tensor(both), rtol=limits), np.linalg.pinv(both, rcond=limits), 1e-9)
    alike(ops.pinv(Tensor(both), atol=Tensor(3 * limits)), np.linalg.pinv(both, rcond=limits), 1e-9)
    checked(lambda x: ops.pinv(x, hermitian=True), spectrum(3.0, -2.0, 1.0))


@pytest.mark.parametrize("z", [0, 0.25j])
@pytest.mark.parametrize("lower", [False, True])
def test_a_factor_is_of_the_triangle_that_scipy_reads(lower: bool, z: complex) -> None:
    a = spectrum(3.0, 2.0, 1.0) + z * (np.tril(X, -1) - np.tril(X, -1).T)
    other = np.full((3, 3), 99.0)
    spoiled = a + (np.triu(other, 1) if lower else np.tril(other, -1))
    own = gc.scipy.linalg
    alike(own.cholesky(Tensor(spoiled), lower), scipy.linalg.cholesky(spoiled, lower))
    factor = own.cho_factor(Tensor(spoiled), lower)
    b = Tensor(V[:3].astype(a.dtype))
    alike(own.cho_solve(factor, b), np.linalg.solve(a, V[:3]))
    alike(own.eigh(Tensor(spoiled), lower=lower, eigvals_only=True).real(), np.linalg.eigvalsh(a))


def test_the_derivative_of_eigenvalues_is_by_the_triangle_that_is_read() -> None:
    a = spectrum(3.0, 2.0, 1.0)
    for lower, outside in ((True, np.triu), (False, np.tril)):
        f = lambda x, lower=lower: gc.scipy.linalg.eigh(x, lower=lower, eigvals_only=True)  # noqa: E731
        slope = gc.grad(lambda x, f=f: ops.sum(f(x) * Tensor(V[:3])))(Tensor(a)).asnumpy()
        assert not outside(slope, 1 if lower else -1).any()
        checked(f, a)

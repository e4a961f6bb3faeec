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
    h = 1e-4

    def at(s: float) -> float:
        moved = (Tensor(x + s * h * d) for x, d in zip(xs, directions, strict=True))
        return loss(*moved).item()

    expected = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
    np.testing.assert_allclose(slope, expected, 1e-7, 1e-7)


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


GIVEN = {
    "x": X, "v": V, "w": W, "i": np.array([3, 1, 2, 1, 3, 0]), "m": X @ X.T + np.eye(3),
    "z": X[0] + 1j * X[1], "n": np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan], [4.0, 0.5, np.nan]]),
    "b": X > 0, "t": np.arange(24.0).reshape(2, 3, 4) / 7,
}  # fmt: skip

#: Expressions of `np` and what is given, a line each; after a bar, by what they are differentiated too.
EXPRESSIONS = """
np.fmax(n, 2.0) | n
np.fmin(n, x)
np.sinc(x) | x
np.degrees(x) | x
np.radians(x)
np.i0(x) | x
np.real(z), np.imag(z), np.conj(z), np.conjugate(x), np.real(x), np.imag(x)
np.angle(z), np.angle(x, deg=True)
np.isreal(z), np.iscomplex(z), np.iscomplexobj(x), np.isrealobj(x)
np.asin(x / 5), np.acos(x / 5), np.atan(x), np.asinh(x), np.acosh(x * x + 1), np.atanh(x / 5)
np.pow(x, 2.0), np.atan2(x, 2.0), np.ldexp(x, 2)
np.left_shift(i, 2), np.right_shift(i, 1), np.bitwise_left_shift(i, 1), np.bitwise_invert(i)
np.modf(x + 0.1) | x
np.add.outer(v, w), np.multiply.outer(x, v), np.maximum.accumulate(v), np.subtract.outer(v, x) | v
np.add.reduce(x), np.multiply.reduce(x, axis=1), np.maximum.reduce(x), np.add.accumulate(x, axis=1)
np.nan_to_num(n, nan=7.0), np.nan_to_num(x)
np.allclose(x, x + 1e-12), np.allclose(x, x + 1), np.allclose(n, n, equal_nan=True)
np.sort(x), np.sort(x, axis=0), np.sort(x, axis=None) | x
np.argsort(v), np.argsort(x, axis=0), np.argsort(x, axis=None)
np.partition(v, 2)[2], np.sort(np.partition(v, 2)[:2]), v[np.argpartition(v, 3)[3]]
np.lexsort((v, i))
np.median(x), np.median(x, axis=0), np.median(t, axis=(0, 2), keepdims=True), np.nanmedian(n[::2], 1) | x
np.percentile(x, 30), np.percentile(x, [10, 50.0, 99], axis=1), np.nanpercentile(n[::2], 25, axis=1) | x
np.quantile(v, 0.3), np.quantile(t, [0.2, 0.7], axis=(0, 1)), np.nanquantile(n[::2], 0.4, axis=1)
np.quantile(v, 0.3, method="hazen"), np.quantile(v, [0.3, 0.9], method="nearest") | v
np.quantile(v, 0.3, method="lower"), np.quantile(v, 0.37, method="midpoint"), np.median(n)
np.unique(i), np.unique(i, return_counts=True), np.unique(i, return_index=True, return_inverse=True)
np.unique(x[[0, 1, 0]], axis=0), np.unique(n), np.union1d(i, [7, 2]), np.setxor1d(i, [7, 2])
np.nonzero(x > 0), np.flatnonzero(x > 0), np.extract(b, x), np.compress([True, False, True], x, axis=1)
np.delete(v, 2), np.delete(x, [0, 2], axis=1), np.delete(x, slice(0, 2), axis=0) | x
np.insert(v, 2, 9.5), np.insert(x, 1, v[:3], axis=1), np.insert(x, [0, 2], 7.0, axis=0) | x
np.trim_zeros(w), np.nanargmax(n[::2], axis=1), np.nanargmin(n)
np.sum(x, where=b), np.sum(x, axis=0, initial=2.5, where=b), np.prod(x, axis=1, where=b, initial=2.0) | x
np.nansum(n, axis=1, initial=1.5), np.nanprod(n, axis=0), np.nancumprod(n), np.prod(x) | x
np.mean(x, where=b), np.mean(x, axis=0, where=b, keepdims=True), np.mean(i) | x
np.var(x, where=b), np.std(x, axis=1, where=b, ddof=0), np.std(x, correction=1), np.var(z, where=b[0]) | x
np.var(x, mean=np.mean(x, axis=0, keepdims=True), axis=0), np.std(a=x, axis=0, keepdims=True)
np.nanmean(n[::2], axis=1), np.nanvar(n[::2], axis=1, ddof=0.5), np.nanstd(n[::2], axis=1)
np.max(x, axis=0, initial=1.0), np.min(x, axis=1, where=b, initial=9.0), np.amax(x), np.amin(x, keepdims=True)
np.any(x > 3, axis=0), np.all(b, axis=1, where=[[True, True, False]]), np.any(b, where=~b), np.all(b)
np.argmax(x, axis=1, keepdims=True), np.argmin(x, axis=0), np.count_nonzero(b, axis=0)
np.nanmax(n[::2], axis=1, initial=3.5), np.nanmin(n[::2], axis=0, where=b[::2], initial=2.0)
np.average(x, axis=0, weights=v[:3]), np.average(x, axis=1, keepdims=True), np.average(i, weights=v) | x v
np.r_[1:4, 0, 7], np.r_[v, w], np.r_[0:1:5j, v], np.r_[0.1, v], np.c_[v, w], np.c_[x, v[:3]] | v w
np.einsum("ij,j", x, v[:3]), np.einsum(x, [0, 1], m, [1, 2]), np.einsum(x, [0, 1], m, [1, 2], [2, 0]) | x m
np.einsum(t, [..., 1], [...]), np.einsum("...ij->...ji", t), np.einsum("ii", x), np.einsum("i,j->ij", v, w) | t
np.vdot(z, z), np.vecdot(x, m), np.matvec(x, v[:3]), np.vecmat(v[:3], x), np.vdot(x, m) | x m
np.concat([x, m]), np.permute_dims(t, (2, 0, 1)), np.matrix_transpose(t), np.unstack(x), np.vstack([v, w])
np.block([[x, np.ones((3, 1))], [np.zeros((1, 3)), np.eye(1)]]), np.block([v, w]), np.resize(v, (3, 4)) | x v
np.trapezoid(v, w), np.trapezoid(x, dx=0.5, axis=0) | v w
np.reshape(t, (4, 6), order="F"), np.ravel(t, order="F"), np.ravel(x) | t
np.ndim(t), np.shape(t), np.broadcast_shapes((3, 1), (4,)), np.fromiter(iter([1.0, 2.5]), float)
np.clip(x, a_min=-1.0, a_max=2.2), np.clip(x, 0, None), np.clip(x, min=0.6), np.clip(x, -1, 1) | x
np.interp(v + 0.03, w, v), np.interp(v + 7.03, w, v, period=9.0), np.unwrap(v * 3, period=5.3), np.unwrap(v * 2) | v
np.fromfunction(lambda p, q: p * 3 + q, (2, 3)), np.diag_indices_from(x), np.vectorize(lambda p: p * p + 1)(x)
np.poly(v[:3]), np.polyfit(w, v, 2), np.polyfit(w, v, 1, w=v), np.polyval(v, w), np.polydiv(v, [1.0, 2.0]) | v
np.polyfit(w, np.stack([v, w * v], axis=1), 2), np.polyfit(w, v, 1, cov=True)
np.linalg.solve(m, v[:3]), np.linalg.inv(m), np.linalg.det(x), np.linalg.slogdet(x) | m
np.linalg.cholesky(m), np.linalg.cholesky(m, upper=True), np.linalg.eigvalsh(m), np.linalg.eigvalsh(x, UPLO="U")
np.linalg.norm(x), np.linalg.norm(x, 2), np.linalg.norm(x, axis=1), np.linalg.norm(v, 3), np.linalg.norm(z) | x
np.linalg.pinv(x[:, :2]), np.linalg.pinv(m, hermitian=True), np.linalg.matrix_power(m, 3) | x
np.linalg.lstsq(t[0], v[:3]), np.linalg.lstsq(x[:, :2], v[:3]), np.linalg.lstsq(x, m) | x
np.linalg.svdvals(x), np.linalg.svd(x, compute_uv=False), np.linalg.matrix_rank(x), np.linalg.cond(x) | x
np.linalg.cond(x + m, 1), np.linalg.cond(x, -2), np.linalg.matrix_rank(np.ones((3, 3))), np.linalg.cond(m, "fro") | x
np.linalg.multi_dot([x, m, v[:3]]), np.linalg.outer(v, w), np.linalg.cross(x, m), np.linalg.trace(x, offset=1)
np.linalg.matrix_norm(t, ord=1), np.linalg.vector_norm(t, axis=1, ord=3), np.linalg.vecdot(x, m) | t
np.linalg.diagonal(t), np.linalg.matrix_transpose(t), np.linalg.tensordot(x, m, axes=1), np.linalg.matmul(x, m)
np.linalg.tensorsolve(m.reshape(3, 1, 3), v[:3].reshape(3, 1)), np.linalg.tensorinv(m.reshape(1, 3, 3), ind=2)
np.fft.fft(v), np.fft.ifft(v), np.fft.rfft(v, 8), np.fft.irfft(np.fft.rfft(v)), np.fft.fft2(x), np.fft.fftfreq(5, 0.1)
np.fft.fftshift(x), np.fft.rfftn(t), np.fft.fftn(x, norm="ortho"), np.fft.hfft(v)
np.kaiser(5, 8.6), np.hanning(6), np.finfo(np.float64).eps, np.iinfo(np.int8).max
np.issubdtype(np.float64, np.floating), np.issubdtype(np.int32, np.floating), np.e, np.euler_gamma, np.pi
np.concatenate((v, w), axis=None, dtype=np.float64), np.stack([v, w], axis=1), np.var(v, ddof=0.5)
np.random.default_rng(3).normal(size=(2, 3)), np.random.default_rng(1).integers(0, 9, 5)
np.random.RandomState(0).rand(3), np.random.default_rng(2).choice(v, 3), np.random.default_rng(2).permutation(v)
"""  # noqa: E501


def lines(text: str) -> list[tuple[str, str]]:
    found = [line.partition(" | ") for line in text.strip().splitlines()]
    return [(line, by) for line, _, by in found]


@pytest.mark.filterwarnings("ignore:Mean of empty", "ignore:All-NaN", "ignore:Degrees")
@pytest.mark.parametrize(("text", "by"), lines(EXPRESSIONS))
def test_an_expression_has_numpys_value_and_its_derivative(text: str, by: str) -> None:
    before = gc.get_default_dtype()
    gc.set_default_dtype(gc.float64)
    try:
        own = {name: Tensor(value) for name, value in GIVEN.items()}
        got = eval(text, {"np": gnp, **own})
        alike(got, eval(text, {"np": np, **GIVEN}), 1e-11)

        def whole(*given: Tensor) -> Tensor:
            mine = {**own, **dict(zip(by.split(), given, strict=True))}
            parts = eval(text, {"np": gnp, **mine})
            flat = parts if isinstance(parts, tuple) else (parts,)
            flat = [q for p in flat for q in (p if isinstance(p, (tuple, list)) else (p,))]
            kept = [p.reshape(-1) for p in flat if isinstance(p, Tensor) and p.dtype == gc.float64]
            return ops.concat(kept, 0)

        if by:
            checked(whole, *(np.nan_to_num(GIVEN[name], nan=0.75) for name in by.split()))
    finally:
        gc.set_default_dtype(before)


def test_zeros_around_a_matrix() -> None:
    """As NumPy has it from 2.2 on."""
    x = Tensor(np.array([[0.0, 0, 0], [0, 1, 0], [0, 2, 0]]))
    assert gnp.trim_zeros(x).tolist() == [[1], [2]]
    assert gnp.trim_zeros(x, "f").tolist() == [[1, 0], [2, 0]]
    assert gnp.trim_zeros(x, "b").tolist() == [[0, 0], [0, 1], [0, 2]]
    assert gnp.trim_zeros(x, axis=1).tolist() == [[0], [1], [2]]
    assert gnp.trim_zeros(x * 0).shape == (0, 0)
    assert gnp.trim_zeros(x * 0, "f", axis=0).shape == (0, 3)
    slope = gc.grad(lambda x: (gnp.trim_zeros(x, axis=1) ** 2).sum())(x)
    assert slope.tolist() == [[0, 0, 0], [0, 2, 0], [0, 4, 0]]

"""scipy.linalg, scipy.signal and scipy.integrate of tensors beside SciPy, with derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.signal

import gradcell as gc
from gradcell import Tensor, ops
from gradcell.scipy import integrate, linalg, signal

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4))
POSITIVE, NEAR_TWO = A @ A.T + 0.1 * np.eye(4), 2 * np.eye(4) + 0.4 * A
B, C = 2 * np.eye(3) + 0.3 * RNG.normal(size=(3, 3)), RNG.normal(size=(4, 3))


def alike(got: Any, expected: Any, bound: float) -> None:
    np.testing.assert_allclose(got.asnumpy(), expected, bound, bound)


def checked(f: Any, *xs: np.ndarray) -> None:
    """The derivative along a direction beside a difference of values."""
    rng = np.random.default_rng(3)
    directions = [rng.normal(size=x.shape) for x in xs]
    weights = Tensor(rng.normal(size=tuple(f(*map(Tensor, xs)).shape)))

    def along(s: Tensor) -> Tensor:
        moved = (Tensor(x) + s * Tensor(d) for x, d in zip(xs, directions, strict=True))
        return ops.sum(f(*moved) * weights)

    h, start = 1e-4, Tensor(np.array(0.0))
    at = {k: along(Tensor(np.array(k * h))).item() for k in (-2, -1, 1, 2)}
    expected = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * h)
    np.testing.assert_allclose(gc.grad(along)(start).item(), expected, 1e-7, 1e-8)
    slope = gc.grad(along)
    second = (slope(Tensor(np.array(h))).item() - slope(Tensor(np.array(-h))).item()) / (2 * h)
    np.testing.assert_allclose(gc.grad(slope)(start).item(), second, 1e-5, 1e-6)


@pytest.mark.parametrize("matrix", [POSITIVE, NEAR_TWO, NEAR_TWO + 0.3j * A])
def test_square_roots_of_matrices(matrix: np.ndarray) -> None:
    alike(linalg.sqrtm(Tensor(matrix)), scipy.linalg.sqrtm(matrix), 1e-11)
    if not np.iscomplexobj(matrix):
        checked(linalg.sqrtm, matrix)


@pytest.mark.parametrize(
    "matrix", [-np.eye(3), np.diag([1.0, -2.0]), np.array([[0.0, 1.0], [0.0, 0.0]])]
)
def test_a_matrix_without_such_a_root_is_refused(matrix: np.ndarray) -> None:
    with pytest.raises(ValueError, match="sqrtm"):
        linalg.sqrtm(Tensor(matrix))


def test_sylvesters_and_lyapunovs_equations() -> None:
    found = linalg.solve_sylvester(*map(Tensor, (POSITIVE, B, C)))
    alike(found, scipy.linalg.solve_sylvester(POSITIVE, B, C), 1e-10)
    checked(linalg.solve_sylvester, POSITIVE, B, C)
    found = linalg.solve_continuous_lyapunov(Tensor(NEAR_TWO), Tensor(POSITIVE))
    alike(found, scipy.linalg.solve_continuous_lyapunov(NEAR_TWO, POSITIVE), 1e-10)
    with pytest.raises(
        ValueError, match=r"square matrices of sizes 4 and 3 .* got \[3, 3\] and \[3, 3\]"
    ):
        linalg.solve_sylvester(Tensor(B), Tensor(B), Tensor(C))


SHAPES = [((5,), (3,)), ((3,), (5,)), ((6, 5), (3, 2)), ((4, 3, 5), (2, 2, 2)), ((20, 20), (9, 9))]


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_convolutions_of_any_rank(shapes: Any, name: str) -> None:
    for z in (0, 1j):
        x, k = (RNG.normal(size=s) + z * RNG.normal(size=s) for s in shapes)
        for mode in ("full", "same", "valid"):
            expected = getattr(scipy.signal, name)(x, k, mode)
            for method in ("auto", "direct", "fft"):
                got = getattr(signal, name)(Tensor(x), Tensor(k), mode, method)
                alike(got, expected, 1e-11)
    alike(signal.fftconvolve(Tensor(x), Tensor(k)), scipy.signal.fftconvolve(x, k), 1e-11)
    with pytest.raises(ValueError, match="equally many dimensions"):
        signal.convolve(Tensor(x), Tensor(1.0))


def test_convolutions_have_derivatives() -> None:
    for method in ("direct", "fft"):
        f = lambda x, k, m=method: signal.convolve(x, k, "same", m)  # noqa: E731
        checked(f, RNG.normal(size=(6, 5)), RNG.normal(size=(3, 2)))


def van_der_pol(y: Any, t: float, m: Any) -> Any:
    return [y[1], m * (1 - y[0] ** 2) * y[1] - y[0]]


START, TIMES = np.array([1.0, 0.5]), np.linspace(0, 5, 6)


def test_an_equation_is_solved_as_odeint_does() -> None:
    expected = scipy.integrate.odeint(van_der_pol, START, TIMES, (1.2,), rtol=1e-13, atol=1e-13)
    alike(integrate.odeint(van_der_pol, Tensor(START), TIMES, (1.2,)), expected, 1e-6)
    found = integrate.odeint(
        van_der_pol, Tensor(START), TIMES, (Tensor(np.array(1.2)),), rtol=1e-9, atol=1e-9
    )
    alike(found, expected, 1e-7)
    back = integrate.odeint(van_der_pol, found[-1], TIMES[::-1], (1.2,), rtol=1e-9, atol=1e-9)
    alike(back[-1], START, 1e-6)
    found = integrate.odeint(lambda t, y: -y, START, TIMES, tfirst=True, hmax=0.1)
    alike(found, np.exp(-TIMES)[:, None] * START, 1e-8)


def test_the_solution_is_differentiated_by_its_start_and_arguments() -> None:
    def solution(y: Any, m: Any) -> Tensor:
        return integrate.odeint(van_der_pol, y, TIMES[:2], (m,), rtol=1e-9, atol=1e-9)

    # The sensitivities obey a linear equation of their own, which SciPy solves beside the first.
    def with_slopes(state: Any, t: float) -> Any:
        y, s = state[:2], state[2:].reshape(2, 3)
        jacobian = np.array([[0, 1], [-2 * 1.2 * y[0] * y[1] - 1, 1.2 * (1 - y[0] ** 2)]])
        by_m = np.array([[0, 0, 0], [0, 0, (1 - y[0] ** 2) * y[1]]])
        return np.concatenate([van_der_pol(y, t, 1.2), (jacobian @ s + by_m).ravel()])

    first = np.concatenate([START, np.eye(2, 3).ravel()])
    whole = scipy.integrate.odeint(with_slopes, first, TIMES[:2], rtol=1e-12, atol=1e-12)
    expected = whole[-1, 2:].reshape(2, 3)
    given = Tensor(START), Tensor(np.array(1.2))
    for i in range(2):
        by_start, by_m = gc.grad(lambda y, m, i=i: solution(y, m)[-1, i], (0, 1))(*given)
        alike(by_start, expected[i, :2], 1e-6)
        alike(by_m, expected[i, 2], 1e-6)


def test_what_cannot_be_solved_is_said() -> None:
    with pytest.raises(RuntimeError, match=r"odeint: .*steps do not lead to t = 2\.0"):
        integrate.odeint(lambda y, t: y * y, np.array([1.0]), [0.0, 2.0], mxstep=200)
    with pytest.raises(ValueError, match=r"slopes must be as many as the values, \[2\], got \[3\]"):
        integrate.odeint(lambda y, t: ops.concat([y, y[:1]], 0), START, TIMES)


def test_solve_ivp() -> None:
    found = integrate.solve_ivp(
        lambda t, y: -y, (0, 2), START, t_eval=[0, 1, 2.0], rtol=1e-9, atol=1e-9
    )
    alike(found.y, START[:, None] * np.exp([0.0, -1, -2]), 1e-8)
    free = integrate.solve_ivp(lambda t, y, k: -k * y, (0, 2), START, args=(1.0,), max_step=0.25)
    assert free.success and free.t.shape[0] >= 9 and free.nfev > 50
    alike(free.y, START[:, None] * np.exp(-free.t.asnumpy()), 1e-3)


def test_integrals_of_samples() -> None:
    y, x = RNG.normal(size=(3, 6)), np.sort(RNG.normal(size=6))
    ours, theirs = integrate, scipy.integrate
    alike(ours.trapezoid(Tensor(y), x), theirs.trapezoid(y, x), 1e-12)
    alike(ours.trapezoid(y, dx=0.5, axis=0), theirs.trapezoid(y, dx=0.5, axis=0), 1e-12)
    alike(ours.cumulative_trapezoid(Tensor(y), x), theirs.cumulative_trapezoid(y, x), 1e-12)
    for axis in (0, 1):
        expected = theirs.cumulative_trapezoid(y, axis=axis, initial=0)
        alike(ours.cumulative_trapezoid(Tensor(y), axis=axis, initial=0), expected, 1e-12)
    checked(lambda y, x: ours.cumulative_trapezoid(y, x), y, x)

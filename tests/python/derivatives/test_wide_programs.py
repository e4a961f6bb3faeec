"""Random programs of linear algebra, orders, samples, complex numbers, loops, convolutions and recomputation,
under every transform: against finite differences of the same program in NumPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from wide_programs import KINDS, Program

import gradcell as gc
from gradcell import Tensor, ops

#: The first ones by default, all with the slow marker.
PROGRAMS, BY_DEFAULT = 20_000, 300


def dot(xs: tuple[Tensor, ...], vs: list[np.ndarray]) -> float:
    return float(sum((x.asnumpy() * v).sum() for x, v in zip(xs, vs, strict=True)))


def slope_of(program: Program) -> Callable[..., Tensor]:
    v = [Tensor(d) for d in program.direction]

    def slope(*x: Tensor) -> Tensor:
        return sum((g * d).sum() for g, d in zip(gc.grad(program, (0, 1))(*x), v, strict=True))

    return slope


def outcomes(program: Program) -> dict[str, tuple[float, str]]:
    """What each transform gives, and what of value, slope and curvature that is."""
    x = tuple(Tensor(a) for a in program.inputs)
    v = tuple(Tensor(d) for d in program.direction)
    two = [ops.stack([a, a]) for a in x]
    seeds = tuple(ops.stack([d, ops.zeros_like(d)]) for d in v)
    gradient = gc.grad(program, (0, 1))
    found: dict[str, tuple[float, str]] = {}
    turn = program.seed % 4
    found["plain"] = (float(program(*x)), "value")
    found["grad"] = (dot(gradient(*x), program.direction), "slope")
    if turn == 0:
        compiled = gc.jit(gradient)
        compiled(*[0.9 * a for a in x])
        found["jit grad"] = (dot(compiled(*x), program.direction), "slope")
        found["grad of grad"] = (
            dot(gc.grad(slope_of(program), (0, 1))(*x), program.direction), "curvature",
        )  # fmt: skip
    if turn == 1:
        found["jvp"] = (float(gc.jvp(program, x, v)[1]), "slope")
        linear = gc.linearize(program, x)[1]
        found["linearize"] = (float(linear(v)), "slope")
        found["linearize twice"] = (float(linear(tuple(3 * d for d in v))) / 3, "slope")
    if turn == 2:
        series = ops.jet(program, x, seeds)[1].asnumpy()
        found["jet"], found["jet 2"] = (float(series[0]), "slope"), (float(series[1]), "curvature")
        found["recompute"] = (
            dot(gc.grad(lambda *a: gc.recompute(program, *a), (0, 1))(*x), program.direction), "slope",
        )  # fmt: skip
    if turn == 3:
        values = gc.vmap(program)(*two).asnumpy()
        found["vmap"] = (float(values[1]), "value")
        rows = gc.vmap(gradient)(*two)
        found["vmap of grad"] = (dot(tuple(r[1] for r in rows), program.direction), "slope")
        outer = gc.grad(lambda *a: gc.vmap(program)(*a).sum(), (0, 1))(*two)
        found["grad of vmap"] = (dot(tuple(r[0] for r in outer), program.direction), "slope")
        _, curved = gc.jvp(gradient, x, v)
        found["jvp of grad"] = (dot(curved, program.direction), "curvature")
    return found


def check(seed: int) -> bool:
    """Whether the program has a reference. Raises AssertionError for a wrong number."""
    program = Program(seed)
    expected = program.derivatives()
    if expected is None:
        return False
    value, slope, curvature, error = expected
    scale = max(1.0, abs(value), abs(slope), abs(curvature))
    within = {
        "value": (value, 1e-10 * scale),
        "slope": (slope, 10 * error + 1e-7 * scale),
        "curvature": (curvature, 1e-3 * scale),
    }
    for name, (found, what) in outcomes(program).items():
        wanted, distance = within[what]
        assert abs(found - wanted) <= distance, f"{name}: {found}, not {wanted}\n{program}"
    return True


@pytest.mark.one_in(5)
@pytest.mark.parametrize("block", range(BY_DEFAULT // 20))
def test_programs(block: int) -> None:
    assert sum(check(seed) for seed in range(20 * block, 20 * block + 20)) >= 8


def test_every_kind_is_drawn() -> None:
    drawn = Counter(name for seed in range(BY_DEFAULT) for name, _, _ in Program(seed).steps)
    assert set(drawn) == set(KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(PROGRAMS // 200))
def test_many(block: int) -> None:
    assert sum(check(10**6 + seed) for seed in range(200 * block, 200 * block + 200)) >= 100

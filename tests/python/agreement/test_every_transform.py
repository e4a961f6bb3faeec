"""Every public function under every transform: values, first and second derivatives, against finite
differences of plain calls in float64.

The functions are the cases of the tables, which test_tables.py holds to every public name. A case is a
function F of its floating inputs x; with fixed weights w and directions v, u, what each transform gives is
compared with w . F, its slope and its curvature along v, which finite differences of plain calls give. What
is refused is listed in golden/refused_transforms.json with the error's first words.

By default every case goes through three transforms, which take turns, and through one at each of the sizes 1,
2, 5 and 17; the slow marker runs all of them at all sizes.

`python tests/python/agreement/test_every_transform.py` writes what is refused now.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agreement
import check_grads
import numpy as np
import pytest
from function_cases import CASES, OTHER_DERIVATIVE, RANDOM

import gradcell as gc
from gradcell import Tensor, ops

GOLDEN = Path(__file__).parents[1] / "golden"
LIST = GOLDEN / "refused_transforms.json"
#: What vmap refuses of these, with the reasons.
UNDER = json.loads((GOLDEN / "under_transforms.json").read_text())
SIZES = (1, 2, 5, 17)


#: Matrices of derivatives are made for up to so many elements in and out.
MOST_ELEMENTS = 256


class Skip(Exception):
    """There is nothing to differentiate."""


def wide(x: Any) -> Any:
    """Floating tensors in float64, in tuples too."""
    if isinstance(x, tuple):
        return tuple(wide(v) for v in x)
    return (
        x.astype(gc.float64) if isinstance(x, Tensor) and x.dtype in (gc.float32, gc.float16) else x
    )


def resized(inputs: Any, size: int) -> Any:
    """The inputs with another size in the place of their first dimension's, wherever it occurs."""
    texts = [t for t in inputs if isinstance(t, str)]
    found = [int(n) for t in texts for n in t.rpartition(":")[2].split()]
    if not found or any(isinstance(t, tuple) for t in inputs):
        raise Skip
    first = found[0]

    def other(text: str) -> str:
        kind, colon, sizes = text.rpartition(":")
        return (
            kind
            + colon
            + " "
            + " ".join(str(size) if int(n) == first else n for n in sizes.split())
        )

    return [other(t) if isinstance(t, str) else t for t in inputs]


class Case:
    """F(x) of one case, its weights and directions, and what finite differences say."""

    def __init__(self, name: str, size: int | None = None) -> None:
        expression, inputs = CASES[name]
        if size is not None:
            inputs = resized(inputs, size)
        seed = zlib.crc32(name.encode())
        rng = np.random.default_rng(seed)
        gc.set_seed(1)
        cell = agreement.made(gc, expression)
        if isinstance(cell, gc.nn.Cell):
            agreement.set_parameters(gc, cell, rng)
            cell.to_float(gc.float64)
        self.cell, self.kept = cell, []
        if isinstance(cell, gc.nn.Cell):
            self.kept = [(p, p.value()) for p in cell.get_parameters()]
        given = [wide(x) for x in agreement.tensors(gc, inputs, rng)]
        self.given = given
        self.places = [
            i for i, x in enumerate(given) if isinstance(x, Tensor) and x.dtype == gc.float64
        ]
        if not self.places:
            raise Skip
        self.x = tuple(given[i] for i in self.places)
        outputs = self.floats(self.call(*given))
        if not outputs:
            raise Skip
        self.narrow = any(y.dtype == gc.float32 for y in outputs)  # it computes in float32 inside
        self.w = [Tensor(rng.uniform(0.5, 1.5, tuple(y.shape))) for y in outputs]
        self.v, self.u = (
            tuple(Tensor(rng.standard_normal(tuple(x.shape))) for x in self.x) for _ in range(2)
        )
        self.plain = [y.asnumpy() for y in outputs]
        if not all(np.isfinite(y).all() for y in self.plain):
            raise Skip

    def call(self, *args: Any) -> Any:
        for p, value in self.kept:
            p.set_data(value)
        return self.cell(*args)

    @staticmethod
    def floats(out: Any) -> list[Tensor]:
        return [
            y
            for y in agreement.flat(out)
            if isinstance(y, Tensor) and y.dtype in (gc.float64, gc.float32)
        ]

    def f(self, *x: Tensor) -> tuple[Tensor, ...]:
        """F: the floating outputs, of the floating inputs."""
        args = list(self.given)
        for i, value in zip(self.places, x, strict=True):
            args[i] = value
        return tuple(y.astype(gc.float64) for y in self.floats(self.cell(*args)))

    def phi(self, *x: Tensor) -> Tensor:
        total = Tensor(0.0, gc.float64)
        for y, w in zip(self.f(*x), self.w, strict=True):
            total = total + (y * w).sum()
        return total

    def along(self, t: float) -> float:
        return float(self.phi(*[x + v * t for x, v in zip(self.x, self.v, strict=True)]).asnumpy())

    def is_large(self) -> bool:
        return max(sum(x.size for x in self.x), sum(w.size for w in self.w)) > MOST_ELEMENTS

    def reference(self) -> tuple[float, float, float] | None:
        """(slope, curvature, how exact the curvature is) along v; None where differences do not settle, or F
        computes in float32 inside."""
        return None if self.narrow else check_grads.differences(self.along)


def dot(xs: Any, vs: Any) -> float:
    xs = xs if isinstance(xs, (tuple, list)) else (xs,)
    return float(sum((x.asnumpy() * v.asnumpy()).sum() for x, v in zip(xs, vs, strict=True)))


def gradients(case: Case, *x: Tensor) -> tuple[Tensor, ...]:
    """By every floating input."""
    found = gc.grad(case.phi, places(case))(*x)
    return found if isinstance(found, tuple) else (found,)


def places(case: Case) -> tuple[int, ...]:
    return tuple(range(len(case.x)))


def slope_along(case: Case) -> Callable[..., Tensor]:
    def slope(*x: Tensor) -> Tensor:
        total = Tensor(0.0, gc.float64)
        for g, v in zip(gradients(case, *x), case.v, strict=True):
            total = total + (g * v).sum()
        return total

    return slope


def batch(case: Case, n: int) -> tuple[list[Tensor], list[np.ndarray]]:
    """n points, and the derivative of phi along v at each by a call of its own."""
    points = [[x + u * (0.01 * k) for x, u in zip(case.x, case.u, strict=True)] for k in range(n)]
    return [ops.stack([p[i] for p in points]) for i in range(len(case.x))], points


# What each transform gives: a list of (found, wanted), where wanted is value, slope or curvature, or what has
# to come out.
def t_value(case, n):
    return [(case.f(*case.x), "value")]


def t_jit(case, n):
    compiled = gc.jit(case.f)
    return [(compiled(*case.x), "value"), (compiled(*case.x), "value")]


def t_grad(case, n):
    return [(dot(gradients(case, *case.x), case.v), "slope")]


def t_jit_grad(case, n):
    return [(dot(gc.jit(lambda *x: gradients(case, *x))(*case.x), case.v), "slope")]


def t_grad_of_grad(case, n):
    return [(dot(gc.grad(slope_along(case), places(case))(*case.x), case.v), "curvature")]


def t_jvp(case, n):
    _, moved = gc.jvp(case.f, case.x, case.v)
    return [(dot(moved, case.w), "slope")]


def t_linearize(case, n):
    _, linear = gc.linearize(case.f, case.x)
    twice = tuple(2 * v for v in case.v)
    return [
        (dot(linear(case.v), case.w), "slope"),
        (dot(linear(twice), case.w) / 2, "slope"),
        (dot(linear(case.u), case.w) - dot(gradients(case, *case.x), case.u), 0.0),
    ]


def t_vjp(case, n):
    _, back = gc.vjp(case.f, *case.x)
    cotangents = case.w
    found = [(dot(back(*cotangents), case.v), "slope")]
    return [*found, (dot(back(*[3 * w for w in cotangents]), case.v) / 3, "slope")]


def t_jet(case, n):
    seeds = [ops.stack([v, ops.zeros_like(v)]) for v in case.v]
    _, found = ops.jet(case.f, case.x, tuple(seeds))
    found = found if isinstance(found, (tuple, list)) else (found,)
    first = sum((d.asnumpy()[0] * w.asnumpy()).sum() for d, w in zip(found, case.w, strict=True))
    second = sum((d.asnumpy()[1] * w.asnumpy()).sum() for d, w in zip(found, case.w, strict=True))
    return [(float(first), "slope"), (float(second), "curvature")]


def t_vmap(case, n):
    stacked, points = batch(case, n)
    out = gc.vmap(case.f)(*stacked)
    return [
        (y.asnumpy(), np.stack([case.f(*p)[k].asnumpy() for p in points]))
        for k, y in enumerate(out)
    ]


def t_grad_of_vmap(case, n):
    stacked, points = batch(case, n)
    found = gc.grad(lambda *x: gc.vmap(case.phi)(*x).sum(), places(case))(*stacked)
    found = found if isinstance(found, tuple) else (found,)
    return per_example(case, found, points)


def t_vmap_of_grad(case, n):
    stacked, points = batch(case, n)
    return per_example(case, gc.vmap(lambda *x: gradients(case, *x))(*stacked), points)


def per_example(case, found, points):
    return [
        (np.array([dot([g[k] for g in found], case.v) for k in range(len(points))]),
         np.array([dot(gradients(case, *p), case.v) for p in points]))
    ]  # fmt: skip


def t_jacrev(case, n):
    return contracted(case, gc.jacrev(case.f, places(case))(*case.x))


def t_jacfwd(case, n):
    return contracted(case, gc.jacfwd(case.f, places(case))(*case.x))


def contracted(case, jacobian):
    total = 0.0
    blocks = iter(agreement.flat(jacobian))  # by output, then by input
    for w in case.w:
        for v in case.v:
            moved = np.tensordot(next(blocks).asnumpy(), v.asnumpy(), v.ndim)
            total += float((moved * w.asnumpy()).sum())
    return [(total, "slope")]


def t_hessian(case, n):
    def first(x):
        return case.phi(x, *case.x[1:])

    found = gc.hessian(first)(case.x[0]).asnumpy()
    v = case.v[0].asnumpy()
    curved = np.tensordot(np.tensordot(found, v, v.ndim), v, v.ndim)
    by_hvp = dot(gc.hvp(first, case.x[0], case.v[0])[1], [case.v[0]])
    return [(float(curved), by_hvp)]


def t_laplacian(case, n):
    def first(x):
        return case.phi(x, *case.x[1:])

    x = case.x[0]
    found = gc.hessian(first)(x).asnumpy().reshape(x.size, x.size)
    return [(float(gc.laplacian(first)(x).asnumpy()), float(np.trace(found)))]


def t_recompute(case, n):
    def again(*x):
        total = Tensor(0.0, gc.float64)
        for y, w in zip(gc.recompute(case.f, *x), case.w, strict=True):
            total = total + (y * w).sum()
        return total

    found = gc.grad(again, places(case))(*case.x)
    return [(dot(found, case.v), "slope")]


TRANSFORMS: dict[str, Callable[[Case, int], list[tuple[Any, Any]]]] = {
    name[2:]: fn for name, fn in list(globals().items()) if name.startswith("t_")
}


def compare(case: Case, found: list[tuple[Any, Any]], reference: Any) -> None:
    for got, want in found:
        if isinstance(want, str) and want == "value":
            for a, b in zip(got, case.plain, strict=True):
                close(case, a.asnumpy(), b)
        elif isinstance(want, str):
            if reference is None:
                continue
            slope, curvature, error = reference
            scale = max(1.0, abs(slope), abs(curvature))
            if want == "slope":
                assert abs(got - slope) <= 3e-6 * scale, (got, slope)
            else:
                assert abs(got - curvature) <= 10 * error + 1e-4 * scale, (got, curvature, error)
        else:
            close(case, np.asarray(got), np.asarray(want))


def close(case: Case, a: np.ndarray, b: np.ndarray) -> None:
    scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)
    error = 2e-4 if case.narrow else 2e-6
    np.testing.assert_allclose(a / scale, b / scale, rtol=error, atol=error, equal_nan=True)


MATRICES = ("jacrev", "jacfwd", "hessian", "laplacian")


def outcome(name: str, transform: str, size: int | None = None) -> str | None:
    """The refusal's first words, or None where the transform gives what it should. Raises Skip."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if any(word in name for word in (*RANDOM, *OTHER_DERIVATIVE)):
            raise Skip
        try:
            case = Case(name, size)
            reference = case.reference()
        except Skip:
            raise
        except Exception:
            raise Skip from None  # of other sizes, or float32 alone
        if transform in MATRICES and case.is_large():
            return None
        try:
            found = TRANSFORMS[transform](case, size or 2)
        except Exception as error:
            return re.sub(r"[^A-Za-z ,.:'_]+", "#", f"{type(error).__name__}: {error}")[:90]
        compare(case, found, reference)
    return None


STORED: dict[str, dict[str, str]] = json.loads(LIST.read_text()) if LIST.exists() else {}
NAMES = list(TRANSFORMS)


def drawn(name: str) -> list[str]:
    """Three of the transforms, for a case."""
    turn = zlib.crc32(name.encode())
    return [NAMES[(turn + 6 * k) % len(NAMES)] for k in range(3)]


@pytest.mark.one_in(16)
@pytest.mark.parametrize("name", CASES)
def test_three_transforms_of_each(name: str) -> None:
    for transform in drawn(name):
        check(name, transform, None)


@pytest.mark.one_in(48)
@pytest.mark.parametrize("part", range(12))
@pytest.mark.parametrize("size", SIZES)
def test_one_transform_of_each_at_other_sizes(size: int, part: int) -> None:
    wrong = []
    for name in [*CASES][part::12]:
        transform = NAMES[zlib.crc32(f"{name} {size}".encode()) % len(NAMES)]
        try:
            check(name, transform, size)
        except AssertionError as error:
            wrong.append((name, transform, str(error)[:300]))
    assert wrong == []


@pytest.mark.slow
def test_most_have_a_reference() -> None:
    """Finite differences of their own, not only one transform beside the others."""
    found = 0
    for name in CASES:
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            if not any(word in name for word in (*RANDOM, *OTHER_DERIVATIVE)):
                found += Case(name).reference() is not None
    assert found > 1200


@pytest.mark.slow
@pytest.mark.parametrize("size", [None, *SIZES])
@pytest.mark.parametrize("transform", NAMES)
def test_every_function(transform: str, size: int | None) -> None:
    wrong = []
    for name in CASES:
        try:
            check(name, transform, size)
        except AssertionError as error:
            wrong.append((name, str(error)[:300]))
    assert wrong == []


def check(name: str, transform: str, size: int | None) -> None:
    try:
        refused = outcome(name, transform, size)
    except Skip:
        return
    listed = name in STORED.get(transform, {}) or ("vmap" in transform and name in UNDER["vmap"])
    if size is None:
        assert (refused is not None) == (name in STORED.get(transform, {})), refused
    elif refused is not None:
        assert listed or refused.startswith("NotImplementedError"), refused


def main() -> int:
    refused: dict[str, dict[str, str]] = {}
    wrong = 0
    for name in CASES:
        for transform in NAMES:
            try:
                found = outcome(name, transform)
            except Skip:
                break
            except AssertionError as error:
                wrong += 1
                print("WRONG", transform, name, " ".join(str(error).split())[:200], flush=True)
                continue
            if found is not None:
                refused.setdefault(transform, {})[name] = found
    LIST.write_text(json.dumps(refused, indent=1) + "\n")
    print({t: len(names) for t, names in refused.items()}, "wrong:", wrong)
    return wrong


if __name__ == "__main__":
    sys.exit(main() > 0)

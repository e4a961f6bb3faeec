"""Parameters made inside a transform, of values that are not known there: jit and vmap need no number."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, ops

X = np.arange(6.0).reshape(2, 3) + 1


def moved(x: Tensor) -> Tensor:
    p = Parameter(x * 2)
    ops.assign_add(p, x)
    return p + x


def test_jit_makes_one_form() -> None:
    calls = []

    @gc.jit
    def f(x: Tensor) -> Tensor:
        calls.append(1)
        return moved(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in (1.0, 2.0, 3.0):
            np.testing.assert_array_equal(f(Tensor(X * k)).asnumpy(), 4 * k * X)
    assert len(calls) == 1


def test_one_of_a_known_value_is_new_at_each_call() -> None:
    def counted(x: Tensor) -> Tensor:
        p = Parameter(Tensor(np.zeros(3)))
        ops.assign_add(p, x[0])
        ops.assign_add(p, x[1])
        return p * x

    for transform in (gc.jit, gc.vmap, lambda f: gc.jit(gc.grad(lambda v: f(v).sum()))):
        fn, again = transform(counted), transform(counted)
        x = Tensor(X) if transform is not gc.vmap else Tensor(np.stack([X, 2 * X]))
        first = fn(x).asnumpy()
        np.testing.assert_array_equal(fn(x).asnumpy(), first)
        np.testing.assert_array_equal(again(x).asnumpy(), first)
    np.testing.assert_array_equal(gc.jit(counted)(Tensor(X)).asnumpy(), (X[0] + X[1]) * X)


def test_one_that_nothing_is_written_to_may_outlive_the_trace() -> None:
    traced = []

    @gc.jit
    def fn(x: Tensor) -> Tensor:
        traced.append([Parameter(Tensor(np.ones(3))), None])
        traced[-1][1] = traced[-1]  # a cycle, as cells are in some
        return traced.pop()[0] * x

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a function that is traced at each call
        for _ in range(3):
            np.testing.assert_array_equal(fn(Tensor(X[0])).asnumpy(), X[0])


def test_one_that_is_kept_keeps_its_value() -> None:
    kept: list[Parameter] = []

    @gc.jit
    def step(x: Tensor) -> Tensor:
        if not kept:
            kept.append(Parameter(Tensor(np.ones(3))))
        ops.assign_add(kept[0], x)
        return kept[0] * 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(4):
            np.testing.assert_array_equal(step(Tensor(np.ones(3))).asnumpy(), np.full(3, 2.0 + k))
    np.testing.assert_array_equal(kept[0].asnumpy(), np.full(3, 5.0))


def test_vmap_gives_each_example_its_own() -> None:
    np.testing.assert_array_equal(gc.vmap(moved)(Tensor(X)).asnumpy(), 4 * X)
    nested = gc.jit(gc.vmap(gc.vmap(moved)))
    np.testing.assert_array_equal(nested(Tensor(X)).asnumpy(), 4 * X)


def test_derivatives_do_not_pass_through_its_making() -> None:
    """A parameter is a leaf, whatever it was made of; what is assigned to it later is no leaf."""
    x = Tensor(X)
    for transform in (lambda f: f, gc.jit):
        made = transform(gc.grad(lambda x: (Parameter(x * 2) * x).sum()))
        np.testing.assert_array_equal(made(x).asnumpy(), 2 * X)
        np.testing.assert_array_equal(
            transform(gc.grad(lambda x: moved(x).sum()))(x).asnumpy(), np.full((2, 3), 2.0)
        )


def test_gradient_by_it() -> None:
    def f(x: Tensor) -> Tensor:
        p = Parameter(x * 2)
        return gc.grad(lambda x: (p * p * x).sum(), None, p)(x)

    for transform in (lambda f: f, gc.jit, gc.vmap):
        np.testing.assert_array_equal(transform(f)(Tensor(X)).asnumpy(), 4 * X * X)


def test_one_that_outlives_the_function_has_its_value() -> None:
    kept: list[Parameter] = []

    def f(x: Tensor) -> Tensor:
        kept.append(Parameter(x * 2))
        return x + 1

    gc.grad(lambda x: f(x).sum())(Tensor(X))
    np.testing.assert_array_equal(kept[-1].asnumpy(), 2 * X)
    compiled = gc.jit(f)
    with pytest.warns(RuntimeWarning, match="traced again at every call"):
        compiled(Tensor(X))
    compiled(Tensor(3 * X))
    np.testing.assert_array_equal(kept[-2].asnumpy(), 2 * X)
    np.testing.assert_array_equal(kept[-1].asnumpy(), 6 * X)


def test_returned_ones() -> None:
    def f(x: Tensor) -> tuple[Parameter, Tensor]:
        p = Parameter(x * 2)
        ops.assign(p, p + 1)
        return p, p * 2

    for transform in (gc.jit, gc.vmap):
        for k in (1, 2):
            p, y = transform(f)(Tensor(k * X))
            np.testing.assert_array_equal(p.asnumpy(), 2 * k * X + 1)
            np.testing.assert_array_equal(y.asnumpy(), 4 * k * X + 2)


def test_one_of_an_example_has_no_value_afterwards() -> None:
    kept: list[Parameter] = []

    def f(x: Tensor) -> Tensor:
        kept.append(Parameter(x * 2))
        return x + 1

    gc.vmap(f)(Tensor(X))
    for use in (
        lambda p: p.asnumpy(), lambda p: p + 1, lambda p: float(p[0]), lambda p: p.value(),
        lambda p: p._stored(), lambda p: p.sum().item(), np.asarray, ops.sin,
    ):  # fmt: skip
        with pytest.raises(ValueError, match="made inside a transform"):
            use(kept[0])
    with pytest.raises(ValueError, match="made inside a transform"):
        gc.jit(lambda x: x + kept[0])(Tensor(X))
    kept[0].set_data(Tensor(X[0]))
    np.testing.assert_array_equal(kept[0].asnumpy(), X[0])


def test_after_a_failure_it_has_no_value() -> None:
    kept: list[Parameter] = []

    def f(x: Tensor) -> Tensor:
        kept.append(Parameter(x * 2))
        raise KeyError("stop")

    with pytest.raises(KeyError):
        gc.jit(f)(Tensor(X))
    with pytest.raises(ValueError, match="made inside a transform"):
        kept[0].asnumpy()


def test_one_from_outside_is_still_refused() -> None:
    outside = Parameter(Tensor(X[0]))

    def f(x: Tensor) -> Tensor:
        ops.assign(outside, x)
        return x

    with pytest.raises(ValueError, match="assigned a value that differs"):
        gc.vmap(f)(Tensor(X))

    def made_before(x: Tensor) -> Tensor:
        p = Parameter(x[0] * 1)
        return gc.vmap(lambda row: ops.assign(p, row))(x)

    with pytest.raises(ValueError, match="assigned a value that differs"):
        gc.jit(made_before)(Tensor(X))

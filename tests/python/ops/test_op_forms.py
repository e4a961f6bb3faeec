"""Ops that are made of several others keep a form for arguments that come again: the third call with
such arguments enters no Python. Every call gives what the first one gave, and what NumPy gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, nn, ops
from gradcell.ops.one_plan import one_plan

X = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
I = np.random.default_rng(1).integers(-9, 9, (6, 8)).astype(np.int32)  # noqa: E741
V = X[0].copy()

#: Calls (of tensors X, I, V) and NumPy's.
CALLS: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "prod": (lambda x, i, v: ops.prod(x, 1), lambda: X.astype(np.float64).prod(1)),
    "prod, named": (
        lambda x, i, v: ops.prod(x, axis=0, keep_dims=True),
        lambda: X.astype(np.float64).prod(0, keepdims=True),
    ),
    "prod in float64": (
        lambda x, i, v: ops.prod(x, 1, dtype=gc.float64),
        lambda: X.astype(np.float64).prod(1),
    ),
    "amax": (lambda x, i, v: ops.amax(i, 1), lambda: I.max(1)),
    "amax over a tuple": (lambda x, i, v: ops.amax(i, (0, 1)), lambda: I.max()),
    "flip": (lambda x, i, v: ops.flip(x, (1,)), lambda: X[:, ::-1]),
    "flip by a list": (lambda x, i, v: ops.flip(x, [0, 1]), lambda: X[::-1, ::-1]),
    "roll": (lambda x, i, v: ops.roll(x, 3, 1), lambda: np.roll(X, 3, 1)),
    "rot90": (lambda x, i, v: ops.rot90(x, 1, (0, 1)), lambda: np.rot90(X)),
    "stack": (lambda x, i, v: ops.stack((v, v, v), 1), lambda: np.stack((V, V, V), 1)),
    "var_mean": (lambda x, i, v: ops.var_mean(x, 1, 0), lambda: (X.var(1), X.mean(1))),
    "aminmax": (lambda x, i, v: ops.aminmax(x, axis=0), lambda: (X.min(0), X.max(0))),
    "trapz": (lambda x, i, v: ops.trapz(x, dim=0), lambda: ((X[1:] + X[:-1]) / 2).sum(0)),
    "trace": (lambda x, i, v: ops.trace(x), lambda: np.trace(X)),
    "kron": (lambda x, i, v: ops.kron(x[:2].copy(), v), lambda: np.kron(X[:2], V)),
    "clamp": (lambda x, i, v: ops.clamp(x, -0.5, 0.25), lambda: X.clip(-0.5, 0.25)),
    "argmax": (lambda x, i, v: ops.argmax(x, 1), lambda: X.argmax(1)),
    "pad": (lambda x, i, v: ops.pad(x, (1, 2)), lambda: np.pad(X, ((0, 0), (1, 2)))),
}


def arrays(result: Any) -> list[np.ndarray]:
    if isinstance(result, tuple):
        return [t.asnumpy().copy() for t in result]
    return [result.asnumpy().copy()]


@pytest.mark.parametrize("name", CALLS)
def test_every_call_is_the_first(name: str) -> None:
    call, reference = CALLS[name]
    given = Tensor(X), Tensor(I), Tensor(V)
    first = call(*given)
    wanted = reference()
    for found, want in zip(
        arrays(first), wanted if isinstance(wanted, tuple) else (wanted,), strict=True
    ):
        np.testing.assert_allclose(found, want, rtol=2e-5, atol=1e-6)
    for _ in range(3):
        again = call(*given)
        assert type(again) is type(first)
        for a, b in zip(arrays(again), arrays(first), strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
    other = Tensor(X + 1), Tensor(I + 1), Tensor(V + 1)  # other elements, the same form
    for a, b in zip(arrays(call(*other)), arrays(call(*(t + 0 for t in other))), strict=True):
        assert np.array_equal(a, b)
        assert name == "argmax" or not np.array_equal(a, arrays(first)[0])


def test_the_third_call_enters_no_python() -> None:
    entries = []

    @one_plan
    def amax(*args: Any, **kwargs: Any) -> Tensor:
        entries.append(len(args))  # (not the arguments: they would live on)
        return ops.amax.__wrapped__(*args, **kwargs)  # type: ignore[attr-defined, no-any-return]

    def entered(call: Callable[[], Any]) -> bool:
        entries.clear()
        call()
        return bool(entries)

    x = Tensor(np.ones((3, 5, 7), np.float32))
    calls = [lambda: amax(x, (0, 2)), lambda: amax(x, axis=1, keepdims=True)]
    for call in calls:
        assert [entered(call) for _ in range(4)] == [True, True, False, False]
    assert entered(lambda: amax(x, 0))  # other arguments
    y = Tensor(np.ones((3, 5, 8), np.float32))
    assert entered(lambda: amax(y, (0, 2)))  # another shape
    assert not any(entered(call) for call in calls)


def three(call: Callable[[], Any]) -> list[Any]:
    return [call() for _ in range(4)]


def test_numbers_are_told_apart() -> None:
    x = Tensor(np.array([-1.0, 0.0, 2.0], np.float32))
    for low in (-0.5, 0.25, 1):
        for found in three(lambda low=low: ops.clamp(x, low, 1.5)):  # type: ignore[misc]
            assert np.array_equal(found.asnumpy(), np.clip([-1.0, 0.0, 2.0], low, 1.5))
    for found in three(lambda: ops.heaviside(x, Tensor(0.5))):
        assert found.asnumpy().tolist() == [0, 0.5, 1]
    dims = [0]
    y = Tensor(X)
    three(lambda: ops.flip(y, dims))
    dims[0] = 1  # a list is what it is at the call
    assert np.array_equal(ops.flip(y, dims).asnumpy(), X[:, ::-1])


def test_dtypes_are_told_apart() -> None:
    x = Tensor(np.full((2, 3), 100, np.int8))
    for found in three(lambda: ops.prod(x, 1)):
        assert found.dtype == gc.int64 and found.asnumpy().tolist() == [10**6] * 2
    for found in three(lambda: ops.prod(x, 1, dtype=gc.float32)):
        assert found.dtype == gc.float32


def test_random_numbers_are_new_each_time() -> None:
    x = Tensor(np.ones((64, 64), np.float32))
    for draw in (
        lambda: ops.standard_normal((8, 8)),
        lambda: ops.dropout(x, 0.5),
        lambda: ops.bernoulli(x * 0.5),
    ):
        drawn = {t.asnumpy().tobytes() for t in three(draw)}
        assert len(drawn) == 4


def test_results_are_their_own() -> None:
    for copies in (ops.flatten, lambda t: ops.roll(t, 0, 0), lambda t: ops.pad(t, (0, 0))):
        x = Tensor(X)
        for result in three(lambda copies=copies, x=x: copies(x)):  # type: ignore[misc]
            result[0] = 7.0
            assert np.array_equal(x.asnumpy(), X)
        kept = copies(x)
        x[0] = 9.0
        assert not (kept.asnumpy() == 9.0).any()


def test_views_stay_views() -> None:
    x = Tensor(X)
    for parts in three(lambda: ops.Split(1, 2)(x)):
        parts[0][0, 0] += 1.0
    assert x.asnumpy()[0, 0] == pytest.approx(X[0, 0] + 4)
    base = Tensor(X)
    turned = base.T
    three(lambda: ops.prod(turned, 0))
    base[0] = 1.0
    np.testing.assert_allclose(
        ops.prod(turned, 0).asnumpy(), base.asnumpy().astype(np.float64).prod(1), rtol=1e-6
    )


def test_parameters_are_read_at_each_call() -> None:
    p = Parameter(Tensor(X), name="p")
    for scale in (1.0, 2.0, 3.0, 4.0):
        p.set_data(Tensor(X * np.float32(scale)))
        np.testing.assert_allclose(
            ops.prod(p, 1).asnumpy(), (X * np.float32(scale)).astype(np.float64).prod(1), rtol=1e-5
        )


def test_parameters_are_written_at_each_call() -> None:
    p = Parameter(Tensor(np.zeros(3, np.float32)), name="p")
    one = Tensor(np.ones(3, np.float32))
    three(lambda: ops.assign_add(p, one))
    assert p.asnumpy().tolist() == [4, 4, 4]


def test_what_depends_on_elements() -> None:
    for k in range(4):
        mask = np.arange(8) < k
        assert ops.masked_select(Tensor(V), Tensor(mask)).shape == (k,)


def test_derivatives_and_traces_see_the_op() -> None:
    x = Tensor(X)
    three(lambda: ops.prod(x, 1))
    slope = gc.grad(lambda t: ops.prod(t, 1).sum())(x).asnumpy()
    np.testing.assert_allclose(slope, X.astype(np.float64).prod(1, keepdims=True) / X, rtol=1e-4)
    assert np.array_equal(gc.jit(lambda t: ops.prod(t, 1))(x).asnumpy(), ops.prod(x, 1).asnumpy())
    hooked = Tensor(X)
    seen: list[Any] = []
    hooked.register_hook(lambda g: seen.append(g))
    three(lambda: ops.prod(hooked, 1))
    gc.grad(lambda t: ops.prod(t, 1).sum())(hooked)
    assert len(seen) == 1


def test_errors_name_the_line_of_their_call() -> None:
    x = Tensor(X)
    three(lambda: ops.gather_nd(x, Tensor([[0], [5]])))
    with pytest.raises(IndexError, match=r"test_op_forms\.py:\d+"):
        ops.gather_nd(x, Tensor([[0], [6]]))
    three(lambda: ops.roll(x, 1, 1))
    with pytest.raises(ValueError, match=r"test_op_forms\.py:\d+"):
        ops.roll(x, (1, 2), 1)
    assert ops.roll(x, 1, 1).shape == (6, 8)


def test_a_cell_changes_nothing() -> None:
    net = nn.Dense(8, 4)
    x = Tensor(X)
    want = ops.softmax(x).asnumpy()
    for training in (True, False, True, False):
        net.set_train(training)
        for found in three(lambda: ops.softmax(x)):
            assert np.array_equal(found.asnumpy(), want)


def test_a_fault_in_making_a_form_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised, rather than turned into a slow path that nobody sees."""

    def broken(*args: Any) -> Any:
        raise RuntimeError("no form of it")

    @one_plan
    def double(x: Tensor) -> Tensor:
        return x * 2 + x

    x = Tensor(X)
    np.testing.assert_array_equal(double(x).asnumpy(), X * 3)
    monkeypatch.setattr("gradcell.ops.one_plan._with_form", broken)
    with pytest.raises(RuntimeError, match="no form of it"):
        double(x)

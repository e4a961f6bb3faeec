"""Ops that are made of several others keep a form for arguments that come again: the third call with
such arguments enters no Python. Every call gives what the first one gave, and what NumPy gives.
"""

from __future__ import annotations

import copy
import enum
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, nn, ops
from gradcell.ops.decorators import one_plan

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


class Whole(int):
    """A number with attributes, as primitives have for their defaults."""


class Word(str):
    __slots__ = ()


class Number(float):
    pass


class Choice(enum.Enum):
    A = 1
    B = 2


class Grade(enum.IntEnum):
    A = 1
    B = 2


class Flags(enum.Flag):
    A = 1
    B = 2


#: Values of which no two are the same argument; each is made anew for a call where it can be.
VALUES: list[Callable[[], Any]] = [
    *(lambda v=v: v for v in (None, True, False, Choice.A, Choice.B, Grade.A, Grade.B, Flags.A, Flags.B)),
    *(lambda v=v: v for v in (int, float, np.float32, np.int64, gc.float32, gc.float64)),
    *(lambda k=k, v=v: k(v) for k in (int, Whole, float, Number, complex) for v in (0, 1, 1000)),
    lambda: -0.0, lambda: Number(-0.0), lambda: float("nan"), lambda: complex(0.0, -0.0),
    lambda: complex(-0.0, 0.0),
    *(lambda k=k, v=v: k(v) for k in (np.int64, np.int32, np.float32, np.float64, np.bool_) for v in (0, 1)),
    *(lambda k=k: k(-0.0) for k in (np.float32, np.float64, np.complex64)),
    *(lambda k=k: k("nan") for k in (np.float32, np.float64)),
    *(lambda k=k, v=v: k("".join(v)) for k in (str, Word, np.str_) for v in ("mean", "sum", "mean\0")),
    *(lambda v=v: np.dtype(v) for v in ("float32", "float64", "int8", ">f4")),
    *(lambda k=k, v=v: k(v) for k in (tuple, list) for v in ([], [1], [1, 2], [1.0, 2])),
    lambda: (Whole(1), 2), lambda: [(1,), 2], lambda: [1, (2,)], lambda: slice(1), lambda: slice(0, 1),
    lambda: slice(1, None, 2),
    lambda: (slice(None), None, Ellipsis), lambda: (slice(None), Whole(1)),
]  # fmt: skip


def test_signatures_are_by_value() -> None:
    """Equal arguments that cannot change are one signature, whatever their type; no two others are."""
    entries = []

    @one_plan
    def with_one(x: Tensor, value: Any) -> Tensor:
        entries.append(1)
        return x * 2 + 1

    x = Tensor(V)
    for make in VALUES[:60]:  # (64 forms are kept)
        counts = []
        for _ in range(4):
            entries.clear()
            with_one(x, make())
            counts.append(len(entries))
        assert counts == [1, 1, 0, 0], (type(make()), make())
    for make in VALUES[60:]:
        entries.clear()
        for _ in range(4):
            with_one(x, make())
        assert len(entries) == 2, (type(make()), make())


def test_jit_tells_arguments_by_value_too() -> None:
    runs = []

    @gc.jit
    def f(x: Tensor, value: Any) -> Tensor:
        runs.append(1)
        return x * 2

    x = Tensor(V)
    for make in VALUES:
        runs.clear()
        for _ in range(3):
            f(x, make())
        assert len(runs) == 1, (type(make()), make())


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "L2Normalize"])
def test_the_defaults_of_primitives_are_arguments_as_others(name: str) -> None:
    op, x = getattr(ops, name)(), Tensor(X)
    three(lambda: op(x))
    assert frames_of(lambda: op(x)) <= 5


def frames_of(call: Callable[[], Any]) -> int:
    """Frames of Python that a call enters, without its own."""
    count = 0

    def seen(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count - 1


# Layers: cells whose calls only compute -----------------------------------------------------------------

IMAGE = np.random.default_rng(2).standard_normal((2, 4, 6, 6)).astype(np.float32)

LAYERS: dict[str, tuple[Callable[[], Any], np.ndarray]] = {
    **{
        name: (lambda name=name: getattr(nn, name)(), X)
        for name in (
            "ReLU ReLU6 Tanh Sigmoid SiLU Mish FastGelu LogSigmoid HSigmoid HSwish Softsign Tanhshrink SeLU "
            "GELU LeakyReLU ELU CELU Softplus Hardtanh HShrink SoftShrink PReLU Softmax Softmin LogSoftmax "
            "GLU"
        ).split()
    },
    "Threshold": (lambda: nn.Threshold(0.1, 2.0), X),
    "Softmax2d": (nn.Softmax2d, IMAGE),
    "Dense": (lambda: nn.Dense(8, 3), X),
    "Dense, activated": (lambda: nn.Dense(8, 3, activation="tanh"), X),
    "LayerNorm": (lambda: nn.LayerNorm((8,)), X),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), IMAGE),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(8), X),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), IMAGE),
    "Conv2d": (lambda: nn.Conv2d(4, 3, 3), IMAGE),
    "Conv2dTranspose": (lambda: nn.Conv2dTranspose(4, 3, 3), IMAGE),
    "MaxPool2d": (lambda: nn.MaxPool2d(2, 2), IMAGE),
    "AvgPool2d": (lambda: nn.AvgPool2d(2, 2), IMAGE),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d(3), IMAGE),
    "Pad": (lambda: nn.Pad(((1, 1), (0, 2))), X),
    "ReflectionPad2d": (lambda: nn.ReflectionPad2d(1), IMAGE),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), IMAGE),
    "SequentialCell": (
        lambda: nn.SequentialCell(nn.Dense(8, 5), nn.Tanh(), nn.SequentialCell(nn.Dense(5, 2))),
        X,
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_runs_from_its_form(name: str) -> None:
    """With what GRAPH_MODE gives, in at most two frames, and by its Parameters' present values."""
    make, numbers = LAYERS[name]
    layer, x = make(), Tensor(numbers)
    for training in (False, True, False):
        layer.set_train(training)
        before = [p.asnumpy().copy() for p in layer.get_parameters()]
        found = [r.asnumpy() for r in three(lambda: layer(x))]
        after = [p.asnumpy().copy() for p in layer.get_parameters()]
        assert frames_of(lambda: layer(x)) <= 2
        for p, value in zip(layer.get_parameters(), before, strict=True):
            p.set_data(Tensor(value))
        gc.set_context(mode=gc.GRAPH_MODE)
        try:
            for r in found:
                np.testing.assert_allclose(r, layer(x).asnumpy(), rtol=1e-6, atol=1e-6)
        finally:
            gc.set_context(mode=gc.PYNATIVE_MODE)
        for p, value in zip(layer.get_parameters(), after, strict=True):
            np.testing.assert_allclose(p.asnumpy(), value, rtol=1e-6, atol=1e-6)
    for p in layer.trainable_params():
        three(lambda: layer(x))
        was = layer(x).asnumpy()
        p.set_data(p + 1)
        changed = layer(x).asnumpy()
        np.testing.assert_allclose(changed, copy.deepcopy(layer)(x).asnumpy(), rtol=1e-6, atol=1e-6)
        assert "Norm" in name or not np.allclose(was, changed)
    for twin in (copy.deepcopy(layer), copy.copy(layer), pickle.loads(pickle.dumps(layer))):
        np.testing.assert_array_equal(twin(x).asnumpy(), layer(x).asnumpy())


def test_a_copy_of_a_layer_has_forms_of_its_own() -> None:
    layer, x = nn.Dense(8, 3), Tensor(X)
    three(lambda: layer(x))
    twin = copy.deepcopy(layer)
    twin.weight.set_data(layer.weight * 2)
    assert not np.allclose(twin(x).asnumpy(), layer(x).asnumpy())


def test_what_is_set_or_hooked_later_is_noticed() -> None:
    def fresh() -> Any:
        layer = nn.SequentialCell(nn.Dense(8, 3), nn.ReLU())
        three(lambda: layer(x))
        return layer

    x, seen = Tensor(X), []
    layer = fresh()
    handle = layer[1].register_forward_hook(lambda cell, args, out: seen.append(1))
    three(lambda: layer(x))
    assert len(seen) == 4
    handle.remove()
    three(lambda: layer(x))
    assert len(seen) == 4

    layer = fresh()
    layer.to_float(gc.float16)
    assert layer(x).dtype == gc.float16

    layer = fresh()
    layer.append(nn.Softmax())
    np.testing.assert_allclose(layer(x).asnumpy().sum(1), 1, rtol=1e-6)

    layer = fresh()
    layer[1].construct = lambda x: seen.append(2) or x  # type: ignore[func-returns-value]
    seen.clear()
    three(lambda: layer(x))
    assert seen == [2] * 4

    layer = fresh()
    layer.set_inputs(Tensor(shape=[None, 9], dtype=gc.float32))
    with pytest.raises(ValueError, match="declared by set_inputs"):
        layer(x)

    softmax = nn.Softmax()
    three(lambda: softmax(x))
    softmax.axis = 0
    np.testing.assert_allclose(softmax(x).asnumpy().sum(0), 1, rtol=1e-6)


def test_the_users_own_code_runs_at_each_call() -> None:
    seen: list[int] = []

    class Shown(nn.ReLU):
        def construct(self, x: Any) -> Any:
            seen.append(1)
            return super().construct(x)

    class Mine(nn.Cell):
        def construct(self, x: Any) -> Any:
            seen.append(1)
            return x + 1

    x = Tensor(X)
    for cell in (
        Shown(),
        Mine(),
        nn.SequentialCell(nn.Dense(8, 8), Mine()),
        nn.SequentialCell(Shown()),
    ):
        seen.clear()
        three(lambda cell=cell: cell(x))  # type: ignore[misc]
        assert len(seen) == 4


def test_a_layer_in_a_transform_or_with_other_arguments() -> None:
    layer, x = nn.Dense(8, 3), Tensor(X)
    three(lambda: layer(x))
    slope = gc.grad(lambda x: layer(x).sum())(x).asnumpy()
    np.testing.assert_allclose(slope, np.tile(layer.weight.asnumpy().sum(0), (6, 1)), rtol=1e-5)
    for k in range(4):
        rows = Tensor(X[: k + 1])
        assert layer(rows).shape == (k + 1, 3)
    with pytest.raises(ValueError, match=r"in_channels 8.*test_op_forms\.py:\d+"):
        layer(Tensor(X[:, :5]))
    view = Tensor(X).T.T
    three(lambda: layer(view))
    view[0] = 1.0
    np.testing.assert_allclose(
        layer(view).asnumpy(), layer(Tensor(view.asnumpy())).asnumpy(), rtol=1e-6
    )
    np.testing.assert_array_equal(layer(x=x).asnumpy(), layer(x).asnumpy())


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
    monkeypatch.setattr("gradcell.ops.decorators.keep_form", broken)
    with pytest.raises(RuntimeError, match="no form of it"):
        double(x)

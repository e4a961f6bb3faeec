"""Python's if and while on tensors under jit: each way is compiled once, whatever it does, and gives what the
function gives without jit."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, nn, ops, vmap
from gradcell.compilation.compiled import MOST_BRANCHES

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def counted(function: Callable[..., Any]) -> tuple[Any, list[int]]:
    """jit of the function, and a list with as many items as it has been traced."""
    traces: list[int] = []

    def call(*args: Any) -> Any:
        traces.append(1)
        return function(*args)

    return gc.jit(call), traces


def test_each_way_is_traced_once():
    def f(x):
        y = ops.exp(x)
        if y.sum() > 10:
            return y * 2, x
        if y.sum() > 5:
            return y - 1
        return {"a": -y}

    jitted, traces = counted(f)
    for v in (0.0, 1.0, 3.0, 0.1, 1.1, 2.9, 0.2, 1.2):
        x = Tensor(np.array([v, v]))
        found, e = jitted(x), np.exp([v, v])
        if e.sum() > 10:
            np.testing.assert_allclose(found[0].asnumpy(), e * 2, rtol=1e-14)
            assert (found[1].asnumpy() == v).all()
        elif e.sum() > 5:
            np.testing.assert_allclose(found.asnumpy(), e - 1, rtol=1e-14)
        else:
            np.testing.assert_allclose(found["a"].asnumpy(), -e, rtol=1e-14)
    assert len(traces) == 3


def test_loops_of_different_lengths():
    def halved(x):
        steps = 0
        while x.max() > 1:
            x, steps = x * 0.5, steps + 1
        return x, steps

    jitted, traces = counted(halved)
    for v in (1.0, 4.0, 2.0, 8.0, 4.0, 100.0, 3.0):
        x, steps = jitted(Tensor([v, 0.5]))
        assert steps == max(0, int(np.ceil(np.log2(v)))) and float(x[0]) == v / 2**steps
    assert len(traces) == 5


@pytest.mark.parametrize("value", [2, -3, 0.5, float("nan"), 1 + 2j, True])
@pytest.mark.parametrize("as_parameter", [False, True])
def test_what_is_asked_may_have_any_dtype(value, as_parameter):
    p = Parameter(Tensor(value))
    jitted, traces = counted(lambda x: 1 if (p if as_parameter else x) else 2)
    for now in (value, 0, value, 0):
        t = ops.cast(Tensor(now), p.dtype)
        p.set_data(t)
        assert jitted(t) == (1 if now else 2)
    assert len(traces) == 2


def test_a_training_step_that_looks_at_its_gradients():
    """The usual way to write mixed precision: nothing is written where something overflows."""
    p = Parameter(Tensor([1.0, 2.0]))
    optimizer = nn.SGD([p], learning_rate=0.5)
    gradients = gc.value_and_grad(lambda x: (p * x).square().sum(), None, [p])

    def step(x):
        loss, found = gradients(x)
        if gc.amp.all_finite(found):
            optimizer(found)
        return loss

    jitted, traces = counted(step)
    w = np.array([1.0, 2.0], np.float32)
    for v in ([1.0, 0.5], [np.inf, 1.0], [0.5, 0.5], [np.nan, 0.0], [0.1, 0.2]):
        x = np.array(v, np.float32)
        jitted(Tensor(x))
        if np.isfinite(v).all():
            w = w - 0.5 * 2 * w * x * x
        np.testing.assert_allclose(p.asnumpy(), w, rtol=1e-6)
    assert len(traces) == 2


def test_what_was_computed_for_the_answer_is_not_computed_again():
    """The factorisation before the decision is an input of what comes behind it."""

    def f(x):
        inverse = ops.inverse(x)
        return inverse @ x if inverse.max() > 0 else inverse

    x = Tensor(np.eye(3, dtype=np.float32) * 2)
    report = gc.profiler.profile(gc.jit(f), x, repeat=3)
    runs = [
        plan["runs"]
        for plan in report.plans
        for step in plan["steps"]
        if any(op["name"] == "LUInverse" for op in step["ops"])
    ]
    assert runs == [3]


def test_derivatives_inside_and_outside():
    def f(x):
        return ops.sin(x) * x if x > 1 else x**3

    def want(v, order):
        if order == 0:
            return np.sin(v) * v if v > 1 else v**3
        if order == 1:
            return np.cos(v) * v + np.sin(v) if v > 1 else 3 * v**2
        return 2 * np.cos(v) - np.sin(v) * v if v > 1 else 6 * v

    one = Tensor(np.float64(1.0))
    kinds = [
        (gc.jit(f), 0),
        (gc.jit(gc.grad(f)), 1),
        (gc.grad(gc.jit(f)), 1),
        (gc.jit(gc.grad(gc.grad(f))), 2),
        (gc.jit(lambda x: gc.jvp(f, x, one)[1]), 1),
        (gc.jit(lambda x: gc.jvp(gc.grad(f), x, one)[1]), 2),
        (gc.jit(lambda x: gc.ops.derivative(f, x, 2)[1]), 2),
    ]
    for transformed, order in kinds:
        for v in (0.5, 2.0, 0.25, 3.0):
            found = float(transformed(Tensor(np.float64(v))))
            assert found == pytest.approx(want(v, order), rel=1e-13)


def test_prints_and_errors_of_each_way():
    def f(x):
        if x > 2:
            raise ValueError("too large")
        if x > 1:
            print("between", x * 2)
        else:
            print("below")
        return x

    jitted, traces = counted(f)
    for v, text in ((0.5, "below"), (1.5, "between 3.0"), (0.5, "below"), (1.25, "between 2.5")):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            assert float(jitted(Tensor(v))) == v
        assert shown.getvalue().strip() == text
    assert len(traces) == 2
    for _ in range(2):
        with pytest.raises(ValueError, match="too large"):
            jitted(Tensor(3.0))
    assert float(jitted(Tensor(0.25))) == 0.25 and len(traces) == 4


def test_a_way_that_asks_for_a_number_is_traced_again_and_the_others_are_not():
    jitted, traces = counted(lambda x: x * float(x) if x > 1 else x + 1)
    assert float(jitted(Tensor(0.5))) == 1.5
    with pytest.warns(RuntimeWarning, match="asked for a tensor's value"):
        assert float(jitted(Tensor(2.0))) == 4.0
    for v, want in ((3.0, 9.0), (0.25, 1.25), (4.0, 16.0), (0.75, 1.75)):
        assert float(jitted(Tensor(v))) == want
    assert len(traces) == 4


def test_too_many_ways():
    def f(x):
        bits = [bool(x[i] > 0) for i in range(8)]
        return sum(b << i for i, b in enumerate(bits)) + x.sum() * 0

    jitted, traces = counted(f)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in [*range(256), *range(256)]:
            x = Tensor([1.0 if n >> i & 1 else -1.0 for i in range(8)])
            assert float(jitted(x)) == n
    assert [str(w.message).count(f"more than {MOST_BRANCHES} ways") for w in seen] == [1]
    assert len(traces) == 512  # all are traced from then on


def test_a_function_that_asks_something_else_each_time():
    thresholds = iter(range(100))

    def f(x):
        return x if x > next(thresholds) + 0.5 else -x

    jitted = gc.jit(f)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = [float(jitted(Tensor(v))) for v in (2.0, 0.5, 1.0, 9.0)]
    # The first threshold was 0.5, and for the second call 1.5 is one that was not asked before.
    assert found == [2.0, -0.5, -1.0, 9.0]
    assert any("did not ask before" in str(w.message) for w in seen)


def test_where_there_is_no_one_answer():
    with pytest.raises(ValueError, match="differs from example to example"):
        gc.jit(vmap(lambda x: x if x > 0 else -x))(Tensor([1.0, -1.0]))


def test_in_cells_and_in_graph_mode():
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = Parameter(Tensor(2.0))
            self.calls: list[int] = []

        def construct(self, x: Tensor) -> Tensor:
            self.calls.append(1)
            return x * self.w if x > self.w else x + self.w

    net = Net()
    gc.set_context(mode=gc.GRAPH_MODE)
    try:
        for v in (1.0, 3.0, 1.5, 4.0):
            assert float(net(Tensor(v))) == (v * 2 if v > 2 else v + 2)
            assert float(gc.grad(net)(Tensor(v))) == (2 if v > 2 else 1)
        assert len(net.calls) == 4
        net.w.set_data(Tensor(3.5))
        assert float(net(Tensor(3.0))) == 6.5 and float(net(Tensor(4.0))) == 14
        assert len(net.calls) == 4
    finally:
        gc.set_context(mode=gc.PYNATIVE_MODE)


class _Program:
    """A random function of x and of two Parameters, with decisions, loops, writes and derivatives."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, x: Tensor, p: Parameter, q: Parameter) -> Any:
        rng = np.random.default_rng(self.seed)
        values: list[Any] = [x, p * 1.0, q + x]
        for _ in range(int(rng.integers(3, 9))):
            a, b = (values[int(rng.integers(len(values)))] for _ in range(2))
            kind, bound = int(rng.integers(8)), float(rng.normal())
            if kind == 0:
                values.append(ops.sin(a) * b)
            elif kind == 1 and a.sum() > bound:
                values.append(a - b)
            elif kind == 2 and bool(b.max() > bound) != bool(a.min() > bound):
                p.set_data(ops.tanh(a) + p * 0.5)
            elif kind == 3:
                values.append(
                    gc.grad(lambda t, b=b, c=bound: (t * b).sum() if t.sum() > c else t.sum())(a)
                )
            elif kind == 4:
                c = a * 1.0
                c[0] = bound
                values.append(c if c.mean() > 0 else b)
            elif kind == 5:
                while a.max() > 1 + abs(bound):
                    a = a * 0.5
                values.append(a)
            elif kind == 6 and ops.cast(a.sum(), gc.int32):
                q.set_data(q * 0.9 + b * 0.1)
            else:
                values.append(ops.tanh(a @ b) + b)
        return values[-1], {"all": [v for v in values[3:] if v.sum() > 0]}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    program = _Program(seed)
    rng = np.random.default_rng(1000 + seed)
    start = rng.normal(size=(2, 4))
    held = [[Parameter(Tensor(s), name="pq"[i]) for i, s in enumerate(start)] for _ in range(2)]
    jitted = gc.jit(program)
    for _ in range(12):
        x = rng.normal(size=4) * rng.choice([0.3, 1.0, 3.0])
        found, want = jitted(Tensor(x), *held[0]), program(Tensor(x), *held[1])
        assert len(found[1]["all"]) == len(want[1]["all"])
        pairs = [
            (found[0], want[0]),
            *zip(found[1]["all"], want[1]["all"], strict=True),
            *zip(*held, strict=True),
        ]
        for a, b in pairs:
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-9, atol=1e-12)

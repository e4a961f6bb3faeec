"""Which calls of a compiled function run a form that is there, how many forms are kept, and what a
new one costs."""

from __future__ import annotations

import copy
import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, nn, ops
from gradcell.compilation.compiled import MOST_FORMS


class Net(nn.Cell):
    """2 x in training, 3 x in evaluation; below, a cell with a factor of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.traced = 0
        self.inner = Scale(5.0)

    def construct(self, x: Any) -> Any:
        object.__setattr__(self, "traced", self.traced + 1)
        return self.inner(x * (2.0 if self.training else 3.0))


class Scale(nn.Cell):
    def __init__(self, factor: Any) -> None:
        super().__init__()
        self.factor = factor

    def construct(self, x: Any) -> Any:
        return x * self.factor


@pytest.fixture
def graph_mode() -> Any:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


ONE = Tensor(np.ones(3, np.float32))


def first(x: Any) -> float:
    return float(x.asnumpy()[0])


@pytest.mark.parametrize("make", [ms.jit, lambda net: net], ids=["jit", "cell"])
def test_training_and_evaluation_stay_compiled(
    make: Callable[[Any], Any], graph_mode: None
) -> None:
    net = Net()
    run = make(net)
    for _ in range(10):
        for training, expected in ((True, 10), (False, 15)):
            net.set_train(training)
            assert first(run(ONE)) == expected
    assert net.traced == 2


def test_attributes_that_return() -> None:
    net = Net()
    run = ms.jit(net)
    for _ in range(5):
        for factor in (1.0, 1, True, -0.0, 0.0, "not a number", None):
            net.inner.factor = factor
            if isinstance(factor, (str, type(None))):
                with pytest.raises(TypeError):
                    run(ONE)
                continue
            got = run(ONE).asnumpy()[0]
            assert got == 3 * factor and np.signbit(got) == np.signbit(factor)
    assert net.traced == 5 + 2 * 5  # five that are compiled; what fails is tried at each call


def test_states_of_cells_are_not_confused() -> None:
    a, b = Scale(1.0), Scale(2.0)
    both = ms.jit(lambda x: a(x) - 10 * b(x))
    rng = np.random.default_rng(0)
    both(ONE)
    for _ in range(50):
        (a if rng.random() < 0.5 else b).factor = float(rng.integers(3))
        assert first(both(ONE)) == a.factor - 10 * b.factor


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_has_a_state_of_its_own(duplicate: Callable[[Any], Any]) -> None:
    a = Scale(1.0)
    a(ONE)
    b = duplicate(a)
    both = ms.jit(lambda x: a(x) - 10 * b(x))
    a.factor = 2.0
    assert first(both(ONE)) == 2 - 10
    a.factor, b.factor = 1.0, 2.0
    assert first(both(ONE)) == 1 - 20


def test_freezing_stays_compiled() -> None:
    net = nn.Dense(2, 1)
    traced = []

    def loss(x: Any) -> Any:
        traced.append(1)
        return net(x).sum()

    step = ms.jit(ops.GradOperation(get_by_list=True)(loss))
    net.bias.requires_grad = False
    x = Tensor(np.ones((3, 2), np.float32))
    for _ in range(5):
        for needed in (True, False):
            net.weight.requires_grad = needed
            assert len(step(x)) == needed
    assert len(traced) == 2


def test_a_function_that_changes_what_it_depends_on() -> None:
    net = Net()

    @ms.jit
    def f(x: Any) -> Any:
        y = net(x)
        net.set_train()
        return y

    assert first(f(ONE)) == 15
    assert first(f(ONE)) == 10
    net.set_train(False)
    assert first(f(ONE)) == 15


def many_floats(n: int) -> tuple[Any, list[float]]:
    f = ms.jit(lambda x, s: x * s)
    times = []
    for i in range(n):
        s = 1 + i / n
        start = time.perf_counter()
        y = f(ONE, s)
        times.append(time.perf_counter() - start)
        if i % 1000 == 0:
            assert first(y) == np.float32(s)
    return f, times


def test_many_numbers_are_bounded() -> None:
    f, times = many_floats(5000)
    assert f._count() == MOST_FORMS and not f.cache.entries
    early, late = np.median(times[200:700]), np.median(times[-500:])
    assert late < 3 * early


def test_many_shapes_are_bounded() -> None:
    f = ms.jit(lambda x: (x * 2).sum())
    for n in range(1, MOST_FORMS + 50):
        assert float(f(Tensor(np.ones(n, np.float32))).asnumpy()) == 2 * n
    assert f._count() == MOST_FORMS and not f.cache.entries
    for n in range(1, MOST_FORMS + 50):
        assert float(f(x=Tensor(np.ones(n, np.float32))).asnumpy()) == 2 * n
    assert f._count() == MOST_FORMS == len(f.cache.entries)


def test_the_least_recent_form_is_forgotten() -> None:
    traced = []

    @ms.jit
    def f(x: Any, s: float) -> Any:
        traced.append(s)
        return x * s

    for i in range(MOST_FORMS + 20):
        f(ONE, float(i))
        assert first(f(ONE, 0.0)) == 0
    assert traced.count(0.0) == 1
    f(ONE, 1.0)
    assert traced.count(1.0) == 2


def test_a_form_keeps_no_arguments_alive() -> None:
    @ms.jit
    def f(x: Any, other: Any) -> Any:
        return x + 1

    x, before = None, ms._core.memory_info()["in_use"]
    for n in range(20):
        x = Tensor(np.ones(100000 + n, np.float32))
        f(x, nn)
    del x
    gc.collect()
    assert ms._core.memory_info()["in_use"] - before < 1e6


@pytest.mark.parametrize("one,other", [(0.0, -0.0), (1, 1.0), (1, True), (2.0, np.float32(2))])
def test_numbers_that_are_equal_but_not_the_same(one: Any, other: Any) -> None:
    seen = []

    @ms.jit
    def f(x: Any, s: Any) -> Any:
        seen.append(s)
        return x / (x * s) if isinstance(s, float) and s == 0 else x * s

    for s in (one, other) * 3:
        expected = np.copysign(np.inf, s) if s == 0 else float(s)
        assert first(f(ONE, s)) == expected
    assert [(type(s), str(s)) for s in seen] == [(type(s), str(s)) for s in (one, other)]


def test_nan_is_one_number() -> None:
    traced = []

    @ms.jit
    def f(x: Any, s: float) -> Any:
        traced.append(s)
        return x * s

    for _ in range(5):
        assert np.isnan(first(f(ONE, float("nan"))))
    assert len(traced) == 1


def test_forms_come_and_go_while_others_run() -> None:
    """A form that is forgotten while a thread runs it stays until it has."""
    x = Tensor(np.ones((300, 300), np.float32))

    @ms.jit
    def f(x: Any, s: float) -> Any:
        return (ops.sin(x * s), {"s": ops.cos(x * s)})

    wrong = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(150):
            s = float(rng.integers(2 * MOST_FORMS))
            got = f(x, s)
            if abs(first(got[1]["s"][0]) - np.cos(np.float32(s))) > 1e-5:
                wrong.append(s)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


class Keeper(nn.Cell):
    """Keeps compiled functions and derivatives of its own method."""

    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(Tensor(np.float32(2)), name="w")
        self.compiled = ms.jit(self.construct)
        self.double = ms.jit(twice)
        self.slope = ms.grad(self.construct)
        self.both = ms.value_and_grad(self.construct, None, [self.w])

    def construct(self, x: Any) -> Any:
        return self.w * self.w * x


def twice(x: Any) -> Any:
    return x * 2


@pytest.mark.parametrize("called", [False, True])
def test_a_copied_cell_has_functions_of_its_own(called: bool) -> None:
    net, x = Keeper(), Tensor(np.float32(3))
    if called:
        net.compiled(x), net.slope(x), net.both(x), net.double(x)
    twin = copy.deepcopy(net)
    twin.w.set_data(Tensor(np.float32(5)))
    assert twin.double is net.double
    for cell, w in ((twin, 5.0), (net, 2.0), (twin, 5.0)):
        assert float(cell.compiled(x)) == 3 * w * w
        assert float(cell.slope(x)) == w * w
        value, (slope,) = cell.both(x)
        assert (float(value), float(slope)) == (3 * w * w, 6 * w)


def test_a_derivative_called_again_is_not_traced_again() -> None:
    """In GRAPH_MODE, whatever is called in between: other shapes, numbers, no_grad."""
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        calls_of_a_derivative()
    finally:
        ms.set_context(mode=before)


def calls_of_a_derivative() -> None:
    traced = []

    def f(x: Any, factor: float) -> Any:
        traced.append(x.shape)
        return (x * x * factor).sum()

    df, x, y = ms.grad(f), Tensor([1.0, 2.0]), Tensor([1.0, 2.0, 3.0])
    for _ in range(3):
        np.testing.assert_array_equal(df(x, 2.0).asnumpy(), [4, 8])
        np.testing.assert_array_equal(df(y, 0.5).asnumpy(), [1, 2, 3])
        np.testing.assert_array_equal(df(x, factor=0.5).asnumpy(), [1, 2])
    assert traced == [(2,), (3,), (2,)]
    with ms.no_grad(), pytest.raises(RuntimeError, match="no_grad"):
        df(x, 2.0)
    with pytest.raises(IndexError, match="grad_position 0 is out of range"):
        df()
    with pytest.raises(TypeError, match="not a Tensor but str"):
        df("1.0", 2.0)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    np.testing.assert_array_equal(df(x, 2.0).asnumpy(), [4, 8])
    assert len(traced) == 4


def test_a_key_tells_forms_apart_by_what_the_function_reads():
    settings: dict[str, Any] = {"factor": 2.0, "points": np.arange(3.0)}
    traced = []

    @ms.jit(key=lambda: (settings["factor"], id(settings["points"])))
    def f(x: Tensor) -> Tensor:
        """Reads settings."""
        traced.append(settings["factor"])
        return x * settings["factor"] + Tensor(settings["points"])

    x = Tensor(np.ones(3))
    for factor in (2.0, 3.0, 2.0, 3.0):
        settings["factor"] = factor
        np.testing.assert_array_equal(f(x).asnumpy(), factor + np.arange(3.0))
    assert traced == [2.0, 3.0] and f.__doc__ == "Reads settings."
    settings["points"] = np.full(3, 7.0)
    np.testing.assert_array_equal(f(x).asnumpy(), 10)
    gradient = ms.grad(lambda x: f(x).sum())(x)
    np.testing.assert_array_equal(gradient.asnumpy(), 3)


def test_without_a_key_what_is_read_stays():
    settings = {"factor": 2.0}
    f = ms.jit(lambda x: x * settings["factor"])
    assert float(f(Tensor(1.0))) == 2
    settings["factor"] = 3.0
    assert float(f(Tensor(1.0))) == 2


def test_many_keys_are_forgotten_one_by_one():
    state = {"key": 0}
    traced = []
    f = ms.jit(lambda x: (traced.append(state["key"]), x + state["key"])[1], lambda: state["key"])
    for key in (*range(MOST_FORMS + 1), MOST_FORMS, 0):
        state["key"] = key
        assert int(f(Tensor(1))) == 1 + key
    assert traced == [*range(MOST_FORMS + 1), 0]


def test_what_a_key_must_be():
    with pytest.raises(TypeError, match="jit: key must be a function, got int"):
        ms.jit(lambda x: x, key=3)
    with pytest.raises(TypeError, match="unhashable"):
        ms.jit(lambda x: x, key=lambda: [])(Tensor(1.0))


def generated(x: Any) -> Any:
    yield x


class Endless:
    """An iterator of a program's own."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.x


@pytest.mark.parametrize(
    "iterator",
    [
        lambda x: (x + 1 for _ in range(2)),
        generated,
        lambda x: iter([x]),
        lambda x: iter(x),
        lambda x: reversed([x]),
        lambda x: enumerate([x]),
        lambda x: filter(callable, [x, abs]),
        lambda x: {"a": x}.items(),
        lambda x: {"a": x}.values(),
    ],
)
def test_iterators_are_read_while_they_are_recorded(iterator: Any, graph_mode: Any) -> None:
    """As lists or tuples, which later calls compute again."""

    def and_sum(x: Any) -> Any:
        return x.sum(), {"a": [x, iterator(x)]}

    both = ms.value_and_grad(and_sum, has_aux=True)
    for function in (ms.jit(and_sum), lambda x: both(x)[0]):
        for x in (ONE, ONE * 3):
            found, want = function(x)[1]["a"][1], list(iterator(x))
            assert type(found) in (list, tuple) and len(found) == len(want)
            assert str(list(found)) == str(want)


def test_iterators_of_a_programs_own_are_no_results(graph_mode: Any) -> None:
    """They could be read once, and would be computed when nothing is recorded any more."""

    def and_sum(x: Any) -> Any:
        return x.sum(), Endless(x)

    for function in (ms.jit(Endless), ms.jit(and_sum), ms.value_and_grad(and_sum, has_aux=True)):
        for _ in range(2):
            with pytest.raises(TypeError, match=r"returns a .*, which can be read only once.*list"):
                function(ONE)


def test_a_zip_is_a_tuple_and_a_map_a_list(graph_mode: Any) -> None:
    """As MindSpore 2.10 gives them."""

    def f(x: Any) -> Any:
        return {"zip": zip([x, x], [x + 1, x], strict=True), "map": map(ops.square, [x + 1])}

    both = ms.value_and_grad(lambda v: (v.sum(), f(v)), has_aux=True)
    for function in (ms.jit(f), lambda x: both(x)[0][1]):
        for _ in range(2):
            out = function(ONE)
            assert type(out["zip"]) is tuple and [type(p) for p in out["zip"]] == [tuple, tuple]
            assert type(out["map"]) is list
            np.testing.assert_array_equal(out["zip"][0][1].asnumpy(), [2, 2, 2])
            np.testing.assert_array_equal(out["map"][0].asnumpy(), [4, 4, 4])

"""What a new user runs into: each is an error or a warning that says what to do, or works."""

from __future__ import annotations

import array
import collections
import dataclasses
import functools
import random
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, nn, ops


@contextmanager
def silence() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("container", [list, tuple, lambda c: dict(enumerate(c))])
def test_cells_in_a_plain_container(container: Any) -> None:
    class Net(nn.Cell):
        def __init__(self, kept: bool) -> None:
            super().__init__()
            cells = [nn.Dense(2, 2), nn.Dense(2, 2)]
            if kept:
                self.cells_in_order = nn.CellList(cells)
            self.layers = container(cells)

    with pytest.warns(
        RuntimeWarning, match=r"Net.layers is a \w+ of cells.*nn.Cell(List|Dict).*py:"
    ):
        assert Net(False).trainable_params() == []
    with silence():
        assert len(Net(True).trainable_params()) == 4  # known by another name
        nn.SequentialCell(nn.Tanh()).activations = container([nn.Tanh()])  # nothing to train


@pytest.mark.parametrize(
    "loss", [nn.MSELoss(), nn.L1Loss(), nn.HuberLoss(), ops.mse_loss, nn.RMSELoss()]
)
def test_losses_that_broadcast(loss: Any) -> None:
    column, line = Tensor(np.ones((4, 1), "f")), Tensor(np.ones(4, "f"))
    with pytest.warns(
        RuntimeWarning, match=r"\[4, 1\] and a target of shape \[4\] broadcast to \[4, 4\]"
    ):
        loss(column, line)
    with silence():
        loss(column, Tensor(np.ones((4, 1), "f")))
        loss(column, Tensor(np.ones((1, 1), "f")))


def test_requires_grad_of_a_tensor() -> None:
    x = Tensor([1.0])
    with pytest.warns(RuntimeWarning, match="gradcell.grad"):
        x.requires_grad = True
    with silence():
        x.requires_grad = False
        gc.Parameter(x, "p").requires_grad = True


def test_unknown_options_of_jit() -> None:
    with pytest.raises(TypeError, match="no option 'static_argnums'"):
        gc.jit(lambda x: x, static_argnums=0)
    with silence():
        assert float(gc.jit(lambda x: x, jit_level="O0", fullgraph=True)(Tensor(2.0))) == 2.0


def test_set_data_of_more_digits() -> None:
    p = gc.Parameter(Tensor(np.ones(2, "f")), "scale")
    with pytest.warns(RuntimeWarning, match="rounded to scale's float32"):
        p.set_data(Tensor(np.ones(2) * 0.1))
    with silence():
        p.set_data(Tensor(np.ones(2, "f")))
        gc.Parameter(Tensor(np.ones(2)), "wide").set_data(Tensor(np.ones(2)))


def test_the_first_error_of_all() -> None:
    net = nn.SequentialCell(nn.Dense(2, 3), nn.Tanh(), nn.Dense(3, 1))
    x = Tensor(np.ones((4, 2)))
    with pytest.raises(
        TypeError, match=r"0.weight.*x.astype\(gradcell.float32\).*to_float\(gradcell.float64\)"
    ):
        net(x)
    assert net(x.astype(gc.float32)).dtype == gc.float32
    assert net.to_float(gc.float64)(x).dtype == gc.float64


def test_known_numbers_made_inside() -> None:
    with silence():
        compiled = gc.jit(lambda x: ops.one_hot(x, 3, Tensor(1.0), Tensor(0.0)))
        for _ in range(3):
            np.testing.assert_array_equal(compiled(Tensor([0, 2])).asnumpy(), np.eye(3)[[0, 2]])


@dataclasses.dataclass
class Options:
    scale: float
    more: list[float] = dataclasses.field(default_factory=list)


class Plain:
    def __init__(self, scale: float) -> None:
        self.scale, self.table, self.more = scale, {"a": [1.0]}, [scale]
        self.array = np.zeros(3)

    def get(self) -> float:
        return self.scale


class Slotted:
    __slots__ = ("more", "scale")

    def __init__(self, scale: float) -> None:
        self.scale, self.more = scale, [scale]


@pytest.mark.parametrize("mode", [gc.PYNATIVE_MODE, gc.GRAPH_MODE])
@pytest.mark.parametrize("made", [Options, Plain, Slotted])
def test_objects_count_by_value(made: Any, mode: int) -> None:
    def f(x: Tensor, o: Any) -> Tensor:
        return x * o.scale + sum(o.more)

    before = gc.get_context("mode")
    gc.set_context(mode=mode)
    try:
        for g in (
            gc.jit(f),
            gc.jit(lambda x, o: f(x, o["inside"])),
            gc.grad(f),
            gc.value_and_grad(f),
        ):
            if g.__name__ == "<lambda>":
                continue
            o = made(2.0)
            first = g(Tensor(3.0), o)
            o.scale = 5.0
            o.more.append(7.0)
            now, wanted = g(Tensor(3.0), o), g(Tensor(3.0), o)
            exact = f(Tensor(3.0), o)
            now, wanted, first = (v[0] if isinstance(v, tuple) else v for v in (now, wanted, first))
            assert float(now) == float(wanted) != float(first)
            assert float(now) in (float(exact), 5.0)
    finally:
        gc.set_context(mode=before)


def test_containers_and_arrays_of_objects_count_by_value() -> None:
    o, calls = Plain(1.0), []

    def f(x: Tensor, o: Any, names: set[str]) -> Tensor:
        calls.append(1)
        return x + sum(o.table["a"]) + float(o.array.sum()) + len(names)

    compiled, names = gc.jit(f), {"a"}
    assert float(compiled(Tensor(0.0), o, names)) == 2.0
    assert float(compiled(Tensor(0.0), o, names)) == 2.0
    assert len(calls) == 1
    o.table["a"].append(4.0)
    assert float(compiled(Tensor(0.0), o, names)) == 6.0
    o.array[1] = 2.0
    assert float(compiled(Tensor(0.0), o, names)) == 8.0
    names.add("b")
    assert float(compiled(Tensor(0.0), o, names)) == 9.0
    o.itself = o  # round in a circle
    assert float(compiled(Tensor(0.0), o, names)) == 9.0
    assert len(calls) == 5


class Settings:
    scale = 1.0


def reader() -> Any:
    """A function that says what it closes over, or puts there."""
    held = [1.0]

    def read(value: float | None = None) -> float:
        if value is not None:
            held[0] = value
        return held[0]

    return read


def marked() -> Any:
    def read() -> float:
        return float(read.scale)

    read.scale = 1.0  # type: ignore[attr-defined]
    return read


#: What is made, changed from 1 to 5, and read.
CHANGED: dict[str, tuple[Any, Any, Any]] = {
    "bytearray": (
        lambda: bytearray(b"\1"),
        lambda o: o.__setitem__(0, 5),
        lambda o: o[0],
    ),
    "array": (
        lambda: array.array("d", [1.0]),
        lambda o: o.__setitem__(0, 5.0),
        lambda o: o[0],
    ),
    "deque": (
        lambda: collections.deque([1.0]),
        lambda o: o.append(o.popleft() + 4.0),
        lambda o: o[0],
    ),
    "counter": (
        lambda: collections.Counter("a"),
        lambda o: o.update("aaaa"),
        lambda o: o["a"],
    ),
    "partial": (
        lambda: functools.partial(Plain.get, Plain(1.0)),
        lambda o: setattr(o.args[0], "scale", 5.0),
        lambda o: o(),
    ),
    "method": (
        lambda: Plain(1.0).get,
        lambda o: setattr(o.__self__, "scale", 5.0),
        lambda o: o(),
    ),
    "method of a list": (
        lambda: [1.0].__getitem__,
        lambda o: o.__self__.__setitem__(0, 5.0),
        lambda o: o(0),
    ),
    "closure": (reader, lambda o: o(5.0), lambda o: o()),
    "function": (marked, lambda o: setattr(o, "scale", 5.0), lambda o: o()),
    "class": (
        lambda: type("Local", (Settings,), {}),
        lambda o: setattr(o, "scale", 5.0),
        lambda o: o.scale,
    ),
    "class of an object": (
        lambda: type("Local", (Settings,), {})(),
        lambda o: setattr(type(o), "scale", 5.0),
        lambda o: o.scale,
    ),
    "list with attributes": (
        lambda: type("Named", (list,), {"scale": 1.0})(),
        lambda o: setattr(o, "scale", 5.0),
        lambda o: o.scale,
    ),
    "cell": (
        lambda: Scaled(1.0),
        lambda o: setattr(o, "scale", 5.0),
        lambda o: o.scale,
    ),
    "cell's own": (
        lambda: Scaled(1.0),
        lambda o: setattr(o, "_scale", 5.0),
        lambda o: o._scale,
    ),
}


class Scaled(nn.Cell):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = self._scale = scale


@pytest.mark.parametrize("kind", CHANGED)
def test_arguments_that_change_count_by_value(kind: str) -> None:
    make, change, read = CHANGED[kind]
    calls = []

    def f(x: Tensor, o: Any) -> Tensor:
        calls.append(1)
        return x * read(o)

    for wrapped in (lambda o: o, lambda o: {"inside": Options(1.0, [o])}):
        o = make()
        compiled, given = gc.jit(functools.partial(lambda o, x, given: f(x, o), o)), wrapped(o)
        for _ in range(2):
            assert float(compiled(Tensor(1.0), given)) == 1.0
        assert len(calls) == 1
        change(o)
        for _ in range(2):
            assert float(compiled(Tensor(1.0), given)) == 5.0
        assert len(calls) == 2
        calls.clear()


def test_classes_of_one_name_are_not_confused() -> None:
    one = collections.namedtuple("Pair", "first second")(Tensor(1.0), Tensor(2.0))
    other = collections.namedtuple("Pair", "second first")(Tensor(1.0), Tensor(2.0))
    compiled = gc.jit(lambda p: p.first - p.second)
    assert [float(compiled(p)) for p in (one, other, one)] == [-1.0, 1.0, -1.0]
    keys = gc.jit(lambda d: sum(v * (1 if k is True else 2) for k, v in d.items()))
    assert [float(keys({k: Tensor(1.0)})) for k in (True, 1, True)] == [1.0, 2.0, 1.0]


@pytest.mark.parametrize(
    "make", [lambda: iter([1, 2, 3]), lambda: (i for i in (1, 2, 3)), lambda: map(int, "123")]
)
def test_an_iterator_goes_on_at_every_call(make: Any) -> None:
    compiled, o = gc.jit(lambda x, o: x * next(o)), make()
    assert [int(compiled(Tensor(1), o)) for _ in range(3)] == [1, 2, 3]


def test_generators_of_numbers_go_on_at_every_call() -> None:
    for o, other in [
        (random.Random(1), random.Random(1)),
        (np.random.default_rng(1), np.random.default_rng(1)),
    ]:
        compiled = gc.jit(lambda x, o: x * o.random())
        found = [float(compiled(Tensor(1.0, gc.float64), o)) for _ in range(3)]
        assert found == [other.random() for _ in range(3)]


class _Nowhere:
    """A class whose `__module__` is no string, as Cython's functions have it on Python 3.10."""

    __module__ = property(lambda self: "here")  # type: ignore[assignment]

    def __init__(self) -> None:
        self.scale = 1.0


def test_an_object_whose_class_names_no_module_goes_by_value() -> None:
    compiled, o = gc.jit(lambda x, o: o.scale * x), _Nowhere()
    assert float(compiled(Tensor(2.0), o)) == 2.0
    o.scale = 3.0
    assert float(compiled(Tensor(2.0), o)) == 6.0


@dataclasses.dataclass(frozen=True)
class Named:
    """Equal to others of its name."""

    name: str
    scale: float = dataclasses.field(compare=False)

    def __call__(self, x: Tensor) -> Tensor:
        return (self.scale * x * x).sum()

    def method(self, x: Tensor) -> Tensor:
        return self(x)


@pytest.mark.parametrize(
    "transform", [gc.grad, gc.vmap, gc.jacrev, gc.jacfwd, gc.hessian, gc.laplacian, gc.jit]
)
def test_functions_that_are_equal_are_two(transform: Any) -> None:
    x = Tensor([1.0, 2.0])
    pairs = [
        [Named("f", 1.0), Named("f", 2.0)],
        [Named("f", k).method for k in (1.0, 2.0)],
    ]
    owner = Named("f", 1.0)
    pairs.append([types.MethodType(lambda s, x, k=k: k * s(x), owner) for k in (1.0, 2.0)])
    gc.set_context(mode=gc.GRAPH_MODE)
    try:
        for pair in pairs:
            found = [transform(f)(x).asnumpy() for f in pair]
            np.testing.assert_allclose(found[1], 2 * found[0])
            assert np.abs(found[0]).max() > 0
    finally:
        gc.set_context(mode=gc.PYNATIVE_MODE)


class Outer(nn.Cell):
    """Reads what a cell below holds, without calling it."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Scaled(1.0)

    def construct(self, x: Tensor) -> Tensor:
        return x * self.inner.scale * self.inner._scale


@pytest.mark.parametrize("mode", [gc.PYNATIVE_MODE, gc.GRAPH_MODE])
def test_attributes_of_cells_that_are_read_and_never_called(mode: int) -> None:
    outside = Scaled(1.0)
    net = Outer()
    gc.set_context(mode=mode)
    try:
        for f in (net, gc.jit(net), gc.jit(lambda x: x * outside.scale)):
            assert float(f(Tensor(2.0))) == 2.0
            net.inner.scale = outside.scale = 5.0
            assert float(f(Tensor(2.0))) == 10.0
            net.inner.scale = outside.scale = 1.0
            assert float(f(Tensor(2.0))) == 2.0
        net.inner._scale = 7.0
        assert float(gc.jit(net)(Tensor(2.0))) == float(net(Tensor(2.0))) == 14.0
    finally:
        gc.set_context(mode=gc.PYNATIVE_MODE)


def test_cells_that_are_made_while_traced_may_be_set_up() -> None:
    def f(x: Tensor) -> Tensor:
        cell = Scaled(2.0)
        cell.scale = 3.0
        return x * cell.scale

    with silence():
        assert float(gc.jit(f)(Tensor(1.0))) == 3.0


def test_a_tensor_of_an_object_is_the_one_that_it_is() -> None:
    o = Plain(1.0)
    o.t = Tensor([1.0, 2.0])
    compiled = gc.jit(lambda x, o: x * o.t)
    assert compiled(Tensor([1.0, 1.0]), o).asnumpy().tolist() == [1, 2]
    o.t = Tensor([3.0, 4.0])
    assert compiled(Tensor([1.0, 1.0]), o).asnumpy().tolist() == [3, 4]
    o.t[0] = 9.0
    assert compiled(Tensor([1.0, 1.0]), o).asnumpy().tolist() == [9, 4]


def test_numbers_that_are_known_are_no_question() -> None:
    """Values that depend on no argument, parameter or draw: nothing is traced again for them. What is
    written to a tensor from outside is seen."""
    outside, weight = Tensor([2.0]), gc.Parameter(Tensor([3.0]), "w")

    def f(x: Tensor) -> Tensor:
        inside = Tensor([4.0]) * 2.0
        return x * float(inside[0]) if float(outside * 2.0) > 3.0 else -x

    with silence():
        compiled = gc.jit(f)
        assert [float(compiled(Tensor([v]))[0]) for v in (1.0, 2.0)] == [8.0, 16.0]
        outside[0] = 1.0
        assert float(compiled(Tensor([1.0]))[0]) == -1.0
    with pytest.warns(RuntimeWarning, match="asked for a tensor's value"):
        gc.jit(lambda x: x if float(weight * 2.0) > 0 else -x)(Tensor([1.0]))
    with pytest.warns(RuntimeWarning, match="asked for a tensor's value"):
        gc.jit(lambda x: x * float(ops.standard_normal((1,))[0]))(Tensor([1.0]))

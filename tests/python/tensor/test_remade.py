"""What transforms return, and solvers, go to other processes and are copied."""

from __future__ import annotations

import copy
import importlib
import inspect
import multiprocessing
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest
import remade_functions as functions

import gradcell as gc
from gradcell import nn, ops, train

#: Public functions that return functions, but no transform of one that they are given.
OTHERS = {
    "data_sink": "it is in the middle of a dataset",
    "enable_dynamic": "a decorator, which returns the function itself",
    "ops.custom_info_register": "a decorator",
    "ops.op_info_register": "a decorator",
    "rearrange_inputs": "a decorator of methods",
}


def public_transforms() -> Iterator[str]:
    """The public functions that return a function, or a tuple with one."""
    seen = set()
    for module in ("", "ops", "physics", "nn", "amp", "train", "numpy", "parallel", "scipy"):
        package = importlib.import_module(f"gradcell.{module}" if module else "gradcell")
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isclass(value) or not inspect.isroutine(value) or id(value) in seen:
                continue
            seen.add(id(value))
            try:
                returned = str(inspect.signature(value).return_annotation)
            except ValueError:
                continue
            if "Callable" in returned:
                yield f"{module}.{name}" if module else name


def test_the_table_has_all_transforms() -> None:
    untyped = {"jit", "vjp", "linearize", "ops.GradOperation"}
    assert set(public_transforms()) | untyped == set(functions.MADE) | set(OTHERS)


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


OBJECTS = [(name, *row) for name, rows in functions.MADE.items() for row in rows]


@pytest.mark.one_in(2)
def test_objects_go_to_a_spawned_process() -> None:
    made = [(make(), args) for _, make, args in OBJECTS]
    solvers = [make() for make in functions.SOLVERS]
    sent = [pickled(solver) for solver in solvers]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        there = pool.submit(functions.all_of, made, sent).result()
    names = [name for name, *_ in OBJECTS]
    for name, (one, args), found in zip(names, made, there, strict=False):
        for a, b in zip(functions.called(one, args), found, strict=True):
            np.testing.assert_array_equal(a, b, name)
    for solver, found in zip(sent, there[len(made) :], strict=True):
        for a, b in zip(functions.stepped(solver), found, strict=True):
            np.testing.assert_array_equal(a, b, type(solver).__name__)


@pytest.mark.parametrize(("name", "make", "args"), OBJECTS, ids=[row[0] for row in OBJECTS])
def test_copies_give_the_same(name: str, make: Any, args: Any) -> None:
    made = make()
    expected = functions.called(made, args)
    for twin in (copy.deepcopy(made), copy.copy(made), pickled(made)):
        for a, b in zip(functions.called(twin, args), expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("make", functions.SOLVERS)
def test_a_copy_of_a_solver_goes_on_alone(make: Any) -> None:
    solver = make()
    functions.stepped(solver)
    before = functions.numbers(functions.weights)
    found = [functions.stepped(twin(solver)) for twin in (copy.deepcopy, pickled)]
    for a, b in zip(before, functions.numbers(functions.weights), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, *others in zip(functions.stepped(solver), *found, strict=True):
        for b in others:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("twin", [copy.deepcopy, pickled])
def test_a_training_run_goes_on_alone(twin: Any) -> None:
    net = nn.Dense(2, 1, dtype=gc.float64)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params()))
    x, y = functions.x, functions.x[:, :1]
    step(x, y)
    other = twin(step)
    before = float(step(x, y))
    assert float(other(x, y)) == before != float(other(x, y))
    assert float(twin(train.Model(step)).predict_network(x, y)) == float(step(x, y))


def test_a_function_by_its_name_is_itself() -> None:
    for one in (functions.doubled, functions.with_rule, functions.with_tangent):
        assert pickled(one) is one and copy.deepcopy(one) is one
    gradient = gc.grad(functions.total)
    assert copy.deepcopy(gradient) is gradient


def test_a_deep_copy_is_of_the_copied_network() -> None:
    net = functions.Net()
    holder = [net, gc.grad(net.loss, None, net.trainable_params()), gc.vmap(net)]
    twin, gradient, mapped = copy.deepcopy(holder)
    twin.layer.weight.set_data(twin.layer.weight * 2)
    expected = gc.grad(twin.loss, None, twin.trainable_params())(functions.x)
    for a, b in zip(gradient(functions.x), expected, strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    np.testing.assert_array_equal(
        mapped(functions.x).asnumpy(), gc.vmap(twin)(functions.x).asnumpy()
    )
    assert (gradient(functions.x)[0] != holder[1](functions.x)[0]).any()


@pytest.mark.parametrize(
    "make",
    [
        lambda f: gc.grad(f),
        lambda f: gc.jit(f),
        lambda f: gc.jit(gc.vmap(f)),
        lambda f: gc.vjp(f, functions.x)[1],
        lambda f: gc.partials(f, [(0,)]),
        lambda f: gc.jit(functions.wave, key=lambda: 1 if f else 2),
    ],
)
def test_a_function_without_a_name_is_refused_by_it(make: Any) -> None:
    made = make(lambda x=functions.x: ops.sin(x))
    with pytest.raises(
        pickle.PicklingError, match=r"<lambda> \(.*test_remade.py:\d+\) cannot be pickled"
    ):
        pickle.dumps(made)
    cloudpickle = pytest.importorskip("cloudpickle")
    cloudpickle.register_pickle_by_value(inspect.getmodule(test_the_table_has_all_transforms))
    again = pickle.loads(cloudpickle.dumps(made))
    np.testing.assert_array_equal(
        functions.called(again, (functions.x,))[0], functions.called(made, (functions.x,))[0]
    )


def test_a_cell_of_something_else_is_no_function() -> None:
    cell = (lambda value: lambda: value)(3).__closure__[0]  # type: ignore[index]
    with pytest.raises(TypeError, match="cannot pickle 'cell' object"):
        pickle.dumps(cell)


@pytest.mark.parametrize("transform", [gc.grad, gc.vmap, gc.jacrev])
def test_what_a_transforms_function_closes_over_is_seen(transform: Any) -> None:
    factor = 1.0

    def scaled(x: Any) -> Any:
        return factor * x

    made = transform(scaled)
    run = gc.jit(lambda function, x: function(x))
    x = gc.Tensor([3.0])
    before = run(made, x).asnumpy()
    factor = 2.0
    np.testing.assert_array_equal(run(made, x).asnumpy(), 2 * before)

"""Gradients by integers, bools, numbers and trees of them, and of functions that return integers:
those of MindSpore, in both modes. Where a derivative is rounded, or is 0 though floats came in, a warning
says so.
"""

from __future__ import annotations

import json
import warnings

import integer_gradient_cases as cases
import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

STORED = json.loads(cases.GOLDEN.read_text())
MODES = {"pynative": gc.PYNATIVE_MODE, "graph": gc.GRAPH_MODE}

#: MindSpore takes numbers, and in PYNATIVE_MODE tuples, lists and dicts too, for constants and gives
#: (), or the number 0; here they are differentiated by. A function of numbers alone returns no tensor here.
GIVEN_HERE = {"number", "integer number", "bool", "tuple", "tuple of integers", "tuple of numbers", "list",
              "dict", "dict of numbers", "mutable number", "mutable integer", "mutable tuple of numbers",
              "numbers alone, all"}  # fmt: skip
GIVEN_BY_GRAPHS = {name for name in cases.CASES if name.startswith("mutable")}
EXPECTED = {
    "number": ["Float32", 4.5],
    "integer number": ["Int64", 4],
    "bool": ["Bool", True],
    "tuple": ["tuple", ["Int32", [0, 1, 2]], ["Float32", [1.0, 2.0, 3.0]]],
    "tuple of integers": ["tuple", ["Int32", [4, -2, 1]], ["Int32", [1, 2, 3]]],
    "tuple of numbers": ["tuple", ["Int64", 2], ["Float32", 9.0]],
    "list": ["list", ["Int32", [0, 1, 2]], ["Float32", [1.0, 2.0, 3.0]]],
    "dict": ["dict", ["u", ["Int32", [0, 1, 2]]], ["w", ["Float32", [1.0, 2.0, 3.0]]]],
    "dict of numbers": ["dict", ["u", ["Float32", -18.0]], ["w", ["Int64", 9]]],
    "mutable number": ["Float32", 4.5],
    "mutable integer": ["Int64", 4],
    "mutable tuple of numbers": ["tuple", ["Int64", 2], ["Float32", 9.0]],
}  # fmt: skip


@pytest.fixture(params=MODES)
def mode(request):
    gc.set_context(mode=MODES[request.param])
    yield request.param
    gc.set_context(mode=gc.PYNATIVE_MODE)


@pytest.fixture(scope="module")
def functions():
    return cases.functions(gc)


@pytest.mark.filterwarnings("ignore:grad:RuntimeWarning")
@pytest.mark.parametrize("name", cases.CASES)
def test_as_mindspore(name, mode, functions):
    if name == "numbers alone, all":
        with pytest.raises(TypeError, match="returned no tensor"):
            cases.result(gc, name, functions[name])
        return
    found = cases.result(gc, name, functions[name])
    if name in GIVEN_HERE:
        assert found == EXPECTED[name]
    else:
        assert found == STORED[name]["graph" if name in GIVEN_BY_GRAPHS else mode]
    for _ in range(2):  # forms that are kept
        assert cases.result(gc, name, functions[name]) == found


def test_enough_agree():
    agree = set(cases.CASES) - GIVEN_HERE
    assert len(agree) >= 60
    assert all(STORED[name]["graph"][0] != "error" for name in agree)


def test_what_is_exact_has_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.grad(lambda a: (a * a).sum())(Tensor([1, 2]))
        gc.grad(lambda x, k: ops.gather(x, k, 0), (0, 1))(Tensor([1.0, 2.0]), Tensor([1]))
        gc.grad(lambda x: x * x)(3.0)


def test_rounded_and_lost_ones_say_so():
    with pytest.warns(
        RuntimeWarning,
        match=r"with respect to a tensor of Int64 is rounded.*test_integer_gradients\.py:\d+",
    ):
        gc.grad(lambda a: ops.sin(a.astype(gc.float32)))(Tensor(np.array([1, 2])))
    with pytest.warns(
        RuntimeWarning,
        match=r"returned Bool, so its gradient with respect to floats is 0.*\.py:\d+",
    ):
        found = gc.grad(lambda x: x > 1)(Tensor([1.0, 2.0]))
    np.testing.assert_array_equal(found.asnumpy(), [0, 0])


def test_numbers_are_arguments_not_constants():
    gc.set_context(mode=gc.GRAPH_MODE)
    try:
        traced = []

        def f(x):
            traced.append(1)
            return x * x

        gradient = gc.grad(f)
        assert [gradient(v).item() for v in (3.0, 4.0, 5.0)] == [6.0, 8.0, 10.0]
        assert len(traced) == 1
        by = ops.GradOperation()(f)
        assert [by(v).item() for v in (3.0, 4.0)] == [6.0, 8.0]
    finally:
        gc.set_context(mode=gc.PYNATIVE_MODE)


X = Tensor(np.array([1, 2, 3], np.int32))
V = Tensor(np.array([1, -1, 2], np.int32))


def scaled(a):
    return a * a * 0.25


BY_FLOATS_ALONE = {
    "hvp": lambda: gc.hvp(scaled, X, V),
    "jacrev": lambda: gc.jacrev(scaled)(X),
    "jacfwd": lambda: gc.jacfwd(scaled)(X),
    "hessian": lambda: gc.hessian(scaled)(X),
    "laplacian": lambda: gc.laplacian(scaled)(X),
    "biharmonic": lambda: gc.biharmonic(scaled)(X),
    "divergence": lambda: gc.divergence(scaled)(X),
    "partials": lambda: gc.partials(scaled, [(0,)])(X),
    "gauss_newton_product": lambda: gc.gauss_newton_product(scaled, 0)(X, V),
    "fisher_product": lambda: gc.fisher_product(scaled, 0)(X, V),
    "check_grads": lambda: gc.check_grads(scaled, X),
}


@pytest.mark.parametrize("transform", BY_FLOATS_ALONE)
def test_transforms_that_would_round_in_the_middle_refuse(transform):
    with pytest.raises(
        TypeError, match="cannot differentiate with respect to argument 0 of dtype Int32"
    ):
        BY_FLOATS_ALONE[transform]()


def test_forward_mode_is_exact():
    """What is computed of integers is in floats, and so is its tangent."""
    exact = [0.5, -1.0, 3.0]
    np.testing.assert_array_equal(gc.jvp(scaled, X, V)[1].asnumpy(), exact)
    np.testing.assert_array_equal(gc.linearize(scaled, X)[1](V).asnumpy(), exact)
    np.testing.assert_array_equal(
        ops.jet(scaled, X, Tensor(np.ones((1, 3), np.int32)))[1].asnumpy()[0], [0.5, 1.0, 1.5]
    )
    np.testing.assert_array_equal(ops.derivative(scaled, X, 2)[1].asnumpy(), [0.5] * 3)


def test_what_is_no_number_is_refused():
    for bad in (None, "x", object()):
        with pytest.raises(TypeError, match="not a Tensor but"):
            gc.grad(lambda a: Tensor(1.0))(bad)


def test_loops_and_rules_have_derivatives_by_floats_alone():
    """Of an integer that was asked for by its place; one among all arguments gets 0."""

    x = Tensor([1.0, 2.0])

    def f(n, x):
        return ops.ForiLoop()(0, 3, lambda i, c: c * 2, n, unroll=False) * x

    with pytest.raises(TypeError, match=r"integers .* through a loop"):
        gc.grad(f)(Tensor([1, 2]), x)
    by_n, by_x = ops.GradOperation(get_all=True)(f)(Tensor([1, 2]), x)
    np.testing.assert_array_equal(by_n.asnumpy(), [0, 0])
    np.testing.assert_array_equal(by_x.asnumpy(), [8, 16])

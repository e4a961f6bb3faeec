"""What Python and NumPy ask of an object that is a number, an array or a function."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

NUMBERS = np.array([1.2345, -2.5, 3.5, 1e3])


@gc.jit
def decorated(x: Tensor) -> Tensor:
    return x * 2


def plain(x: Tensor) -> Tensor:
    return x * 3


def test_round() -> None:
    x = Tensor(NUMBERS)
    for digits in (None, 0, 1, 2, -2):
        np.testing.assert_allclose(
            round(x, digits).asnumpy(), np.round(NUMBERS, digits or 0), rtol=1e-15
        )
    assert float(round(x[0])) == 1 and round(Tensor(2)).dtype == Tensor(2).dtype
    assert float(gc.jit(lambda t: round(t, 1))(x[0])) == pytest.approx(1.2)


def test_divmod() -> None:
    for a, b in ((Tensor(NUMBERS), 2.0), (7.0, Tensor(NUMBERS)), (Tensor([7, -7]), Tensor([2, 2]))):
        expected = divmod(*(np.asarray(v) for v in (a, b)))
        for found, want in zip(divmod(a, b), expected, strict=True):
            np.testing.assert_array_equal(found.asnumpy(), want)


def test_format() -> None:
    assert f"{Tensor(1.23456):.3f}" == "1.235"
    assert f"{Tensor(NUMBERS):.2f}" == "[1.23 -2.50 3.50 1000.00]"
    assert f"{Tensor([[1, 2], [3, 4]]):03d}" == "[[001 002]\n [003 004]]"
    assert f"{Tensor([1.0])}" == str(Tensor([1.0]))


def test_dtypes_of_numpy() -> None:
    for name in ("float32", "float64", "float16", "int8", "int64", "bool", "complex64", "uint16"):
        dtype = getattr(gc, f"{name}_" if name == "bool" else name)
        assert np.dtype(dtype) == np.dtype(name)
        assert np.zeros(2, dtype).dtype == np.dtype(name)
        for spelt in (name, np.dtype(name), np.dtype(name).type, dtype):
            assert Tensor([1], spelt).dtype == dtype
            assert Tensor(np.ones(2), dtype=spelt).dtype == dtype
    with pytest.raises(TypeError):
        np.dtype(gc.bfloat16)
    for wrong in ("float33", 3, np.dtype("M8[s]"), object, Tensor([1.0]), np.ones(2)):
        with pytest.raises(TypeError):
            Tensor([1], wrong)


def test_jitted_functions_pickle() -> None:
    x = Tensor([1.0, 2.0])
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    again = pickle.loads(pickle.dumps(gc.jit(plain)))
    assert again(x).asnumpy().tolist() == [3, 6]
    assert copy.copy(decorated) is decorated and copy.deepcopy(decorated) is decorated
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(gc.jit(lambda t: t))
    net = gc.nn.Dense(2, 2)
    method = pickle.loads(pickle.dumps(gc.jit(net.construct)))
    np.testing.assert_array_equal(method(x[None]).asnumpy(), net(x[None]).asnumpy())


def test_functions_of_one_plan_pickle() -> None:
    for name in ("hypot", "logit", "sort"):
        assert pickle.loads(pickle.dumps(getattr(ops, name))) is getattr(ops, name)


def test_a_jitted_function_goes_to_another_process() -> None:
    pytest.importorskip("cloudpickle")
    import cloudpickle

    sent = cloudpickle.dumps(gc.jit(lambda t: gc.grad(lambda u: u**3)(t)))
    code = "import pickle, sys, gradcell; print(pickle.loads(sys.stdin.buffer.read())(gradcell.Tensor(2.0)))"
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    assert float(done.stdout) == 12

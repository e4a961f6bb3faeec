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
from gradcell.base import dlpack

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


def test_a_copy_of_a_parameter_has_its_attributes_and_hooks() -> None:
    p = gc.Parameter(Tensor([1.0, 2.0]), name="p", requires_grad=False)
    p.note, p.layerwise_parallel = ["kept"], True
    p.requires_grad = True
    handle = p.register_hook(lambda g: g * 10)
    deep, shallow, pickled = copy.deepcopy(p), copy.copy(p), None
    net = gc.nn.Dense(2, 1)
    net.weight.note = "kept"
    assert copy.deepcopy(net).weight.note == "kept"
    assert deep.note == ["kept"] and deep.note is not p.note and shallow.note is p.note
    assert deep.layerwise_parallel and shallow.layerwise_parallel
    handle.remove()  # the copies' hooks are theirs

    def slope(q: gc.Parameter) -> list[float]:
        (g,) = gc.grad(lambda: (q * q).sum(), None, [q])()
        return g.asnumpy().tolist()

    assert slope(p) == [2.0, 4.0] and slope(deep) == slope(shallow) == [20.0, 40.0]
    pickled = pickle.loads(
        pickle.dumps(deep)
    )  # hooks are functions of the program, which stay there
    assert pickled.note == ["kept"] and pickled.layerwise_parallel and slope(pickled) == [2.0, 4.0]
    memo: dict[int, object] = {}
    assert copy.deepcopy([p, p], memo)[0] is memo[id(p)]


def test_a_copy_of_a_tensor_has_its_attributes_and_hooks() -> None:
    x = Tensor([1.0, 2.0])
    x.note = ["kept"]
    x.register_hook(lambda g: g * 10)
    twin = copy.deepcopy(x)
    assert twin.note == ["kept"] and twin.note is not x.note
    assert gc.grad(lambda v: (v * v).sum())(twin).asnumpy().tolist() == [20.0, 40.0]


class Bits:
    """The bits of a tensor's bfloat16 elements, read through DLPack as another library would."""

    def __init__(self, x: Tensor, versioned: bool) -> None:
        self.x, self.options = x, {"max_version": (1, 0)} if versioned else {}

    def __dlpack__(self, **_: object) -> object:
        capsule = self.x.__dlpack__(**self.options)
        kind = dlpack._kind(capsule)
        assert kind.value == 4  # kDLBfloat
        kind.value = 1  # unsigned integers
        return capsule

    def __dlpack_device__(self) -> object:
        return self.x.__dlpack_device__()


@pytest.mark.parametrize("versioned", [False, True])
def test_bfloat16_goes_through_dlpack_as_itself(versioned: bool) -> None:
    if versioned and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("this NumPy has no versioned capsules")
    values = np.array([1.0, -2.5, 3.0, 65280.0], np.float32)
    x = Tensor(values, gc.bfloat16)
    patterns = np.from_dlpack(Bits(x, versioned))
    assert patterns.dtype == np.uint16
    np.testing.assert_array_equal((patterns.astype(np.uint32) << 16).view(np.float32), values)
    back = gc.from_dlpack(x)
    assert back.dtype == gc.bfloat16 and back.asnumpy().tolist() == values.tolist()
    if patterns.flags.writeable:  # the memory is shared
        patterns[0] = 0x40E0
        assert back[0].item() == 7.0


def test_bfloat16_of_pytorch_shares_its_memory() -> None:
    torch = pytest.importorskip("torch")
    x = Tensor([1.0, 2.5], gc.bfloat16)
    there = torch.from_dlpack(x)
    assert there.dtype == torch.bfloat16 and there.tolist() == [1.0, 2.5]
    ours = gc.from_dlpack(torch.tensor([1.0, 2.5], dtype=torch.bfloat16))
    assert ours.dtype == gc.bfloat16 and ours.asnumpy().tolist() == [1.0, 2.5]

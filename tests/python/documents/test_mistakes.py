"""Mistakes that newcomers make: each message tells what was wrong, where, and the next step."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, dataset, nn, ops

X, W = Tensor([1.0, 2.0]), Tensor([[1.0, 2.0], [3.0, 4.0]])


class Forward(nn.Cell):
    """A layer by a hand from PyTorch."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def names() -> dict[str, Any]:
    """What is there to type, with a network of its own: another one that takes it renames its parameters."""
    net = nn.Dense(3, 2)
    return {
        "gc": gc, "np": np, "nn": nn, "ops": ops, "math": math, "Tensor": Tensor, "x": X, "W": W, "net": net,
        "Forward": Forward, "dataset": dataset, "opt": nn.Adam(net.trainable_params()),
    }  # fmt: skip


#: (what is typed, the error, what the message says of what was wrong, of the next step)
MISTAKES: list[tuple[str, type[Exception], str, str]] = [
    ("x.backward()", AttributeError, "no attribute 'backward'", "gradcell.grad"),
    ("x.grad", AttributeError, "no attribute 'grad'", "gradcell.value_and_grad"),
    ("x.cuda()", AttributeError, "no attribute 'cuda'", "set_context"),
    ("nn.Module", AttributeError, "no attribute 'Module'", "nn.Cell"),
    ("nn.Sequential(net)", AttributeError, "no attribute 'Sequential'", "nn.SequentialCell"),
    ("gc.zeros(3)", AttributeError, "no attribute 'zeros'", "ops.zeros"),
    ("gc.save(net, 'a')", AttributeError, "no attribute 'save'", "save_checkpoint"),
    ("ops.sinn(x)", AttributeError, "no attribute 'sinn'", "did you mean sin"),
    ("net.parameters()", AttributeError, "'Dense' object has no attribute 'parameters'", "trainable_params"),
    ("net.forward(x)", AttributeError, "no attribute 'forward'", "construct"),
    ("net.eval()", AttributeError, "no attribute 'eval'", "set_train(False)"),
    ("opt.step()", AttributeError, "'Adam' object has no attribute 'step'", "optimizer(gradients)"),
    ("opt.zero_grad()", AttributeError, "no attribute 'zero_grad'", "nothing to zero"),
    ("nn.Adam(net)", TypeError, "must be Iterable type, but got .*Dense", "trainable_params"),
    ("nn.Adam(net.trainable_params)", TypeError, "got <class 'method'>", "call it, trainable_params"),
    ("nn.Adam(net.trainable_params(), lr=0.1)", TypeError, "argument 'lr'", "use learning_rate"),
    ("nn.SGD(net.trainable_params(), momentun=0.9)", TypeError, "argument 'momentun'", "use momentum"),
    ("nn.Dense(in_features=3, out_channels=2)", TypeError, "argument 'in_features'", "use in_channels"),
    ("gc.grad(ops.sin, x)", TypeError, "'grad_position' must be int", "grad(f)(x)"),
    ("gc.grad(ops.sin, argnums=0)", TypeError, "argument 'argnums'", "use grad_position"),
    ("gc.vmap(ops.sin, in_dims=0)", TypeError, "argument 'in_dims'", "use in_axes"),
    ("gc.jit(ops.sin, static_argnums=0)", TypeError, "no option 'static_argnums'", "static as they are"),
    ("gc.grad(lambda t: math.sin(t))(Tensor(1.0))", TypeError, "returned no tensor", "gradcell.ops"),
    ("gc.grad(lambda t: t * np.sin(t))(x)", TypeError, "numpy.sin cannot be differentiated", "gradcell.ops"),
    ("gc.grad(lambda: ops.sum(np.exp(net.bias)), None, net.trainable_params())()", TypeError,
     "numpy.exp cannot be differentiated", "gradcell.ops"),
    ("math.sin(x)", ValueError, "Only one element tensors", "shape [2]"),
    ("net(Tensor(np.ones((4, 3))))", TypeError, "Float64.*the parameter 'weight'", "astype"),
    ("net([[1.0, 2.0, 3.0]])", TypeError, "got 'list'", "Tensor"),
    ("ops.sin([1.0, 2.0])", TypeError, "expected a Tensor, got list", "gradcell.Tensor(x)"),
    ("ops.sin(np.array(['1.0']))", TypeError, "dtype <U3 is not supported", "astype"),
    ("ops.sin(np.array([None, 1.0]))", TypeError, "dtype object is not supported", "astype"),
    ("x + np.array(['a'])", TypeError, "dtype <U1 is not supported", "astype"),
    ("gc.grad(ops.sin)(np.array(['a']))", TypeError, "not a Tensor but ndarray of dtype <U1", "argument 0"),
    ("net(Tensor(np.ones((4, 5), 'f')))", ValueError, "in_channels 3", "[4, 5]"),
    ("ops.matmul(W, Tensor([1.0, 2.0, 3.0]))", ValueError, "[2, 2] and [3]", "do not multiply"),
    ("ops.concat(x, x)", TypeError, "got 'Tensor'", "tuple or list of Tensors"),
    ("x[5]", IndexError, "index 5 is out of bounds", "size 2"),
    ("x.reshape(3)", ValueError, "shape [2]", "cannot take shape [3]"),
    ("Tensor([1.0], 'float33')", TypeError, "no dtype is called float33", "did you mean float32"),
    ("gc.load_checkpoint('none.ckpt')", ValueError, "no file 'none.ckpt'", "load_checkpoint"),
    ("gc.grad(ops.sin, net.trainable_params())", TypeError, "must be int or tuple", "grad(f, None, weights)"),
    ("gc.grad(ops.sin, None, net)", TypeError, "got Dense", "net.trainable_params()"),
    ("gc.grad(ops.sin, None, net.parameters_dict())", TypeError, "got OrderedDict", "list(d.values())"),
    ("(*gc.value_and_grad(ops.sin),)", TypeError, "gives a function", "value_and_grad(f)(x)"),
    ("gc.vmap(ops.sin, x)", TypeError, "'in_axes' must be", "vmap(f)(x)"),
    ("gc.jit(ops.sin, x)", TypeError, "key must be a function, got Tensor", "jit(f)(x)"),
    ("opt((x,))", ValueError, "1 gradients for 2 parameters", "optimizer.parameters"),
    ("opt(x, x)", TypeError, "called with one argument", "a tuple of gradients"),
    ("opt.minimize(x)", AttributeError, "no attribute 'minimize'", "optimizer(gradients)"),
    ("net.to(gc.float64)", AttributeError, "no attribute 'to'", "to_float"),
    ("net.save('a')", AttributeError, "no attribute 'save'", "save_checkpoint"),
    ("net(Tensor([[1, 2, 3]]))", TypeError, "Int64.*'weight'", "x.astype(gradcell.float32), in Dense ("),
    ("nn.SequentialCell(net, nn.Tanh)", TypeError, "got the class Tanh", "Tanh()"),
    ("nn.SequentialCell(net, ops.tanh)", TypeError, "got the function tanh", "nn.Cell"),
    ("nn.Dense(2, 2, activation=nn.Tanh)", TypeError, "got the class Tanh", "Tanh()"),
    ("nn.Dense(2, 2, activation='tahn')", KeyError, "got tahn", "did you mean tanh"),
    ("nn.Dense(2, 2, weight_init='xavier')", ValueError, "'xavier'", "did you mean xavier"),
    ("Forward()(x)", AttributeError, "'construct' is not defined", "rename its forward"),
    ("nn.Dense(1, 4)(x)", ValueError, "in_channels 1, but got shape [2]", "x.reshape(-1, 1)"),
    ("gc.load_param_into_net({}, net)", TypeError, "expected a Cell, got dict", "load_param_into_net(net, "),
    ("gc.load_param_into_net(net, 'a.ckpt')", TypeError, "expected a dict, got str", "load_checkpoint"),
    ("gc.save_checkpoint('a.ckpt', net)", TypeError, "got Dense", "save_checkpoint(net, "),
    ("net.to_float('float46')", TypeError, "float46", "did you mean float64"),
    ("gc.set_default_dtype('flaot64')", TypeError, "flaot64", "did you mean float64"),
    ("ops.ones(2, 3)", TypeError, "3 is not a dtype", "ones((2, 3))"),
    ("gc.laplacian(net)([[1.0, 1.0, 1.0]])", TypeError, "must be Tensor.*list", "gradcell.Tensor(x)"),
    ("gc.partials(net, [(0,)])([1.0, 1.0, 1.0])", TypeError, "must be Tensor.*list", "gradcell.Tensor(x)"),
    ("gc.gauss_newton_product(net, 0)([1.0], x)", TypeError, "must be Tensor", "gradcell.Tensor(x)"),
    ("nn.Adam(net.trainable_params(), nn.WarmUpLR)", TypeError, "got the class WarmUpLR", "WarmUpLR()"),
    ("gc.pi", AttributeError, "no attribute 'pi'", "math.pi"),
    ("ops.cross_entropy(W, Tensor([[0, 1], [1, 0]]))", ValueError, "needs a target of shape [2]", "floating"),
    ("dataset.NumpySlicesDataset(np.ones((4, 2)), np.ones(4))", TypeError, "column names", "a tuple"),
    ("dataset.DataLoader", AttributeError, "no attribute 'DataLoader'", "batch"),
    ("gc.set_context(device_target='cuda')", ValueError, "got 'cuda'", "'GPU'"),
    ("gc.set_context(devise_target='CPU')", ValueError, "'devise_target'", "did you mean device_target"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "error", "wrong", "next_step"), MISTAKES, ids=[m[0] for m in MISTAKES]
)
def test_a_mistake_is_answered(
    typed: str, error: type[Exception], wrong: str, next_step: str
) -> None:
    with pytest.raises(error) as raised:
        eval(compile(typed, "mine.py", "eval"), names())
    text = str(raised.value)
    assert re.search(wrong.replace("[", r"\[").replace("]", r"\]"), text), text
    assert next_step in text


def test_a_list_of_cells_is_answered() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Dense(2, 2)]

    with pytest.warns(RuntimeWarning, match="layers.*nn.CellList"):
        Net()


def test_shapes_of_a_loss_that_broadcast_are_answered() -> None:
    with pytest.warns(RuntimeWarning, match=r"\[4, 1\].*\[4\] broadcast to \[4, 4\]: reshape"):
        nn.MSELoss()(Tensor(np.ones((4, 1), "f")), Tensor(np.ones(4, "f")))


def test_names_of_dtypes_are_taken_wherever_dtypes_are() -> None:
    before = gc.get_default_dtype()
    try:
        for dtype in ("float64", np.float64, float):
            gc.set_default_dtype(dtype)
            assert gc.get_default_dtype() == gc.float64
            gc.set_default_dtype(gc.float32)
    finally:
        gc.set_default_dtype(before)
    assert nn.Dense(2, 1).to_float("float64")(Tensor(np.ones((3, 2)))).dtype == gc.float64


def test_a_tensor_of_recorded_tensors_is_answered() -> None:
    """Its elements are numbers, so that no derivative goes through it."""

    def f(x: Tensor) -> Tensor:
        return ops.sum(Tensor([x[0], 2 * x[1]]))

    with pytest.warns(RuntimeWarning, match="constant.*ops.stack"):
        gc.grad(f)(X)
    assert gc.grad(lambda x: ops.sum(ops.stack([x[0], 2 * x[1]])))(X).asnumpy().tolist() == [1, 2]

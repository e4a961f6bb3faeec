"""Mistakes that newcomers make: each message tells what was wrong, where, and the next step."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, nn, ops

X, W = Tensor([1.0, 2.0]), Tensor([[1.0, 2.0], [3.0, 4.0]])
NET = nn.Dense(3, 2)
NAMES: dict[str, Any] = {
    "gc": gc, "np": np, "nn": nn, "ops": ops, "math": math, "Tensor": Tensor, "x": X, "W": W, "net": NET,
    "opt": nn.Adam(NET.trainable_params()),
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
    ("math.sin(x)", ValueError, "Only one element tensors", "shape [2]"),
    ("net(Tensor(np.ones((4, 3))))", TypeError, "Float64.*the parameter 'weight'", "astype"),
    ("net(np.ones((4, 3), 'f'))", TypeError, "got 'ndarray'", "Tensor"),
    ("ops.sin(np.ones(3))", TypeError, "expected a Tensor, got numpy.ndarray", "gradcell.Tensor(x)"),
    ("net(Tensor(np.ones((4, 5), 'f')))", ValueError, "in_channels 3", "[4, 5]"),
    ("ops.matmul(W, Tensor([1.0, 2.0, 3.0]))", ValueError, "[2, 2] and [3]", "do not multiply"),
    ("ops.concat(x, x)", TypeError, "got 'Tensor'", "tuple or list of Tensors"),
    ("x[5]", IndexError, "index 5 is out of bounds", "size 2"),
    ("x.reshape(3)", ValueError, "shape [2]", "cannot take shape [3]"),
    ("Tensor([1.0], 'float33')", TypeError, "no dtype is called float33", "did you mean float32"),
    ("gc.load_checkpoint('none.ckpt')", ValueError, "no file 'none.ckpt'", "load_checkpoint"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "error", "wrong", "next_step"), MISTAKES, ids=[m[0] for m in MISTAKES]
)
def test_a_mistake_is_answered(
    typed: str, error: type[Exception], wrong: str, next_step: str
) -> None:
    with pytest.raises(error) as raised:
        eval(compile(typed, "mine.py", "eval"), NAMES)
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

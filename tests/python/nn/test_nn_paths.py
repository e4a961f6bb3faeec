"""Where programs import the parts of networks from, and the initialisers and optimisers they write."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, nn
from gradcell.common import initializer as init

PROGRAM = """
from mindspore import nn
from mindspore.common.initializer import Initializer, _register, _assignment, initializer
from mindspore.nn.layer import Conv2d, get_activation
from mindspore.nn.layer.activation import _activation
from mindspore.nn.layer.basic import Dense
from mindspore.nn.layer.container import CellList
from mindspore.nn.layer.conv import Conv3d
from mindspore.nn.layer.normalization import _BatchNorm
from mindspore.nn.layer.rnns import LSTM
from mindspore.nn.loss import MSELoss
from mindspore.nn.loss.loss import LossBase, _Loss
from mindspore.nn.metrics import Accuracy, Metric
from mindspore.nn.optim.optimizer import Optimizer, opt_init_args_register
from mindspore.nn.probability import distribution
from mindspore.nn.utils import no_init_parameters
from mindspore.nn.wrap.cell_wrapper import _VirtualDatasetCell
from mindspore.train.metrics import Loss
import mindspore.nn.probability.distribution as msd

assert nn.layer.CellList is CellList is nn.CellList and nn.loss.MSELoss is MSELoss
assert nn.probability.distribution.Normal is msd.Normal and nn.Loss is Loss
assert get_activation("relu").cls_name == "ReLU" and "gelu" in _activation.keys()

@_register("halves")
class Halves(Initializer):
    def _initialize(self, arr):
        _assignment(arr, 0.5)

assert initializer("halves", (2,)).asnumpy().tolist() == [0.5, 0.5]
with no_init_parameters():
    net = Dense(2, 3)
print("found")
"""


@pytest.mark.one_in(2)
def test_paths_of_programs(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "gradcell", "run", str(script)], capture_output=True, text=True
    )
    assert done.stdout == "found\n", done.stderr


def test_what_initialisers_are_made_of():
    assert init._calculate_fan_in_and_fan_out((4, 3, 2, 5)) == (30, 40)
    assert init._calculate_correct_fan((4, 3), "fan_out") == 4
    assert init._calculate_gain("leaky_relu") == pytest.approx((2 / 1.0001) ** 0.5)
    with pytest.raises(ValueError, match="2 dimensions"):
        init._calculate_fan_in_and_fan_out((3,))
    with pytest.raises(ValueError, match="fan_in or fan_out"):
        init._calculate_correct_fan((4, 3), "both")


def test_an_optimiser_of_the_users(mode):
    class Plain(nn.Optimizer):
        @nn.optim.optimizer.opt_init_args_register
        def __init__(self, params, learning_rate=0.1, momentum=0.5):
            super().__init__(learning_rate, params)

        def construct(self, gradients):
            for p, g in zip(self.parameters, gradients, strict=True):
                p.set_data(p - 0.1 * g)
            return True

    p = Parameter(Tensor([1.0, 2.0]), name="p")
    optimizer = Plain([p])
    assert optimizer.init_args == {"momentum": 0.5} and optimizer.init_learning_rate == 0.1
    assert optimizer.init_params["params"] == [p]
    optimizer((Tensor([1.0, 1.0]),))
    np.testing.assert_allclose(p.asnumpy(), [0.9, 1.9])
    optimizer.target = "CPU"
    assert optimizer.target == "CPU"
    with pytest.raises(ValueError, match="target"):
        optimizer.target = "TPU"


def test_derivatives_as_cells(mode):
    x, v = Tensor([1.0, 2.0]), Tensor([1.0, 0.5])
    out, moved = nn.Jvp(lambda x: x**3)(x, v)
    assert out.asnumpy().tolist() == [1, 8] and moved.asnumpy().tolist() == [3, 6]
    out, (by_x, by_y) = nn.Vjp(lambda x, y: x**3 + y)(x, x, v)
    assert by_x.asnumpy().tolist() == [3, 6] and by_y.asnumpy().tolist() == [1, 0.5]
    p = Parameter(Tensor([0.0, 0.0]), name="p")
    nn.ParameterUpdate(p)(x)
    assert p.asnumpy().tolist() == [1, 2]
    with pytest.raises(TypeError, match="Parameter"):
        nn.ParameterUpdate(x)


def test_slices_by_halves_have_the_derivatives_of_slices():
    x = Tensor(np.arange(33.0).reshape(11, 3))

    def f(x):
        return sum((k + 1) * (part**2).sum() for k, part in enumerate(gc.ops.unstack(x)))

    slope = gc.grad(f)(x).asnumpy()
    np.testing.assert_allclose(slope, 2 * x.asnumpy() * np.arange(1, 12)[:, None])
    text = gc.graph_text(gc.grad(f), x)
    full = [line for line in text.splitlines() if "[11, 3]" in line]
    assert len(full) <= 5  # however many slices there are

"""locate_overflow: the first op whose output is not finite while its inputs are."""

import inspect

import numpy as np
import pytest
from training_fixtures import Linear, batch, snapshot

import gradcell as ms
from gradcell import Tensor, amp, nn, ops


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return next(first + k for k, line in enumerate(lines) if text in line)


def forward(x):
    a = ops.exp(x * 3.0)
    return (ops.log(a) * 2.0).sum()


def test_a_forward_op():
    found = amp.locate_overflow(forward, Tensor([1.0, 2.0, 5.0], ms.float16))
    assert (found.op, found.order, found.is_adjoint) == ("Exp", 0, False)
    assert (found.shape, found.dtype) == ((3,), ms.float16)
    assert found.output.not_finite == 1
    (operand,) = found.inputs
    assert (operand.smallest, operand.largest) == (3, 15)
    assert found.location == f"{__file__}:{line_of(forward, 'ops.exp')}"
    assert found.reaches_outputs
    assert "Exp (forward)" in str(found)
    assert "Float16[3] in [3, 15]" in str(found)


def root(x):
    return ops.sqrt(x).sum()


def test_an_adjoint_op_has_the_line_of_what_it_differentiates():
    x = Tensor([0.0, 1.0])
    assert amp.locate_overflow(root, x) is None
    found = amp.locate_overflow(ms.grad(root), x)
    assert found.order == 1
    assert found.location == f"{__file__}:{line_of(root, 'sqrt')}"
    assert "adjoint of order 1" in str(found)


def test_the_order_of_nested_gradients():
    def power(x):
        return (x**1.5).sum()

    x = Tensor([0.0, 1.0])
    assert amp.locate_overflow(ms.grad(power), x) is None
    assert amp.locate_overflow(ms.grad(lambda t: ms.grad(power)(t).sum()), x).order == 2


def test_whether_it_reaches_the_outputs():
    def masked(x):
        y = 1.0 / x
        return ops.where(x > 0.0, y, 0.0).sum()

    found = amp.locate_overflow(masked, Tensor([0.0, 2.0]))
    assert found.op in ("Div", "Reciprocal")
    assert not found.reaches_outputs
    assert "reaches no output" in str(found)


def test_an_input_that_is_not_finite():
    found = amp.locate_overflow(root, Tensor([1.0, np.nan]))
    assert found.op == "Leaf"
    assert "an input of the function is not finite" in str(found)


def test_nothing_to_find_and_nothing_changed():
    net = Linear()
    train = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 0.1))
    before = snapshot(train)
    assert amp.locate_overflow(train, *batch()) is None
    for name, value in snapshot(train).items():
        np.testing.assert_array_equal(value, before[name])


def test_an_update_that_reaches_the_parameters():
    net = Linear()
    train = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 1e38))
    found = amp.locate_overflow(train, *batch())
    assert found.reaches_parameters


def test_the_flag_names_the_op_of_a_scaled_step():
    net = Linear(ms.float16)
    train = nn.TrainOneStepWithLossScaleCell(
        net, nn.SGD(net.trainable_params(), 0.05), nn.DynamicLossScaleUpdateCell(2.0**15, 2, 10)
    )
    ms.set_context(locate_overflow=True)
    try:
        with pytest.warns(RuntimeWarning, match=r"adjoint of order 1\).*training_fixtures"):
            _, overflow, scale = train(*batch())
    finally:
        ms.set_context(locate_overflow=False)
    assert bool(overflow)
    assert float(scale) == float(train.scale_sense) == 2.0**14


def test_not_inside_a_trace():
    with pytest.raises(RuntimeError, match="outside of traced functions"):
        ms.grad(lambda x: amp.locate_overflow(root, x))(Tensor([1.0]))

"""MindSpore's "Gradient Derivation": grad and value_and_grad, block by block.

Each test is one code block (or a few that print one result) with the document's output. What the
blocks share, the network with weight [[2, 3, 4]] and its inputs, is in the fixtures. Loss scaling,
clipping and accumulation are in test_loss_scale_clipping_accumulation.py. Differences from the text:

- exponents have two digits (`three_digits` in conftest.py);
- "multiple outputs" prints `out` under the label "out1"; the value meant is checked below it.
"""

import numpy as np
import pytest
from document_networks import Net

import gradcell
import gradcell as ms
from gradcell import nn


class Net2(nn.Cell):
    def __init__(self, in_channel, out_channel):
        super().__init__()
        self.fc = nn.Dense(in_channel, out_channel, has_bias=False)
        self.loss = nn.MSELoss()

    def construct(self, x, y):
        logits = self.fc(x).squeeze()
        loss = self.loss(logits, y)
        return loss + logits


class GradNetWrtX(nn.Cell):
    def __init__(self, net):
        super(GradNetWrtX, self).__init__()  # noqa: UP008
        self.net = net

    def construct(self, x, y):
        gradient_function = ms.grad(self.net)
        return gradient_function(x, y)


@pytest.fixture
def net():
    net = Net(3, 1)
    net.fc.weight.set_data(ms.Tensor([[2, 3, 4]], ms.float32))
    return net


@pytest.fixture
def x():
    return ms.Tensor([[1, 2, 3]], ms.float32)


@pytest.fixture
def y():
    return ms.Tensor(19, ms.float32)


def test_grad_inside_a_cell(x, y):
    net = Net2(3, 1)
    net.fc.weight.set_data(ms.Tensor([[2, 3, 4]], ms.float32))
    np.testing.assert_array_equal(GradNetWrtX(net)(x, y).asnumpy(), [[6, 9, 12]])


def test_grad_of_a_function(documented):
    print("=== mindspore.grad ===")
    x = gradcell.Tensor(1.0)
    y = gradcell.Tensor(2.0)

    def net(x, y):
        return x**2 + y

    out = gradcell.grad(net, grad_position=0)(x, y)
    print("out", out)
    out1 = gradcell.grad(net, grad_position=1)(x, y)
    print("out1", out1)
    documented("""
=== mindspore.grad ===
out 2.0
out1 1.0
""")


def test_multiple_outputs_are_summed(documented):
    print("=== mindspore.grad multiple outputs ===")
    x = gradcell.Tensor(1.0)
    y = gradcell.Tensor(2.0)

    def net(x, y):
        return x**2 + y, x

    out = gradcell.grad(net, grad_position=0)(x, y)
    print("out", out)
    out1 = gradcell.grad(net, grad_position=1)(x, y)
    print("out1", out)
    documented("""
=== mindspore.grad multiple outputs ===
out 3.0
out1 3.0
""")
    assert out1 == 1.0


def test_has_aux(documented):
    print("=== mindspore.grad has_aux ===")
    x = gradcell.Tensor(1.0)
    y = gradcell.Tensor(2.0)

    def net(x, y):
        return x**2 + y, x

    grad_fcn = gradcell.grad(net, grad_position=0, has_aux=True)
    out, _ = grad_fcn(x, y)
    print("out", out)
    grad_fcn1 = gradcell.grad(net, grad_position=1, has_aux=True)
    out, _ = grad_fcn1(x, y)
    print("out", out)
    documented("""
=== mindspore.grad has_aux ===
out 2.0
out 1.0
""")


def test_network_with_two_outputs(documented):
    net = Net(3, 1)
    net.fc.weight.set_data(ms.Tensor([[2, 3, 4]], ms.float32))

    print("=== weight ===")
    for param in net.trainable_params():
        print("name:", param.name, "data:", param.data.asnumpy())
    x = ms.Tensor([[1, 2, 3]], ms.float32)
    y = ms.Tensor(19, ms.float32)

    loss, logits = net(x, y)
    print("=== output ===")
    print(loss, logits)
    documented("""
=== weight ===
name: fc.weight data: [[2. 3. 4.]]
=== output ===
1.0 20.0
""")


def test_grads_1_first_input(net, x, y, documented):
    print("=== grads 1 ===")
    grad_func = ms.grad(net, grad_position=0, weights=None, has_aux=True)
    grad, logit = grad_func(x, y)
    print("grad", grad)
    print("logit", logit)
    documented("""
=== grads 1 ===
grad [[4. 6. 8.]]
logit (Tensor(shape=[], dtype=Float32, value= 20),)
""")


def test_grads_2_second_input(net, x, y, documented):
    print("=== grads 2 ===")
    grad_func = ms.grad(net, grad_position=1, weights=None, has_aux=True)
    grad, logit = grad_func(x, y)
    print("grad", grad)
    print("logit", logit)
    documented("""
=== grads 2 ===
grad -2.0
logit (Tensor(shape=[], dtype=Float32, value= 20),)
""")


def test_grads_3_both_inputs(net, x, y, documented):
    print("=== grads 3 ===")
    grad_func = ms.grad(net, grad_position=(0, 1), weights=None, has_aux=True)
    grad, logit = grad_func(x, y)
    print("grad", grad)
    print("logit", logit)
    documented(
        """
=== grads 3 ===
grad (Tensor(shape=[1, 3], dtype=Float32, value=
[[4.00000000e+000, 6.00000000e+000, 8.00000000e+000]]), Tensor(shape=[], dtype=Float32, value= -2))
logit (Tensor(shape=[], dtype=Float32, value= 20),)
""",
        three_digits=True,
    )


def test_grads_4_weights(net, x, y, documented):
    print("=== grads 4 ===")
    grad_func = ms.grad(net, grad_position=None, weights=net.trainable_params(), has_aux=True)
    grad, logit = grad_func(x, y)
    print("grad", grad)
    print("logits", logit)
    documented(
        """
=== grads 4 ===
grad (Tensor(shape=[1, 3], dtype=Float32, value=
[[2.00000000e+000, 4.00000000e+000, 6.00000000e+000]]),)
logits (Tensor(shape=[], dtype=Float32, value= 20),)
""",
        three_digits=True,
    )


def test_grads_5_first_input_and_weights(net, x, y, documented):
    print("=== grads 5 ===")
    grad_func = ms.grad(net, grad_position=0, weights=net.trainable_params(), has_aux=True)
    grad, logit = grad_func(x, y)
    print("grad", grad)
    print("logit", logit)
    documented(
        """
=== grads 5 ===
grad (Tensor(shape=[1, 3], dtype=Float32, value=
[[4.00000000e+000, 6.00000000e+000, 8.00000000e+000]]), (Tensor(shape=[1, 3], dtype=Float32, value=
[[2.00000000e+000, 4.00000000e+000, 6.00000000e+000]]),))
logit (Tensor(shape=[], dtype=Float32, value= 20),)
""",
        three_digits=True,
    )


def test_grads_6_both_inputs_and_weights(net, x, y, documented):
    print("=== grads 6 ===")
    grad_func = ms.grad(net, grad_position=(0, 1), weights=net.trainable_params(), has_aux=True)
    grad, logit = grad_func(x, y)
    print("grad", grad)
    print("logit", logit)
    documented(
        """
=== grads 6 ===
grad ((Tensor(shape=[1, 3], dtype=Float32, value=
[[4.00000000e+000, 6.00000000e+000, 8.00000000e+000]]), Tensor(shape=[], dtype=Float32, value= -2)), (Tensor(shape=[1, 3], dtype=Float32, value=
[[2.00000000e+000, 4.00000000e+000, 6.00000000e+000]]),))
logit (Tensor(shape=[], dtype=Float32, value= 20),)
""",  # noqa: E501
        three_digits=True,
    )


def test_grads_7_without_aux(net, x, y, documented):
    print("=== grads 7 ===")
    grad_func = ms.grad(net, grad_position=0, weights=None, has_aux=False)
    grad = grad_func(x, y)  # Only one output
    print("grad", grad)
    documented("""
=== grads 7 ===
grad [[ 6.  9. 12.]]
""")


def test_outputs_added_by_hand(x, y, documented):
    net2 = Net2(3, 1)
    net2.fc.weight.set_data(ms.Tensor([[2, 3, 4]], ms.float32))
    grads = ms.grad(net2, grad_position=0, weights=None, has_aux=False)
    grad = grads(x, y)  # Only one output
    print("grad", grad)
    documented("grad [[ 6.  9. 12.]]")


def test_grads_8_neither_position_nor_weights(net, x, y):
    message = "`grad_position` and `weight` can not be None at the same time."
    with pytest.raises(ValueError, match=message):
        grad_func = ms.grad(net, grad_position=None, weights=None, has_aux=True)
        grad_func(x, y)
    with pytest.raises(ValueError, match=message):
        value_and_grad_func = ms.value_and_grad(net, grad_position=None, weights=None)
        value_and_grad_func(x, y)


def test_value_and_grad(net, x, y, documented):
    print("=== value and grad ===")
    value_and_grad_func = ms.value_and_grad(
        net, grad_position=(0, 1), weights=net.trainable_params(), has_aux=True
    )
    value, grad = value_and_grad_func(x, y)
    print("value", value)
    print("grad", grad)
    documented(
        """
=== value and grad ===
value (Tensor(shape=[], dtype=Float32, value= 1), Tensor(shape=[], dtype=Float32, value= 20))
grad ((Tensor(shape=[1, 3], dtype=Float32, value=
[[4.00000000e+000, 6.00000000e+000, 8.00000000e+000]]), Tensor(shape=[], dtype=Float32, value= -2)), (Tensor(shape=[1, 3], dtype=Float32, value=
[[2.00000000e+000, 4.00000000e+000, 6.00000000e+000]]),))
""",  # noqa: E501
        three_digits=True,
    )


DX, DY, DW = [[4.0, 6.0, 8.0]], -2.0, [[2.0, 4.0, 6.0]]

# The documents' tables: grad_position, with weights or not -> the structure of the gradients.
TABLE = [
    (0, False, DX),
    (1, False, DY),
    ((0, 1), False, (DX, DY)),
    (None, True, (DW,)),
    (0, True, (DX, (DW,))),
    ((0, 1), True, ((DX, DY), (DW,))),
]


def assert_same(gradients, expected):
    """Same nesting of tuples, same numbers."""
    if isinstance(expected, tuple):
        assert isinstance(gradients, tuple)
        assert len(gradients) == len(expected)
        for gradient, part in zip(gradients, expected, strict=True):
            assert_same(gradient, part)
    else:
        assert isinstance(gradients, ms.Tensor)
        np.testing.assert_array_equal(gradients.asnumpy(), np.float32(expected))


@pytest.mark.parametrize(("position", "with_weights", "expected"), TABLE)
def test_table_of_grad(net, x, y, position, with_weights, expected):
    weights = net.trainable_params() if with_weights else None
    gradients, aux = ms.grad(net, position, weights, has_aux=True)(x, y)
    assert_same(gradients, expected)
    assert_same(aux, (20.0,))


@pytest.mark.parametrize(("position", "with_weights", "expected"), TABLE)
def test_table_of_value_and_grad(net, x, y, position, with_weights, expected):
    weights = net.trainable_params() if with_weights else None
    value, gradients = ms.value_and_grad(net, position, weights, has_aux=True)(x, y)
    assert_same(value, (1.0, 20.0))
    assert_same(gradients, expected)


def test_the_gradient_function_is_used_again(net, x, y):
    """No retain_graph: the same gradient function serves any number of calls and new weights."""
    grad_func = ms.grad(net, grad_position=0, weights=None, has_aux=True)
    for _ in range(3):
        assert_same(grad_func(x, y)[0], DX)
    net.fc.weight.set_data(ms.Tensor([[1, 1, 1]], ms.float32))
    assert_same(grad_func(x, y)[0], [[-26.0, -26.0, -26.0]])

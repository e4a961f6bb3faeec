"""MindSpore's "Automatic Differentiation": inputs, weights, `sens_param`, `stop_gradient`.

The class names repeat in the document, each block defining the ones before anew; here each test
defines its own. Differences from the document's text:

- the sums of products may differ in the last digit (`last_digit` in conftest.py): 4.51 for
  4.5099998, 21.5360012 for 21.5359993, 5.5880003 for 5.588, 4.0699997 for 4.07;
- the first output is indented by four blanks in the document;
- `stop_gradient`'s outputs are lists of numbers rounded to one decimal there,
  [[4.5, 2.7, 3.6], ...] and [[9.0, 5.4, 7.2], ...]; the sums are 4.51, 2.7, 3.6 and their doubles,
  and print as an array.
"""

import numpy as np
import pytest

import gradcell.nn as nn
import gradcell.ops as ops
from gradcell import Parameter, ParameterTuple, Tensor, dtype as mstype
from gradcell.ops import stop_gradient


class Net(nn.Cell):
    def __init__(self):
        super(Net, self).__init__()  # noqa: UP008
        self.matmul = ops.MatMul()
        self.z = Parameter(Tensor(np.array([1.0], np.float32)), name="z")

    def construct(self, x, y):
        x = x * self.z
        out = self.matmul(x, y)
        return out


class FrozenNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.matmul = ops.MatMul()
        self.z = Parameter(Tensor(np.array([1.0], np.float32)), name="z", requires_grad=False)

    def construct(self, x, y):
        return self.matmul(x * self.z, y)


class GradNetWrtX(nn.Cell):
    def __init__(self, net, get_all=False):
        super(GradNetWrtX, self).__init__()  # noqa: UP008
        self.net = net
        self.grad_op = ops.GradOperation(get_all=get_all)

    def construct(self, x, y):
        gradient_function = self.grad_op(self.net)
        return gradient_function(x, y)


@pytest.fixture
def x():
    return Tensor([[0.8, 0.6, 0.2], [1.8, 1.3, 1.1]], dtype=mstype.float32)


@pytest.fixture
def y():
    return Tensor([[0.11, 3.3, 1.1], [1.1, 0.2, 1.4], [1.1, 2.2, 0.3]], dtype=mstype.float32)


def test_first_input(x, y, documented):
    output = GradNetWrtX(Net())(x, y)
    print(output)
    documented(
        """
[[4.5099998 2.7       3.6000001]
 [4.5099998 2.7       3.6000001]]
""",
        last_digit=True,
    )


def test_all_inputs(x, y):
    gradients = GradNetWrtX(Net(), get_all=True)(x, y)
    assert isinstance(gradients, tuple)
    dx, dy = (gradient.asnumpy() for gradient in gradients)
    np.testing.assert_allclose(dx, [[4.51, 2.7, 3.6]] * 2, rtol=1e-6)
    np.testing.assert_allclose(dy, np.repeat([[2.6], [1.9], [1.3]], 3, axis=1), rtol=1e-6)


def test_weights(x, y, documented):
    class GradNetWrtX(nn.Cell):
        def __init__(self, net):
            super(GradNetWrtX, self).__init__()  # noqa: UP008
            self.net = net
            self.params = ParameterTuple(net.trainable_params())
            self.grad_op = ops.GradOperation(get_by_list=True)

        def construct(self, x, y):
            gradient_function = self.grad_op(self.net, self.params)
            return gradient_function(x, y)

    output = GradNetWrtX(Net())(x, y)
    print(output)
    text = "(Tensor(shape=[1], dtype=Float32, value= [ 2.15359993e+01]),)"
    documented(text, last_digit=True)


def test_parameter_without_gradient(x, y):
    net = FrozenNet()
    assert net.trainable_params() == []
    assert [param.name for param in net.untrainable_params()] == ["z"]
    np.testing.assert_allclose(GradNetWrtX(net)(x, y).asnumpy(), [[4.51, 2.7, 3.6]] * 2, rtol=1e-6)


def test_gradient_value_scaling(x, y, documented):
    class GradNetWrtX(nn.Cell):
        def __init__(self, net):
            super(GradNetWrtX, self).__init__()  # noqa: UP008
            self.net = net
            self.grad_op = ops.GradOperation(sens_param=True)
            self.grad_wrt_output = Tensor([[0.1, 0.6, 0.2], [0.8, 1.3, 1.1]], dtype=mstype.float32)

        def construct(self, x, y):
            gradient_function = self.grad_op(self.net)
            return gradient_function(x, y, self.grad_wrt_output)

    output = GradNetWrtX(Net())(x, y)
    print(output)
    documented(
        """
[[2.211 0.51  1.49 ]
 [5.588 2.68  4.07 ]]
""",
        last_digit=True,
    )


class TwoProducts(nn.Cell):
    def __init__(self, stop):
        super().__init__()
        self.matmul = ops.MatMul()
        self.stop = stop

    def construct(self, x, y):
        out1 = self.matmul(x, y)
        out2 = self.matmul(x, y)
        if self.stop:
            out2 = stop_gradient(out2)
        out = out1 + out2
        return out


def test_stop_gradient(x, y, documented):
    output = GradNetWrtX(TwoProducts(stop=True))(x, y)
    print(output)
    documented(
        """
[[4.5099998 2.7       3.6000001]
 [4.5099998 2.7       3.6000001]]
""",
        last_digit=True,
    )
    np.testing.assert_allclose(output.asnumpy(), [[4.5, 2.7, 3.6]] * 2, atol=0.011)


def test_without_stop_gradient(x, y):
    output = GradNetWrtX(TwoProducts(stop=False))(x, y).asnumpy()
    np.testing.assert_allclose(output, [[9.02, 5.4, 7.2]] * 2, rtol=1e-6)
    np.testing.assert_allclose(output, [[9.0, 5.4, 7.2]] * 2, atol=0.021)

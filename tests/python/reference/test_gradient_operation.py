"""MindSpore's "Gradient Operation": first order, indexing the output, and second order.

Each block begins with `context.set_context(mode=context.GRAPH_MODE, device_target="GPU")`; here it
names the mode under test and the device under test. Differences from the document's text:

- it is stored as one line, so arrays have lost their line breaks and padding; the text below is
  the array's own;
- the sums of products may differ in the last digit, as in test_inputs_weights_sens.py, and so may the sine:
  -0.84147096 for -0.841471;
- `[10] [8.] [8.] [0.]`: the first is a float like the others and prints as `[10.]`;
- `stop_gradient`'s outputs are lists rounded to one decimal (see test_inputs_weights_sens.py).
"""

import numpy as np
import pytest

import gradcell.context as context
import gradcell.nn as nn
import gradcell.ops as ops
from gradcell import Parameter, ParameterTuple, Tensor, dtype as mstype
from gradcell.ops import stop_gradient


@pytest.fixture(autouse=True)
def block_starts(mode, device):
    context.set_context(mode=mode, device_target=device)


class Net(nn.Cell):
    def __init__(self):
        super(Net, self).__init__()  # noqa: UP008
        self.matmul = ops.MatMul()
        self.z = Parameter(Tensor(np.array([1.0], np.float32)), name="z")

    def construct(self, x, y):
        x = x * self.z
        out = self.matmul(x, y)
        return out


class GradNetWrtX(nn.Cell):
    def __init__(self, net):
        super(GradNetWrtX, self).__init__()  # noqa: UP008
        self.net = net
        self.grad_op = ops.GradOperation()

    def construct(self, x, y):
        gradient_function = self.grad_op(self.net)
        return gradient_function(x, y)


class ScaledGradNetWrtX(nn.Cell):
    """The document's GradNetWrtX of "Gradient Value Scaling"."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.grad_op = ops.GradOperation(sens_param=True)
        self.grad_wrt_output = Tensor([[0.1, 0.6, 0.2], [0.8, 1.3, 1.1]], dtype=mstype.float32)

    def construct(self, x, y):
        gradient_function = self.grad_op(self.net)
        return gradient_function(x, y, self.grad_wrt_output)


@pytest.fixture
def x():
    return Tensor([[0.8, 0.6, 0.2], [1.8, 1.3, 1.1]], dtype=mstype.float32)


@pytest.fixture
def y():
    return Tensor([[0.11, 3.3, 1.1], [1.1, 0.2, 1.4], [1.1, 2.2, 0.3]], dtype=mstype.float32)


def test_input_derivation(x, y, documented):
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
    dx, dy = ops.GradOperation(get_all=True)(Net())(x, y)
    np.testing.assert_allclose(dx.asnumpy(), [[4.51, 2.7, 3.6]] * 2, rtol=1e-6)
    np.testing.assert_allclose(dy.asnumpy(), np.repeat([[2.6], [1.9], [1.3]], 3, axis=1), rtol=1e-6)


def test_weight_derivation(x, y, documented):
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


def test_gradient_value_scaling(x, y, documented):
    output = ScaledGradNetWrtX(Net())(x, y)
    print(output)
    documented(
        """
[[2.211 0.51  1.49 ]
 [5.588 2.68  4.07 ]]
""",
        last_digit=True,
    )


class IndexedNet(nn.Cell):
    """The document's Net that returns one element of its output."""

    def __init__(self):
        super().__init__()
        self.matmul = ops.MatMul()
        self.z = Parameter(Tensor(np.array([1.0], np.float32)), name="z")

    def construct(self, x, y):
        x = x * self.z
        out = self.matmul(x, y)
        return out[0][0]


def test_one_element_of_the_output(x, y, documented):
    output = GradNetWrtX(IndexedNet())(x, y)
    print(output)
    documented("""
[[0.11 1.1  1.1 ]
 [0.   0.   0.  ]]
""")


def test_one_element_selected_by_sens(x, y):
    gradient_function = ops.GradOperation(sens_param=True)(Net())
    sens = Tensor(np.eye(2, 3, dtype=np.float32) * np.array([[1], [0]], np.float32))
    one = gradient_function(x, y, sens)
    np.testing.assert_array_equal(one.asnumpy(), GradNetWrtX(IndexedNet())(x, y).asnumpy())


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


@pytest.mark.parametrize("stop", [True, False])
def test_stop_gradient(x, y, stop):
    output = GradNetWrtX(TwoProducts(stop))(x, y).asnumpy()
    once = np.array([[4.51, 2.7, 3.6]] * 2)
    np.testing.assert_allclose(output, once if stop else 2 * once, rtol=1e-6)


class Grad(nn.Cell):
    def __init__(self, network):
        super(Grad, self).__init__()  # noqa: UP008
        self.grad = ops.GradOperation()
        self.network = network

    def construct(self, x):
        gout = self.grad(self.network)(x)
        return gout


class GradSec(nn.Cell):
    def __init__(self, network):
        super(GradSec, self).__init__()  # noqa: UP008
        self.grad = ops.GradOperation()
        self.network = network

    def construct(self, x):
        gout = self.grad(self.network)(x)
        return gout


def test_single_input_single_output_second_order(documented):
    class Net(nn.Cell):
        def __init__(self):
            super(Net, self).__init__()  # noqa: UP008
            self.sin = ops.Sin()

        def construct(self, x):
            out = self.sin(x)
            return out

    net = Net()
    firstgrad = Grad(net)  # first order
    secondgrad = GradSec(firstgrad)  # second order
    x_train = Tensor(np.array([1.0], dtype=np.float32))
    output = secondgrad(x_train)
    print(output)
    documented("[-0.841471]", last_digit=True)


def test_single_input_multiple_output_second_order(documented):
    class Net(nn.Cell):
        def __init__(self):
            super(Net, self).__init__()  # noqa: UP008
            self.mul = ops.Mul()

        def construct(self, x):
            out = self.mul(x, x)
            return out

    class Grad(nn.Cell):
        def __init__(self, network):
            super(Grad, self).__init__()  # noqa: UP008
            self.grad = ops.GradOperation(sens_param=False)
            self.network = network

        def construct(self, x):
            gout = self.grad(self.network)(x)
            return gout

    class GradSec(nn.Cell):
        def __init__(self, network):
            super(GradSec, self).__init__()  # noqa: UP008
            self.grad = ops.GradOperation(sens_param=False)
            self.network = network

        def construct(self, x):
            gout = self.grad(self.network)(x)
            return gout

    net = Net()
    firstgrad = Grad(net)  # first order
    secondgrad = GradSec(firstgrad)  # second order
    x = Tensor([0.1, 0.2, 0.3], dtype=mstype.float32)
    output = secondgrad(x)
    print(output)
    documented("[2. 2. 2.]")


def test_multiple_input_multiple_output_second_order(documented):
    class Net(nn.Cell):
        def __init__(self):
            super(Net, self).__init__()  # noqa: UP008
            self.mul = ops.Mul()

        def construct(self, x, y):
            x_square = self.mul(x, x)
            x_square_y = self.mul(x_square, y)
            return x_square_y

    class Grad(nn.Cell):
        def __init__(self, network):
            super(Grad, self).__init__()  # noqa: UP008
            self.grad = ops.GradOperation(get_all=True, sens_param=False)
            self.network = network

        def construct(self, x, y):
            gout = self.grad(self.network)(x, y)  # return dx, dy
            return gout

    class GradSec(nn.Cell):
        def __init__(self, network):
            super(GradSec, self).__init__()  # noqa: UP008
            self.grad = ops.GradOperation(get_all=True, sens_param=True)
            self.network = network
            self.sens1 = Tensor(np.array([1]).astype("float32"))
            self.sens2 = Tensor(np.array([0]).astype("float32"))

        def construct(self, x, y):
            dxdx, dxdy = self.grad(self.network)(x, y, (self.sens1, self.sens2))
            dydx, dydy = self.grad(self.network)(x, y, (self.sens2, self.sens1))
            return dxdx, dxdy, dydx, dydy

    net = Net()
    firstgrad = Grad(net)  # first order
    secondgrad = GradSec(firstgrad)  # second order
    x_train = Tensor(np.array([4], dtype=np.float32))
    y_train = Tensor(np.array([5], dtype=np.float32))
    dxdx, dxdy, dydx, dydy = secondgrad(x_train, y_train)
    print(dxdx, dxdy, dydx, dydy)
    documented("[10.] [8.] [8.] [0.]")


# The document's lists of operators with second derivatives, all devices together: value -> f''(x).
SECOND_DERIVATIVES = {
    "Square": (ops.Square(), lambda x: 2 + 0 * x),
    "Exp": (ops.Exp(), np.exp),
    "Neg": (ops.Neg(), lambda x: 0 * x),
    "Log": (ops.Log(), lambda x: -1 / x**2),
    "Sin": (ops.Sin(), lambda x: -np.sin(x)),
    "Cos": (ops.Cos(), lambda x: -np.cos(x)),
    "Tan": (ops.Tan(), lambda x: 2 * np.tan(x) / np.cos(x) ** 2),
    "Sinh": (ops.Sinh(), np.sinh),
    "Cosh": (ops.Cosh(), np.cosh),
    "Atanh": (ops.Atanh(), lambda x: 2 * x / (1 - x**2) ** 2),
}


@pytest.mark.parametrize("name", SECOND_DERIVATIVES)
def test_second_order_of_unary_operators(name):
    operator, second = SECOND_DERIVATIVES[name]

    class Net(nn.Cell):
        def construct(self, x):
            return operator(x)

    x = np.array([0.15, 0.4, 0.75], np.float32)
    output = GradSec(Grad(Net()))(Tensor(x)).asnumpy()
    np.testing.assert_allclose(output, second(x.astype(np.float64)), rtol=2e-5, atol=1e-6)


# Operators of two inputs: d2f/dx2 and d2f/dxdy of a scalar-by-scalar function at (x, y).
MIXED_DERIVATIVES = {
    "Mul": (ops.Mul(), lambda x, y: 0 * x, lambda x, y: 1 + 0 * x),
    "Div": (ops.Div(), lambda x, y: 0 * x, lambda x, y: -1 / y**2),
    "Pow": (
        ops.Pow(),
        lambda x, y: y * (y - 1) * x ** (y - 2),
        lambda x, y: x ** (y - 1) * (1 + y * np.log(x)),
    ),
}


@pytest.mark.parametrize("name", MIXED_DERIVATIVES)
def test_second_order_of_binary_operators(name):
    operator, dxdx, dxdy = MIXED_DERIVATIVES[name]

    class Net(nn.Cell):
        def construct(self, x, y):
            return operator(x, y)

    class FirstInput(nn.Cell):
        def __init__(self, network):
            super().__init__()
            self.grad = ops.GradOperation()
            self.network = network

        def construct(self, x, y):
            return self.grad(self.network)(x, y)

    x = np.array([0.5, 1.5, 2.0], np.float32)
    y = np.array([2.0, 3.0, 1.5], np.float32)
    second = ops.GradOperation(get_all=True)(FirstInput(Net()))(Tensor(x), Tensor(y))
    x, y = x.astype(np.float64), y.astype(np.float64)
    np.testing.assert_allclose(second[0].asnumpy(), dxdx(x, y), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(second[1].asnumpy(), dxdy(x, y), rtol=2e-5, atol=1e-6)


def test_second_order_of_matmul():
    """f(x) = sum(x @ x): the second derivative along ones is linear algebra, done by numpy."""

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.matmul = ops.MatMul()

        def construct(self, x):
            return self.matmul(x, x)

    x = Tensor(np.arange(9, dtype=np.float32).reshape(3, 3))
    ones = np.ones((3, 3))
    first = Grad(Net())(x).asnumpy()
    np.testing.assert_allclose(first, ones @ x.asnumpy().T + x.asnumpy().T @ ones)
    # The gradient's sum is 2 * 3 * sum(x), so the second derivative along ones is 6 everywhere.
    np.testing.assert_allclose(GradSec(Grad(Net()))(x).asnumpy(), 6 * ones)

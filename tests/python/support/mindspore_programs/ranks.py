"""Programs whose inputs are declared, with sizes and numbers of dimensions that are not known."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

ANY = Tensor(shape=None, dtype=ms.float32)
ROWS = Tensor(shape=[None, 3], dtype=ms.float32)


def _x(*shape):
    return Tensor(np.arange(np.prod(shape)).reshape(shape) / 4, ms.float32)


class Sum(nn.Cell):
    def construct(self, x, y):
        return ops.relu(x) * y + x


class Rows(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([[1.0], [2.0], [-1.0]]), name="w")

    def construct(self, x):
        return ops.reduce_mean(ops.sin(ops.matmul(x, self.w)), 0)


def text():
    symbol = ms.Symbol(max=8, divisor=2)
    shapes = (None, [None, 3], (-1, 2), (symbol, 3), [])
    return [repr(Tensor(shape=s, dtype=ms.float32)) for s in shapes]


def any_shape():
    net = Sum()
    net.set_inputs(ANY, ANY)
    return [
        net(_x(*s), _x(*t))
        for s, t in (((2, 3), (3,)), ((4,), (4,)), ((2, 1, 2), (2, 3, 1)), ((), ()))
    ]


def some_sizes():
    net = Sum()
    net.set_inputs(ROWS, ANY)
    return [net(_x(*s), _x(*t)) for s, t in (((2, 3), (3,)), ((4, 3), (1, 3)), ((1, 3), ()))]


def gradients_of_any_shape():
    net = Sum()
    net.set_inputs(ANY, ANY)
    of = ms.grad(net, (0, 1))
    return [of(_x(*s), _x(*t)) for s, t in (((2, 3), (3,)), ((4,), (4,)))]


def gradient_operation():
    class Gradient(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net
            self.of = ops.GradOperation(get_all=True, get_by_list=True)
            self.weights = ms.ParameterTuple(net.trainable_params())

        def construct(self, x):
            return self.of(self.net, self.weights)(x)

    net = Gradient(Rows())
    net.set_inputs(ROWS)
    return [net(_x(n, 3)) for n in (2, 5, 2)]


def training():
    net = Rows()
    opt = nn.SGD(net.trainable_params(), 0.1)
    step = nn.TrainOneStepCell(net, opt)
    step.set_inputs(ROWS)
    found = [step(_x(n, 3)) for n in (2, 4, 3)]
    return found, net.w.value()


def jit_of_any_shape():
    @ms.jit
    def f(x, y):
        return ops.sin(x) * y

    return [f(_x(*s), _x(*s)) for s in ((2,), (2, 2), (1, 2, 3))]


def declared_by_a_decorator():
    @ms.jit
    @ms.enable_dynamic(x=Tensor(shape=None, dtype=ms.float32))
    def f(x):
        return ops.reduce_sum(ops.exp(x))

    return [f(_x(*s)) for s in ((2,), (2, 2))]


def symbols():
    net = Rows()
    net.set_inputs(Tensor(shape=(ms.Symbol(max=8, min=2), 3), dtype=ms.float32))
    return net(_x(2, 3)), net(_x(6, 3))


def wrong_symbol():
    return ms.Symbol(remainder=2)


def init_of_unknown_size():
    return Tensor(shape=[None, 3], dtype=ms.float32, init="ones")


def shape_in_words():
    return Tensor(shape="a", dtype=ms.float32)


def declared_sizes_met_by_another_rank():
    class Net(nn.Cell):
        def construct(self, x):
            return x * 2

    net = Net()
    net.set_inputs(Tensor(shape=[None], dtype=ms.float32))
    return net(Tensor(np.ones((2, 3), np.float32)))

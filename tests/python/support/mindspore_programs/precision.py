"""Cells that compute in float16, with Parameters in tuples, lists and dicts. MindSpore casts what an op gets
in PYNATIVE_MODE, what is read in GRAPH_MODE; the values are the same."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops

X = np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]], np.float32)


class Holder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.linspace(0.1, 1.3, 6).reshape(3, 2), ms.float32), name="w")
        self.b = Parameter(Tensor([0.3, -0.7], ms.float32), name="b")
        self.both = ParameterTuple([self.w, self.b])
        self.listed = [self.w, self.b]
        self.plain = (self.w, self.b)
        self.named = {"w": self.w, "b": self.b}
        self.nested = ((self.w,), (self.b,))
        self.v = Parameter(Tensor(np.linspace(-0.5, 0.9, 9).reshape(3, 3), ms.float32), name="v")
        self.square = ParameterTuple([self.v, self.w])


class Attributes(Holder):
    def construct(self, x):
        return ops.MatMul()(x, self.w) + self.b


class Tuples(Holder):
    def construct(self, x):
        w = self.both[0]
        return ops.MatMul()(x, w) + self.both[1]


class Lists(Holder):
    def construct(self, x):
        return ops.MatMul()(x, self.listed[0]) + self.listed[1]


class Plain(Holder):
    def construct(self, x):
        w, b = self.plain
        return ops.MatMul()(x, w) + b


class Dicts(Holder):
    def construct(self, x):
        return ops.MatMul()(x, self.named["w"]) + self.named["b"]


class Nested(Holder):
    def construct(self, x):
        return ops.MatMul()(x, self.nested[0][0]) + self.nested[1][0]


class Loops(Holder):
    def construct(self, x):
        for p in self.square:
            x = ops.MatMul()(x, p)
        return x


class Above(nn.Cell):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def construct(self, x):
        return self.inner(x) * 2


class Child(nn.Cell):
    def __init__(self, w):
        super().__init__(auto_prefix=False)
        self.ws = [w]

    def construct(self, x):
        return ops.MatMul()(x, self.ws[0])


class Parent(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.linspace(0.1, 1.3, 6).reshape(3, 2), ms.float32), name="w")
        self.child = Child(self.w).to_float(ms.float16)

    def construct(self, x):
        return self.child(x)


def _of(kind):
    net = kind().to_float(ms.float16)
    value, grads = ms.value_and_grad(net, None, net.trainable_params())(Tensor(X))
    return value, grads, Above(kind()).to_float(ms.float16)(Tensor(X))


def read_as_attributes():
    return _of(Attributes)


def read_from_a_tuple_of_parameters():
    return _of(Tuples)


def read_from_a_list():
    return _of(Lists)


def read_from_a_tuple():
    return _of(Plain)


def read_from_a_dict():
    return _of(Dicts)


def read_from_tuples_in_a_tuple():
    return _of(Nested)


def read_in_a_loop():
    return _of(Loops)


def parameters_of_a_parent():
    net = Parent()
    return net(Tensor(X)), ms.value_and_grad(net, None, net.trainable_params())(Tensor(X))[1]


def assigned():
    class Count(nn.Cell):
        def __init__(self):
            super().__init__()
            self.n = Parameter(Tensor([1.0, 2.0], ms.float32), name="n")

        def construct(self, x):
            ops.assign(self.n, self.n + 1)
            return x * 2

    net = Count().to_float(ms.float16)
    net(Tensor(X))
    return net(Tensor(X)), net.n.value()


def assigned_in_a_tuple():
    class Count(nn.Cell):
        def __init__(self):
            super().__init__()
            self.n = Parameter(Tensor([1.0, 2.0], ms.float32), name="n")
            self.held = ParameterTuple([self.n])

        def construct(self, x):
            ops.assign_add(self.held[0], Tensor([1.0, 0.5], ms.float32))
            return x * 2

    net = Count().to_float(ms.float16)
    net(Tensor(X))
    return net(Tensor(X)), net.n.value()


def gradients_inside():
    class Gradient(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net
            self.weights = ParameterTuple(net.trainable_params())
            self.of = ops.GradOperation(get_by_list=True)

        def construct(self, x):
            return self.of(self.net, self.weights)(x)

    return Gradient(Attributes()).to_float(ms.float16)(Tensor(X))

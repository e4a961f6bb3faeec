"""What is wrong with a program, and how that shows."""

import mindspore as ms
from mindspore import Tensor, nn, ops


def _x():
    return Tensor([1.0, 2.0], ms.float32)


class Sum(nn.Cell):
    def construct(self, x, y):
        return x + y


class Own(nn.Cell):
    def construct(self, x, y):
        return x * y


def branch_without_a_value():
    class Net(nn.Cell):
        def construct(self, x):
            if x.sum() > 5:
                return x * 2

    return Net()(_x())


def element_that_is_not_there():
    class Net(nn.Cell):
        def construct(self, x):
            numbers = [1, 2, 3]
            return x * numbers[5]

    return Net()(_x())


def element_of_a_tensor_that_is_not_there():
    class Net(nn.Cell):
        def construct(self, x):
            return x[7]

    return Net()(_x())


def variable_of_another_branch():
    class Net(nn.Cell):
        def construct(self, x):
            if x.sum() > 50:
                y = x
            return y

    return Net()(_x())


def error_of_the_programs_own():
    class Net(nn.Cell):
        def construct(self, x):
            raise ValueError("bad value")

    return Net()(_x())


def gradients_of_one_argument_of_two():
    class Net(Own):
        def bprop(self, x, y, out, dout):
            return (dout,)

    return ms.grad(Net(), (0, 1))(_x(), _x())


def gradients_by_one_of_two_with_one():
    class Net(Own):
        def bprop(self, x, y, out, dout):
            return (dout,)

    return ms.grad(Net())(_x(), _x())


def gradients_that_are_not_returned():
    class Net(nn.Cell):
        def construct(self, x):
            return x * 2

        def bprop(self, x, out, dout):
            dout * 2

    return ms.grad(Net())(_x())


def arguments_of_a_derivative():
    class Net(nn.Cell):
        def construct(self, x):
            return x * 2

        def bprop(self, x, dout):
            return (dout,)

    return ms.grad(Net())(_x())


def arguments_too_few():
    return Sum()(_x())


def arguments_too_many():
    return Sum()(_x(), _x(), _x())


def place_that_is_no_number():
    return ms.grad(Sum(), "a")(_x(), _x())


def nothing_to_differentiate_by():
    return ms.grad(Sum(), None)(_x(), _x())


def cotangent_of_another_shape():
    return ops.GradOperation(sens_param=True)(Sum())(
        _x(), _x(), Tensor([1.0, 2.0, 3.0], ms.float32)
    )


def cotangent_that_is_not_given():
    return ops.GradOperation(sens_param=True)(Sum())(_x(), _x())


def option_of_another_type():
    return ops.GradOperation(get_all=1)


def products_of_other_sizes():
    return ops.matmul(_x(), Tensor([1.0, 2.0, 3.0], ms.float32))


def a_word_beside_a_tensor():
    return Sum()("a", _x())


def gradient_that_was_not_taken():
    return ms.get_grad((_x(),), 0)

"""Functions under jit and in GRAPH_MODE: iterators that they return, attributes that change between two
calls, what they print, gradients by Python's numbers, and derivatives of a program's own."""

import contextlib
import io

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common._grad_function import _Function

X = [0.5, -1.5, 2.0]


def _x():
    return Tensor(X, ms.float32)


def _listed(found):
    """The kind of what a function returns, and what it holds."""
    return type(found).__name__, list(found)


def pairs():
    @ms.jit
    def f(x):
        return zip((1, 2), (x, x + 1))  # noqa: B905

    return _listed(f(_x()))


def values_of_a_map():
    def double(a):
        return a * 2

    @ms.jit
    def f(x):
        return map(double, (x, x + 1))

    return _listed(f(_x()))


def values_of_a_map_of_a_list():
    def double(a):
        return a * 2

    @ms.jit
    def f(x):
        return map(double, [x, x + 1])

    return _listed(f(_x()))


def pairs_of_lists():
    @ms.jit
    def f(x):
        return zip([1, 2], [x, x])  # noqa: B905

    return _listed(f(_x()))


def counted_values():
    @ms.jit
    def f(x):
        return enumerate((x, x + 1)), enumerate([x, x + 1], 3)

    return [_listed(found) for found in f(_x())]


def numbers_in_a_range():
    @ms.jit
    def f(x):
        return range(1, 7, 2)

    return _listed(f(_x()))


def values_backwards():
    @ms.jit
    def f(x):
        return reversed([x, x + 1])

    return list(f(_x()))


def filtered_values():
    def large(a):
        return a > 1

    @ms.jit
    def f(x):
        return filter(large, (1, 2, 3)), filter(large, [1, 2, 3])

    return [_listed(found) for found in f(_x())]


def iterator_of_a_tuple():
    @ms.jit
    def f(x):
        return iter((x, x + 1))

    return list(f(_x()))


def generated_values():
    @ms.jit
    def f(x):
        return (a * 2 for a in (x, x + 1))

    return list(f(_x()))


def items_of_a_dict():
    @ms.jit
    def f(x):
        return {"a": x, "b": x + 1}.items()

    return _listed(f(_x()))


def keys_of_a_dict():
    @ms.jit
    def f(x):
        return {"a": x, "b": x + 1}.keys()

    return _listed(f(_x()))


def values_of_a_dict():
    @ms.jit
    def f(x):
        return {"a": x, "b": x + 1}.values()

    return _listed(f(_x()))


def elements_of_a_tensor():
    @ms.jit
    def f(x):
        return tuple(zip(x, x + 1))  # noqa: B905

    return f(_x())


class _Scaled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.n, self.numbers, self.named = 2, [1, 3], {"a": 1}
        self.pair = (1.0, 2.0)

    def construct(self, x):
        return x * self.n + self.numbers[0] + self.named["a"] * self.pair[0]


class _Compiled(_Scaled):
    @ms.jit
    def construct(self, x):
        return x * self.n + self.numbers[0] + self.named["a"] * self.pair[0]


def _changed(net):
    found = [net(_x())]
    net.n = 5
    found.append(net(_x()))
    net.pair = (7.0, 1.0)
    found.append(net(_x()))
    return found


def attribute_that_changes():
    return _changed(_Scaled())


def attribute_of_a_compiled_method_that_changes():
    return _changed(_Compiled())


def attribute_of_another_object():
    class Options:
        scale = 2.0

    options = Options()

    @ms.jit
    def f(x):
        return x * options.scale

    first = f(_x())
    options.scale = 5.0
    return first, f(_x())


def parameter_that_changes():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(2.0, ms.float32), name="w")

        @ms.jit
        def construct(self, x):
            return x * self.w

    net = Net()
    first = net(_x())
    net.w.set_data(Tensor(3.0, ms.float32))
    return first, net(_x())


def counter_that_a_method_counts():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = 0

        @ms.jit
        def construct(self, x):
            self.count = self.count + 1
            return x * self.count

    net = Net()
    return net(_x()), net(_x()), net.count


def tensor_that_a_method_keeps():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.kept = Tensor(1.0, ms.float32)

        @ms.jit
        def construct(self, x):
            self.kept = self.kept * 2
            return x * self.kept

    net = Net()
    return net(_x()), net(_x()), net.kept


def gradients_by_numbers():
    def f(x, n):
        return x * n

    found = [ms.grad(f, place)(_x(), n) for place in (1, (0, 1)) for n in (2, 2.0, ms.mutable(2.0))]
    return found, ms.value_and_grad(f, 1)(_x(), 2.0)


def all_gradients_beside_an_int():
    class Net(nn.Cell):
        def construct(self, x, n):
            return x * n

    return ops.GradOperation(get_all=True)(Net())(_x(), 3)


def _of_two(back):
    """A product with gradients of its own, which MindSpore checks in PYNATIVE_MODE alone."""
    ms.set_context(mode=ms.PYNATIVE_MODE)

    class Product(nn.Cell):
        def construct(self, x, y):
            return x * y

    Product.bprop = back
    return Product()


def own_gradients_too_many():
    def bprop(self, x, y, out, dout):
        return dout, dout * 2, dout * 3

    return ms.grad(_of_two(bprop), (0, 1))(_x(), _x())


def own_gradient_that_is_one_tensor():
    def bprop(self, x, y, out, dout):
        return dout

    return ms.grad(_of_two(bprop), (0, 1))(_x(), _x())


def own_gradient_of_another_shape():
    def bprop(self, x, y, out, dout):
        return dout, dout[:2]

    return ms.grad(_of_two(bprop), (0, 1))(_x(), _x())


def own_gradient_of_fewer_axes():
    def bprop(self, x, y, out, dout):
        return dout, dout.sum()

    return ms.grad(_of_two(bprop), (0, 1))(_x(), _x())


def own_gradient_that_is_a_number():
    def bprop(self, x, y, out, dout):
        return dout, 3

    return ms.grad(_of_two(bprop), (0, 1))(_x(), _x())


def own_gradient_of_another_dtype():
    def bprop(self, x, y, out, dout):
        return dout, dout.astype(ms.float16)

    return ms.grad(_of_two(bprop), (0, 1))(_x(), _x())


class _OneTooFew(_Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, dout):
        return dout


class _Number(_OneTooFew):
    @staticmethod
    def backward(ctx, dout):
        return dout, 3


class _OtherShape(_OneTooFew):
    @staticmethod
    def backward(ctx, dout):
        return dout, dout[:2]


class _Nothing(_OneTooFew):
    @staticmethod
    def backward(ctx, dout):
        return None


def _by(function):
    """Gradients by a _Function, which MindSpore runs in PYNATIVE_MODE alone."""
    ms.set_context(mode=ms.PYNATIVE_MODE)

    def f(x, y):
        return function.apply(x, y)

    return ms.grad(f, (0, 1))(_x(), _x())


def function_with_a_gradient_too_few():
    return _by(_OneTooFew)


def function_whose_gradient_is_a_number():
    return _by(_Number)


def function_whose_gradient_has_another_shape():
    return _by(_OtherShape)


def function_without_a_gradient():
    return _by(_Nothing)


class _NotReturned(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2

    @staticmethod
    def backward(ctx, dout):
        return dout * 2


def written_and_not_returned():
    ms.set_context(mode=ms.PYNATIVE_MODE)

    def f(x):
        return _NotReturned.apply(x * 1)

    return ms.grad(f)(_x())


def _printed(function, *args):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        function(*args)
    return said.getvalue().split()


def words_of_a_tensor():
    def f():
        print(_x(), Tensor(2), Tensor(2.5), Tensor([True]), Parameter(_x(), name="q"))

    return _printed(f)


def branch_without_a_name():
    @ms.jit
    def f(x):
        if x.sum() > 100:
            y = x
        return y

    return f(_x())


def branch_without_an_end():
    @ms.jit
    def f(x):
        if x.sum() > 0:
            return x * 2

    return f(_x()), f(-_x())


def branches_of_two_shapes():
    @ms.jit
    def f(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x[:2]
        return y

    return f(_x()), f(-_x())

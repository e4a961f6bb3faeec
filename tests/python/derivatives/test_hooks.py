"""Hooks on tensors, cells and primitives, no_grad, and what says whether a gradient is wanted.

Numbers without a formula beside them are what MindSpore 2.10 printed for the same text.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from ops_checks import all_close as close, of

import gradcell as ms
from gradcell import Parameter, nn, ops

X, Y = np.array([1.0, -2.0, 3.0]), np.array([4.0, 5.0, 6.0])


def line_of(error: pytest.ExceptionInfo[BaseException]) -> None:
    assert re.search(r"test_hooks\.py:\d+", str(error.value)), str(error.value)


def numbers(gradients: Any) -> Any:
    return [None if g is None else g.asnumpy().tolist() for g in gradients]


# Tensor.register_hook -------------------------------------------------------------------------------


def test_a_hook_on_a_tensor(mode):
    def f(x, y):
        z = x * y
        z.register_hook(lambda g: g * 2)
        return z * y

    close(ms.grad(f, (0, 1))(of(1), of(2)), (8, 6))


def test_a_hook_that_is_removed(mode):
    def f(x, y):
        z = x * y
        handle = z.register_hook(lambda g: g * 2)
        z = z * y
        handle.remove()
        handle.remove()
        return z

    close(ms.grad(f, (0, 1))(of(1), of(2)), (4, 4))


def test_a_hook_after_the_tensor_has_been_used(mode):
    def f(x, y):
        z = x * y
        w = z * y
        z.register_hook(lambda g: g * 2)
        return w

    close(ms.grad(f, (0, 1))(of(1), of(2)), (8, 6))

    def nested(x, y):
        z = x * y
        w = ms.grad(lambda a: a * a * z)(y)  # 2 y z
        z.register_hook(lambda g: g * 2)
        return w

    close(ms.grad(nested, (0, 1))(of(1), of(2)), (16, 12))  # 2 (2 y) y; 2 z + 2 (2 y) x


def test_hooks_on_arguments(mode):
    def inside(x, y):
        x.register_hook(lambda g: g * 2)
        return x * y

    close(ms.grad(inside, (0, 1))(of(1), of(2)), (4, 1))
    a = of(1)
    handle = a.register_hook(lambda g: g * 2)
    f = ms.grad(lambda x, y: x * y, (0, 1))
    close(f(a, of(2)), (4, 1))
    close(f(of(1), of(2)), (2, 1))
    close(f(a, of(2)), (4, 1))
    assert len(a.hooks()) == 1
    handle.remove()
    close(f(a, of(2)), (2, 1))
    assert a.hooks() == []


def test_hooks_on_arguments_of_a_compiled_function(mode):
    f = ms.jit(ms.grad(lambda x, y: x * y, (0, 1)))
    close(f(of(1), of(2)), (2, 1))
    a = of(1)
    handle = a.register_hook(lambda g: g * 2)
    for _ in range(2):
        close(f(of(1), of(2)), (2, 1))
        close(f(a, of(2)), (4, 1))
    handle.remove()
    for x in (of(1), a):
        close(f(x, of(2)), (2, 1))


def test_several_hooks_one_after_the_other(mode):
    def f(x, y):
        z = x * y
        z.register_hook(lambda g: g * 2)
        z.register_hook(lambda g: g + 1)
        return z * y

    close(ms.grad(f, (0, 1))(of(1), of(2)), (10, 7))


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
def test_a_hook_sees_the_whole_gradient_once(mode):
    calls = []

    def f(x, y):
        z = x * y
        z.register_hook(lambda g: calls.append(g.asnumpy().tolist()) or g * 2)
        return z * z + z

    got = ms.grad(f, (0, 1))(of([1, 2, 3]), of(Y))
    close(got, ([72, 210, 444], [18, 84, 222]))
    assert calls == [[9, 21, 37]]


def test_a_hook_that_gives_nothing_or_another_dtype(mode):
    def f(x, y):
        z = x * y
        z.register_hook(lambda g: None)
        z.register_hook(lambda g: g.astype(ms.float16))
        return z * y

    close(ms.grad(f, (0, 1))(of([1, 2, 3]), of(Y)), ([16, 25, 36], [8, 20, 36]))


def test_hooks_on_parameters(mode):
    net = nn.Dense(3, 1, weight_init="ones")
    grad = ms.grad(net, None, net.trainable_params())
    x = of(np.ones((2, 3)))
    close(grad(x), ([[2, 2, 2]], [2]))
    handle = net.weight.register_hook(lambda g: g * 2)
    close(grad(x), ([[4, 4, 4]], [2]))
    handle.remove()
    close(grad(x), ([[2, 2, 2]], [2]))
    p = Parameter(of(X), name="p")
    calls = []
    p.register_hook(lambda g: calls.append(1) or g * 2)
    close(ms.grad(lambda a: (p * a + p).sum(), None, [p])(of(Y)), ([10, 12, 14],))
    assert calls == [1]


def test_hooks_and_derivatives_of_higher_order(mode):
    def f(x):
        z = x * x
        z.register_hook(lambda g: g * 3)
        return z * x

    # 3 * x * 2 x + x^2 = 7 x^2, and the hook again: d/dx (6 x x + z) with z hooked.
    close(ms.grad(f)(of(X)), 7 * X**2)
    close(ms.grad(ms.grad(f))(of(X)), 12 * X + 3 * 2 * X)


@pytest.mark.parametrize(
    ("hook", "error", "match"),
    [
        (lambda g: g.sum(), ValueError, r"of shape \[3\] and must return one of that shape"),
        (lambda g: 1.0, RuntimeError, "A tensor hook should return a Tensor, but got type: float"),
    ],
)
def test_hooks_that_return_something_else(mode, hook, error, match):
    def f(x):
        z = x * 2
        z.register_hook(hook)
        return z

    with pytest.raises(error, match=match) as e:
        ms.grad(f)(of(X))
    line_of(e)
    a = of(X)
    a.register_hook(hook)
    with pytest.raises(error, match=match):
        ms.grad(lambda x: x * 2)(a)


def test_what_is_no_hook():
    for register in (
        of(X).register_hook, nn.ReLU().register_forward_hook, nn.ReLU().register_forward_pre_hook,
        nn.ReLU().register_backward_hook, nn.ReLU().register_backward_pre_hook, ops.HookBackward,
        ops.InsertGradientOf,
    ):  # fmt: skip
        with pytest.raises(TypeError, match="Expected a callable hook function, but got int") as e:
            register(3)
        line_of(e)


def test_a_hook_in_a_jitted_step_runs_without_python_later():
    calls = []
    net = nn.Dense(2, 1, weight_init="ones")
    net.weight.register_hook(lambda g: calls.append(1) or g * 2)
    gradient = ms.grad(net, None, net.trainable_params())
    step = ms.jit(lambda x: gradient(x))
    for _ in range(3):
        close(step(of([[1, 2]])), ([[2, 4]], [1]))
    assert len(calls) == 1
    net.weight.register_hook(lambda g: g * 5)
    close(step(of([[1, 2]])), ([[10, 20]], [1]))


# Primitives -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
def test_insert_gradient_of(mode):
    a, b = of([1.0]), of([0.2])

    def clip_gradient(dx):
        ret = dx
        if ret > a:
            ret = a
        if ret < b:
            ret = b
        return ret

    clip = ops.InsertGradientOf(clip_gradient)

    def clip_test(x, y):
        x = clip(x)
        y = clip(y)
        return x * y

    x, y = of([1.1]), of([0.1])
    close(ms.jit(clip_test)(x, y), [0.11000001])
    close(ops.GradOperation(get_all=True)(clip_test)(x, y), ([0.2], [1.0]))


def test_insert_gradient_of_more(mode):
    double = ops.InsertGradientOf(lambda g: g * 2)
    f = lambda a: double(a) * a  # noqa: E731
    close(ms.grad(f)(of(X)), 3 * X)
    close(ms.jvp(f, of(X), of(X)), (X * X, [3, 12, 27]))
    square = ops.InsertGradientOf(lambda g: g * g)
    cube = lambda a: (square(a) ** 3).sum()  # noqa: E731
    x = of([1, 2, 3])
    close(ms.grad(cube)(x), [9, 144, 729])
    close(ms.grad(ms.grad(cube))(x), [1296, 82944, 944784])
    pair = ops.InsertGradientOf(lambda g: (g[0] * 2, g[1] * 3))

    def of_pair(a, b):
        p, q = pair((a, b))
        return p * q

    close(ms.grad(of_pair, (0, 1))(of(X), of(Y)), (2 * Y, 3 * X))
    nothing = ops.InsertGradientOf(lambda g: None)
    close(ms.grad(lambda a: nothing(a) * a)(of(X)), 2 * X)
    with pytest.raises(ValueError, match=r"should be Tensor shape:\[3\].*shape:\[\]") as error:
        ms.grad(lambda a: ops.InsertGradientOf(lambda g: g.sum())(a) * a)(of(X))
    line_of(error)


def test_hook_backward(mode, capsys):
    def show(g):
        print(g)

    hook = ops.HookBackward(show)

    def f(x, y):
        z = hook(x * y)
        return z * y

    close(ops.GradOperation(get_all=True)(f)(of(1), of(2)), (4, 4))
    assert capsys.readouterr().out == "(Tensor(shape=[], dtype=Float32, value= 2),)\n"
    for new in (lambda g: g[0] * 2, lambda g: (g[0] * 2,)):
        double = ops.HookBackward(new)
        got = ms.grad(lambda a, b: double(a * b) * b, (0, 1))(of([1, 2, 3]), of(Y))  # noqa: B023
        close(got, ([32, 50, 72], [12, 30, 54]))
    two = ops.HookBackward(lambda g: (g[0] * 2, g[1] * 3))

    def product(a, b):
        a, b = two(a, b)
        return a * b

    close(ms.grad(product, (0, 1))(of(X), of(Y)), (2 * Y, 3 * X))
    for bad in (lambda g: g[0].sum(), lambda g: g[0].astype(ms.float16)):
        with pytest.raises(ValueError, match="is not consistent with the expected"):
            ms.grad(lambda a: ops.HookBackward(bad)(a) * 1)(of(X))  # noqa: B023
    with pytest.raises(TypeError, match="must return 1 gradients, got 2"):
        ms.grad(lambda a: ops.HookBackward(lambda g: (g[0], g[0]))(a) * 1)(of(X))
    with pytest.raises(TypeError, match="expected tensors, got float"):
        hook(3.0)


# Cells ----------------------------------------------------------------------------------------------


class Mul(nn.Cell):
    def construct(self, x, y):
        return x * y


class Two(nn.Cell):
    def construct(self, x, y):
        return x * y, x + y


GRAD_ALL = ops.GradOperation(get_all=True)


def test_forward_pre_hooks(mode):
    seen = []
    cell = Mul()
    look = cell.register_forward_pre_hook(lambda c, inputs: seen.append((c, len(inputs))))
    close(GRAD_ALL(lambda x, y: cell(x * 2, y))(of(X), of(Y)), (2 * Y, 2 * X))
    assert seen == [(cell, 2)]
    look.remove()
    cell.register_forward_pre_hook(lambda c, inputs: (inputs[0] * 3, inputs[1]))
    close(GRAD_ALL(lambda x, y: cell(x * 2, y))(of(X), of(Y)), ([24, 30, 36], [6, -12, 18]))
    relu = nn.ReLU()
    relu.register_forward_pre_hook(lambda c, inputs: inputs[0] * 3)
    close(ms.grad(relu)(of(X)), [3, 0, 3])
    assert len(seen) == 1


def test_order_and_keywords_of_forward_hooks(mode):
    order, cell = [], Mul()
    cell.register_forward_pre_hook(lambda c, i: order.append("first"))
    cell.register_forward_pre_hook(lambda c, i: order.append("before"), prepend=True)
    cell.register_forward_pre_hook(lambda c, i, k: (i, {"y": k["y"] * 2}), with_kwargs=True)
    cell.register_forward_hook(lambda c, i, k, o: order.append(sorted(k)), with_kwargs=True)
    cell.register_forward_hook(lambda c, i, o: o * 5)
    close(cell(of(X), y=of(Y)), 10 * X * Y)
    assert order == ["before", "first", ["y"]]
    cell.register_forward_pre_hook(lambda c, i, k: i, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"None or a tuple of \(new_args, new_kwargs\)") as error:
        cell(of(X), y=of(Y))
    line_of(error)


def test_forward_hooks_that_are_always_called(mode):
    class Bad(nn.Cell):
        def construct(self, x):
            raise ArithmeticError("bad")

    cell, seen = Bad(), []
    cell.register_forward_hook(lambda c, i, o: seen.append(o), always_call=True)
    cell.register_forward_hook(lambda c, i, o: seen.append("not"))
    with pytest.raises(ArithmeticError, match="bad"):
        cell(of(X))
    assert seen == [None]


def test_backward_pre_hooks(mode):
    cell, seen = Mul(), []
    f = GRAD_ALL(lambda x, y: cell(x * 2, y))
    look = cell.register_backward_pre_hook(lambda c, g: seen.append((c is cell, numbers(g))))
    close(f(of(X), of(Y)), ([8, 10, 12], [2, -4, 6]))
    assert seen == [(True, [[1, 1, 1]])]
    look.remove()
    for new in (lambda c, g: (g[0] * 2,), lambda c, g: g[0] * 2):
        handle = cell.register_backward_pre_hook(new)
        close(f(of(X), of(Y)), ([16, 20, 24], [4, -8, 12]))
        handle.remove()
    two = Two()
    two.register_backward_pre_hook(lambda c, g: (g[0] * 2, g[1] * 3))
    close(GRAD_ALL(lambda x, y: two(x * 2, y))(of(X), of(Y)), ([22, 26, 30], [7, -5, 15]))


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
def test_backward_hooks(mode):
    cell, seen = Mul(), []
    f = GRAD_ALL(lambda x, y: cell(x * 2, y))
    look = cell.register_backward_hook(lambda c, i, o: seen.append((numbers(i), numbers(o))))
    close(f(of(X), of(Y)), ([8, 10, 12], [2, -4, 6]))
    assert seen == [([[4, 5, 6], [2, -4, 6]], [[1, 1, 1]])]
    look.remove()
    double = cell.register_backward_hook(lambda c, i, o: (i[0] * 2, i[1] * 3))
    close(f(of(X), of(Y)), ([16, 20, 24], [6, -12, 18]))
    close(ms.jvp(lambda x: cell(x, of(Y)), of(X), of(X))[1], 2 * X * Y)
    double.remove()
    close(f(of(X), of(Y)), ([8, 10, 12], [2, -4, 6]))


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
def test_what_backward_hooks_are_called_with(mode):
    seen: list[Any] = []

    def look(cell, grad_input, grad_output):
        seen.append((numbers(grad_input), numbers(grad_output)))

    two = Two()
    two.register_backward_hook(look)
    ms.grad(lambda a, b: two(a, b)[0], (0, 1))(of(X), of(Y))
    assert seen.pop() == ([[4, 5, 6], [1, -2, 3]], [[1, 1, 1], None])
    ms.grad(lambda a: two(a, of(Y))[0])(of(X))
    assert seen.pop() == ([[4, 5, 6], [1, -2, 3]], [[1, 1, 1], None])

    dense = nn.Dense(3, 2, weight_init="ones")
    dense.register_backward_hook(look)
    dense.register_backward_pre_hook(lambda c, g: seen.append(numbers(g)))
    got = ms.grad(dense, None, dense.trainable_params())(of(np.ones((2, 3))))
    close(got, (np.full((2, 3), 2), [2, 2]))
    assert seen == [[[[1, 1], [1, 1]]], ([None], [[[1, 1], [1, 1]]])]
    seen.clear()

    class Scaled(nn.Cell):
        def construct(self, x, n):
            return x * n

    scaled = Scaled()
    scaled.register_backward_hook(look)
    ms.grad(lambda a: scaled(a, 3))(of(X))
    assert seen.pop() == ([[3, 3, 3]], [[1, 1, 1]])

    class Paired(nn.Cell):
        def construct(self, t):
            return t[0] * t[1]

    paired = Paired()
    paired.register_backward_hook(look)
    close(ms.grad(lambda a: paired((a, of(Y))))(of(X)), Y)
    assert seen.pop() == ([None], [[1, 1, 1]])

    class Own(nn.Cell):
        def construct(self, x):
            return x * 2

        def bprop(self, x, out, dout):
            return dout * 7

    own = Own()
    own.register_backward_hook(look)
    close(ms.grad(own)(of(X)), [7, 7, 7])
    assert seen.pop() == ([[7, 7, 7]], [[1, 1, 1]])


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
def test_backward_hooks_one_after_the_other(mode):
    seen: list[Any] = []
    cell = Mul()
    cell.register_backward_hook(lambda c, i, o: (i[0] * 2, i[1]))
    cell.register_backward_hook(lambda c, i, o: seen.append((numbers(i), numbers(o))))
    cell.register_backward_pre_hook(lambda c, g: (g[0] * 10,))
    close(GRAD_ALL(cell)(of(X), of(Y)), ([80, 100, 120], [10, -20, 30]))
    assert seen == [([[80, 100, 120], [10, -20, 30]], [[10, 10, 10]])]
    seen.clear()
    relu = nn.ReLU()
    relu.register_backward_hook(lambda c, i, o: seen.append((numbers(i), numbers(o))))
    close(ms.grad(lambda a: relu(relu(a) * 2))(of(X)), [2, 0, 2])
    assert seen == [([[1, 0, 1]], [[1, 1, 1]]), ([[2, 0, 2]], [[2, 0, 2]])]


def test_backward_hooks_of_second_order(mode):
    class Cube(nn.Cell):
        def construct(self, a):
            return a**3

    cube = Cube()
    cube.register_backward_hook(lambda c, i, o: (i[0] * 2,))
    close(ms.grad(cube)(of(X)), 6 * X**2)
    # The derivative of that, 12 x, goes through the cell's argument too, and there it is doubled.
    close(ms.grad(ms.grad(cube))(of(X)), 24 * X)


@pytest.mark.parametrize(
    ("kind", "hook", "error", "match"),
    [
        ("backward_pre", lambda c, g: (g[0], g[0]), TypeError, "pre hook return value size is 2"),
        ("backward_pre", lambda c, g: g[0].sum(), ValueError, "not consistent with the expected"),
        ("backward_pre", lambda c, g: g[0].astype(ms.float16), ValueError, "Float16"),
        ("backward_pre", lambda c, g: 3, TypeError, "must return tensors, got int"),
        (
            "backward",
            lambda c, i, o: i[0],
            TypeError,
            "value size is 1 not equal to expect grad input",
        ),
        ("backward", lambda c, i, o: (i[0].sum(), i[1]), ValueError, r"shape:\[3\].*shape:\[\]"),
    ],
)
def test_backward_hooks_that_return_something_else(mode, kind, hook, error, match):
    cell = Mul()
    getattr(cell, f"register_{kind}_hook")(hook)
    with pytest.raises(error, match=match) as e:
        GRAD_ALL(cell)(of(X), of(Y))
    line_of(e)


# no_grad, _requires_grad, _retain_grad -----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
def test_no_grad(mode):
    def some(a):
        with ms._no_grad():
            b = a * a
        return a * b

    close(ms.grad(some)(of(X)), X * X)

    def all_of_it(a):
        with ms.no_grad():
            return a * a

    close(ms.grad(all_of_it)(of(X)), 0 * X)

    @ms.no_grad()
    def decorated(a):
        return a * a if float(a.sum()) < 0 else decorated(-a)

    close(ms.grad(lambda a: decorated(a) * a)(of(X)), X * X)
    close(ms.jvp(some, of(X), of(Y))[1], X * X * Y)
    with ms.no_grad():
        close(some(of(X)), X**3)


def test_gradients_inside_no_grad(mode):
    f = lambda a: a * a  # noqa: E731
    with ms.no_grad():
        for transform in (ms.grad(f), ms.value_and_grad(f), ops.GradOperation()(f)):
            with pytest.raises(
                RuntimeError, match="In no_grad context, you can not calculate"
            ) as e:
                transform(of(X))
            line_of(e)

    def inner(a):
        with ms.no_grad():
            b = ms.grad(f)(a)
        return a * b

    with pytest.raises(RuntimeError, match="In no_grad context"):
        ms.grad(inner)(of(X))
    close(ms.grad(f)(of(X)), 2 * X)  # it has ended, error or not


def test_whether_a_gradient_is_wanted():
    t = of(X)
    assert not t._requires_grad
    t.requires_grad_()
    assert t._requires_grad and not t._retains_grad and t._grad is None
    seen = []

    def f(a):
        b, c = a * 2, t * 2
        seen.append((a._requires_grad, b._requires_grad, c._requires_grad))
        with pytest.raises(RuntimeError, match="You can only set requires_grad false to a leaf"):
            b.requires_grad_(False)
        with pytest.raises(RuntimeError, match="Can't retain grad"):
            c._retain_grad()
        return b

    ms.grad(f)(of(X))
    assert seen == [(True, True, False)]


def test_a_gradient_that_is_kept():
    kept = []

    def f(a):
        b = a * 2
        b._retain_grad()
        kept.append(b)
        return b * b

    close(ms.grad(f)(of(X)), 8 * X)
    assert kept[0]._retains_grad
    close(kept[0]._grad, 4 * X)
    p = Parameter(of(X), name="p")
    p._retain_grad()
    close(ms.grad(lambda a: a * p, None, [p])(of(Y)), (Y,))
    close(p._grad, Y)


def test_a_parameter_that_is_not_trained_has_no_gradient(mode):
    p = Parameter(of(X), name="p", requires_grad=False)
    close(ms.grad(lambda a: a * p, None, [p])(of(Y)), (0 * X,))

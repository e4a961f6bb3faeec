"""Functions with derivatives of their own: Cell.bprop, _Function, custom_vjp, custom_jvp, ops.Custom.

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
from gradcell.common import _Function

X, Y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])


def line_of(error: pytest.ExceptionInfo[BaseException]) -> None:
    assert re.search(r"test_own_derivatives\.py:\d+", str(error.value)), str(error.value)


class Mul(nn.Cell):
    def construct(self, x, y):
        return x * y

    def bprop(self, x, y, out, dout):
        return 10 * dout * y, 100 * dout * x


class Exp(nn.Cell):
    def construct(self, x):
        return ops.exp(x)

    def bprop(self, x, out, dout):
        return (3 * dout * out,)


# Cell.bprop -----------------------------------------------------------------------------------------


def test_bprop(mode):
    x, y = of(X), of(Y)
    close(ms.grad(Mul(), (0, 1))(x, y), ([40, 50, 60], [100, 200, 300]))
    close(Mul()(x, y), X * Y)


def test_bprop_inside_other_code(mode):
    m = Mul()
    got = ms.grad(lambda a, b: ops.sin(m(a * 2, b)).sum(), (0, 1))(of(X), of(Y))
    close(
        got, ([-11.6400032, 40.8082047, -15.3556423], [-29.1000061, 163.232834, -76.7782135]), 2e-6
    )


def test_bprop_of_second_order(mode):
    m = Mul()
    got = ms.grad(lambda a, b: ms.grad(m, (0, 1))(a, b)[0], (0, 1))(of(X), of(Y))
    close(got, ([0, 0, 0], [10, 10, 10]))


def test_the_output_in_bprop_has_that_derivative_too(mode):
    close(ms.grad(ms.grad(Exp()))(of(X)), [24.4645195, 66.5015411, 180.769928], 2e-6)


def test_bprop_of_third_order(mode):
    class Sine(nn.Cell):
        def construct(self, x):
            return ops.sin(x)

        def bprop(self, x, out, dout):
            return (dout * ops.cos(x) * 2,)

    got = ms.grad(ms.grad(ms.grad(Sine())))(of([1, -2, 3]))
    close(got, [-1.0806046, 0.8322937, 1.979985])


def test_bprop_gives_one_gradient_by_itself(mode):
    class One(nn.Cell):
        def construct(self, x):
            return x * x

        def bprop(self, x, out, dout):
            return 5 * dout * x

    close(ms.grad(One())(of(X)), 5 * X)


def test_bprop_of_several_outputs(mode):
    class Two(nn.Cell):
        def construct(self, x, y):
            return x * y, x + y

        def bprop(self, x, y, out, dout):
            return dout[0] * y * 2, dout[1] * 3 + out[0]

    m, x, y = Two(), of(X), of(Y)
    close(ms.grad(m, (0, 1))(x, y), ([8, 10, 12], [7, 13, 21]))
    close(ms.grad(lambda a, b: m(a, b)[0], (0, 1))(x, y), ([8, 10, 12], [4, 10, 18]))
    # The output that the result does not need is there for bprop inside another derivative as well.
    second = ms.grad(lambda a, b: ms.grad(lambda c: m(c, b)[1])(a) + 0 * a, (0, 1))
    close(second(x, y), ([0, 0, 0], [0, 0, 0]))
    second = ms.grad(lambda a, b: ms.grad(lambda c: m(b, c)[1])(a), (0, 1))
    close(second(x, y), (X * Y, 2 * X))  # of 3 + out[0], by bprop again


def test_bprop_with_other_arguments(mode):
    class Times(nn.Cell):
        def construct(self, x, n):
            return x * n

        def bprop(self, x, n, out, dout):
            return dout * n * 2, 0

    class Default(nn.Cell):
        def construct(self, x, k=2.0):
            return x * k

        def bprop(self, x, k, out, dout):
            return dout * 5 * k, 0.0

    class Pair(nn.Cell):
        def construct(self, x, t):
            return x * t[0] * t[1]

        def bprop(self, x, t, out, dout):
            return dout * 2, (dout * 3, dout * 4)

    close(ms.grad(Times())(of(X), 3), [6, 6, 6])
    d, p = Default(), Pair()
    close(ms.grad(d)(of(X)), [10, 10, 10])
    close(ms.grad(lambda a: d(a, k=3.0))(of(X)), [15, 15, 15])
    close(ms.grad(lambda a, b: p(a, (b, b)), (0, 1))(of(X), of(Y)), ([2, 2, 2], [7, 7, 7]))


class WithParameter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(of([2, 2, 2]), name="w")

    def construct(self, x):
        return x * self.w

    def bprop(self, x, out, dout):
        return (7 * dout * self.w,)


def test_bprop_and_parameters(mode):
    m = WithParameter()
    close(ms.grad(m, 0, m.trainable_params())(of(X)), ([14, 14, 14], ([0, 0, 0],)))

    class Given(WithParameter):
        def bprop(self, x, out, dout):
            return (7 * dout,), {self.w: 11 * dout * x}

    m = Given()
    close(ms.grad(m, 0, m.trainable_params())(of(X)), ([7, 7, 7], (11 * X,)))
    close(ms.grad(lambda a: ms.grad(m, None, m.trainable_params())(a)[0])(of(X)), [11, 11, 11])


def test_bprop_takes_gradients_itself(mode):
    inner = Exp()

    class Outer(nn.Cell):
        def construct(self, x):
            return inner(x)

        def bprop(self, x, out, dout):
            return (dout * ms.grad(inner)(x) * 10,)

    close(ms.grad(Outer())(of(X)), 30 * np.exp(X), 2e-6)
    close(ms.grad(ms.grad(Outer()))(of(X)), 90 * np.exp(X), 2e-6)


def test_bprop_forward_and_backward_mode(mode):
    m, x, y = Mul(), of(X), of(Y)
    close(ms.jvp(m, (x, y), (x, y)), (X * Y, 110 * X * Y))
    out, pull = ms.vjp(m, x, y)
    close(out, X * Y)
    close(pull(x), (10 * X * Y, 100 * X * X))
    # Forward over reverse, reverse over forward, forward twice.
    e = Exp()
    close(ms.jvp(ms.grad(e), of(X), of(Y))[1], 9 * np.exp(X) * Y, 2e-6)
    close(ms.grad(lambda a: ms.jvp(e, a, of(Y))[1])(of(X)), 9 * np.exp(X) * Y, 2e-6)
    twice = ms.jvp(lambda a: ms.jvp(e, a, of(Y))[1], of(X), of(Y))[1]
    close(twice, 9 * np.exp(X) * Y * Y, 2e-6)


def test_forward_mode_of_a_bprop_that_is_not_linear(mode):
    class Clipped(nn.Cell):
        def construct(self, x):
            return x * 2

        def bprop(self, x, out, dout):
            return (ops.minimum(dout, 1.0) * 2,)

    close(ms.grad(Clipped())(of(X)), [2, 2, 2])
    with pytest.raises(ValueError, match="not linear") as error:
        ms.jvp(Clipped(), of(X), of(Y))
    line_of(error)


def test_bprop_in_jit_runs_without_python_later():
    calls = []

    class Counted(nn.Cell):
        def construct(self, x):
            return x * x

        def bprop(self, x, out, dout):
            calls.append(1)
            return (dout * x * 3,)

    m = Counted()
    step = ms.jit(lambda a: ms.grad(m)(a))
    for _ in range(3):
        close(step(of(X)), 3 * X)
    assert len(calls) == 1


def test_bprop_may_look_at_values(mode):
    class Careful(nn.Cell):
        def construct(self, x):
            return x * x

        def bprop(self, x, out, dout):
            return (dout * 2,) if float(dout.sum()) > 3 else (dout * 4,)

    m = Careful()
    close(ms.grad(lambda a: m(a) * 2)(of(X)), [4, 4, 4])
    close(ms.grad(lambda a: m(a) * 0.5)(of(X)), [2, 2, 2])


def test_cells_without_gradients_ignore_bprop(mode):
    class Broken(nn.Cell):
        def construct(self, x):
            return x + 1

        def bprop(self, x, out, dout):
            raise AssertionError("nobody asked")

    close(Broken()(of(X)), X + 1)
    close(ms.grad(lambda a: ops.stop_gradient(Broken()(a)) * a)(of(X)), X + 1)


@pytest.mark.parametrize(
    ("bprop", "match"),
    [
        (lambda self, x, y, out, dout: (dout,), "each of the 2 arguments.*got 1"),
        (lambda self, x, y, out, dout: (dout, dout, dout), "each of the 2 arguments.*got 3"),
        (lambda self, x, y, out, dout: (dout.sum(), dout), r"input 0 .*shape \[3\].*got \[\]"),
        (lambda self, x, y, out, dout: (dout, 3.0), "none or tensor, position: 1"),
        (lambda self, x, y, out, dout: ((dout, dout), {"w": dout}), "not a trained parameter"),
    ],
)
def test_a_bprop_that_does_not_fit(mode, bprop, match):
    cell = type("Wrong", (nn.Cell,), {"construct": lambda self, x, y: x * y, "bprop": bprop})()
    with pytest.raises(RuntimeError, match=match) as error:
        ms.grad(cell, (0, 1))(of(X), of(Y))
    line_of(error)
    close(cell(of(X), of(Y)), X * Y)  # nothing is broken


def test_gradients_that_are_cast_and_summed(mode):
    class Wide(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return ops.stack([dout, dout]).astype(ms.float16), None

    close(ms.grad(Wide(), (0, 1))(of(X), of(Y)), ([2, 2, 2], [0, 0, 0]))


def test_bprop_in_mixed_precision():
    seen = []

    class Doubled(nn.Cell):
        def construct(self, x):
            return x * 2

        def bprop(self, x, out, dout):
            seen.append((x.dtype, dout.dtype))
            return (dout * 5,)

    net = Doubled().to_float(ms.float16)
    got = ms.grad(net)(of(X))
    assert got.dtype == ms.float32 and seen == [(ms.float16, ms.float16)]
    close(got, [5, 5, 5])


# _Function ------------------------------------------------------------------------------------------


class Product(_Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b * 10, g * a * 100


def test_function(mode):
    x, y = of(X), of(Y)
    close(Product.apply(x, y), X * Y)
    close(ms.grad(lambda a, b: Product.apply(a, b), (0, 1))(x, y), ([40, 50, 60], [100, 200, 300]))
    close(ms.grad(lambda a: Product.apply(a, y))(x), [40, 50, 60])
    close(ms.grad(lambda a: Product.apply(a, a))(x), 110 * X)
    close(ms.grad(ms.grad(lambda a: Product.apply(a, a)))(x), [110, 110, 110])
    close(ms.jvp(lambda a, b: Product.apply(a, b), (x, y), (x, y))[1], 110 * X * Y)


def test_function_in_a_cell(mode):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(of(X), name="w")

        def construct(self, a):
            return Product.apply(a, self.w)

    net = Net()
    got = ms.grad(net, 0, net.trainable_params())(of(Y))
    close(got, ([10, 20, 30], ([400, 500, 600],)))


def test_function_and_what_is_no_tensor(mode):
    class Scale(_Function):
        @staticmethod
        def forward(ctx, a, k, parts):
            ctx.k, ctx.a = k, a
            return a * k * parts[0]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k * ctx.a, None, None, None

    close(ms.grad(lambda a: Scale.apply(a, 3.0, [a, a]))(of(X)), [3, 6, 9])
    with pytest.raises(TypeError, match="no keyword arguments"):
        Scale.apply(of(X), k=3.0)


def test_needs_input_grad(mode):
    seen = []

    class Look(_Function):
        @staticmethod
        def forward(ctx, a, b, n, i):
            seen.append(ctx.needs_input_grad)
            return a * b * n

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, g, None, None

    i = of([1, 2, 3], np.int32)
    ms.grad(lambda a: Look.apply(a, a * 2, 3, i))(of(X))
    assert seen == [(True, True, False, False)] * 2
    seen.clear()
    ms.grad(lambda a: Look.apply(of(Y), a, 3, i))(of(X))
    assert seen == [(False, True, False, False)] * 2


def test_outputs_that_are_constants(mode):
    class Marked(_Function):
        @staticmethod
        def forward(ctx, a):
            b, m = a * 3, ops.argmax(a)
            ctx.mark_non_differentiable(b, m)
            return a * 2, b, m

        @staticmethod
        def backward(ctx, g, gb, gm):
            assert gm.dtype == ms.int64 and gb.shape == (3,)
            return g * 5 + gb * 1000

    close(ms.grad(lambda a: Marked.apply(a)[0] + Marked.apply(a)[1])(of(X)), [5, 5, 5])


@pytest.mark.parametrize("materialize", [True, False])
def test_gradients_that_are_none(mode, materialize):
    class Half(_Function):
        @staticmethod
        def forward(ctx, a):
            ctx.set_materialize_grads(materialize)
            return a * 2, a * 3

        @staticmethod
        def backward(ctx, g, h):
            assert (h is None) == (not materialize)
            return g * 5

    close(ms.grad(lambda a: Half.apply(a)[0])(of(X)), [5, 5, 5])


def test_setup_context(mode):
    class Apart(_Function):
        @staticmethod
        def forward(a, b=2.0):
            return a * b

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.b = inputs[1]
            ctx.save_for_backward(inputs[0], output)

        @staticmethod
        def backward(ctx, g):
            _, out = ctx.saved_tensors
            return g * ctx.b * out, None

    close(ms.grad(lambda a: Apart.apply(a))(of(X)), [4, 8, 12])
    close(ms.grad(lambda a: Apart.apply(a, b=3.0))(of(X)), [9, 18, 27])
    # d(b out)/dx by backward itself: b * b * out.
    close(ms.grad(ms.grad(lambda a: Apart.apply(a)))(of(X)), 8 * X)


def test_a_function_that_returns_its_input(mode):
    class Same(_Function):
        @staticmethod
        def forward(ctx, a):
            return a

        @staticmethod
        def backward(ctx, g):
            return g * 7

    close(ms.grad(lambda a: Same.apply(a) * a)(of(X)), [8, 16, 24])


def test_a_function_that_writes_into_its_input(mode):
    class Dirty(_Function):
        @staticmethod
        def forward(ctx, a):
            a[...] = a + 1.0
            ctx.mark_dirty(a)
            return a

        @staticmethod
        def backward(ctx, g):
            return g * 7

    def f(a):
        b = a * 2
        c = Dirty.apply(b)
        return b * c  # both are what forward has made of b

    value, got = ms.value_and_grad(f)(of(X))
    close(value, (2 * X + 1) ** 2)
    close(got, 2 * (2 * X + 1) * 7 * 2)

    def of_a_part(a):
        b = a * 2
        end = b[1:]
        c = Dirty.apply(end)
        return b, c, end

    out = np.concatenate([2 * X[:1], 2 * X[1:] + 1])
    for got in of_a_part(of(X))[0], ms.jit(of_a_part)(of(X))[0]:
        close(got, out)
    close(ms.grad(lambda a: ops.square(of_a_part(a)[0]))(of(X)), 2 * out * [2, 14, 14])
    close(ms.grad(lambda a: of_a_part(a)[1] + of_a_part(a)[2])(of(X)), [0, 28, 28])


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
def test_closures_of_a_function_have_no_gradient(mode):
    def f(a, b):
        class Closed(_Function):
            @staticmethod
            def forward(ctx, a):
                return a * b

            @staticmethod
            def backward(ctx, g):
                return g * 3

        return Closed.apply(a)

    close(ms.grad(f, (0, 1))(of(X), of(Y)), ([3, 3, 3], [0, 0, 0]))


def function_with(backward: Any, arguments: int = 1) -> Any:
    def forward(ctx, *xs):
        return xs[0] * 2 if len(xs) == 1 else xs[0] * xs[1]

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Wrong", (_Function,), members)


@pytest.mark.parametrize(
    ("backward", "count", "error", "match"),
    [
        (lambda ctx, g: g, 2, RuntimeError, "wrong number of gradients, expected: 2 but: 1"),
        (lambda ctx, g: (g, g, g), 2, RuntimeError, "expected: 2 but: 3"),
        (lambda ctx, g: g.sum(), 1, RuntimeError, r"shape \[3\].*got \[\]"),
        (lambda ctx, g: 3.0, 1, RuntimeError, "none or tensor, position: 0"),
        (lambda ctx, g: g * ctx.saved_tensors[0], 1, IndexError, "index"),
    ],
)
def test_a_backward_that_does_not_fit(mode, backward, count, error, match):
    f = function_with(backward)
    args = (of(X), of(Y))[:count]
    with pytest.raises(error, match=match):
        ms.grad(lambda *a: f.apply(*a), tuple(range(count)))(*args)


def test_a_function_that_has_saved_nothing(mode):
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * a

    f = function_with(backward)
    with pytest.raises(
        ValueError, match=r"forward has saved nothing: call ctx\.save_for_backward"
    ) as e:
        ms.grad(lambda a: f.apply(a))(of(X))
    line_of(e)


def test_functions_that_lack_a_half(mode):
    class NoBackward(_Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

    with pytest.raises(NotImplementedError, match="forward function should be customized"):
        _Function.apply(of(X))
    close(NoBackward.apply(of(X)), 2 * X)
    with pytest.raises(NotImplementedError, match="backward function should be customized"):
        ms.grad(lambda a: NoBackward.apply(a))(of(X))

    class Saves(_Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(3)
            return a

    with pytest.raises(TypeError, match="expected tensors, got int"):
        Saves.apply(of(X))


# custom_vjp and custom_jvp --------------------------------------------------------------------------


def log1pexp_pair():
    """log(1 + e^x), whose derivative is stable where the function's own is inf / inf."""

    @ms.custom_vjp
    def f(x):
        return ops.log(1 + ops.exp(x))

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * (1 - 1 / (1 + ops.exp(x))),))

    @ms.custom_jvp
    def h(x):
        return ops.log(1 + ops.exp(x))

    @h.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return h(x), t * (1 - 1 / (1 + ops.exp(x)))

    return f, h


@pytest.mark.parametrize("which", [0, 1])
def test_custom_rules_in_all_modes_and_orders(mode, which):
    f = log1pexp_pair()[which]
    x = of([-1.0, 0.5, 100.0], np.float64)
    s = 1 / (1 + np.exp(-x.asnumpy()))
    first, second, third = s, s * (1 - s), s * (1 - s) * (1 - 2 * s)
    close(ms.grad(f)(x), first, 1e-14)
    close(ms.jvp(f, x, ops.ones_like(x))[1], first, 1e-14)
    for outer in (ms.grad, lambda g: lambda a: ms.jvp(g, a, ops.ones_like(a))[1]):
        for inner in (ms.grad, lambda g: lambda a: ms.jvp(g, a, ops.ones_like(a))[1]):
            close(outer(inner(f))(x), second, 1e-13)
    close(ms.grad(ms.grad(ms.grad(f)))(x), third, 1e-13)
    close(ms.jit(ms.grad(f))(x), first, 1e-14)
    close(f(x[:2]), np.log1p(np.exp(x.asnumpy()[:2])), 1e-14)
    _, pull = ms.vjp(f, x)
    close(pull(x), (first * x.asnumpy(),), 1e-14)


def test_custom_vjp_of_trees_and_static_arguments(mode):
    @ms.custom_vjp
    def f(p, x):
        return {"a": p["w"] * x[0], "b": p["b"] + x[1]}

    def fwd(p, x):
        return f(p, x), (p, x)

    def bwd(residuals, dout):
        p, x = residuals
        return {"w": dout["a"] * x[0] * 2, "b": None}, [dout["a"] * p["w"] * 3, dout["b"] * 5]

    f.defvjp(fwd, bwd)

    def loss(w, b, x, y):
        out = f({"w": w, "b": b}, [x, y])
        return (out["a"] + out["b"]).sum()

    got = ms.grad(loss, (0, 1, 2, 3))(of(X), of(Y), of(Y), of(X))
    close(got, (2 * Y, 0 * Y, 3 * X, [5, 5, 5]))

    power = ms.custom_vjp(lambda n, x: x**n, nondiff_argnums=(0,))
    power.defvjp(lambda n, x: (x**n, x), lambda n, x, g: (g * 10 * n * x ** (n - 1),))
    close(ms.grad(lambda a: power(3, a))(of(X)), 30 * X**2)
    close(ms.grad(lambda a: power(n=3, x=a))(of(X)), 30 * X**2)


def test_custom_jvp_by_terms(mode):
    f = ms.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, out, x, y: 2 * t * y, None)
    close(ms.grad(f, (0, 1))(of(X), of(Y)), (2 * Y, 0 * X))
    close(ms.jvp(f, (of(X), of(Y)), (of(X), of(Y)))[1], 2 * X * Y)
    power = ms.custom_jvp(lambda x, n: x**n, nondiff_argnums=(1,))
    power.defjvp(lambda n, primals, tangents: (primals[0] ** n, tangents[0] * n * 7))
    close(ms.grad(lambda a: power(a, 3))(of(X)), [21, 21, 21])


def test_the_gradient_of_a_function_with_a_loop_is_one_step():
    """A fixed point x = cos(a x), by the implicit function theorem: no walk through the steps."""

    @ms.custom_vjp
    def fixed_point(a):
        x = ops.ones_like(a)
        for _ in range(60):
            x = ops.cos(a * x)
        return x

    def bwd(residuals, g):
        a, x = residuals
        s = ops.sin(a * x)
        return (g * (-x * s) / (1 + a * s),)

    def fwd(a):
        x = fixed_point(a)
        return x, (a, x)

    fixed_point.defvjp(fwd, bwd)
    a = np.array([0.3, 0.6])
    x = np.ones(2)
    for _ in range(100):
        x = np.cos(a * x)
    s = np.sin(a * x)
    close(ms.grad(fixed_point)(of(a, np.float64)), -x * s / (1 + a * s), 1e-12)
    h = 1e-5

    def slope(a):
        x = np.ones(2)
        for _ in range(100):
            x = np.cos(a * x)
        s = np.sin(a * x)
        return -x * s / (1 + a * s)

    second = ms.grad(ms.grad(fixed_point))(of(a, np.float64))
    close(second, (slope(a + h) - slope(a - h)) / (2 * h), 1e-8)
    text = ms.graph_text(ms.grad(fixed_point), of(a, np.float64))
    assert text.count("Sin(") == 1


def test_rules_that_are_wrong(mode):
    x, y = of(X), of(Y)
    f = ms.custom_vjp(lambda a: a * 2)
    with pytest.raises(AttributeError, match="has no rule yet: call defvjp") as error:
        f(x)
    line_of(error)
    with pytest.raises(TypeError, match="expected functions, got int"):
        f.defvjp(3, 4)
    with pytest.raises(TypeError, match="expected a function, got int"):
        ms.custom_vjp(3)
    f.defvjp(lambda a: a * 2, lambda r, g: (g,))
    with pytest.raises(TypeError, match=r"must give \(output, residuals\)") as error:
        ms.grad(f)(x)
    line_of(error)
    f.defvjp(lambda a: (a * 2, None), lambda r, g: (g, g))
    with pytest.raises(RuntimeError, match="a gradient for each of 1 arguments, got 2"):
        ms.grad(f)(x)
    f.defvjp(lambda a: (a * 2, None), lambda r, g: (g.sum(),))
    with pytest.raises(RuntimeError, match=r"input 0 should be of shape \[3\]"):
        ms.grad(f)(x)
    f.defvjp(lambda a: ((a, a), None), lambda r, g: (g,))
    with pytest.raises(TypeError, match="not have the structure"):
        ms.grad(f)(x)
    h = ms.custom_jvp(lambda a: a * 2)
    with pytest.raises(AttributeError, match="has no rule yet: call defjvp"):
        h(x)
    h.defjvp(lambda p, t: t[0])
    with pytest.raises(TypeError, match=r"must give \(output, tangent\)"):
        ms.jvp(h, x, y)
    h.defjvp(lambda p, t: (p[0], t[0].sum()))
    with pytest.raises(RuntimeError, match=r"tangent 0 .*shape \[3\], but got \[\]"):
        ms.jvp(h, x, y)
    h.defjvp(lambda p, t: (p[0], t[0] * t[0]))
    with pytest.raises(ValueError, match="not linear"):
        ms.grad(h)(x)
    with pytest.raises(ValueError, match="nondiff_argnums 3"):
        ms.custom_vjp(lambda a: a, nondiff_argnums=3).defvjp(lambda a: (a, a), lambda r, g: g)(x)


def test_a_closure_that_is_differentiated_by_is_an_error(mode):
    def loss(x, w):
        f = ms.custom_vjp(lambda a: a * w)
        f.defvjp(lambda a: (a * w, None), lambda r, g: (g * w,))
        return f(x)

    close(ms.grad(loss)(of(X), of(Y)), Y)
    with pytest.raises(ValueError, match="make it an argument") as error:
        ms.grad(loss, (0, 1))(of(X), of(Y))
    line_of(error)
    net = nn.Dense(3, 1)
    f = ms.custom_vjp(lambda a: net(a))
    f.defvjp(lambda a: (net(a), None), lambda r, g: (g,))
    with pytest.raises(ValueError, match="make it an argument"):
        ms.grad(f, None, net.trainable_params())(of([X]))


def test_integers_have_no_derivative(mode):
    f = log1pexp_pair()[0]
    with pytest.raises(TypeError, match=r"integers .* through a function with its own derivative"):
        ms.grad(f)(of([1, 2], np.int32))


# ops.Custom -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
def test_a_function_on_arrays_with_a_bprop(mode):
    def bprop(x, out, dout):
        return (dout * ops.cos(x) * 7,)

    op = ops.Custom(np.sin, lambda s: s, lambda d: d, "pyfunc", bprop=bprop)
    close(op(of(X)), np.sin(X))
    close(ms.grad(lambda a: op(a * 2))(of(X)), 14 * np.cos(2 * X))
    close(ms.grad(ms.grad(op))(of(X)), -7 * np.sin(X))
    plain = ops.Custom(np.sin, lambda s: s, lambda d: d, "pyfunc")
    close(plain(of(X)), np.sin(X))
    close(ms.grad(lambda a: ops.stop_gradient(plain(a)) * a)(of(X)), np.sin(X))
    with pytest.raises(RuntimeError, match="bprop not defined") as error:
        ms.grad(plain)(of(X))
    line_of(error)


# Under other transforms -----------------------------------------------------------------------------


def loop(f: Any, *batches: Any) -> Any:
    """f on each example, the results stacked."""
    outs = [f(*(of(b[i], np.float64) for b in batches)) for i in range(len(batches[0]))]
    if isinstance(outs[0], tuple):
        return tuple(np.stack([o[k].asnumpy() for o in outs]) for k in range(len(outs[0])))
    return np.stack([o.asnumpy() for o in outs])


def rules() -> dict[str, Any]:
    """Functions of two vectors, with wrong derivatives that tell them from their own."""
    v = ms.custom_vjp(lambda a, b: ops.sin(a) * b)
    v.defvjp(
        lambda a, b: (ops.sin(a) * b, (a, b)),
        lambda r, g: (3 * g * ops.cos(r[0]) * r[1], 5 * g * ops.sin(r[0])),
    )
    j = ms.custom_jvp(lambda a, b: ops.sin(a) * b)
    j.defjvps(lambda t, o, a, b: 3 * t * ops.cos(a) * b, lambda t, o, a, b: 5 * t * ops.sin(a))
    m, p = Mul(), Product
    hooked = ops.InsertGradientOf(lambda g: g * 3)
    return {
        "custom_vjp": v,
        "custom_jvp": j,
        "bprop": lambda a, b: m(ops.sin(a), b),
        "_Function": lambda a, b: p.apply(ops.sin(a), b),
        "InsertGradientOf": lambda a, b: hooked(ops.sin(a)) * b,
        "recompute": lambda a, b: ms.recompute(lambda c: ops.sin(c) * b, a),
    }


@pytest.mark.parametrize("name", list(rules()))
def test_batched(mode, name):
    f = rules()[name]
    a, b = np.random.default_rng(3).normal(size=(2, 4, 3))
    A, B, w = of(a, np.float64), of(b, np.float64), of(b[0], np.float64)
    for g in (
        f,
        ms.grad(f, (0, 1)),
        ms.grad(lambda x, y: ms.grad(f)(x, y) * y, (0, 1)),
        lambda x, y: ms.jvp(f, (x, y), (y, x))[1],
    ):
        close(ms.vmap(g)(A, B), loop(g, a, b), 1e-12)  # of a derivative

        def over(x, y, g=g):
            found = ms.vmap(g)(x, y)
            return sum(t.sum() for t in found) if isinstance(found, tuple) else found.sum()

        def one(x, y, g=g):
            found = g(x, y)
            return sum(t.sum() for t in found) if isinstance(found, tuple) else found.sum()

        close(ms.grad(over, (0, 1))(A, B), loop(ms.grad(one, (0, 1)), a, b), 1e-12)
        close(ms.grad(ms.vmap(g, (0, None)), 1)(A, w), loop(lambda x, g=g: ms.grad(g, 1)(x, w), a).sum(0),
              1e-12)  # what is the same for all examples gets the sum  # fmt: skip
        moved = ms.jvp(lambda x: ms.vmap(g, (0, None))(x, w), A, B)[1]  # noqa: B023
        close(moved, loop(lambda x, t, g=g: ms.jvp(lambda c: g(c, w), x, t)[1], a, b), 1e-12)
    nested = ms.vmap(ms.vmap(ms.grad(f), (0, None)), (None, 0))
    close(nested(A, B), np.stack([loop(lambda x, y=y: ms.grad(f)(x, of(y, np.float64)), a) for y in b]),
          1e-12)  # fmt: skip


@pytest.mark.parametrize("name", ["custom_vjp", "custom_jvp", "bprop", "_Function", "recompute"])
def test_jacobians_and_series(mode, name):
    f = rules()[name]
    x = of([0.3, -0.8, 1.1], np.float64)
    y = of([1.0, 2.0, -0.5], np.float64)
    g = lambda c: f(c, y)  # noqa: E731
    slope = ms.grad(g)(x).asnumpy()
    close(ms.jacrev(g)(x), np.diag(slope), 1e-12)
    close(ms.jacfwd(g)(x), np.diag(slope), 1e-12)
    second = ms.grad(ms.grad(g))(x).asnumpy()
    third = ms.grad(ms.grad(ms.grad(g)))(x).asnumpy()
    series = [of(np.stack([np.ones(3), np.zeros(3), np.zeros(3)]), np.float64)]
    _, got = ops.jet(g, x, series[0])
    close(got, np.stack([slope, second, third]), 1e-12)
    total = lambda c: g(c).sum()  # noqa: E731
    close(ms.laplacian(total)(x), second.sum(), 1e-12)

"""gradients and watch: against SymPy's derivatives, PyTorch's names and the nested transforms."""

import re
import warnings

import numpy as np
import pytest
import sympy

import gradcell as gc
from gradcell import Parameter, Tensor, ops
from gradcell.base import tree

X = np.linspace(-0.9, 1.1, 7)
T = np.linspace(0.2, 1.4, 7)


def pointwise(expression, symbols, *values):
    return np.broadcast_to(
        sympy.lambdify(symbols, expression, "numpy")(*values), values[0].shape
    ).astype(np.float64)


def test_derivatives_to_order_five():
    s = sympy.Symbol("s")
    formula = sympy.sin(2 * s) * sympy.exp(-s * s)
    with gc.watch(Tensor(X)) as x:
        found = [ops.sin(2 * x) * ops.exp(-x * x)]
        for _ in range(5):
            found.append(gc.gradients(found[-1], x))
    for order, got in enumerate(found):
        np.testing.assert_allclose(
            got.asnumpy(), pointwise(formula.diff(s, order), (s,), X), rtol=1e-11, atol=1e-11
        )


@pytest.mark.parametrize("compiled", [False, True])
def test_a_residual_written_as_in_tensorflow(compiled):
    x, t = sympy.symbols("x t")
    u = sympy.sin(3 * x) * sympy.exp(-t) + x**3 * t
    want = pointwise(u.diff(t) + u * u.diff(x) - u.diff(x, 2) + u.diff(x, t), (x, t), X, T)

    def residual(x, t):
        with gc.watch(x, t) as (x, t):
            u = ops.sin(3 * x) * ops.exp(-t) + x**3 * t
            u_x, u_t = gc.gradients(u, [x, t])
            u_xx, u_xt = gc.gradients(u_x, [x, t])
            return u_t + u * u_x - u_xx + u_xt

    run = gc.jit(residual) if compiled else residual
    for _ in range(2):
        np.testing.assert_allclose(
            run(Tensor(X), Tensor(T)).asnumpy(), want, rtol=1e-12, atol=1e-12
        )


def test_the_weights_gradient_goes_through_them(mode):
    random = np.random.default_rng(0)
    shapes = (2, 8), (8,), (8, 1)
    weights = [Parameter(Tensor(random.normal(size=s)), name=f"w{len(s)}{s[-1]}") for s in shapes]

    def net(x):
        return ops.matmul(ops.tanh(ops.matmul(x, weights[0]) + weights[1]), weights[2])

    points = Tensor(np.stack([X, T], 1))

    def by_scope(x):
        with gc.watch(x) as x:
            du = gc.gradients(net(x), x)
            return ops.square(gc.gradients(du[:, 0:1], x)[:, 0:1] + du[:, 1:2]).mean()

    def by_transforms(x):
        du = gc.grad(net)
        d = du(x)
        return ops.square(gc.grad(lambda x: du(x)[:, 0:1])(x)[:, 0:1] + d[:, 1:2]).mean()

    found = [gc.value_and_grad(f, None, weights)(points) for f in (by_scope, by_transforms)]
    for a, b in zip(tree.leaves(found[0]), tree.leaves(found[1]), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-12, atol=1e-13)


def test_a_watched_tensor_counts_what_is_made_of_it_alone():
    def f(a):
        b = -a
        with gc.watch(b) as w:
            # -w is a to the eye of a simplifier, and b + 0 is the same number as w
            return gc.gradients((-w) * a + b * w, w)

    np.testing.assert_array_equal(gc.jit(f)(Tensor(X)).asnumpy(), -X - X)
    np.testing.assert_array_equal(gc.grad(lambda a: f(a).sum())(Tensor(X)).asnumpy(), -2 + 0 * X)


def test_scopes_nest_and_batch():
    def inner(x, y):
        with gc.watch(x) as x:
            return gc.gradients(x * x * y, x)

    def outer(y):
        with gc.watch(y) as y:
            return gc.gradients(inner(y, y) * y, y)  # d/dy (2 y y y)

    np.testing.assert_allclose(gc.vmap(outer)(Tensor(X)).asnumpy(), 6 * X**2, rtol=1e-14)
    np.testing.assert_allclose(outer(Tensor(X)).asnumpy(), 6 * X**2, rtol=1e-14)


def test_cotangents_and_structures():
    with gc.watch(Tensor(X), {"t": Tensor(T)}) as (x, rest):
        ys = (x * x, ops.sin(rest["t"]))
        by = gc.gradients(ys, {"x": x, "t": rest["t"]}, (Tensor(T), 3))
        only_first = gc.gradients(ys, (x, rest["t"]), (None, 0))
        plain = gc.gradients(ys[0], [x])
    np.testing.assert_allclose(by["x"].asnumpy(), 2 * X * T)
    np.testing.assert_allclose(by["t"].asnumpy(), 3 * np.cos(T))
    assert type(only_first) is tuple and type(plain) is list
    np.testing.assert_allclose(only_first[0].asnumpy(), 2 * X)
    np.testing.assert_array_equal(only_first[1].asnumpy(), 0 * T)


def test_by_parameters_and_arguments():
    w = Parameter(Tensor(np.array([2.0, 3.0])), name="w")

    @gc.jit
    def f(x):
        y = (w * w * x).sum()
        return gc.gradients(y, [x, w])

    for x in (np.array([1.0, 5.0]), np.array([-1.0, 2.0])):
        by_x, by_w = f(Tensor(x))
        np.testing.assert_allclose(by_x.asnumpy(), [4, 9])
        np.testing.assert_allclose(by_w.asnumpy(), 2 * np.array([2, 3]) * x)


def test_results_outlive_the_scope_and_errors_end_it():
    x = Tensor(X)
    with pytest.raises(ZeroDivisionError), gc.watch(x) as w:
        raise ZeroDivisionError
    assert not gc._core.in_trace()
    with gc.watch(x) as w:
        y = gc.gradients(w * w * w, w)
        w[0] = 7.0  # its own elements
    np.testing.assert_allclose(ops.square(y).asnumpy(), 9 * X**4)
    np.testing.assert_array_equal(x.asnumpy(), X)


def test_what_is_refused():
    x = Tensor(X)
    with pytest.raises(RuntimeError, match=r"nothing is recorded here.*gradcell\.watch") as error:
        gc.gradients(ops.sin(x), x)
    assert re.search(r"test_gradients\.py:\d+", str(error.value))
    with gc.watch(x) as w:
        for wrong in (x, w * 2):
            with pytest.raises(ValueError, match=r"shape \[7\] among xs is not watched"):
                gc.gradients(w * w, wrong)
        with pytest.raises(ValueError, match="1 ys and 2 cotangents"):
            gc.gradients(w * w, w, (1, 2))
        with pytest.raises(ValueError, match=r"the shape of its y, \[7\], but has \[2\]"):
            gc.gradients(w * w, w, Tensor([1.0, 2.0]))
        with pytest.raises(TypeError, match="no tensor to differentiate with respect to"):
            gc.gradients(w * w, [])
        with gc.watch(w) as inner:
            pass
        with pytest.raises(ValueError, match="its scope has closed"):
            gc.gradients(inner * 2, inner * 1.5)
    with pytest.raises(
        TypeError, match="watch: cannot differentiate with respect to a tensor of Int"
    ):
        gc.watch(Tensor([1, 2]))
    with pytest.raises(TypeError, match="watch: expected tensors"):
        gc.watch(3.0)


def test_as_torch_has_it():
    torch = pytest.importorskip("torch")
    a = torch.tensor(X, requires_grad=True)
    v = torch.tensor(T)
    (first,) = torch.autograd.grad(torch.sin(a) * a, a, grad_outputs=v, create_graph=True)
    (second,) = torch.autograd.grad(first, a, grad_outputs=v * v)
    with gc.watch(Tensor(X)) as x:
        g = gc.gradients(ops.sin(x) * x, x, Tensor(T))
        h = gc.gradients(g, x, Tensor(T * T))
    np.testing.assert_allclose(g.asnumpy(), first.detach().numpy(), rtol=1e-14)
    np.testing.assert_allclose(h.asnumpy(), second.numpy(), rtol=1e-13)


def test_a_loss_of_what_watch_was_given_is_said():
    """Not of what it gives: the gradient is 0, which nobody wants."""
    x = Tensor(np.ones(3))

    def of_given(x):
        with gc.watch(x) as y:
            return gc.gradients((x * x).sum(), y)

    for run in (of_given, gc.jit(of_given), gc.grad(lambda x: of_given(x).sum())):
        with pytest.warns(
            RuntimeWarning, match=r"ys do not depend on the tensor of shape \[3\] that watch"
        ):
            run(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with gc.watch(x, x * 2) as (y, z):
            assert gc.gradients((y * y).sum(), [y, z])[1].asnumpy().tolist() == [0, 0, 0]
            assert gc.gradients((x * y).sum(), y).asnumpy().tolist() == [1, 1, 1]
            gc.gradients(Tensor(1.0) * 1, y)


def test_slices_of_one_tensor_each_by_a_number() -> None:
    """Their adjoints repeat a number along what they fill: joined where they lie apart, added where not."""
    places = [
        (2.0, np.s_[0]), (3.0, np.s_[2]), (-1.0, np.s_[5]), (0.5, np.s_[1:4]), (4.0, np.s_[:, 3]),
        (7.0, np.s_[4:, :2]), (-2.0, np.s_[::2, 1:]), (1.5, np.s_[::-1, 0]),
    ]  # fmt: skip
    x, want = Tensor(np.ones((6, 4))), np.zeros((6, 4))
    for weight, place in places:
        want[place] += weight

    def fn(x: Tensor) -> Tensor:
        return sum(weight * x[place].sum() for weight, place in places)

    for slope in (gc.grad(fn), gc.jit(gc.grad(fn))):
        np.testing.assert_array_equal(slope(x).asnumpy(), want)
    np.testing.assert_array_equal(
        gc.vmap(gc.grad(fn))(ops.stack([x, x])).asnumpy(), np.stack([want] * 2)
    )

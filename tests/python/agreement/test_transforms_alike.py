"""All transforms take arguments, keywords, Parameters, trees and aux in one way, with the values of JAX and
one kind of error each; and in GRAPH_MODE none runs a function anew for arguments that it knows."""

import functools

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, ops

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy

N = 3
RANDOM = np.random.default_rng(5)
X, Y, W, V = (RANDOM.uniform(0.3, 1.2, N) for _ in range(4))
MODES = {"pynative": gc.PYNATIVE_MODE, "graph": gc.GRAPH_MODE}


@pytest.fixture(params=list(MODES), autouse=True)
def mode(request):
    before = gc.get_context("mode")
    gc.set_context(mode=MODES[request.param])
    yield request.param
    gc.set_context(mode=before)


def arrays(result):
    """A result as nested tuples and dicts of arrays."""
    if isinstance(result, Tensor):
        return result.asnumpy()
    if isinstance(result, dict):
        return {k: arrays(v) for k, v in result.items()}
    if isinstance(result, (tuple, list)):
        return tuple(map(arrays, result))
    return result


def assert_same(got, wanted):
    got = arrays(got)
    if isinstance(wanted, dict):
        assert isinstance(got, dict) and list(got) == list(wanted)
        for k in wanted:
            assert_same(got[k], wanted[k])
    elif isinstance(wanted, (tuple, list)):
        assert isinstance(got, tuple) and len(got) == len(wanted), (got, wanted)
        for g, w in zip(got, wanted, strict=True):
            assert_same(g, w)
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


# Every transform: how it is applied to a function, and what JAX gives. A reference is a function of
# (f, points), where f takes all that is differentiated by.


def _hessian_trace(f, *xs):
    """The Laplacian by all arguments together, of each output."""
    total = 0
    for i, x in enumerate(xs):
        h = jax.hessian(f, i)(*xs)
        total = total + jnp.trace(h, axis1=-2, axis2=-1) if x.ndim else total + h
    return total


def _summed(f):
    return lambda *xs: jnp.sum(f(*xs))


def _each(of):
    """A reference that is one result for each argument."""

    def reference(f, xs):
        found = tuple(of(f, i)(*xs) for i in range(len(xs)))
        return found if len(found) > 1 else found[0]

    return reference


def _pairs(f, xs):
    found = tuple(
        tuple(jax.jacfwd(jax.jacrev(f, i), j)(*xs) for j in range(len(xs))) for i in range(len(xs))
    )
    return found if len(found) > 1 else found[0][0]


def _biharmonic(f, xs):
    return _hessian_trace(lambda *ys: _hessian_trace(f, *ys), *xs)


def _partials(f, xs):
    return (jax.jacfwd(f, 0)(*xs)[..., 0], jax.hessian(f, 0)(*xs)[..., 0, 1])


def _gauss_newton(f, xs):
    def product(i):
        j = jax.jacrev(f, i)(*xs)
        return j.T @ sum(jax.jacrev(f, k)(*xs) @ V for k in range(len(xs)))

    found = tuple(product(i) for i in range(len(xs)))
    return found if len(found) > 1 else found[0]


def _fisher(f, xs):
    def product(i):
        j = jax.jacrev(f, i)(*xs)
        return j.T @ sum(jax.jacrev(f, k)(*xs) @ V for k in range(len(xs))) / N

    found = tuple(product(i) for i in range(len(xs)))
    return found if len(found) > 1 else found[0]


def _with_vector(transform):
    """Of a product: v, in the structure of the gradient, is the last argument."""

    def made(fn, grad_position=0, weights=None, **options):
        count = 0 if grad_position is None else np.size(grad_position)
        listed = weights is not None and not isinstance(weights, Parameter)
        v = Tensor(V) if count == 1 or (not listed and not count) else (Tensor(V),) * (count or 1)
        product = transform(fn, grad_position, weights, **options)
        return lambda *args, **kwargs: product(*args, v, **kwargs)

    return made


#: name: (made of a function, reference, what of the signature it lacks)
MADE = {
    "grad": (gc.grad, _each(lambda f, i: jax.grad(_summed(f), i)), ()),
    "jacrev": (gc.jacrev, _each(lambda f, i: jax.jacrev(f, i)), ()),
    "jacfwd": (gc.jacfwd, _each(lambda f, i: jax.jacfwd(f, i)), ()),
    "hessian": (gc.hessian, _pairs, ()),
    "laplacian": (gc.laplacian, lambda f, xs: _hessian_trace(f, *xs), ("trees",)),
    "biharmonic": (gc.biharmonic, _biharmonic, ("trees",)),
    "partials": (
        lambda fn, *args, **kwargs: gc.partials(fn, [(0,), (0, 1)], *args, **kwargs),
        _partials,
        ("trees",),
    ),
    "divergence": (
        gc.divergence,
        lambda f, xs: jnp.trace(jax.jacfwd(f)(*xs)),
        ("several", "weights", "trees"),
    ),
    "gauss_newton_product": (
        _with_vector(gc.gauss_newton_product), _gauss_newton, ("aux", "both", "trees"),
    ),
    "fisher_product": (_with_vector(gc.fisher_product), _fisher, ("aux", "both", "trees")),
}  # fmt: skip


def _of(x, y, w):
    return jnp.tanh(x) * y * y * w + jnp.exp(x * w)


@functools.cache
def wanted(name, by):
    """What JAX gives by the arguments of these letters, at one point."""
    points = {"x": X, "y": Y, "w": W}

    def f(*given):
        return _of(**(points | dict(zip(by, given, strict=True))))

    reference = MADE[name][1] if name in MADE else AT_ONCE[name][1]
    xs = tuple(points[k] for k in by)
    found = reference(f, xs) if name in MADE else reference(f, xs, (V,) * len(xs))
    return jax.tree_util.tree_map(np.asarray, found)


def having(*parts):
    return [n for n, (_, _, lacks) in MADE.items() if not set(parts) & set(lacks)]


def problem():
    """A function of x and y that also reads a Parameter, and that."""
    w = Parameter(W, name="w")

    def f(x, y):
        return ops.tanh(x) * y * y * w + ops.exp(x * w)

    return f, w


def tensors():
    return Tensor(X), Tensor(Y)


@pytest.mark.parametrize("name", list(MADE))
def test_arguments_by_place_and_by_name(name):
    made, _, _ = MADE[name]
    f, _ = problem()
    x, y = tensors()
    by_x, by_y = wanted(name, "x"), wanted(name, "y")
    for _ in range(3):
        assert_same(made(f)(x, y), by_x)
        assert_same(made(f, 0)(x, y=y), by_x)
        assert_same(made(f, 1)(x, y), by_y)
        assert_same(made(f, 1)(x, y=y), by_y)
        if name not in ("gauss_newton_product", "fisher_product"):  # their vector comes by place
            assert_same(made(f, 0)(x=x, y=y), by_x)
            assert_same(made(f, 1)(y=y, x=x), by_y)


def test_a_default_is_an_argument_too():
    y = Tensor(Y)

    def f(x, y=y, *, z=2.0):
        return ops.reduce_sum(x * y * z)

    x = Tensor(X)
    assert_same(gc.grad(f, 1)(x, z=3.0), 3 * X)
    assert_same(gc.jacrev(f, 1)(x=x), 2 * X)


@pytest.mark.parametrize("name", having("several"))
def test_several_positions(name):
    made, _, _ = MADE[name]
    f, _ = problem()
    assert_same(made(f, (0, 1))(*tensors()), wanted(name, "xy"))


@pytest.mark.parametrize("name", having("weights"))
def test_parameters(name):
    made, _, lacks = MADE[name]
    f, w = problem()
    by_w = wanted(name, "w")
    assert_same(made(f, None, weights=w)(*tensors()), by_w)
    of_each = {"grad", "jacrev", "jacfwd", "gauss_newton_product", "fisher_product"}
    if name in of_each:
        assert_same(made(f, None, weights=[w])(*tensors()), (by_w,))
        assert_same(made(f, None, weights=[w])(tensors()[0], y=Tensor(Y)), (by_w,))
    if "both" in lacks:
        return
    assert_same(made(f, 0, weights=w)(*tensors()), wanted(name, "xw"))


@pytest.mark.parametrize("name", having("aux"))
def test_aux(name):
    """What a function returns besides comes as it is, of several a tuple; MindSpore's grad always has one."""
    made, _, _ = MADE[name]
    f, _ = problem()
    by_x = wanted(name, "x")
    one = made(lambda x, y: (f(x, y), x + y), 0, has_aux=True)(*tensors())
    assert_same(one, (by_x, (X + Y,) if name == "grad" else X + Y))
    two = made(lambda x, y: (f(x, y), x + y, {"d": x - y}), 0, has_aux=True)(*tensors())
    assert_same(two, (by_x, (X + Y, {"d": X - Y})))
    with pytest.raises(ValueError, match=r"has_aux is True.*more than one"):
        made(f, 0, has_aux=True)(*tensors())
    with pytest.raises(TypeError, match="has_aux"):
        made(f, 0, has_aux=1)


@pytest.mark.parametrize("name", ["grad", "jacrev", "jacfwd"])
def test_trees(name):
    made, _, _ = MADE[name]
    f, _ = problem()
    tree = {"a": Tensor(X), "b": (Tensor(Y), "word")}
    a, b = wanted(name, "x"), wanted(name, "y")
    found = made(lambda t: f(t["a"], t["b"][0]))(tree)
    assert found["b"][1] == "word"
    assert_same({"a": found["a"], "b": found["b"][0]}, {"a": a, "b": b})
    of_outputs = made(lambda t: {"p": f(t["a"], t["b"][0])})(tree)
    if name != "grad":
        assert_same(of_outputs["p"]["a"], a)


def test_second_derivatives_by_a_tree():
    f, _ = problem()
    found = gc.hessian(lambda t: f(*t))(tensors())
    assert_same(found, wanted("hessian", "xy"))


@pytest.mark.parametrize("name", list(MADE))
def test_errors(name):
    made, _, _ = MADE[name]
    f, _ = problem()
    x, y = tensors()
    for kind in (IndexError, ValueError):
        with pytest.raises(
            kind, match=r"grad_position 5 is out of range.*called with 2 arguments.*py:\d+"
        ):
            made(f, 5)(x, y)
    with pytest.raises(TypeError, match=r"argument 0: it is not a Tensor but str.*py:\d+"):
        made(f, 0)("x", y)
    with pytest.raises(TypeError, match=r"returned no tensor to differentiate.*py:\d+"):
        made(lambda x, y: 3.0, 0)(x, y)
    if name != "divergence":  # which takes one position
        with pytest.raises(ValueError, match="duplicate"):
            made(f, (0, 0))
    with pytest.raises(ValueError, match="0"):
        made(f, -1)
    with gc.no_grad(), pytest.raises(RuntimeError, match="no_grad"):
        made(f, 0)(x, y)


@pytest.mark.parametrize("name", [n for n in MADE if n != "grad"])
def test_what_only_grad_takes(name):
    """Derivatives by integers are MindSpore's grad's alone, and complex ones reverse mode's."""
    made, _, _ = MADE[name]
    f, _ = problem()
    _, y = tensors()
    with pytest.raises(TypeError, match=r"argument 0 of dtype Int64; cast it.*py:\d+"):
        made(f, 0)(Tensor(np.arange(N)), y)
    with pytest.raises(TypeError, match=r"complex tensors.*py:\d+"):
        made(lambda x, y: x * y, 0)(Tensor(X + 0j), y)


# Those that are given the inputs at once ---------------------------------------------------------------


def _moved(f, xs, v):
    return jax.jvp(f, xs, v)


def _jvp(fn, inputs, v, **options):
    return gc.jvp(fn, inputs, v, **options)


def _linearize(fn, inputs, v, **options):
    out, along = gc.linearize(fn, inputs, **options)
    return out, along(v)


def _hvp(fn, inputs, v, **options):
    return gc.hvp(fn, inputs, v, **options)


def _hessian_product(f, xs, v):
    return f(*xs), jax.jvp(jax.grad(_summed(f), tuple(range(len(xs)))), xs, v)[1]


def _jet(fn, inputs, v, **options):
    out, series = ops.jet(fn, inputs, v, **options)
    return out, series[0]


def _derivative(fn, inputs, v, **options):
    return ops.derivative(fn, inputs, 1, **options)


AT_ONCE = {
    "jvp": (_jvp, _moved),
    "linearize": (_linearize, _moved),
    "hvp": (_hvp, _hessian_product),
    "jet": (_jet, _moved),
    "derivative": (_derivative, lambda f, xs, v: jax.jvp(f, xs, tuple(map(np.ones_like, xs)))),
}


@pytest.mark.parametrize("name", list(AT_ONCE))
def test_inputs_at_once(name):
    made, _ = AT_ONCE[name]
    f, w = problem()
    x, y = tensors()
    v = Tensor(V)
    pair, alone = wanted(name, "xy"), wanted(name, "x")
    single = (alone[0], alone[1][0] if name == "hvp" else alone[1])
    for _ in range(3):
        assert_same(made(f, (x, y), (v, v)), pair)
        assert_same(made(f, x, v, y=y), single)
    assert_same(made(f, (x,), (v,), y=y), alone)
    with pytest.raises(TypeError, match=r"must be.*tensors|Tensor"):
        made(f, (x, 3.0), (v, v))
    if name == "derivative":
        return
    with pytest.raises(ValueError, match="length"):
        made(f, (x, y), (v,))
    if name == "jet":
        return
    with pytest.raises(ValueError, match="same shapes and dtypes"):
        made(f, (x, y), (v, Tensor(V[:2])))
    found = made(f, (x, y), v, weights=w)
    by_w = wanted(name, "w")
    assert_same(found[0], by_w[0])
    assert_same(found[1], by_w[1][0] if name == "hvp" else by_w[1])
    tree = {"a": x, "b": [y]}
    of_tree = made(lambda t: f(t["a"], t["b"][0]), tree, {"a": v, "b": [v]})
    assert_same(of_tree[0], pair[0])
    if name == "hvp":
        assert_same(of_tree[1], {"a": pair[1][0], "b": (pair[1][1],)})
    else:
        assert_same(of_tree[1], pair[1])


def test_vjp():
    f, w = problem()
    x, y = tensors()
    v = Tensor(V)
    out, back = jax.vjp(_of, X, Y, W)
    dx, dy, dw = back(V)
    for _ in range(3):
        for inputs in ((x, y), ((x, y),)):
            value, pull = gc.vjp(f, *inputs)
            assert_same(value, out)
            assert_same(pull(v), (dx, dy))
        assert_same(gc.vjp(f, x, y=y)[1](v), (dx,))
        assert_same(gc.vjp(f, x, y, weights=w)[1](v), ((dx, dy), (dw,)))
    found = gc.vjp(lambda t: f(t["a"], t["b"]), {"a": x, "b": y})[1](v)
    assert_same(found, ({"a": dx, "b": dy},))
    value, pull, aux = gc.vjp(lambda x, y: (f(x, y), x + y), x, y, has_aux=True)
    assert_same((value, pull(v), aux), (out, (dx, dy), X + Y))


def test_vmap_of_arguments_by_name():
    def f(x, y, *, z=1.0):
        return ops.reduce_sum(x * y) * z

    xs, ys = RANDOM.standard_normal((2, 4, N))
    zs = RANDOM.standard_normal(4)
    wanted = (xs * ys).sum(1)
    x, y, z = map(Tensor, (xs, ys, zs))
    for _ in range(3):
        assert_same(gc.vmap(f)(x, y=y), wanted)
        assert_same(gc.vmap(f)(y=y, x=x), wanted)
        assert_same(gc.vmap(f, (0, None))(x, y=Tensor(ys[0])), xs @ ys[0])
        assert_same(gc.vmap(f, (0, None))(x, y=Tensor(ys[0]), z=z), xs @ ys[0] * zs)
        assert_same(gc.vmap(f)(x, y, z=z), wanted * zs)


# How often the function runs ---------------------------------------------------------------------------


def _call_counted(transform):
    runs = []

    def f(x):
        runs.append(1)  # (not x, which would be kept)
        return ops.tanh(x) * x

    for k in range(4):
        transform(f, Tensor(X + k))
    return len(runs)


@pytest.mark.parametrize(
    ("transform", "once"),
    {
        "grad": (lambda f, x: gc.grad(f)(x), 1),
        "value_and_grad": (lambda f, x: gc.value_and_grad(f)(x), 1),
        "GradOperation": (lambda f, x: gc.ops.GradOperation()(f)(x), 1),
        "jacrev": (lambda f, x: gc.jacrev(f)(x), 1),
        "jacfwd": (lambda f, x: gc.jacfwd(f)(x), 1),
        "hessian": (lambda f, x: gc.hessian(f)(x), 1),
        "grad of grad": (lambda f, x: gc.grad(gc.grad(f))(x), 1),
        "vmap of grad": (lambda f, x: gc.vmap(gc.grad(f))(x), 1),
        "vmap": (lambda f, x: gc.vmap(f)(x), 1),
        "laplacian": (lambda f, x: gc.laplacian(f)(x), 1),
        "biharmonic": (lambda f, x: gc.biharmonic(f)(x), 1),
        "partials": (lambda f, x: gc.partials(f, [(0,)])(x), 1),
        "divergence": (lambda f, x: gc.divergence(f)(x), 1),
        "jet": (lambda f, x: ops.jet(f, x, x), 1),
        "derivative": (lambda f, x: ops.derivative(f, x, 2), 1),
        "jvp": (lambda f, x: gc.jvp(f, x, x), 1),
        "hvp": (lambda f, x: gc.hvp(f, x, x), 1),
        "linearize": (lambda f, x: gc.linearize(f, x)[1](x), 1),
        "vjp": (lambda f, x: gc.vjp(f, x)[1](x), 2),  # for its value, and to go back
        "gauss_newton_product": (lambda f, x: gc.gauss_newton_product(f, 0)(x, x), 1),
        "fisher_product": (lambda f, x: gc.fisher_product(f, 0)(x, x), 1),
    }.values(),
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_a_function_is_traced_once_in_graph_mode(transform, once, mode):
    if mode == "pynative":
        assert _call_counted(transform) >= 4
    else:
        assert _call_counted(transform) == once


def test_what_wraps_a_transform_is_another_function():
    """functools.wraps copies what a transform says of itself."""
    of = gc.grad(lambda x: ops.reduce_sum(x * x))

    @functools.wraps(of)
    def tripled(x):
        return 3 * of(x)

    x = Tensor(X)
    assert_same(gc.jacrev(of)(x), 2 * np.eye(N))
    assert_same(gc.jacrev(tripled)(x), 6 * np.eye(N))

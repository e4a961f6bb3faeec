"""Whatever takes a Tensor takes what Tensor() takes: arrays of NumPy, PyTorch, JAX and pandas, and all that
speaks `__array__` or `__dlpack__`, with the values, dtypes and refusals of the call with Tensor(a); and
transforms take trees of them. Rows that differ are named, with the reason."""

from __future__ import annotations

import collections
import dataclasses
import importlib
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, mint, nn, ops, tree

HERE = re.escape(Path(__file__).name) + r":\d+"
RANDOM = np.random.default_rng(3)
VALUES = RANDOM.uniform(0.2, 0.9, (2, 3))
X, W = Tensor(RANDOM.uniform(0.2, 0.9, (2, 3))), Tensor(RANDOM.uniform(0.2, 0.9, (3, 2)))
TABLE = Tensor(RANDOM.uniform(0.2, 0.9, (5, 3)))


# Kinds of arrays ------------------------------------------------------------------------------------


class OnlyDLPack:
    """An array that speaks nothing but DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class OnlyArray:
    """An array that speaks nothing but `__array__`."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.array, dtype)


def of(module: str, make: Callable[[Any, np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    """Arrays of a library that may be missing."""
    return lambda a: make(pytest.importorskip(module), a)


def of_jax(jax: Any, a: np.ndarray) -> Any:
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray(a)


KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "float64": lambda a: a,
    "float32": lambda a: a.astype(np.float32),
    "int64": lambda a: (a * 4).astype(np.int64),
    "scalar": lambda a: a.flat[0],
    "only DLPack": OnlyDLPack,
    "only __array__": OnlyArray,
    "torch": of("torch", lambda torch, a: torch.from_numpy(a.copy())),
    "jax": of("jax", of_jax),
    "pandas": of("pandas", lambda pandas, a: pandas.DataFrame(a)),
}

# Callables ------------------------------------------------------------------------------------------


def functions(names: str, of: Any = ops, *more: Any) -> dict[str, Any]:
    """Rows that call functions of these names with the array and more arguments."""
    short = of.__name__.rpartition(".")[2]
    return {f"{short}.{n}": lambda a, n=n: getattr(of, n)(a, *more) for n in names.split()}


def tensor_methods(names: str) -> dict[str, Any]:
    return {f"Tensor.{n}": lambda a, n=n: getattr(X.copy(), n)(a) for n in names.split()}


def layer(make: Callable[[], Any]) -> Callable[[Any], Any]:
    """A row that calls a layer with Parameters that are the same each time."""

    def row(a: Any) -> Any:
        gc.set_seed(1)
        return make()(a)

    return row


def cube(x: Any) -> Any:
    return ops.sum(x * x * x)


def rows(x: Any) -> Any:
    return ops.tanh(ops.matmul(x, W.astype(x.dtype)))


def watched(a: Any) -> Any:
    with gc.watch(a) as x:
        return gc.gradients(cube(x), x), gc.gradients(x * x, x, a)


def measured(metric: Any, a: Any) -> Any:
    metric.update(a, X)
    return metric.eval()


def own_rule() -> Any:
    f = gc.custom_vjp(lambda x: x * x)
    return f.defvjp(lambda x: (x * x, x), lambda x, dy: (2 * x * dy,))


def trained(method: Callable[..., Any]) -> Callable[[Any], Any]:
    """A row that fits a Parameter to the array."""

    def row(a: Any) -> Any:
        p = gc.Parameter(Tensor(np.ones((2, 3))), name="p")
        method(lambda x: p - x, p, a)
        return p.value()

    return row


def stepped(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A row whose gradient is the array."""

    def row(a: Any) -> Any:
        p = gc.Parameter(Tensor(np.ones((2, 3), np.float32)), name="p")
        make([p])((a,))
        return p.value()

    return row


PLAIN: dict[str, Callable[[Any], Any]] = {
    **functions("abs exp sin tanh erf sqrt floor square relu gelu softplus sigmoid trunc invert"),
    **functions("sum mean prod logsumexp var median argmax any softmax sort norm"),
    **functions("shape rank zeros_like stop_gradient diag triu t unstack atleast_1d flatten"),
    **functions("add mul maximum atan2 hypot less equal xlogy mse_loss", ops, X),
    **functions("sin clone flatten median", mint),
    **functions("sin cumsum", gc.numpy),
    **functions("add dot", gc.numpy, 1.0),
    "ops.matmul": lambda a: ops.matmul(a, W),
    "ops.concat": lambda a: ops.concat((a, X), 0),
    "ops.stack": lambda a: ops.stack([a, a]),
    "ops.where": lambda a: ops.where(X > 0.5, a, X),
    "ops.gather": lambda a: ops.gather(TABLE, a, 0),
    "ops.one_hot": lambda a: ops.one_hot(a, 4),
    "ops.einsum": lambda a: ops.einsum("ij,jk->ik", a, W),
    "ops.Sin()": lambda a: ops.Sin()(a),
    "ops.scan": lambda a: ops.scan(lambda c, x: (c + x, c * x), X[0], a),
    "x + a": lambda a: X + a,
    "x - a": lambda a: X - a,
    "x * a": lambda a: X * a,
    "x / a": lambda a: X / a,
    "x ** a": lambda a: X**a,
    "x // a": lambda a: X // a,
    "x % a": lambda a: X % a,
    "x @ a": lambda a: W @ a,
    "x < a": lambda a: X < a,
    "x == a": lambda a: X == a,
    "x[a]": lambda a: TABLE[a],
    **tensor_methods("add sub mul div pow dot equal copy_ masked_fill maximum"),
    "watch": watched,
    "check_grads": lambda a: [line.derivative for line in gc.check_grads(cube, a, tolerance=0.1)],
    "graph_text": lambda a: gc.graph_text(cube, a),
    "set_data": lambda a: gc.Parameter(Tensor(np.ones((2, 3))), name="p").set_data(a).value(),
    "initializer": lambda a: gc.common.initializer.initializer(a, None, gc.float64),
    "all_finite": lambda a: gc.amp.all_finite((a,)),
    "nn.MAE": lambda a: measured(nn.MAE(), a),
    "Parameter": lambda a: gc.Parameter(a, name="p").value(),
    "jit": lambda a: gc.jit(cube)(a),
    "grad": lambda a: gc.grad(cube)(a),
    "value_and_grad": lambda a: gc.value_and_grad(cube)(a),
    "GradOperation": lambda a: ops.GradOperation()(cube)(a),
    "jacrev": lambda a: gc.jacrev(rows)(a),
    "jacfwd": lambda a: gc.jacfwd(rows)(a),
    "hessian": lambda a: gc.hessian(cube)(a),
    "laplacian": lambda a: gc.laplacian(cube)(a),
    "biharmonic": lambda a: gc.biharmonic(cube)(a),
    "partials": lambda a: gc.partials(rows, [(0, 1)])(a),
    "jvp": lambda a: gc.jvp(cube, a, a),
    "vjp": lambda a: (lambda y, pull: (y, pull(a)))(*gc.vjp(lambda x: x * x, a)),
    "hvp": lambda a: gc.hvp(cube, (a,), (a,)),
    "linearize": lambda a: (lambda y, f: (y, f(a)))(*gc.linearize(cube, a)),
    "vmap": lambda a: gc.vmap(cube)(a),
    "jet": lambda a: ops.jet(cube, a, a),
    "derivative": lambda a: ops.derivative(cube, a, 2),
    "gauss_newton_product": lambda a: gc.gauss_newton_product(rows, 0)(a, a),
    "recompute": lambda a: gc.recompute(cube, a),
    "custom_vjp": lambda a: own_rule()(a),
    "LBFGS": trained(lambda f, p, a: gc.lbfgs(lambda x: ops.sum(f(x) ** 2), [p], a, max_steps=3)),
    "GaussNewton": trained(lambda f, p, a: gc.GaussNewton(f, [p]).run(2, a)),
}
#: At the door of a cell a floating array takes the dtype of the first floating Parameter.
CELLS: dict[str, Callable[[Any], Any]] = {
    "nn.Dense": layer(lambda: nn.Dense(3, 2)),
    "nn.LayerNorm": layer(lambda: nn.LayerNorm((3,))),
    "nn.SequentialCell": layer(
        lambda: nn.SequentialCell(nn.Dense(3, 2), nn.Tanh(), nn.Dense(2, 1))
    ),
    "nn.Embedding": layer(lambda: nn.Embedding(5, 2)),
    "nn.PReLU": layer(lambda: nn.PReLU(1)),
    "nn.GRUCell": layer(lambda: lambda a: nn.GRUCell(3, 2)(a, ops.ones((2, 2)))),
    "Model.predict": layer(lambda: gc.Model(nn.Dense(3, 2)).predict),
    "nn.SGD": stepped(lambda p: nn.SGD(p, 0.1)),
    "nn.Adam": stepped(lambda p: nn.Adam(p, 0.1)),
}
#: Cells without Parameters: an array keeps its dtype.
PLAIN |= {
    "nn.Tanh": lambda a: nn.Tanh()(a),
    "nn.Softmax": lambda a: nn.Softmax()(a),
    "nn.MSELoss": lambda a: nn.MSELoss()(a, X),
    "nn.L1Loss": lambda a: nn.L1Loss()(X, a),
    "nn.CrossEntropyLoss": lambda a: nn.CrossEntropyLoss()(X, a),
}
#: What is not as with Tensor(a), and why: by row and kind.
EXCEPT = {
    (row, "scalar"): f"a scalar of NumPy's is a number, as Python's are: {why}"
    for row, why in {
        "custom_vjp": "what a function computes of numbers alone are numbers",
        "ops.stop_gradient": "it is a constant as it is",
        "x @ a": "Python refuses it by itself, without a line",
        "graph_text": "it is a constant of the graph",
        "initializer": "it fills a shape, which is then needed",
        "all_finite": "there are no tensors",
        "nn.PReLU": "it keeps its dtype at a cell's door",
        "nn.SGD": "it is no gradient of a Parameter",
        "nn.Adam": "it is no gradient of a Parameter",
    }.items()
}


def outcome(row: Callable[[Any], Any], a: Any) -> Any:
    """The leaves of what a call gives, or the kind of error that it raises."""
    try:
        return tree.leaves(row(a))
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        assert re.search(HERE, str(error)), f"without this file's line: {error}"
        return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


def assert_same(got: Any, wanted: Any) -> None:
    if isinstance(wanted, type):
        assert got is wanted
        return
    assert not isinstance(got, type), got
    for g, w in zip(got, wanted, strict=True):
        assert type(g) is type(w)
        if isinstance(w, Tensor):
            assert (g.dtype, g.shape) == (w.dtype, w.shape)
            g, w = g.asnumpy(), w.asnumpy()
        if isinstance(w, str):
            assert g == w
            continue
        np.testing.assert_allclose(g, w, rtol=1e-6, atol=0)


@pytest.mark.filterwarnings("ignore:.*(gradient|mse_loss).*:RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_are_taken_as_tensors_are(kind: str) -> None:
    failed = {}
    given = KINDS[kind](VALUES)
    as_tensor = Tensor(given)
    for name, row in (PLAIN | CELLS).items():
        floating = as_tensor.dtype.is_floating
        like = as_tensor.astype(gc.float32) if name in CELLS and floating else as_tensor
        try:
            assert_same(outcome(row, given), outcome(row, like))
        except (AssertionError, TypeError) as error:
            failed[name] = str(error)[:300]
    expected = {name for name, other in EXCEPT if other == kind}
    assert failed.keys() == expected, {k: v for k, v in failed.items() if k not in expected}


# Trees ----------------------------------------------------------------------------------------------


class Named(typing.NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Data:
    a: Any
    b: Any


class Own:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


tree.register(Own, lambda own: (own.a, own.b), lambda own, parts: Own(*parts))

TREES: dict[str, Callable[[Any, Any], Any]] = {
    "dict": lambda a, b: {"a": a, "b": {"c": b}},
    "OrderedDict": lambda a, b: collections.OrderedDict(a=a, b=b),
    "defaultdict": lambda a, b: collections.defaultdict(list, a=a, b=b),
    "list": lambda a, b: [a, [b]],
    "tuple": lambda a, b: (a, (b,), ()),
    "named tuple": Named,
    "dataclass": Data,
    "registered": Own,
    "with None": lambda a, b: {"a": a, "none": None, "b": b},
}
A, B = VALUES, VALUES[0]
DA, DB = np.cos(A), np.cos(B)


def scalar(p: Any) -> Any:
    a, b = tree.leaves(p)
    return ops.sum(a * a * b) + ops.sum(ops.sin(b))


def elements(p: Any) -> Any:
    return tree.map(lambda x: x * x * x, p)


#: Transforms of functions of a tree, at p and along v.
OF_TREES: dict[str, Callable[[Any, Any], Any]] = {
    "jit": lambda p, v: gc.jit(elements)(p),
    "grad": lambda p, v: gc.grad(scalar)(p),
    "value_and_grad": lambda p, v: gc.value_and_grad(scalar)(p)[1],
    "jacrev": lambda p, v: gc.jacrev(scalar)(p),
    "jacfwd": lambda p, v: gc.jacfwd(scalar)(p),
    "jacrev of a tree": lambda p, v: gc.jacrev(elements)(p),
    "hessian": lambda p, v: gc.hessian(scalar)(p),
    "laplacian": lambda p, v: gc.laplacian(scalar)(p),
    "jvp": lambda p, v: gc.jvp(elements, (p,), (v,))[1],
    "vjp": lambda p, v: gc.vjp(scalar, (p,))[1](1.0)[0],
    "vjp of a tree": lambda p, v: gc.vjp(elements, (p,))[1](v)[0],
    "hvp": lambda p, v: gc.hvp(scalar, (p,), (v,))[1][0],
    "linearize": lambda p, v: gc.linearize(elements, (p,))[1]((v,)),
    "vmap": lambda p, v: gc.vmap(elements)(p),
    "gauss_newton_product": lambda p, v: gc.gauss_newton_product(scalar, 0)(p, v),
    "scan": lambda p, v: ops.scan(lambda c, x: (c + 1, elements(x)), 0, p, 2)[1],
}


def numbers(found: Any) -> list[np.ndarray]:
    return [x.asnumpy() for x in tree.leaves(found) if isinstance(x, Tensor)]


@pytest.mark.parametrize("name", OF_TREES)
def test_transforms_take_trees(name: str) -> None:
    call = OF_TREES[name]
    long = name in ("vmap", "scan")  # (the leading axes are alike)
    b, db = (A, DA) if long else (B, DB)
    wanted = numbers(call((Tensor(A), Tensor(b)), (Tensor(DA), Tensor(db))))
    for kind, make in TREES.items():
        for leaf in (Tensor, np.asarray, OnlyDLPack):
            p, v = make(leaf(A), leaf(b)), make(leaf(DA), leaf(db))
            found = call(p, v)
            assert len(numbers(found)) == len(wanted), kind
            for got, want in zip(numbers(found), wanted, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=kind)
            if type(p) is list and name in ("jacrev of a tree", "hessian"):
                assert type(found) is tuple  # of outputs, of positions
            elif name != "laplacian":  # (which is one number)
                assert type(found) is type(p)


def test_the_public_functions_of_trees() -> None:
    nested = {"b": [1, (2.0, None)], "a": Named("x", np.ones(2)), "d": Data(3, {"m": "y"})}
    leaves, structure = tree.flatten(nested)
    assert leaves[:3] == [1, 2.0, "x"] and leaves[4:] == [3, "y"] and structure.size == 6
    assert structure == tree.structure(nested) and hash(structure) == hash(tree.structure(nested))
    assert structure != tree.structure({**nested, "b": (1, (2.0, None))})
    assert structure != tree.structure({"a": nested["a"], "b": nested["b"], "d": nested["d"]})
    assert repr(structure) == (
        "Structure({'b': [*, (*, None)], 'a': Named(*, *), 'd': Data(a=*, b={'m': *})})"
    )
    again = tree.unflatten(structure, range(6))
    assert again == {"b": [0, (1, None)], "a": Named(2, 3), "d": Data(4, {"m": 5})}
    assert tree.leaves(None) == [] and tree.leaves(3) == [3] and tree.map(str, None) is None
    assert tree.map(lambda x, y, z: (x, y, z), {"a": 1, "b": 2}, {"b": [3], "a": 4}, {"a": 5, "b": 6}) == {
        "a": (1, 4, 5), "b": (2, [3], 6)
    }  # fmt: skip
    counted = collections.defaultdict(int, a=1)
    assert tree.map(str, counted)["b"] == 0 and tree.map(str, counted)["a"] == "1"
    own = tree.map(lambda x: x + 1, Own(1, [2]))
    assert type(own) is Own and (own.a, own.b) == (2, [3])
    circle: list[Any] = []
    circle.append(circle)
    for call, error, text in (
        (lambda: tree.leaves(circle), ValueError, "a list that contains itself"),
        (lambda: gc.jit(elements)(circle), ValueError, "a list that contains itself"),
        (lambda: tree.unflatten(structure, [1]), ValueError, "6 leaves, but got 1"),
        (lambda: tree.unflatten(nested, [1]), TypeError, "expected a Structure.*got dict"),
        (
            lambda: tree.map(max, [1, 2], [1]),
            ValueError,
            "a list of 2 is needed, but got list of 1",
        ),
        (lambda: tree.map(max, {"a": 1}, {"b": 1}), ValueError, r"keys should be \['a'\]"),
        (lambda: tree.map(max, [1], 2), ValueError, "a list of 1 is needed, but got int"),
        (
            lambda: tree.register(dict, list, list),
            ValueError,
            "a dict is in a tree does not change",
        ),
        (lambda: tree.register(3, list, list), TypeError, "expected a class"),
    ):
        with pytest.raises(error, match=f"{text}.*{HERE}"):
            call()


# The rule -------------------------------------------------------------------------------------------


def test_a_cell_gives_floating_arrays_the_dtype_of_its_parameters() -> None:
    net = nn.Dense(3, 2)
    assert net(VALUES).dtype == gc.float32
    assert nn.Dense(3, 2).to_float(gc.float16)(VALUES).dtype == gc.float16
    assert nn.Dense(3, 2, dtype=gc.float64)(VALUES.astype(np.float32)).dtype == gc.float64
    assert nn.Tanh()(VALUES).dtype == gc.float64
    for transform in (gc.jit, gc.vmap, gc.jacrev, gc.laplacian):
        assert transform(net)(VALUES).dtype == gc.float32
    assert gc.vmap([net, nn.Dense(3, 2)], None)(VALUES).dtype == gc.float32
    assert gc.jvp(net, VALUES, VALUES)[1].dtype == gc.float32
    with pytest.raises(TypeError, match=f"'x1' with type Tensor.Int64.*{HERE}"):
        net((VALUES * 3).astype(int))
    with pytest.raises(TypeError, match=f"'x1' with type Tensor.Float64.*{HERE}"):
        net(Tensor(VALUES))

    class Takes(nn.Cell):
        """A cell of the user's, whose arguments are trees."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = net

        def construct(self, pair: Any, *, factor: Any) -> Any:
            assert all(isinstance(x, Tensor) for x in (*pair["x"], factor))
            return self.inner(pair["x"][0]) * factor, pair["x"][1], pair["name"]

    out, integers, name = Takes()({"x": [VALUES, np.arange(3)], "name": "n"}, factor=VALUES[:, :2])
    assert (out.dtype, integers.dtype, name) == (gc.float32, gc.int64, "n")


def test_jit_compiles_arrays_as_inputs() -> None:
    traces = []

    @gc.jit
    def f(x: Any, names: Any) -> Any:
        traces.append(type(x))
        return ops.sin(x) * (2.0 if names[0] == "a" else 3.0)

    for a in (VALUES, VALUES + 1, OnlyArray(VALUES - 1), Tensor(VALUES)):
        got = f(a, ("a",))
        assert isinstance(got, Tensor)
        np.testing.assert_array_equal(got.asnumpy(), (ops.sin(a) * 2.0).asnumpy())
    assert traces == [Tensor]
    # What is no array of numbers stays what it is.
    assert f(VALUES, np.array(["b"])).dtype == gc.float64 and traces == [Tensor] * 2


def test_minimisers_of_scipy_take_what_value_and_grad_gives() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    found = optimize.minimize(
        gc.value_and_grad(lambda x: ops.sum((x - 2) ** 4)), np.ones(3), jac=True
    )
    assert found.success
    np.testing.assert_allclose(found.x, 2.0, atol=0.02)


@pytest.mark.parametrize("module", ["torch", "jax"])
def test_bfloat16_of_other_libraries(module: str) -> None:
    library = pytest.importorskip(module)
    numbers = [1.0, -2.5, 65280.0]
    made = (
        library.tensor(numbers, dtype=library.bfloat16)
        if module == "torch"
        else importlib.import_module("jax.numpy").asarray(numbers, "bfloat16")
    )
    for x in (Tensor(made), ops.abs(made) * ops.sign(made), gc.jit(lambda x: x)(made)):
        assert x.dtype == gc.bfloat16 and x.float().asnumpy().tolist() == numbers


def test_what_gives_no_array_is_refused_in_its_own_words() -> None:
    class Attached:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            raise RuntimeError("it requires a gradient; detach it")

    for call in (
        lambda: ops.sin(Attached()),
        lambda: X + Attached(),
        lambda: nn.Dense(3, 2)(Attached()),
        lambda: gc.grad(cube)(Attached()),
        lambda: gc.jit(cube)(Attached()),
    ):
        with pytest.raises(TypeError, match=f"Attached gives no array: it requires.*{HERE}"):
            call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ops.sin("a"), "Sin: expected a Tensor, got str"),
        (lambda: ops.sin([1.0]), "Sin: expected a Tensor, got list; gradcell.Tensor"),
        (lambda: ops.sin(np.array(["a"])), "dtype <U1 is not supported.*in sin"),
        (lambda: ops.gelu(np.array([None])), "dtype object is not supported.*in gelu"),
        (lambda: ops.sum(np.array([None])), "dtype object is not supported.*in sum"),
        (lambda: X + np.array([None]), "dtype object is not supported"),
        (lambda: X @ np.array([None]), "dtype object is not supported"),
        (lambda: nn.Dense(3, 2)(np.array(["a"])), "dtype <U1 is not supported.*in Dense"),
        (lambda: gc.grad(cube)(np.array(["a"])), "argument 0: .* ndarray of dtype <U1"),
        (lambda: gc.hessian(cube)(np.array(["a"])), "argument 0: .* ndarray of dtype <U1"),
        (lambda: gc.jvp(cube, np.array(["a"]), X), "jvp: inputs must be tensors, got ndarray"),
        (lambda: ops.relu(VALUES, inplace=True), "relu: a ndarray cannot be written to"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=f"{text}.*{HERE}"):
        call()


def test_dtypes_have_numpys_type() -> None:
    """Which SciPy makes a number with, of what a function gives."""
    for name in ("float64", "float32", "float16", "int8", "uint64", "bool", "complex64"):
        assert getattr(gc, name if name != "bool" else "bool_").type is np.dtype(name).type
    assert gc.bfloat16.type is np.float32

"""vmap against loops over the examples: every op, every choice of what differs between them, every
axis, nested, in both modes; and what cannot be mapped."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from batching_rows import BATCHED_APART, NOTHING_TO_BATCH, ROWS as BATCH_ROWS, BatchRow
from check_grads import outputs
from op_rows import ROWS, Row, sample
from structured_rows import CASES, Case

import gradcell as gc
from gradcell import Parameter, ParameterTuple, Tensor, _core, nn, ops

EXAMPLES, OUTER = 3, 2


def close(found: Any, expected: np.ndarray) -> None:
    assert tuple(found.shape) == expected.shape
    scale = float(np.abs(expected).max(initial=0.0)) if expected.dtype != bool else 0.0
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-12, atol=1e-13 * scale)


def choices(count: int) -> Iterator[tuple[bool, ...]]:
    """Which operands differ from example to example: every choice but none."""
    yield from (c for c in itertools.product((True, False), repeat=count) if any(c))


class Loop:
    """A function of one example after the other: each choice of examples, one for each operand, once."""

    def __init__(self, run: Callable[..., Any], examples: Sequence[Sequence[np.ndarray]]) -> None:
        self.run, self.examples = run, examples
        self.known: dict[tuple[int, ...], list[np.ndarray]] = {}

    def of(self, *chosen: int) -> list[np.ndarray]:
        if chosen not in self.known:
            out = self.run(*(x[i] for x, i in zip(self.examples, chosen, strict=True)))
            self.known[chosen] = [
                np.asarray(getattr(y, "asnumpy", lambda y=y: y)()) for y in outputs(out)
            ]
        return self.known[chosen]

    def over(self, rows: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """The outputs for each of the rows, stacked."""
        return [np.stack(column) for column in zip(*(self.of(*r) for r in rows), strict=True)]


def check_all_choices(run: Callable[..., Any], loop: Loop) -> None:
    """Every choice of operands, each with other axes for them and for the outputs."""
    examples = loop.examples
    for turn, differ in enumerate(choices(len(examples))):
        expected = loop.over([[i if d else 0 for d in differ] for i in range(EXAMPLES)])
        in_axes: list[int | None] = []
        operands = []
        for k, (x, d) in enumerate(zip(examples, differ, strict=True)):
            rank = x[0].ndim
            axis = (turn + k) % (rank + 1)
            operands.append(Tensor(np.stack(x[:EXAMPLES], axis) if d else x[0]))
            in_axes.append((axis - rank - 1 if (turn + k) % 2 else axis) if d else None)
        ranks = [e.ndim for e in expected]
        places = [(turn + k) % rank for k, rank in enumerate(ranks)]
        out_axes = [p - r if turn % 2 else p for p, r in zip(places, ranks, strict=True)]
        found = gc.vmap(run, tuple(in_axes), out_axes[0] if len(ranks) == 1 else tuple(out_axes))(
            *operands
        )
        for got, want, place in zip(outputs(found), expected, places, strict=True):
            close(got, np.moveaxis(want, 0, place))


def check_every_axis(run: Callable[..., Any], loop: Loop) -> None:
    """All operands differ: each axis of the operand with most, the others counted from the end."""
    examples = loop.examples
    expected = loop.over([[i] * len(examples) for i in range(EXAMPLES)])
    for step in range(max(x[0].ndim for x in examples) + 1):
        axes = [min(step, x[0].ndim) for x in examples]
        operands = [Tensor(np.stack(x[:EXAMPLES], a)) for x, a in zip(examples, axes, strict=True)]
        found = gc.vmap(run, tuple(axes))(*operands)
        for got, want in zip(outputs(found), expected, strict=True):
            close(got, want)


def check_nested(run: Callable[..., Any], loop: Loop) -> None:
    """vmap of vmap: the first operand differs in both, the others in one of them each."""
    examples = loop.examples
    inner = [True] + [k % 2 == 0 for k in range(1, len(examples))]
    outer = [True] + [k % 2 == 1 for k in range(1, len(examples))]

    def chosen(a: int, b: int) -> list[int]:
        return [
            a * EXAMPLES + b if o and i else a if o else b if i else 0
            for i, o in zip(inner, outer, strict=True)
        ]

    grid = [[chosen(a, b) for b in range(EXAMPLES)] for a in range(OUTER)]
    operands = [
        np.stack([np.stack([x[c[k]] for c in row]) for row in grid]) for k, x in enumerate(examples)
    ]
    expected = [np.stack(column) for column in zip(*map(loop.over, grid), strict=True)]
    given = [
        x if i and o else x[:, 0] if o else x[0] for x, i, o in zip(operands, inner, outer, strict=True)
    ]  # fmt: skip
    mapped = gc.vmap(
        gc.vmap(run, tuple(0 if i else None for i in inner)), tuple(0 if o else None for o in outer)
    )
    for got, want in zip(outputs(mapped(*map(Tensor, given))), expected, strict=True):
        close(got, want)


def check_row(
    run: Callable[..., Any], examples: list[list[np.ndarray]], loop: Callable[..., Any]
) -> None:
    each = Loop(loop, examples)
    check_all_choices(run, each)
    check_every_axis(run, each)
    check_nested(run, each)


# Every op -------------------------------------------------------------------------------------------


@pytest.mark.one_in(12)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_elementwise(row: Row, mode: int) -> None:
    count = OUTER * EXAMPLES
    flat = sample(row, count * 6, seed=1)
    if row.name == "Select":
        pytest.fail("Select has structured cases")
    examples = [list(x.reshape(count, 2, 3)) for x in flat]
    function = getattr(ops, row.function)
    check_row(function, examples, lambda *xs: function(*map(Tensor, xs)))


@pytest.mark.one_in(24)
@pytest.mark.parametrize("row", BATCH_ROWS, ids=lambda row: f"{row.op}-{row.label}")
def test_structured(row: BatchRow, mode: int) -> None:
    one = gc.jit(row.run)
    check_row(row.run, row.examples(OUTER * EXAMPLES), lambda *xs: one(*map(Tensor, xs)))


MAPPED_CASES = [case for case in CASES if case.shapes]


@pytest.mark.one_in(48)
@pytest.mark.parametrize("case", MAPPED_CASES, ids=lambda case: f"{case.op}-{case.label}")
def test_users_ops(case: Case, mode: int) -> None:
    """By the names and in the forms that users call, against NumPy."""
    operands = [case.operands(seed) for seed in range(EXAMPLES)]
    examples = [list(x) for x in zip(*operands, strict=True)]
    check_all_choices(case.run, Loop(case.reference, examples))


DIFFERENTIABLE = [case for case in MAPPED_CASES if case.order > 0 and "big" not in case.label]


@pytest.mark.one_in(32)
@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: f"{case.op}-{case.label}")
def test_gradients_of_examples(case: Case) -> None:
    """vmap of grad, and grad of vmap, against grad of each example."""

    def total(*xs: Any) -> Any:
        return sum(ops.sum(ops.sin(y) + 0.3 * y * y) for y in outputs(case.run(*xs)))

    operands = [case.operands(seed) for seed in range(EXAMPLES)]
    positions = tuple(range(len(case.shapes)))
    each = [outputs(gc.grad(total, positions)(*map(Tensor, xs))) for xs in operands]
    expected = [np.stack([g.asnumpy() for g in column]) for column in zip(*each, strict=True)]
    batches = [Tensor(np.stack(x)) for x in zip(*operands, strict=True)]
    mapped = gc.vmap(gc.grad(total, positions))
    outer = gc.grad(lambda *xs: ops.sum(gc.vmap(total)(*xs)), positions)
    for found in (mapped(*batches), outer(*batches)):
        for got, want in zip(outputs(found), expected, strict=True):
            close(got, want)


TABLE = [row["name"] if isinstance(row, dict) else row.name for row in _core.op_table()]


@pytest.mark.parametrize("name", TABLE)
def test_every_op_has_a_row(name: str) -> None:
    rows = {row.name for row in ROWS} | {row.op for row in BATCH_ROWS} | {"Select"}
    assert name in rows | NOTHING_TO_BATCH | BATCHED_APART, (
        f"{name} has no row in tests/python/support/cases/batching_rows.py"
    )


def test_select(mode: int) -> None:
    rng = np.random.default_rng(0)
    count = OUTER * EXAMPLES
    condition = [rng.random((2, 3)) < 0.5 for _ in range(count)]
    first, second = ([rng.standard_normal((2, 3)) for _ in range(count)] for _ in range(2))
    check_row(ops.where, [condition, first, second], np.where)


# Axes, trees, errors --------------------------------------------------------------------------------

X = np.arange(6.0).reshape(2, 3)


def test_mindspore_example() -> None:
    """The docstring's, and its printed result."""
    x = Tensor(np.array([[1, 2], [3, 4], [5, 6]], np.float32))
    y = Tensor(np.array([[-3, -2, -1], [3, 2, 1]], np.float32))
    z = Tensor(np.array([0, 3], np.float32))
    found = ops.vmap(lambda x, y, z: x + y + z, in_axes=(0, 1, None), out_axes=1)(x, y, z)
    assert str(found) == "[[-2.  1.  4.]\n [ 8.  9. 10.]]"


def test_trees(mode: int) -> None:
    def fn(pair, named, factor):
        return {"sum": pair[0] + pair[1][0]}, [named["a"] * factor, None, 3.0]

    found = gc.vmap(fn, in_axes=((0, [1]), {"a": None}, None), out_axes=({"sum": -1}, 0))(
        (Tensor(X), [Tensor(X.T)]), {"a": Tensor(X)}, 2
    )
    np.testing.assert_array_equal(found[0]["sum"].asnumpy(), 2 * X.T)
    np.testing.assert_array_equal(found[1][0].asnumpy(), np.stack([2 * X] * 2))
    assert found[1][1] is None
    np.testing.assert_array_equal(found[1][2].asnumpy(), [3, 3])


def test_same_for_all(mode: int) -> None:
    """What does not depend on the examples is repeated, or given once."""
    y = Tensor(X[0])
    repeated, once = gc.vmap(lambda x: (y * 2, y + 1), 0, (1, None))(Tensor(X))
    np.testing.assert_array_equal(repeated.asnumpy(), np.stack([2 * X[0]] * 2, 1))
    np.testing.assert_array_equal(once.asnumpy(), X[0] + 1)


def test_no_examples(mode: int) -> None:
    found = gc.vmap(lambda x: (ops.sum(x), x @ Tensor(X.T)))(Tensor(np.zeros((0, 3))))
    assert found[0].shape == (0,)
    assert found[1].shape == (0, 2)


def test_writes(mode: int) -> None:
    """Into the example's own tensor, by numbers, slices and indices that differ."""

    def fn(x, i, v):
        y = x * 1
        y[i] = v
        y[0] = v * 2
        x[1:] = -v
        return y, x

    rng = np.random.default_rng(1)
    x, i, v = rng.standard_normal((4, 5)), np.array([1, 4, 2, 1]), rng.standard_normal(4)
    expected = x.copy()
    expected[np.arange(4), i] = v
    expected[:, 0] = 2 * v
    given = Tensor(x)
    found = gc.vmap(fn)(given, Tensor(i), Tensor(v))
    np.testing.assert_array_equal(found[0].asnumpy(), expected)
    np.testing.assert_array_equal(
        found[1].asnumpy(), np.concatenate([x[:, :1], np.repeat(-v[:, None], 4, 1)], 1)
    )
    np.testing.assert_array_equal(given.asnumpy(), x)
    repeated = gc.vmap(lambda x, i: put(x, i))(Tensor(x), Tensor(np.array([[1, 1], [0, 4]] * 2)))
    expected = x.copy()
    expected[0::2, 1] = 8.0
    expected[1::2, 0], expected[1::2, 4] = 7.0, 8.0
    np.testing.assert_array_equal(repeated.asnumpy(), expected)


def put(x, i):
    y = x * 1
    y[i] = Tensor([7.0, 8.0], gc.float64)
    return y


def test_index_out_of_range(mode: int) -> None:
    rows = Tensor(X)
    with pytest.raises(IndexError):
        gc.vmap(lambda x, i: ops.gather(x, i, 0))(rows, Tensor([1, 3])).asnumpy()


def wants_value(x):
    return x if x.sum() > 3 else x * 2


@pytest.mark.parametrize(
    "fn",
    [
        wants_value,
        lambda x: x * float(x[0]),
        lambda x: Tensor(x.asnumpy()),
        lambda x: x[: int(x[0])],
        lambda x: x[x > 0],
        gc.grad(lambda x: ops.sum(wants_value(x))),
        gc.vmap(lambda x: x if x > 0 else -x),
    ],
)
def test_a_value_of_one_example(fn, mode: int) -> None:
    with pytest.raises(ValueError, match="differs from example to example") as caught:
        gc.vmap(fn)(Tensor(X))
    assert "test_batching.py" in str(caught.value)


def test_a_value_of_all_examples(mode: int) -> None:
    """What is the same for every example can be asked for."""
    y = Tensor(X[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is traced at every call
        found = gc.vmap(lambda x: x * (2 if y.sum() > 1 else 3))(Tensor(X))
    np.testing.assert_array_equal(found.asnumpy(), 2 * X)


def test_a_tensor_that_escapes(mode: int) -> None:
    kept = []

    def fn(x):
        kept.append(x * 2)
        return x

    gc.vmap(fn)(Tensor(X))
    assert kept[0].shape == (3,)
    with pytest.raises(ValueError, match="return it from that function"):
        kept[0] + 1
    with pytest.raises(ValueError, match="differs from example to example"):
        kept[0].asnumpy()


def test_a_parameter_that_is_assigned(mode: int) -> None:
    p = Parameter(Tensor(X[0]), name="p")
    with pytest.raises(ValueError, match="a parameter was assigned"):
        gc.vmap(lambda x: ops.assign(p, x) + 1)(Tensor(X))
    np.testing.assert_array_equal(p.asnumpy(), X[0])
    gc.vmap(lambda x: ops.assign(p, p * 2) + x)(Tensor(X))
    np.testing.assert_array_equal(p.asnumpy(), 2 * X[0])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: gc.vmap(ops.add)(x, Tensor(X.T)), RuntimeError, "should be equal, but got 2 and 3"),
        (lambda x: gc.vmap(ops.sin, 2)(x), RuntimeError, r"axis: 2 in 'in_axes' .*\[-2,2\)"),
        (lambda x: gc.vmap(ops.sin, 0, -3)(x), RuntimeError, r"axis: -3 in 'out_axes'"),
        (lambda x: gc.vmap(ops.sin, None)(x), RuntimeError, "nothing to map over"),
        (lambda x: gc.vmap(ops.sin, (0, 0))(x), RuntimeError, "size must be equal to the number"),
        (lambda x: gc.vmap(ops.sin, 1.0)(x), RuntimeError, "only be of type int or None"),
        (lambda x: gc.vmap(ops.sin, True)(x), RuntimeError, "only be of type int or None"),
        (lambda x: gc.vmap(ops.sin, 0, None)(x), RuntimeError, "has None in 'out_axes'"),
        (lambda x: gc.vmap(lambda a: (a, a), 0, (0,))(x), RuntimeError, "must be equal"),
        (lambda x: gc.vmap(lambda a, b: a * b)(x, 3.0), RuntimeError, "of type float"),
        (lambda x: gc.vmap(lambda d: d["a"], ({"b": 0},))({"a": x}), RuntimeError, "keys"),
        (lambda x: gc.vmap(ops.sin)(Tensor(1.0)), RuntimeError, "no dimensions"),
        (lambda x: gc.vmap(lambda a: None)(x), RuntimeError, "returned no tensor"),
        (lambda x: gc.vmap(3), RuntimeError, "must be a function"),
        (lambda x: gc.vmap([nn.Dense(3, 2), nn.Dense(3, 4)])(x), RuntimeError, "one structure"),
    ],
)  # fmt: skip
def test_errors(call, kind, message, mode: int) -> None:
    with pytest.raises(kind, match=message) as caught:
        call(Tensor(X))
    assert "test_batching.py" in str(caught.value)


def test_a_keyword_that_the_function_does_not_take(mode: int) -> None:
    with pytest.raises(TypeError, match=r"add.*'y'"):
        gc.vmap(ops.add)(Tensor(X), y=Tensor(X))


# With other transforms ------------------------------------------------------------------------------


def network() -> nn.Cell:
    gc.set_seed(3)
    wide = {"dtype": gc.float64}
    return nn.SequentialCell(nn.Dense(3, 4, **wide), nn.Tanh(), nn.Dense(4, 2, **wide))


def test_gradients_of_each_sample(mode: int) -> None:
    net = network()
    weights = ParameterTuple(net.trainable_params())
    x = np.random.default_rng(0).standard_normal((5, 3))

    def loss(x):
        return ops.sum(ops.square(net(x)))

    found = gc.vmap(gc.grad(loss, None, weights))(Tensor(x))
    for i in range(5):
        for whole, one in zip(found, gc.grad(loss, None, weights)(Tensor(x[i])), strict=True):
            close(whole[i], one.asnumpy())
    total = gc.grad(lambda x: ops.sum(gc.vmap(loss)(x)), None, weights)(Tensor(x))
    for whole, summed in zip(found, total, strict=True):
        close(summed, whole.asnumpy().sum(0))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_grad_and_vmap_in_either_order(order: int, mode: int) -> None:
    def fn(x):
        return ops.tanh(x) * x * x

    def nested(f, transform, times):
        for _ in range(times):
            f = transform(f)
        return f

    x = Tensor(np.linspace(-1, 1, 6))
    inside = gc.vmap(nested(fn, gc.grad, order))(x)
    outside = nested(gc.vmap(fn), lambda f: gc.grad(lambda x: ops.sum(f(x))), order)(x)
    jitted = gc.jit(gc.vmap(gc.jit(nested(fn, gc.grad, order))))(x)
    direct = nested(fn, gc.grad, order)(x)
    for found in (inside, outside, jitted):
        close(found, direct.asnumpy())


def test_forward_mode(mode: int) -> None:
    x, v = (np.random.default_rng(k).standard_normal((4, 3)) for k in (0, 1))

    def fn(x):
        return ops.sin(x) * ops.sum(x * x)

    found = gc.vmap(lambda x, v: gc.jvp(fn, x, v))(Tensor(x), Tensor(v))
    for i in range(4):
        for whole, one in zip(found, gc.jvp(fn, Tensor(x[i]), Tensor(v[i])), strict=True):
            close(whole[i], one.asnumpy())
    outer = gc.jvp(gc.vmap(fn), Tensor(x), Tensor(v))
    for got, want in zip(outer, found, strict=True):
        close(got, want.asnumpy())
    pull_back = gc.vjp(gc.vmap(fn), Tensor(x))[1]
    close(pull_back(Tensor(v))[0], gc.vmap(lambda x, v: gc.vjp(fn, x)[1](v)[0])(
        Tensor(x), Tensor(v)).asnumpy())  # fmt: skip


def test_random_numbers_are_the_same(mode: int) -> None:
    """As in MindSpore; and the next call draws others."""
    fn = gc.vmap(lambda x: x * 0 + ops.standard_normal((3,)))
    first, second = fn(Tensor(X)).asnumpy(), fn(Tensor(X)).asnumpy()
    np.testing.assert_array_equal(first[0], first[1])
    assert (first != second).all()
    with pytest.raises(ValueError, match="cannot differ between examples"):
        gc.vmap(lambda s: _core.ops.random_uniform(s, [3]))(Tensor([[1, 0], [2, 0]], gc.int64))


@pytest.mark.parametrize("make", [list, nn.CellList], ids=["list", "CellList"])
def test_ensemble(make, mode: int) -> None:
    cells = []
    for seed in range(3):
        net = network()
        for p in net.get_parameters():
            p.set_data(Tensor(np.random.default_rng(seed).standard_normal(p.shape)))
        cells.append(net)
    x = np.random.default_rng(9).standard_normal((5, 3))
    held = make(cells)
    together = gc.vmap(held, None)(Tensor(x))
    close(together, np.stack([net(Tensor(x)).asnumpy() for net in cells]))
    batches = np.random.default_rng(8).standard_normal((3, 5, 3))
    apart = gc.vmap(held)(Tensor(batches))
    close(apart, np.stack([n(Tensor(b)).asnumpy() for n, b in zip(cells, batches, strict=True)]))
    weights = [p for net in cells for p in net.trainable_params()]
    found = gc.grad(lambda x: ops.sum(ops.square(gc.vmap(held, None)(x))), None, weights)(Tensor(x))
    each = [gc.grad(lambda x, n=n: ops.sum(ops.square(n(x))), None,
                    ParameterTuple(n.trainable_params()))(Tensor(x)) for n in cells]  # fmt: skip
    for got, want in zip(found, [g for one in each for g in one], strict=True):
        close(got, want.asnumpy())


def test_ensemble_with_state(mode: int) -> None:
    """What one cell assigns goes to each cell's own parameter."""

    class Counting(nn.Cell):
        def __init__(self, start):
            super().__init__()
            self.total = Parameter(Tensor(np.full(3, start)), name="total")
            self.calls = Parameter(Tensor(0.0, gc.float64), name="calls", requires_grad=False)

        def construct(self, x):
            self.total += x
            ops.assign(self.calls, 7.0)
            return self.total * 2

    cells = [Counting(1.0), Counting(2.0)]
    found = gc.vmap(cells)(Tensor(X))
    np.testing.assert_array_equal(found.asnumpy(), 2 * (X + np.array([[1.0], [2.0]])))
    for i, cell in enumerate(cells):
        np.testing.assert_array_equal(cell.total.asnumpy(), X[i] + i + 1)
        assert float(cell.calls) == 7.0


@pytest.mark.parametrize("starts", ["with the value", "with another"])
def test_a_parameter_of_one_example_has_no_value_after_it(starts: str) -> None:
    kept = []

    def loss(x):
        p = Parameter(x if starts == "with the value" else Tensor(np.zeros(3)), name="p")
        p.set_data(x)
        kept.append(p)
        return ops.sum(p * p)

    for transform in (gc.vmap, lambda f: gc.jit(gc.vmap(f)), lambda f: gc.vmap(gc.grad(f))):
        kept.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of jit: a tensor is kept
            transform(loss)(Tensor(X))
        with pytest.raises(ValueError, match="made inside a transform"):
            kept[0].asnumpy()

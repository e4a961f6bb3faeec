"""The batching rows of the test table: each structured op of the core, called directly, with
operands that differ from example to example, indices among them.

test_batching.py maps every row over every choice of its operands, along all their axes, nested, and
compares with a loop over the examples. The elementwise ops have their rows in op_rows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from attention_rows import SUMS, WAYS, run as attention, shapes as attention_shapes
from window_rows import NAMES, POOLS, SMALL, convolved, shapes

from gradcell import _core

ops = _core.ops


@dataclass(frozen=True)
class BatchRow:
    """One way to call one op of the core."""

    op: str
    label: str
    run: Callable[..., Any]
    operands: tuple[Callable[[np.random.Generator], np.ndarray], ...]

    def examples(self, count: int, seed: int = 0) -> list[list[np.ndarray]]:
        """For each operand, what it is for each of `count` examples."""
        rng = np.random.default_rng(seed)
        return [[make(rng) for _ in range(count)] for make in self.operands]


def numbers(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: rng.uniform(-1.5, 1.5, shape)


def indices(below: int, *shape: int, dtype: str = "int64") -> Callable[..., np.ndarray]:
    """Negative ones too."""
    return lambda rng: rng.integers(-below, below, shape).astype(dtype)


def product_rows() -> Iterator[BatchRow]:
    for ta in (False, True):
        for tb in (False, True):
            for m, k, n in [(2, 3, 4), (1, 3, 4), (3, 1, 2), (2, 3, 1), (1, 4, 1), (2, 0, 3)]:
                for lead in [(), (2,), (2, 3)]:
                    a, b = (k, m) if ta else (m, k), (n, k) if tb else (k, n)
                    yield BatchRow(
                        "MatMul",
                        f"{lead}-{m}x{k}x{n}-{ta}-{tb}",
                        lambda x, y, ta=ta, tb=tb: ops.matmul(x, y, ta, tb),
                        (numbers(*lead, *a), numbers(*lead, *b)),
                    )


def index_rows() -> Iterator[BatchRow]:
    for axis in (0, 1, 2):
        for at in [(), (2,), (2, 3), (0,)]:
            size = (4, 3, 5)[axis]
            yield BatchRow(
                "Gather",
                f"{axis}-{at}",
                lambda x, i, a=axis: ops.gather(x, i, a),
                (numbers(4, 3, 5), indices(size, *at)),
            )
            yield BatchRow(
                "Label",
                f"{axis}-{at}",
                lambda x, i, a=axis, n=size: ops.label(x, ops.mod(i, n), a),
                (numbers(4, 3, 5), indices(size, *at)),
            )
            full = [4, 3, 5]
            full[axis : axis + 1] = at
            yield BatchRow(
                "ScatterAdd",
                f"{axis}-{at}",
                lambda i, u, a=axis, n=size: ops.scatter_add(i, u, a, n),
                (indices(size, *at, dtype="int32"), numbers(*full)),
            )
    for shape in [(), (4,), (2, 3), (0,)]:
        yield BatchRow(
            "LastWriter", f"{shape}", lambda i: ops.last_writer(i, 5), (indices(5, *shape),)
        )


def matrix_rows() -> Iterator[BatchRow]:
    def lower(a: Any) -> Any:
        return ops.cholesky_factor(ops.add(ops.matmul(a, a, False, True), 1e-1 * np.eye(3)))

    one: dict[str, Callable[..., Any]] = {
        "LUFactors": ops.lu_factors,
        "LUInverse": lambda a: ops.lu_inverse(ops.lu_factors(a)),
        "LUDeterminant": lambda a: ops.lu_determinant(ops.lu_factors(a)),
        "CholeskyFactor": lower,
        "CholeskyInverse": lambda a: ops.cholesky_inverse(lower(a)),
        "QRFactors": ops.qr_factors,
        "EigenFactors": lambda a: ops.eigen_factors(ops.matmul(a, a, False, True)),
        "SingularFactors": lambda a: ops.singular_factors(a, False, True, False),
    }
    for op, run in one.items():
        for shape in [(3, 3), (2, 3, 3)]:
            yield BatchRow(op, f"{shape}", run, (numbers(*shape),))
    for lead in [(), (2,)]:
        yield BatchRow(
            "LUSolve", f"{lead}", lambda a, b: ops.lu_solve(ops.lu_factors(a), b),
            (numbers(*lead, 3, 3), numbers(*lead, 3, 2)),
        )  # fmt: skip
        yield BatchRow(
            "LUSolve", f"{lead}, adjoint", lambda a, b: ops.lu_solve(ops.lu_factors(a), b, False, True),
            (numbers(*lead, 3, 3), numbers(*lead, 3, 1)),
        )  # fmt: skip
        yield BatchRow(
            "DampedCholeskyFactor", f"{lead}",
            lambda a, d: ops.damped_cholesky_factor(
                ops.matmul(a, a, False, True), ops.add(ops.mul(d, d), 1.0), False
            ),
            (numbers(*lead, 3, 3), numbers(*lead, 1, 1)),
        )  # fmt: skip
        yield BatchRow(
            "CholeskySolve", f"{lead}", lambda a, b: ops.cholesky_solve(lower(a), b),
            (numbers(*lead, 3, 3), numbers(*lead, 3, 2)),
        )  # fmt: skip
        for adjoint in [False, True]:
            yield BatchRow(
                "TriangularSolve", f"{lead}, {adjoint}",
                lambda a, b, adjoint=adjoint: ops.triangular_solve(lower(a), b, False, adjoint),
                (numbers(*lead, 3, 3), numbers(*lead, 3, 2)),
            )  # fmt: skip


def order_rows() -> Iterator[BatchRow]:
    for lead in [(), (2,), (2, 3)]:
        n, k = numbers(*lead, 7), numbers(*lead, 4)
        yield BatchRow("Order", f"{lead}", lambda x: ops.order(x, True), (n,))
        yield BatchRow("FirstInOrder", f"{lead}", lambda x: ops.first_in_order(x, 3, False), (n,))
        for inner in range(len(lead) + 1):
            yield BatchRow(
                "RunningBest",
                f"{lead}-{inner}",
                lambda x, i=inner: ops.running_best(x, i, True),
                (n,),
            )
        line = lambda rng, n=n: np.sort(n(rng), -1)  # noqa: E731
        yield BatchRow("PlaceInLine", f"{lead}", ops.place_in_line, (line, k))
        yield BatchRow("CountBetween", f"{lead}", ops.count_between, (n, line))
        small = indices(9, *lead, 6), indices(9, *lead, 4)
        yield BatchRow("Among", f"{lead}", ops.among, small)
        yield BatchRow(
            "DrawByWeights", f"{lead}",
            lambda w, u: ops.draw_by_weights(*(ops.cast(ops.abs(v), _core.float32) for v in (w, u))),
            (n, k),
        )  # fmt: skip
        for function in (0, 3, 5):
            pair = indices(9, *lead, 6), indices(9, *lead, 6)
            yield BatchRow(
                "OfIntegers", f"{lead}-{function}",
                lambda a, b, f=function: ops.of_integers(a, b, f), pair,
            )  # fmt: skip
    yield BatchRow(
        "SegmentBest", "rows", lambda x, i: ops.segment_best(x, i, 4, True),
        (numbers(6, 5), indices(4, 6)),
    )  # fmt: skip


def reducing_rows() -> Iterator[BatchRow]:
    functions = {
        "ReduceSum": "reduce_sum",
        "ReduceMax": "reduce_max",
        "ReduceMin": "reduce_min",
        "ReduceProd": "reduce_prod",
    }
    for name, function in functions.items():
        for axes in [[0], [2], [0, 2], [0, 1, 2]]:
            yield BatchRow(
                name,
                f"{axes}",
                lambda x, f=function, a=axes: getattr(ops, f)(x, a),
                (numbers(3, 2, 4),),
            )
    for axis in (0, 1, 2):
        for name in ("ArgMax", "ArgMin"):
            yield BatchRow(
                name,
                f"{axis}",
                lambda x, f=name, a=axis: getattr(ops, f.lower())(x, a),
                (numbers(3, 2, 4),),
            )
        yield BatchRow(
            "FourierTransform",
            f"{axis}",
            lambda x, a=axis: ops.fourier(x, a % 3, a == 1),
            (numbers(3, 2, 4, 2),),
        )
        for name in ("CumSum", "CumProd"):
            for exclusive in (False, True):
                for reverse in (False, True):
                    yield BatchRow(
                        name,
                        f"{axis}-{exclusive}-{reverse}",
                        lambda x, f=name, a=axis, e=exclusive, r=reverse: getattr(ops, f.lower())(
                            x, a, e, r
                        ),
                        (numbers(3, 2, 4),),
                    )


def recurrence_rows() -> Iterator[BatchRow]:
    for axis in (0, 1):
        for exclusive in (False, True):
            yield BatchRow(
                "LinearRecurrence",
                f"{axis}-{exclusive}",
                lambda a, b, x=axis, e=exclusive: ops.linear_recurrence(a, b, x, e, x == 1),
                (numbers(3, 4), numbers(3, 4)),
            )


def moving_rows() -> Iterator[BatchRow]:
    x = numbers(2, 3, 4)
    for to in [(6, 4), (24,), (2, 1, 3, 4), (4, 3, 2)]:
        yield BatchRow("Reshape", f"{to}", lambda x, s=to: ops.reshape(x, list(s)), (x,))
    for perm in [(0, 2, 1), (2, 0, 1), (2, 1, 0)]:
        yield BatchRow("Transpose", f"{perm}", lambda x, p=perm: ops.transpose(x, list(p)), (x,))
    for shape, to in [((3, 1), (2, 3, 4)), ((), (2, 3)), ((1, 3), (4, 2, 3)), ((2, 3), (2, 3))]:
        yield BatchRow(
            "BroadcastTo",
            f"{shape}-{to}",
            lambda x, s=to: ops.broadcast_to(x, list(s)),
            (numbers(*shape),),
        )
    for start, size, step in [
        ((0, 1, 0), (2, 1, 4), (1, 1, 1)),
        ((1, 2, 3), (2, 2, 2), (-1, -2, -3)),
        ((0, 0, 1), (1, 2, 2), (1, 2, 2)),
        ((0, 0, 0), (2, 0, 4), (1, 1, 1)),
    ]:
        yield BatchRow(
            "Slice",
            f"{start}-{size}-{step}",
            lambda x, a=start, n=size, s=step: ops.slice(x, a, n, s),
            (x,),
        )
        yield BatchRow(
            "SliceScatter",
            f"{start}-{size}-{step}",
            lambda x, a=start, s=step: ops.slice_scatter(x, [2, 3, 4], a, s),
            (numbers(*size),),
        )
    for axis in (0, 1):
        yield BatchRow(
            "Concat",
            f"{axis}",
            lambda x, y, z, a=axis: ops.concat([x, y, z], a),
            (numbers(2, 2), numbers(2, 2), numbers(2, 2)),
        )


def complex_rows() -> Iterator[BatchRow]:
    """Of pairs, through complex numbers and back."""
    for name, function in {
        "ViewAsComplex": lambda z: ops.exp(z),
        "ViewAsReal": lambda z: ops.reduce_sum(ops.mul(z, z), [0]),
    }.items():
        yield BatchRow(
            name,
            "through",
            lambda x, f=function: ops.view_as_real(f(ops.view_as_complex(x))),
            (numbers(3, 4, 2),),
        )


def other_rows() -> Iterator[BatchRow]:
    yield BatchRow("StopGradient", "", ops.stop_gradient, (numbers(3),))
    yield BatchRow("Alias", "", lambda x: _core.alias(x) * 2.0, (numbers(3),))
    for dtype in (_core.float32, _core.int32, _core.bool):
        yield BatchRow(
            "Cast", f"{dtype}", lambda x, t=dtype: ops.cast(x * 3.0, t), (numbers(3, 2),)
        )


def window_rows() -> Iterator[BatchRow]:
    for label, s in SMALL.items():
        if 0 in s.x:
            continue
        for part, name in NAMES.items():
            yield BatchRow(
                name,
                label,
                lambda a, b, s=s, p=part: convolved(s, p, a, b),
                tuple(numbers(*shape) for shape in shapes(s, part)),
            )
    for label, (shape, *how) in POOLS.items():
        lists = [list(v) for v in how]
        if 0 not in shape:
            yield BatchRow(
                "WindowMax", label, lambda x, h=lists: ops.window_max(x, *h), (numbers(*shape),)
            )
            yield BatchRow(
                "WindowArgMax",
                label,
                lambda x, h=lists: ops.window_argmax(x, *h),
                (numbers(*shape),),
            )

    def places(rng: np.random.Generator) -> np.ndarray:
        return rng.integers(-1, 4, (2, 3)).astype(np.int32)

    yield BatchRow("TakeAlong", "", ops.take_along, (numbers(2, 4), places))
    yield BatchRow("PutAlong", "", lambda i, u: ops.put_along(i, u, 4), (places, numbers(2, 3)))

    def pixels(rng: np.random.Generator) -> np.ndarray:
        return rng.integers(-1, 4, (2, 3, 5)).astype(np.int32)

    x, w, y = numbers(2, 2, 4), numbers(2, 3, 5), numbers(2, 2, 5)
    yield BatchRow("Sample", "", ops.sample, (x, pixels, w))
    yield BatchRow("SampleSource", "", lambda *a: ops.sample_source(*a, 4), (y, pixels, w))
    yield BatchRow("SampleWeight", "", ops.sample_weight, (x, pixels, y))


def attention_rows() -> Iterator[BatchRow]:
    ways = {**WAYS, **SUMS}
    for label in (
        "plain",
        "one head",
        "mask",
        "added",
        "causal",
        "inside, mask",
        "two factors, shift",
    ):
        s = ways[label]
        for op in ("Attention", "AttentionLogSum", "AttentionRows", "AttentionColumns"):
            if label in SUMS and op not in ("AttentionRows", "AttentionColumns"):
                continue
            operands = tuple(numbers(*shape) for shape in attention_shapes(op, s))
            yield BatchRow(op, label, lambda *xs, o=op, s=s: attention(o, s, *xs), operands)


ROWS: list[BatchRow] = [
    *product_rows(),
    *index_rows(),
    *reducing_rows(),
    *recurrence_rows(),
    *moving_rows(),
    *complex_rows(),
    *matrix_rows(),
    *order_rows(),
    *other_rows(),
    *window_rows(),
    *attention_rows(),
]

#: Ops without inputs that could differ from example to example; RandomUniform refuses that its state
#: does.
NOTHING_TO_BATCH = {"Leaf", "Const", "Iota", "RandomUniform"}

#: Among several processes: test_parallel_collectives.py.
BATCHED_APART = {
    "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "CollectiveReduce", "AllToAll", "Barrier",
    "Recurrence",  # test_loops.py
    "Permitted",  # test_permitted_integers.py
    "CallOutput", "After",  # under all transforms: test_own_derivatives.py
    "ValueOf",  # test_special_points.py
}  # fmt: skip

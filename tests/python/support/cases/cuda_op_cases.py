"""The op suite and its adjoints, movement, reductions and products for the tests of CUDA: CASES, by name
a function and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as ms
from gradcell import Tensor, _core

core = _core.ops
rng = np.random.default_rng(7)


def tensor(*shape: int, dtype: str = "float32", low: float = -2.0, high: float = 2.0) -> Tensor:
    values = rng.uniform(low, high, shape)
    if dtype == "bool":
        return Tensor(values > 0)
    if dtype.startswith(("int", "uint")):
        values = np.round(values * 5)
    return core.cast(Tensor(values), getattr(_core, dtype))


def total(x: Tensor) -> Tensor:
    return core.reduce_sum(x, None, False)


def weighted(y: Tensor) -> Tensor:
    """A scalar that no symmetry makes simple."""
    n = y.size
    weights = Tensor(np.cos(np.arange(n, dtype=np.float64)).reshape(y.shape).astype(np.float32))
    return total(y * core.cast(weights, y.dtype))


# Cases -------------------------------------------------------------------------------------------

#: Where a row of the op table is well defined, if not on [-2, 2].
DOMAIN = {
    "acosh": (1.1, 3), "atanh": (-0.9, 0.9), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9),
    "log": (0.1, 3), "log2": (0.1, 3), "log10": (0.1, 3), "log1p": (-0.9, 3),
    "sqrt": (0.1, 3), "rsqrt": (0.1, 3), "pow": (0.2, 2), "reciprocal": (0.3, 3), "div": (0.3, 3),
    "mod": (0.3, 3), "fmod": (0.3, 3), "floor_div": (0.3, 3), "tan": (-1.2, 1.2),
}  # fmt: skip
ROWS = [r for r in _core.op_table() if r["kind"] != "structured"]
KINDS = {"unary": 1, "predicate": 1, "binary": 2, "compare": 2, "ternary": 3}
BOOLEAN = {"logical_not", "logical_and", "logical_or", "logical_xor"}

Case = tuple[Callable[..., Any], tuple[Tensor, ...]]
CASES: dict[str, Case] = {}


def case(name: str, *arguments: Tensor) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        assert name not in CASES
        CASES[name] = (fn, arguments)
        return fn

    return add


def row_arguments(row: dict[str, Any], dtype: str, n: int = 11) -> tuple[Tensor, ...]:
    low, high = DOMAIN.get(row["function"], (-2, 2))
    low = max(low, 0) if dtype.startswith("uint") else low
    count = KINDS[row["kind"]]
    if row["function"] in BOOLEAN:
        return tuple(tensor(n, dtype="bool") for _ in range(count))
    if row["kind"] == "ternary":
        return (tensor(n, dtype="bool"), tensor(n, dtype=dtype), tensor(n, dtype=dtype))
    if dtype.startswith("int") and row["function"] == "pow":
        return (tensor(n, dtype=dtype), tensor(n, dtype=dtype, low=0, high=1))
    return tuple(tensor(n, dtype=dtype, low=low, high=high) for _ in range(count))


def add_rows() -> None:
    for dtype in (
        "float32", "float64", "float16", "bfloat16",
        "int32", "int64", "int8", "int16", "uint8", "uint16", "uint32", "uint64",
    ):  # fmt: skip
        for row in ROWS:
            if row["function"] in BOOLEAN and dtype != "float32":
                continue
            CASES[f"{row['name']} {dtype}"] = (
                getattr(core, row["function"]),
                row_arguments(row, dtype),
            )
    for dtype in ("float32", "float64"):
        for row in ROWS:
            if row["differentiable"]:
                CASES[f"{row['name']} {dtype} adjoints"] = (orders(row), row_arguments(row, dtype))


def orders(row: dict[str, Any]) -> Callable[..., Any]:
    """First and second adjoints with respect to the floating arguments."""
    op = getattr(core, row["function"])

    def both(*arguments: Tensor) -> Any:
        where = tuple(i for i, a in enumerate(arguments) if a.dtype.is_floating)
        first = ms.grad(lambda *a: weighted(op(*a)), where)

        def slope(*a: Tensor) -> Tensor:
            d = first(*a)
            return sum(
                (weighted(x * x + x) for x in (d if isinstance(d, tuple) else (d,))), start=0.0
            )

        return first(*arguments), ms.grad(slope, where)(*arguments)

    return both


add_rows()

SPECIAL = Tensor(
    np.array(
        [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 300.7, -129.4, 1e-40, 65520, 3e9],
        np.float32,
    )
)
for _to in (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint32", "uint64", "float16", "bfloat16", "float64",
):  # fmt: skip
    CASES[f"Cast float32 to {_to}"] = (
        lambda x, to=_to: core.cast(x, getattr(_core, to)),
        (SPECIAL,),
    )
    for _from in ("int32", "int64", "float64", "float16", "uint8", "uint32", "uint64", "bool"):
        if _from != _to:
            CASES[f"Cast {_from} to {_to}"] = (
                lambda x, to=_to: core.cast(x, getattr(_core, to)),
                (tensor(9, dtype=_from, low=-40, high=40),),
            )


BEYOND = np.array([3, 2**63, 2**63 + 7, 2**64 - 1, 2**40, 2**64 - 2**40, 1], np.uint64)


@case("uint64 beyond int64", Tensor(BEYOND), Tensor(BEYOND[::-1].copy()))
def _(x: Tensor, y: Tensor) -> Any:
    order = [x < y, x >= y, core.maximum(x, y), core.minimum(x, y), core.sign(x)]
    ends = [core.reduce_max(x, None, False), core.reduce_min(x, None, False), core.argmax(x, 0)]
    floats = [core.cast(x, t) for t in (_core.float32, _core.float64)]
    back = [core.cast(t, _core.uint64) for t in floats]
    return [*order, *ends, x // y, x % y, x**y, core.mean(x), *floats, *back]


@case("special values", SPECIAL)
def _(x: Tensor) -> Any:
    tests = [core.isnan(x), core.isinf(x), core.isfinite(x), x != x, x == x, x < 1.0]
    ends = [core.maximum(x, 0.5), core.minimum(x, 0.5), core.sign(x), core.relu(x)]
    return tests + ends + [core.floor(x), core.round(x)]


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    axis %= x.ndim
    e = core.exp(x - core.reduce_max(x, [axis], True))
    return e / core.reduce_sum(e, [axis], True)


def normalised(x: Tensor) -> Tensor:
    axes = [x.ndim - 1]
    centred = x - core.mean(x, axes, True)
    return centred * core.rsqrt(core.mean(centred * centred, axes, True) + 1e-5)


for _axis in (0, 1, 2):
    CASES[f"softmax over axis {_axis}"] = (lambda x, a=_axis: softmax(x, a), (tensor(3, 5, 4),))
    CASES[f"softmax over axis {_axis}, adjoints"] = (
        lambda x, a=_axis: (
            ms.grad(lambda y: weighted(softmax(y, a)))(x),
            ms.grad(lambda z: weighted(ms.grad(lambda y: weighted(softmax(y, a)))(z)))(x),
        ),
        (tensor(3, 5, 4),),
    )
CASES["layer norm"] = (normalised, (tensor(6, 9),))
CASES["layer norm, float16"] = (normalised, (tensor(6, 9, dtype="float16"),))
CASES["layer norm, adjoint"] = (ms.grad(lambda x: weighted(normalised(x))), (tensor(6, 9),))
CASES["layer norm of long rows"] = (normalised, (tensor(3, 3000),))

for _dtype in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8"):
    for _op in ("reduce_sum", "reduce_max", "reduce_min"):
        for _axes in ([0], [1], [2], [0, 1], [1, 2], [0, 2], None):
            CASES[f"{_op} {_axes} {_dtype}"] = (
                lambda x, op=_op, axes=_axes: getattr(core, op)(x, axes, False),
                (tensor(3, 4, 5, dtype=_dtype),),
            )
for _axes in ([0], [1], None):
    CASES[f"long sums {_axes}"] = (
        lambda x, axes=_axes: [core.reduce_sum(x, axes, False), core.reduce_max(x, axes, False)],
        (tensor(3000, 7),),
    )
    CASES[f"long sums of long rows {_axes}"] = (
        lambda x, axes=_axes: [
            core.reduce_sum(x * x, axes, False),
            core.reduce_min(x, axes, False),
        ],
        (tensor(2, 70000),),
    )
CASES["maxima with ties, adjoint"] = (
    ms.grad(lambda x: weighted(core.reduce_max(core.round(x), [1], False) * 2.0)),
    (tensor(4, 9),),
)
for _name, _axis in (("argmax", 0), ("argmax", 1), ("argmin", 1), ("argmin", 2)):
    CASES[f"{_name} {_axis}"] = (
        lambda x, n=_name, a=_axis: getattr(core, n)(core.round(x), a, False),
        (tensor(3, 7, 4),),
    )
CASES["argmax with NaN"] = (lambda x: core.argmax(core.reshape(x, [3, 4]), 1, False), (SPECIAL,))
CASES["argmax of a long axis"] = (lambda x: core.argmax(x, 0, False), (tensor(1000),))
for _axis in (0, 1):
    for _exclusive in (False, True):
        for _reverse in (False, True):
            CASES[f"cumsum {_axis} {_exclusive} {_reverse}"] = (
                lambda x, a=_axis, e=_exclusive, r=_reverse: core.cumsum(x * 2.0, a, e, r),
                (tensor(4, 5),),
            )
            CASES[f"cumprod {_axis} {_exclusive} {_reverse}"] = (
                lambda x, a=_axis, e=_exclusive, r=_reverse: core.cumprod(x * 2.0, a, e, r),
                (tensor(4, 5),),
            )
# Long enough for several threads a line.
for _axis, _shape in ((0, (1000,)), (1, (3, 300)), (0, (300, 3))):
    for _exclusive in (False, True):
        for _reverse in (False, True):
            CASES[f"cumsum of {_shape} {_exclusive} {_reverse}"] = (
                lambda x, a=_axis, e=_exclusive, r=_reverse: core.cumsum(x * 2.0, a, e, r),
                (tensor(*_shape),),
            )
for _axis, _shape in ((0, (4, 5)), (1, (4, 5)), (0, (1000,)), (1, (3, 1100)), (0, (300, 3))):
    for _exclusive in (False, True):
        for _reverse in (False, True):
            CASES[f"recurrence of {_shape} along {_axis} {_exclusive} {_reverse}"] = (
                lambda a, b, x=_axis, e=_exclusive, r=_reverse: core.linear_recurrence(
                    a * 0.5, b, x, e, r
                ),
                (tensor(*_shape), tensor(*_shape)),
            )
CASES["gradient of a recurrence"] = (
    lambda a, b: ms.grad(lambda a, b: core.reduce_sum(core.linear_recurrence(a, b, 1)), (0, 1))(
        a * 0.5, b
    ),
    (tensor(3, 70), tensor(3, 70)),
)
CASES["recurrence of integers"] = (
    lambda x: core.linear_recurrence(
        core.cast(core.round(x), ms.int32), core.cast(x * 10.0, ms.int32), 0
    ),
    (tensor(90),),
)
CASES["cumprod of a long axis"] = (
    lambda x: core.cumprod(x * 0.1 + 1.0, 0, False, False),
    (tensor(400, 2),),
)
CASES["cumsum of many integers"] = (
    lambda x: core.cumsum(core.cast(x * 10.0, ms.int32), 0, False, False),
    (tensor(500),),
)

for _axis in (0, 1):
    for _inverse in (False, True):
        CASES[f"fourier {_axis} {_inverse}"] = (
            lambda x, a=_axis, i=_inverse: core.fourier(x * 2.0, a, i),
            (tensor(4, 5, 2),),
        )

X345 = tensor(3, 4, 5)
MOVES: dict[str, Callable[[Tensor], Tensor]] = {
    "transpose 210": lambda x: core.transpose(x, [2, 1, 0]),
    "transpose 021": lambda x: core.transpose(x, [0, 2, 1]),
    "transpose 102": lambda x: core.transpose(x, [1, 0, 2]),
    "reshape": lambda x: core.reshape(x, [6, 10]),
    "slice": lambda x: core.slice(x, [0, 1, 0], [3, 2, 5], [1, 1, 1]),
    "slice with steps": lambda x: core.slice(x, [0, 1, 4], [2, 2, 3], [2, 2, -2]),
    "slice of features": lambda x: core.slice(x, [0, 0, 1], [3, 4, 2], [1, 1, 2]),
    "broadcast": lambda x: core.broadcast_to(core.reduce_sum(x, [1], True), [3, 4, 5]),
    "broadcast to more axes": lambda x: core.broadcast_to(x, [2, 3, 4, 5]),
    "concat 0": lambda x: core.concat([x, x * 2.0], 0),
    "concat 1": lambda x: core.concat([x, core.slice(x, [0, 0, 0], [3, 1, 5], [1, 1, 1]), -x], 1),
    "concat 2": lambda x: core.concat([core.sin(x), x], 2),
    "slice of transpose": lambda x: core.slice(
        core.transpose(x, [2, 0, 1]), [1, 0, 0], [2, 3, 4], [1, 1, 1]
    ),
    "transpose and add": lambda x: core.transpose(x, [0, 2, 1]) + core.reshape(x, [3, 5, 4]),
    "softmax and slice": lambda x: core.slice(softmax(x), [0, 0, 1], [3, 4, 2], [1, 1, 1]),
    "concat of softmax": lambda x: core.concat([softmax(x), x], 2),
    "softmax of concat": lambda x: softmax(core.concat([x, x * x], 2)),
    "softmax and transpose": lambda x: core.transpose(softmax(x), [1, 0, 2]),
}
for _name, _move in MOVES.items():
    CASES[_name] = (_move, (X345,))
    CASES[f"{_name}, adjoint"] = (ms.grad(lambda x, m=_move: weighted(core.sin(m(x)))), (X345,))
for _dtype in ("float16", "int8", "bool", "int64"):
    CASES[f"movement of {_dtype}"] = (
        lambda x: [core.transpose(x, [1, 0, 2]), core.concat([x, x], 1)],
        (tensor(3, 4, 5, dtype=_dtype),),
    )

INDICES = Tensor(np.array([[0, 3, -1], [2, 2, 0]], np.int32))
for _axis in (0, 1, 2):
    CASES[f"gather {_axis}"] = (
        lambda x, i, a=_axis: core.gather(x, i, a),
        (tensor(4, 4, 4), INDICES),
    )
    CASES[f"gather {_axis}, adjoints"] = (
        lambda x, i, a=_axis: ms.grad(lambda y: weighted(core.sin(core.gather(y * y, i, a))))(x),
        (tensor(4, 4, 4), INDICES),
    )
CASES["scatter_add float16"] = (
    lambda i, u: core.scatter_add(i, u, 0, 5),
    (INDICES, tensor(2, 3, 6, dtype="float16")),
)
CASES["scatter_add int32"] = (
    lambda i, u: core.scatter_add(i, u, 0, 5),
    (INDICES, tensor(2, 3, 6, dtype="int32")),
)
CASES["last_writer"] = (
    lambda i, u: [core.last_writer(i, 5), core.gather(u, core.last_writer(i + 1, 5), 0)],
    (Tensor(np.array([[0, 3, -1], [2, 2, 0]], np.int32)), tensor(6, 2)),
)
STATE = Tensor(np.array([123456789012345, 77], np.int64))
CASES["random"] = (lambda s: core.random_uniform(s, [5, 7]), (STATE,))
CASES["dropout"] = (
    lambda x, s: core.where(core.random_uniform(s, [4, 6]) < 0.5, x, 0.0) * 2.0,
    (tensor(4, 6), STATE),
)
CASES["iota"] = (
    lambda x: [core.iota([3, 4], _core.int32, 1), x * core.iota([3, 4], _core.float32, 0)],
    (tensor(3, 4),),
)
CASES["constants"] = (
    lambda x: [core.full([2, 3], 1.5, _core.float16), core.full([], 3, _core.int64)],
    (X345,),
)

for _dtype in ("float32", "float64", "float16", "bfloat16", "int32"):
    for _ta in (False, True):
        for _tb in (False, True):
            CASES[f"matmul {_dtype} {_ta} {_tb}"] = (
                lambda a, b, ta=_ta, tb=_tb: core.tanh(core.matmul(a, b, ta, tb)) * 2.0,
                (tensor(*((6, 5) if _ta else (5, 6)), dtype=_dtype),
                 tensor(*((4, 6) if _tb else (6, 4)), dtype=_dtype)),
            )  # fmt: skip
CASES["matmul, batched"] = (
    lambda a, b: core.matmul(a, b),
    (tensor(3, 2, 5, 6), tensor(3, 2, 6, 4)),
)


def two_layers(a: Tensor, v: Tensor, b: Tensor, w: Tensor, c: Tensor) -> Tensor:
    return core.matmul(core.matmul(a, v) + b, w, False, True) + c


for _dtype in ("float32", "float64", "float16", "bfloat16"):
    CASES[f"bias {_dtype}"] = (
        two_layers,
        tuple(tensor(*s, dtype=_dtype) for s in ((5, 6), (6, 5), (5,), (3, 5), (1, 3))),
    )
BIASES: dict[str, tuple[int, Case]] = {  # how many products add one
    "and what is made of it": (
        1,
        (
            lambda a, b, c: [core.matmul(a, b) + c, core.tanh(core.matmul(a, b) + c)],
            (tensor(5, 6), tensor(6, 4), tensor(4)),
        ),
    ),
    "of one column": (
        1,
        (lambda a, b, c: core.matmul(a, b) + c, (tensor(5, 6), tensor(6, 1), tensor(1))),
    ),
    "of a sum of products": (
        1,
        (
            lambda a, b, c: core.matmul(a, b) + core.matmul(core.sin(a), b * b) + c,
            (tensor(5, 6), tensor(6, 4), tensor(4)),
        ),
    ),
    "of rows of more dimensions": (
        1,
        (
            lambda a, b, c: core.reshape(core.matmul(a, b), [2, 5, 4]) + c,
            (tensor(10, 6), tensor(6, 4), tensor(4)),
        ),
    ),
    "along the rows": (
        0,
        (lambda a, b, c: core.matmul(a, b) + c, (tensor(4, 6), tensor(6, 4), tensor(4, 1))),
    ),
    "that is a matrix": (
        0,
        (lambda a, b, c: core.matmul(a, b) + c, (tensor(5, 6), tensor(6, 4), tensor(5, 4))),
    ),
    "that is a number": (
        0,
        (lambda a, b, c: core.matmul(a, b) + c, (tensor(5, 6), tensor(6, 4), tensor(1))),
    ),
    "that is computed": (
        0,
        (lambda a, b, c: core.matmul(a, b) + core.sin(c), (tensor(5, 6), tensor(6, 4), tensor(4))),
    ),
    "in narrower rows": (
        0,
        (
            lambda a, b, c: core.reshape(core.matmul(a, b), [10, 2]) + c,
            (tensor(5, 6), tensor(6, 4), tensor(2)),
        ),
    ),
    "where the product is needed too": (
        0,
        (
            lambda a, b, c: [core.matmul(a, b), core.matmul(a, b) + c],
            (tensor(5, 6), tensor(6, 4), tensor(4)),
        ),
    ),
    "of many products": (
        0,
        (lambda a, b, c: core.matmul(a, b) + c, (tensor(3, 5, 6), tensor(3, 6, 4), tensor(4))),
    ),
    "of a product over nothing": (
        0,
        (lambda a, b, c: core.matmul(a, b) + c, (tensor(5, 0), tensor(0, 4), tensor(4))),
    ),
    "before an activation": (
        0,  # its kernel adds it on the way
        (
            lambda a, b, c: core.tanh(core.matmul(a, b) + c),
            (tensor(5, 6), tensor(6, 4), tensor(4)),
        ),
    ),
}
for _name, (_, _case) in BIASES.items():
    CASES[f"bias {_name}"] = _case
CASES["matmul of constants"] = (
    lambda a: core.matmul(a, core.full([6, 2], 0.5, _core.float32)),
    (tensor(5, 6),),
)

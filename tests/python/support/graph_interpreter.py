"""Evaluates recorded graphs in NumPy, in float64: what every engine is held against.

In: a function and its arguments, which are recorded (`record`), or a graph's nodes as data. Out: for each
result a `Value`: the numbers as float64 has them (integers and bools exactly), and for each a bound of how
far an engine may be from it. The bounds follow from the dtype of each node: they start at 0, grow by what an
op makes of its operands' errors and by its own rounding, and are infinite where rounding decides (a tie, a
comparison of nearly equal numbers, an overflow), so that nothing is asked there.

Nothing here is shared with csrc: the functions are NumPy's and SciPy's, the graph is the one as recorded,
which no pass has rewritten. `OPS` has every op of the op table; a test compares them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.special

import gradcell
from gradcell import Tensor, _core
from gradcell.base import tree

#: In the core's order, which loops' bodies count by.
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16",
          "bfloat16", "float32", "float64", "complex64", "complex128")  # fmt: skip


class Precision(NamedTuple):
    """Of a floating dtype: half the distance between 1 and the next number, the same of what sums are
    taken in, the largest number, and below which numbers may lose digits or become 0."""

    half: float
    sums: float
    largest: float
    smallest: float


SINGLE = Precision(2.0**-24, 2.0**-24, float(np.finfo(np.float32).max), 2.0**-126)
DOUBLE = Precision(2.0**-53, 2.0**-53, float(np.finfo(np.float64).max), 2.0**-1022)
PRECISION = {
    "float16": Precision(2.0**-11, 2.0**-24, 65504.0, 2.0**-24),
    "bfloat16": Precision(2.0**-8, 2.0**-24, 3.3895e38, 2.0**-126),
    "float32": SINGLE,
    "float64": DOUBLE,
    "complex64": SINGLE,
    "complex128": DOUBLE,
}
#: Roundings of one function of the engines' vector math, and of the library's that follows.
OF_FUNCTION = 8.0


class Value(NamedTuple):
    """Numbers and, for each, how far an engine may be from it: of integers and bools 0 or infinity."""

    v: np.ndarray
    e: np.ndarray

    @property
    def known(self) -> np.ndarray:
        return np.isfinite(self.e)


def exact(v: Any, dtype: str) -> Value:
    v = np.asarray(v)
    if dtype in PRECISION:
        v = v.astype(np.complex128 if dtype[0] == "c" else np.float64)
    else:
        v = v.astype(dtype)
    return Value(v, np.zeros(v.shape))


@dataclass(frozen=True)
class Node:
    """attributes: as numbers, lists for those that are lists, in the op's order."""

    op: str
    inputs: tuple[int, ...]
    dtype: str
    shape: tuple[int, ...]
    attributes: tuple[Any, ...]


@dataclass
class Graph:
    nodes: dict[int, Node]
    leaves: dict[int, np.ndarray]
    arguments: list[int]  # of the leaves, in the order of the function's arguments
    outputs: list[int]

    def evaluate(self, arguments: Sequence[np.ndarray] | None = None) -> list[Value]:
        """The outputs."""
        return self._evaluate(arguments)

    def numbers(self, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs at other values of the function's arguments, without bounds."""
        global _bounded
        _bounded = False
        try:
            return [y.v for y in self._evaluate(arguments)]
        finally:
            _bounded = True

    def _evaluate(self, arguments: Sequence[np.ndarray] | None) -> list[Value]:
        leaves = dict(self.leaves)
        if arguments is not None:
            leaves.update(zip(self.arguments, arguments, strict=True))
        found: dict[int, Value] = {}
        with np.errstate(all="ignore"):
            for number, node in self.nodes.items():
                if node.op == "Leaf":
                    found[number] = exact(leaves[number], node.dtype)
                else:
                    found[number] = apply(node, [found[i] for i in node.inputs])
        return [found[i] for i in self.outputs]


def numbers_of(t: Tensor) -> np.ndarray:
    if t.dtype.name == "bfloat16":
        return t.astype(gradcell.float32).asnumpy()
    return t.asnumpy()


def record(fn: Callable[..., Any], *args: Any) -> Graph:
    """The graph of fn(*args), whose results are its outputs; neither planned nor run."""

    def body(trace: Any) -> Graph:
        try:
            given: list[Tensor] = []

            def symbol(t: Any) -> Any:
                if not isinstance(t, Tensor) or t._is_variable:
                    return t
                given.append(t)
                return trace.argument(t)

            symbols = tree.map_leaves(symbol, args)
            results = [t if t._traced else _core.record(t) for t in tree.leaves(fn(*symbols))]
            outputs = [_core.node_id(t) for t in results]
            leaves = [t for t in tree.leaves(symbols) if isinstance(t, Tensor) and t._traced]
            arguments = [_core.node_id(t) for t in leaves]
            rows = _core.live_nodes(outputs)
            nodes = {
                row["id"]: Node(
                    row["op"], tuple(row["inputs"]), row["dtype"].name, tuple(row["shape"]),
                    tuple(row["attributes"].values()),
                )
                for row in rows
            }  # fmt: skip
            known = dict(zip(arguments, given, strict=True))
            rest = [i for i, n in nodes.items() if n.op == "Leaf" and i not in known]
            known.update(zip(rest, _core.node_values(rest), strict=True))
            values = {i: numbers_of(t) for i, t in known.items()}
            return Graph(nodes, values, arguments, outputs)
        finally:
            trace.abandon()

    return _core.with_trace(body)  # type: ignore[no-any-return]


# Errors ------------------------------------------------------------------------------------------


#: Whether bounds are wanted; without, errors stay 0.
_bounded = True


def is_float(dtype: str) -> bool:
    return dtype in PRECISION


def represented(v: np.ndarray, dtype: str) -> np.ndarray:
    """Whether a dtype has the numbers: those with few digits, which sums and products do not round."""
    whole = v * 2.0**16
    few = (whole == np.rint(whole)) & (np.abs(whole) < 2.0**31)
    if dtype == "float16":
        return few & (v.astype(np.float16) == v)
    if dtype == "bfloat16":
        bits = v.astype(np.float32).view(np.uint32)
        return few & (bits & 0xFFFF == 0)
    return few & (v.astype(np.float32) == v)


def rounded(v: np.ndarray, e: np.ndarray, dtype: str, roundings: float = 2.0) -> Value:
    """A result with the error of its operands, and its own."""
    if not _bounded:
        return Value(v, e)
    p = PRECISION[dtype]
    size = np.asarray(np.abs(v))
    own = np.asarray(size * (roundings * p.half))
    own += p.smallest
    if roundings <= 2.0 and v.dtype != np.complex128 and not e.any():
        own[represented(v, dtype)] = 0.0
    own += e
    size += own
    own[~(size < p.largest)] = math.inf  # NaN too
    return Value(v, own)


def unknown(e: np.ndarray) -> np.ndarray:
    return np.where(e > 0, math.inf, 0.0)


def away(f: Callable[..., np.ndarray], v: np.ndarray, xs: Sequence[Value]) -> np.ndarray:
    """How far f gets from v at the corners of the operands' errors."""
    if not any(x.e.any() for x in xs):
        return np.zeros(v.shape)
    most = np.zeros(v.shape)
    for signs in itertools.product((-1.0, 1.0), repeat=len(xs)):
        moved = f(*(x.v + s * x.e for s, x in zip(signs, xs, strict=True)))
        most = np.maximum(most, np.abs(moved - v))
    return np.where(np.isfinite(most), most, math.inf)


# Elementwise -------------------------------------------------------------------------------------


def ipow(a: np.ndarray, n: np.ndarray) -> np.ndarray:
    odd = np.where(n % 2 == 0, 1, a)
    fraction = np.where(a == 1, 1, np.where(a == -1, odd, 0))
    return np.where(n < 0, fraction, np.power(a, np.where(n < 0, 0, n))).astype(a.dtype)


UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Neg": np.negative,
    "Abs": np.abs,
    "Sign": np.sign,
    "Square": np.square,
    "Sqrt": np.sqrt,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Reciprocal": lambda x: 1 / x,
    "Exp": np.exp,
    "Exp2": np.exp2,
    "Expm1": np.expm1,
    "Log": np.log,
    "Log1p": np.log1p,
    "Log2": np.log2,
    "Log10": np.log10,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Tanh": np.tanh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Sigmoid": scipy.special.expit,
    "Erf": scipy.special.erf,
    "Erfc": scipy.special.erfc,
    "Erfinv": scipy.special.erfinv,
    "Ndtr": scipy.special.ndtr,
    "Logit": scipy.special.logit,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.rint,
    "Trunc": np.trunc,
    "ReLU": lambda x: np.maximum(x, x.dtype.type(0)),
    "HSigmoid": lambda x: np.clip((x + 3) / 6, 0, 1),
    "HSwish": lambda x: x * np.clip((x + 3) / 6, 0, 1),
    "LogicalNot": np.logical_not,
}
BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Atan2": np.arctan2,
    "CopySign": np.copysign,
    "Ldexp": lambda a, b: a * np.exp2(b),
    "Mod": np.mod,
    "Fmod": np.fmod,
    "FloorDiv": np.floor_divide,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "LogicalXor": np.logical_xor,
}
COMPARE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
}
PREDICATE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "IsNan": np.isnan,
    "IsInf": np.isinf,
    "IsFinite": np.isfinite,
    "IsNegInf": np.isneginf,
}
#: Not rounded; rounded once; the others are functions.
CHOICES = {
    "Neg",
    "Abs",
    "Sign",
    "Floor",
    "Ceil",
    "Round",
    "Trunc",
    "ReLU",
    "Maximum",
    "Minimum",
    "CopySign",
}
ARITHMETIC = {"Square", "Sqrt", "Reciprocal", "Add", "Sub", "Mul", "Div", "Mod", "Fmod"}


def after(op: str, v: np.ndarray, e: np.ndarray, dtype: str) -> Value:
    """A result of an elementwise op as an engine rounds it."""
    if op in CHOICES:
        return Value(v, np.where(np.isnan(v), math.inf, e))
    return rounded(v, e, dtype, 2.0 if op in ARITHMETIC else OF_FUNCTION)


def unary(node: Node, x: Value) -> Value:
    f = UNARY[node.op]
    if not is_float(node.dtype):
        whole = {"Floor", "Ceil", "Round", "Trunc"}
        v = x.v if node.op in whole else f(x.v)
        return Value(v.astype(node.dtype), unknown(x.e))
    v = np.asarray(f(x.v))
    e = away(f, v, [x])
    if node.op in ("Sin", "Cos") and node.dtype[0] != "c":
        e = np.minimum(x.e, 2.0)  # farther inside of a wide interval than at its ends
    return after(node.op, v, e, node.dtype)


def binary(node: Node, a: Value, b: Value) -> Value:
    f = BINARY[node.op]
    if not is_float(node.dtype):
        if node.op == "Pow":
            f = ipow
        return Value(f(a.v, b.v).astype(node.dtype), unknown(a.e + b.e))
    v = np.asarray(f(a.v, b.v))
    if not _bounded:
        return Value(v, a.e)
    if node.op in ("Add", "Sub"):
        e = a.e + b.e
    elif node.op in ("Maximum", "Minimum"):
        e = np.where(
            np.abs(a.v - b.v) > a.e + b.e, np.where(v == a.v, a.e, b.e), np.maximum(a.e, b.e)
        )
    elif node.op == "Mul":
        e = np.abs(a.v) * b.e + a.e * np.abs(b.v) + a.e * b.e
    else:
        e = away(f, v, [a, b])
        through = (np.abs(b.v) <= b.e) & (b.e > 0)
        if node.op in ("Div", "Mod", "Fmod", "FloorDiv"):
            e = np.where(through, math.inf, e)
        if node.op == "CopySign":
            e = np.where(through, 2 * np.abs(a.v) + a.e, a.e)
        if node.op in ("Mod", "Fmod", "FloorDiv"):
            # An engine's quotient may be another whole number.
            ratio = a.v / b.v
            reach = (a.e + np.abs(ratio) * b.e) / (np.abs(b.v) - b.e)
            e = np.where(np.floor(ratio - reach) != np.floor(ratio + reach), math.inf, e)
            near = np.abs(ratio - np.rint(ratio)) <= 4 * PRECISION[node.dtype].half * np.abs(ratio)
            e = np.where(near & (ratio != np.rint(ratio)), math.inf, e)
            e = np.where(np.abs(ratio) * PRECISION[node.dtype].half > 0.01, math.inf, e)
    return after(node.op, v, e, node.dtype)


def compare(node: Node, a: Value, b: Value) -> Value:
    e = a.e + b.e
    near = np.zeros(e.shape, bool)
    if e.any():
        near = (e > 0) & (np.abs(a.v.astype(float) - b.v.astype(float)) <= e)
    return Value(COMPARE[node.op](a.v, b.v), np.where(near, math.inf, 0.0))


def predicate(node: Node, x: Value) -> Value:
    return Value(PREDICATE[node.op](x.v), np.where(np.isfinite(x.e), 0.0, math.inf))


def select(node: Node, c: Value, a: Value, b: Value) -> Value:
    v = np.where(c.v, a.v, b.v)
    e = np.where(c.v, a.e, b.e)
    open_ = c.e > 0
    if open_.any():
        between = np.abs(a.v.astype(float) - b.v.astype(float)) + np.maximum(a.e, b.e)
        e = np.where(open_, between if is_float(node.dtype) else unknown(between), e)
    return Value(v, e)


def cast(node: Node, x: Value) -> Value:
    to = node.dtype
    if to[0] == "c":
        return Value(x.v.astype(np.complex128), x.e)
    if is_float(to):
        if x.v.dtype == np.complex128:
            return rounded(x.v.real, x.e, to)
        return rounded(x.v.astype(np.float64), x.e, to)
    if x.v.dtype != np.float64:
        return Value(x.v.astype(to), unknown(x.e))
    if to == "bool":
        return Value(x.v != 0, np.where((np.abs(x.v) <= x.e) & (x.e > 0), math.inf, 0.0))
    whole = np.trunc(x.v)
    moved = (np.trunc(x.v - x.e) != whole) | (np.trunc(x.v + x.e) != whole)
    info = np.iinfo(to)
    outside = ~((whole >= info.min) & (whole <= info.max))
    v = np.where(outside, 0, whole).astype(to)
    return Value(v, np.where(moved | outside, math.inf, 0.0))


# Movement ----------------------------------------------------------------------------------------


def constant(node: Node) -> Value:
    v = exact(node.attributes[0], node.dtype)
    return Value(*(np.broadcast_to(a, node.shape) for a in v))


def iota(node: Node) -> Value:
    along = [1] * len(node.shape)
    axis = node.attributes[0]
    if not node.shape:
        return exact(0, node.dtype)
    along[axis] = node.shape[axis]
    line = exact(np.arange(node.shape[axis]), node.dtype)
    if is_float(node.dtype):
        line = rounded(line.v, line.e, node.dtype)
    return Value(*(np.broadcast_to(a.reshape(along), node.shape) for a in line))


def steps_of(start: Sequence[int], size: Sequence[int], step: Sequence[int]) -> tuple[Any, ...]:
    return np.ix_(*(s + np.arange(n) * d for s, n, d in zip(start, size, step, strict=True)))


def slice_of(node: Node, x: Value) -> Value:
    if not node.shape:
        return x
    at = steps_of(node.attributes[0], node.shape, node.attributes[1])
    return Value(x.v[at], x.e[at])


def slice_scatter(node: Node, x: Value) -> Value:
    if not node.shape:
        return x
    at = steps_of(node.attributes[0], x.v.shape, node.attributes[1])
    v, e = np.zeros(node.shape, x.v.dtype), np.zeros(node.shape)
    v[at], e[at] = x.v, x.e
    return Value(v, e)


def concat(node: Node, *xs: Value) -> Value:
    axis = node.attributes[0]
    return Value(np.concatenate([x.v for x in xs], axis), np.concatenate([x.e for x in xs], axis))


def view_as_real(node: Node, z: Value) -> Value:
    return Value(np.stack([z.v.real, z.v.imag], -1), np.stack([z.e, z.e], -1))


def view_as_complex(node: Node, x: Value) -> Value:
    return Value(x.v[..., 0] + 1j * x.v[..., 1], x.e[..., 0] + x.e[..., 1])


# Sums --------------------------------------------------------------------------------------------


def product_of(a: Value, b: Value, dtype: str) -> tuple[Value, np.ndarray]:
    """A product of matrices, before its sum is rounded, and the sum of its terms' sizes."""
    if not _bounded:
        y = a.v @ b.v
        return Value(y, np.zeros(y.shape)), np.zeros(y.shape)
    p = PRECISION[dtype]
    size = np.abs(a.v) @ np.abs(b.v)
    e = np.zeros(size.shape)
    for left, right in ((np.abs(a.v), b), (np.abs(b.v), a)):
        if right.e.any():
            e = e + (left @ right.e if right is b else right.e @ left)
    if a.e.any() and b.e.any():
        e = e + a.e @ b.e
    # inf * 0: what is unknown stays so.
    e = np.where(np.isnan(e), math.inf, e)
    terms = a.v.shape[-1]
    return Value(a.v @ b.v, e + (2 * terms * p.sums + p.half) * size), size


def transposed(x: Value, flag: bool) -> Value:
    return Value(*(a.swapaxes(-1, -2) for a in x)) if flag else x


def matmul(node: Node, *xs: Value) -> Value:
    ta, tb = node.attributes
    if not is_float(node.dtype):
        v = sum(
            transposed(a, ta).v @ transposed(b, tb).v
            for a, b in zip(xs[::2], xs[1::2], strict=True)
        )
        bad = any(x.e.any() for x in xs)
        return Value(np.asarray(v, node.dtype), np.full(node.shape, math.inf if bad else 0.0))
    v, e = np.zeros(node.shape), np.zeros(node.shape)
    most = np.zeros(node.shape)
    for a, b in zip(xs[::2], xs[1::2], strict=True):
        (pv, pe), size = product_of(transposed(a, ta), transposed(b, tb), node.dtype)
        v, e, most = v + pv, e + pe, most + size
    if not any(x.e.any() for x in xs) and few(*xs) and most.max(initial=0) < 2.0**11:
        return rounded(v, np.zeros(v.shape), node.dtype)  # every sum on the way is exact
    return rounded(v, e, node.dtype)


def few(*xs: Value) -> bool:
    """Whether all are whole numbers."""
    return all((x.v == np.rint(x.v)).all() for x in xs)


def axes_of(node: Node) -> tuple[int, ...]:
    return tuple(node.attributes[0])


def count_of(x: Value, axes: tuple[int, ...]) -> int:
    return math.prod(x.v.shape[i] for i in axes)


def reduce_sum(node: Node, x: Value) -> Value:
    axes = axes_of(node)
    if not is_float(node.dtype):
        return Value(x.v.sum(axes, dtype=node.dtype), unknown(x.e.sum(axes)))
    size = np.abs(x.v).sum(axes)
    e = x.e.sum(axes) + 2 * count_of(x, axes) * PRECISION[node.dtype].sums * size
    if not x.e.any() and few(x) and size.max(initial=0) < 2.0**11:
        e = np.zeros(size.shape)
    return rounded(x.v.sum(axes), e, node.dtype)


def reduce_prod(node: Node, x: Value) -> Value:
    axes = axes_of(node)
    if not is_float(node.dtype):
        return Value(x.v.prod(axes, dtype=node.dtype), unknown(x.e.sum(axes)))
    v, most = x.v.prod(axes), (np.abs(x.v) + x.e).prod(axes)
    e = (most - np.abs(v)) * 1.01 + 2 * count_of(x, axes) * PRECISION[node.dtype].half * most
    return rounded(v, np.where(np.isnan(e), math.inf, e), node.dtype)


def reduce_best(node: Node, x: Value) -> Value:
    f = np.max if node.op == "ReduceMax" else np.min
    axes = axes_of(node)
    e = x.e.max(axes)
    return Value(f(x.v, axes), e if is_float(node.dtype) else unknown(e))


def arg_best(node: Node, x: Value) -> Value:
    axis = node.attributes[0]
    sign = 1.0 if node.op == "ArgMax" else -1.0
    v = np.argmax(x.v, axis) if sign > 0 else np.argmin(x.v, axis)
    e = np.zeros(v.shape)
    if x.e.any():
        at = np.expand_dims(v, axis)
        best, its = np.take_along_axis(x.v, at, axis), np.take_along_axis(x.e, at, axis)
        rivals = (best - x.v) * sign <= x.e + its
        e = np.where(rivals.sum(axis) > 1, math.inf, 0.0)
    return Value(v.astype(node.dtype), e)


def along(node: Node, *xs: Value) -> list[Value]:
    """The operands with the axis of a scan last, from where it begins."""
    axis, _, reverse = node.attributes
    found = []
    for x in xs:
        v, e = np.moveaxis(x.v, axis, -1), np.moveaxis(x.e, axis, -1)
        found.append(Value(v[..., ::-1], e[..., ::-1]) if reverse else Value(v, e))
    return found


def back(node: Node, y: Value, first: Any) -> Value:
    """The same of a result; exclusive: `first` stands before."""
    axis, exclusive, reverse = node.attributes

    def one(a: np.ndarray, start: Any) -> np.ndarray:
        if exclusive:
            a = np.concatenate([np.full((*a.shape[:-1], 1), start, a.dtype), a[..., :-1]], -1)
        return np.moveaxis(a[..., ::-1] if reverse else a, -1, axis)

    if node.shape[axis] == 0:
        return Value(np.zeros(node.shape, y.v.dtype), np.zeros(node.shape))
    return Value(one(y.v, first), one(y.e, 0.0))


def cumsum(node: Node, x: Value) -> Value:
    (x,) = along(node, x)
    if not is_float(node.dtype):
        return back(node, Value(x.v.cumsum(-1, dtype=node.dtype), unknown(x.e.cumsum(-1))), 0)
    size = np.abs(x.v).cumsum(-1)
    places = 1 + np.arange(x.v.shape[-1])
    e = x.e.cumsum(-1) + 2 * places * PRECISION[node.dtype].sums * size
    return back(node, rounded(x.v.cumsum(-1), e, node.dtype), 0)


def cumprod(node: Node, x: Value) -> Value:
    (x,) = along(node, x)
    if not is_float(node.dtype):
        return back(node, Value(x.v.cumprod(-1, dtype=node.dtype), unknown(x.e.cumsum(-1))), 1)
    v, most = x.v.cumprod(-1), (np.abs(x.v) + x.e).cumprod(-1)
    places = 1 + np.arange(x.v.shape[-1])
    e = (most - np.abs(v)) * 1.01 + 2 * places * PRECISION[node.dtype].half * most
    return back(node, rounded(v, np.where(np.isnan(e), math.inf, e), node.dtype), 1)


def linear_recurrence(node: Node, a: Value, b: Value) -> Value:
    a, b = along(node, a, b)
    v, e = np.zeros(b.v.shape, b.v.dtype), np.zeros(b.v.shape)
    y = Value(np.zeros(b.v.shape[:-1], b.v.dtype), np.zeros(b.v.shape[:-1]))
    for i in range(b.v.shape[-1]):
        before, term = y.v * a.v[..., i], b.v[..., i]
        if is_float(node.dtype):
            size = np.abs(before) + np.abs(term)
            error = np.abs(a.v[..., i]) * y.e + a.e[..., i] * (np.abs(y.v) + y.e) + b.e[..., i]
            y = rounded(before + term, error + PRECISION[node.dtype].half * size, node.dtype)
        else:
            y = Value(before + term, unknown(y.e + a.e[..., i] + b.e[..., i]))
        v[..., i], e[..., i] = y
    return back(node, Value(v, e), 0)


def fourier(node: Node, x: Value) -> Value:
    axis, inverse = node.attributes
    z, n = x.v[..., 0] + 1j * x.v[..., 1], x.v.shape[axis]
    y = np.fft.ifft(z, axis=axis) * n if inverse else np.fft.fft(z, axis=axis)
    size = np.abs(z).sum(axis, keepdims=True)
    e = x.e.sum(-1).sum(axis, keepdims=True)
    e = np.broadcast_to(e + 8 * (1 + math.log2(n)) * PRECISION[node.dtype].half * size, y.shape)
    return rounded(np.stack([y.real, y.imag], -1), np.stack([e, e], -1), node.dtype)


# Windows -----------------------------------------------------------------------------------------


class Windows:
    """Where the windows of a kernel's taps lie: along each axis the places of the result that a tap reads,
    and the places of the input that they read there."""

    def __init__(
        self, input: Any, kernel: Any, output: Any, stride: Any, dilation: Any, before: Any
    ) -> None:
        self.kernel = tuple(kernel)
        self.axes = list(zip(input, output, stride, dilation, before, strict=True))

    def taps(self) -> Any:
        for tap in itertools.product(*(range(k) for k in self.kernel)):
            to, at = [], []
            for u, (size, count, stride, dilation, before) in zip(tap, self.axes, strict=True):
                p = np.arange(count)
                q = p * stride + u * dilation - before
                inside = (q >= 0) & (q < size)
                to.append(p[inside])
                at.append(q[inside])
            if all(len(p) for p in to):
                yield tap, to, at


def convolution(node: Node, a: Value, b: Value) -> Value:
    stride, dilation, before, _, groups, last = node.attributes
    assert last == 0
    part = node.op
    x = node.shape if part == "ConvolutionInput" else a.v.shape
    y = node.shape if part == "Convolution" else (a if part == "ConvolutionInput" else b).v.shape
    w = node.shape if part == "ConvolutionWeight" else b.v.shape
    windows = Windows(x[2:], w[2:], y[2:], stride, dilation, before)
    wide, narrow = y[1] // groups, x[1] // groups

    def sums(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        total = np.zeros(node.shape, a.dtype)
        for tap, to, at in windows.taps():
            for g in range(groups):
                o, c = range(g * wide, (g + 1) * wide), range(g * narrow, (g + 1) * narrow)
                in_x = np.ix_(range(x[0]), c, *at)
                in_y = np.ix_(range(y[0]), o, *to)
                in_w = (slice(g * wide, (g + 1) * wide), slice(None), *tap)
                if part == "Convolution":
                    total[in_y] += np.einsum("nc...,oc->no...", a[in_x], b[in_w])
                elif part == "ConvolutionInput":
                    total[in_x] += np.einsum("no...,oc->nc...", a[in_y], b[in_w])
                else:
                    left, right = (z.reshape((*z.shape[:2], -1)) for z in (a[in_x], b[in_y]))
                    total[in_w] += np.einsum("ncp,nop->oc", left, right)
        return total

    if not is_float(node.dtype):
        bad = bool(a.e.any() or b.e.any())
        return Value(sums(a.v, b.v), np.full(node.shape, math.inf if bad else 0.0))
    terms = {
        "Convolution": math.prod(w[1:]),
        "ConvolutionInput": math.prod(w) // max(1, w[1]),
        "ConvolutionWeight": y[0] * math.prod(y[2:]),
    }[part]
    p = PRECISION[node.dtype]
    e = (2 * terms * p.sums + p.half) * sums(np.abs(a.v), np.abs(b.v))
    if a.e.any():
        e = e + sums(a.e, np.abs(b.v) + b.e)
    if b.e.any():
        e = e + sums(np.abs(a.v), b.e)
    return rounded(sums(a.v, b.v), np.where(np.isnan(e), math.inf, e), node.dtype)


def window(node: Node, x: Value) -> Value:
    kernel, stride, dilation, before, size = node.attributes
    rank = len(kernel)
    lead = x.v.shape[: x.v.ndim - rank]
    inner = x.v.shape[x.v.ndim - rank :]
    best = np.full((*lead, *size), -math.inf)
    place = np.full(best.shape, -1, np.int64)
    numbers = np.arange(math.prod(inner)).reshape(inner)
    most, second = np.zeros(best.shape), np.full(best.shape, -math.inf)
    for _, to, at in Windows(inner, kernel, size, stride, dilation, before).taps():
        into = (..., *np.ix_(*to))
        taken, where = x.v[(..., *np.ix_(*at))], numbers[np.ix_(*at)]
        error = x.e[(..., *np.ix_(*at))]
        old = best[into]
        better = (taken > old) | np.isnan(taken) | (place[into] < 0)
        second[into] = np.maximum(second[into], np.where(better, old, taken))
        best[into] = np.where(better, taken, old)
        place[into] = np.where(better, where, place[into])
        most[into] = np.maximum(most[into], error)
    if node.op == "WindowMax":
        e = most if is_float(node.dtype) else unknown(most)
        return Value(best.astype(x.v.dtype), e)
    near = (best - second <= 2 * most) & (most > 0)
    return Value(place.astype(node.dtype), np.where(near, math.inf, 0.0))


# Indices -----------------------------------------------------------------------------------------


def places(i: Value, size: int) -> np.ndarray:
    at = i.v.astype(np.int64)
    return np.where(at < 0, at + size, at)


def gather(node: Node, x: Value, i: Value) -> Value:
    axis = node.attributes[0]
    size = x.v.shape[axis]
    at = np.clip(places(i, size), 0, max(0, size - 1))
    e = np.take(x.e, at, axis)
    if i.e.any():
        open_ = i.e.reshape(i.e.shape + (1,) * (x.v.ndim - axis - 1))
        e = e + np.where(np.broadcast_to(open_, e.shape) > 0, math.inf, 0.0)
    return Value(np.take(x.v, at, axis), e)


def scatter_add(node: Node, i: Value, updates: Value) -> Value:
    axis, size = node.attributes
    rank = i.v.ndim

    def lines(a: np.ndarray) -> np.ndarray:  # [indices, before, behind]
        a = a.reshape((*a.shape[:axis], -1, *a.shape[axis + rank :]))
        return np.moveaxis(a, axis, 0)

    at = places(i, size).ravel()
    v, e = added(at, size, lines(updates.v), lines(updates.e), node.dtype)
    if i.e.any():
        e = np.full(e.shape, math.inf)
    y = Value(np.moveaxis(v, 0, axis), np.moveaxis(e, 0, axis))
    return rounded(*y, node.dtype) if is_float(node.dtype) else Value(y.v, unknown(y.e))


def added(
    at: Any, size: int, v: np.ndarray, e: np.ndarray, dtype: str
) -> tuple[np.ndarray, np.ndarray]:
    """Rows at places of a new array, and their errors."""
    total, error = np.zeros((size, *v.shape[1:]), v.dtype), np.zeros((size, *v.shape[1:]))
    np.add.at(total, at, v)
    np.add.at(error, at, e)
    if is_float(dtype):
        most = np.zeros(total.shape)
        np.add.at(most, at, np.abs(v))
        count = np.bincount(at, minlength=size).reshape((size,) + (1,) * (v.ndim - 1))
        own = 2 * count * PRECISION[dtype].half * most
        exactly = bool((v == np.rint(v)).all() and most.max(initial=0) < 256 and not e.any())
        error = error + np.where((count > 1) & (not exactly), own, 0.0)
    return total, error


def last_writer(node: Node, i: Value) -> Value:
    size = node.attributes[0]
    v = np.full(size, -1)
    for number, at in enumerate(places(i, size).ravel()):
        v[at] = number
    return Value(v.astype(node.dtype), np.full(size, math.inf if i.e.any() else 0.0))


def take_along(node: Node, x: Value, i: Value) -> Value:
    at = np.maximum(i.v, 0).astype(np.int64)
    none = i.v < 0
    if x.v.shape[1] == 0:
        return exact(np.zeros(node.shape), node.dtype)
    v, e = np.take_along_axis(x.v, at, 1), np.take_along_axis(x.e, at, 1)
    e = np.where(i.e > 0, math.inf, np.where(none, 0, e))
    return Value(np.where(none, v.dtype.type(0), v), e)


def put_along(node: Node, i: Value, x: Value) -> Value:
    size = node.attributes[0]
    v, e = np.zeros((x.v.shape[0], size), x.v.dtype), np.zeros((x.v.shape[0], size))
    for row in range(x.v.shape[0]):
        inside = i.v[row] >= 0
        at = i.v[row][inside].astype(np.int64)
        v[row], e[row] = added(at, size, x.v[row][inside], x.e[row][inside], node.dtype)
    if i.e.any():
        e = np.full(e.shape, math.inf)
    return rounded(v, e, node.dtype) if is_float(node.dtype) else Value(v, unknown(e))


def sample(node: Node, a: Value, i: Value, b: Value) -> Value:
    """sum of y[n, c, i] w[n, k, i] x[n, c, places[n, k, i]] by one of the three."""
    part, (n, taps, count) = node.op, i.v.shape
    shape = node.shape

    def sums(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        total = np.zeros(shape)
        for m, k, j in itertools.product(range(n), range(taps), range(count)):
            at = int(i.v[m, k, j])
            if at < 0:
                continue
            if part == "Sample":
                total[m, :, j] += a[m, :, at] * b[m, k, j]
            elif part == "SampleSource":
                total[m, :, at] += a[m, :, j] * b[m, k, j]
            else:
                total[m, k, j] += a[m, :, at] @ b[m, :, j]
        return total

    p = PRECISION[node.dtype]
    terms = {"Sample": taps, "SampleSource": taps * count, "SampleWeight": a.v.shape[1]}[part]
    e = (2 * terms + 2) * p.half * sums(np.abs(a.v), np.abs(b.v))
    e = e + sums(a.e, np.abs(b.v) + b.e) + sums(np.abs(a.v), b.e)
    if i.e.any():
        e = np.full(e.shape, math.inf)
    return rounded(sums(a.v, b.v), np.where(np.isnan(e), math.inf, e), node.dtype)


# Attention ---------------------------------------------------------------------------------------


def attention(node: Node, *xs: Value) -> Value:
    """As ops/combining/attention.h states the family, of matrices and elementwise ops."""
    (masked, dropped, shifted, keep, period, behind, ahead, inside, written, of_scores, scale,
     fill) = node.attributes  # fmt: skip
    dtype = node.dtype
    scale, fill, keep = (float(np.int64(b).view(np.float64)) for b in (scale, fill, keep))
    rest = list(xs[2:])
    is_sum = node.op in ("AttentionRows", "AttentionColumns")
    c = rest.pop(0) if node.op != "AttentionLogSum" else None
    log_sum = rest.pop(0) if is_sum else None
    mask = rest.pop(0) if masked else None
    state = rest.pop(0) if dropped else None
    shift = rest.pop(0) if shifted else None

    def outside(x: Value) -> Value:
        return Value(*(a.swapaxes(-2, -3) for a in x)) if inside else x

    def op(name: str, *xs: Value, **kw: Any) -> Value:
        shapes = np.broadcast_shapes(*(x.v.shape for x in xs))
        xs = tuple(Value(*(np.broadcast_to(a, shapes) for a in x)) for x in xs)
        return OPS[name](Node(name, (), kw.get("dtype", dtype), shapes, ()), *xs)

    def scores(a: Value, b: Value) -> Value:
        return Value(*product_of(outside(a), transposed(outside(b), True), dtype)[0])

    s = scores(xs[0], xs[1])
    s = rounded(s.v * scale, s.e * abs(scale), dtype)
    m, n = s.v.shape[-2:]
    hidden = open_ = np.zeros(
        s.v.shape, bool
    )  # open: not known to be hidden or not, as in a Select
    if mask is not None and mask.v.dtype == bool:
        hidden, open_ = (np.broadcast_to(a, s.v.shape) for a in (mask.v, mask.e > 0))
        s = Value(np.where(hidden, fill, s.v), np.where(hidden, 0.0, s.e))
    elif mask is not None:
        s = op("Add", s, mask)
    away_ = np.arange(n)[None, :] - np.arange(m)[:, None]
    unseen = (away_ > ahead) | (-away_ > behind)
    s = Value(np.where(unseen, -math.inf, s.v), np.where(unseen | (s.v == -math.inf), 0.0, s.e))
    open_ = open_ & ~unseen
    s = Value(s.v, np.where(open_, math.inf, s.e))
    if node.op in ("AttentionLogSum", "Attention"):
        top = s.v.max(-1, keepdims=True, initial=-math.inf)
        top_error = np.where(np.isfinite(top), s.e.max(-1, keepdims=True, initial=0.0), 0.0)
        base = np.where(np.isfinite(top), top, 0.0)
        powers = np.exp(s.v - base)
        total = powers.sum(-1, keepdims=True)
        above = np.log(total)
        size = (4 + 2 * n) * PRECISION[dtype].sums + 8 * PRECISION[dtype].sums * (
            np.abs(base)
            + np.abs(np.where(np.isfinite(s.v), s.v, 0.0)).max(-1, keepdims=True, initial=0)
        )
        error = s.e.max(-1, keepdims=True, initial=0.0) * 1.5 + size
        if node.op == "AttentionLogSum":
            if written:
                y = np.concatenate([top, above], -1)
                e = np.concatenate([top_error + size, error + top_error], -1)
            else:
                y, e = base + above, error
            return outside(
                Value(y, np.where(np.isfinite(y), e + PRECISION[dtype].half * np.abs(y), math.inf))
            )
        norm = Value(base + above, error)
    else:
        assert log_sum is not None
        norm = outside(log_sum)
        if written:
            first, second = (Value(*(a[..., k : k + 1] for a in norm)) for k in (0, 1))
            norm = op("Add", first, second)
    e = op("Exp", op("Sub", s, norm))
    dead = (s.v == -math.inf) & ~open_
    nothing = 0.0 if not written else np.where(dead.all(-1, keepdims=True), math.nan, 0.0)
    e = Value(np.where(dead, nothing, e.v), np.where(dead & np.isfinite(nothing), 0.0, e.e))
    w = None
    for a, b in zip(rest[::2], rest[1::2], strict=True):
        factor = scores(a, b)
        factor = Value(factor.v, factor.e)
        w = factor if w is None else op("Mul", w, factor)
    if state is not None:
        heads = math.prod(s.v.shape[:-2])
        drawn = philox_uniform(state.v, (1, period, m, n))
        again = np.broadcast_to(drawn, (heads // max(1, period), period, m, n)).reshape(s.v.shape)
        z = exact(np.where(again < np.float32(keep), 1 / keep, 0.0), dtype)
        w = z if w is None else op("Mul", z, w)
    if shift is not None:
        w = op("Sub", exact(1.0, dtype) if w is None else w, outside(shift))
    if w is not None:
        e = op("Mul", e, w)
    if of_scores and hidden.any():
        e = Value(np.where(hidden, 0.0, e.v), np.where(hidden & ~open_, 0.0, e.e))
    assert c is not None
    e = rounded(e.v, e.e, dtype)
    y, _ = product_of(transposed(e, node.op == "AttentionColumns"), outside(c), dtype)
    return outside(rounded(y.v, y.e, dtype, OF_FUNCTION))


# Random numbers ----------------------------------------------------------------------------------


def philox(key: int, counter: np.ndarray) -> np.ndarray:
    """Four words for each counter, as Salmon and others define Philox 4x32-10."""
    low = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    c = [counter & low, counter >> shift, np.zeros_like(counter), np.zeros_like(counter)]
    k = [np.uint64(key & 0xFFFFFFFF), np.uint64((key >> 32) & 0xFFFFFFFF)]
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(q >> shift) ^ c[1] ^ k[0], q & low, (p >> shift) ^ c[3] ^ k[1], p & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return np.stack(c, -1)


def philox_uniform(state: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    count = math.prod(shape)
    key, offset = (int(s) for s in state.astype(np.int64))
    counters = np.arange((count + 3) // 4, dtype=np.uint64) + np.uint64(offset % 2**64)
    words = philox(key, counters).ravel()[:count]
    return ((words >> np.uint64(8)).astype(np.float64) * 2.0**-24).reshape(shape)


def random_uniform(node: Node, state: Value) -> Value:
    return exact(philox_uniform(state.v, node.shape), node.dtype)


# Routines ----------------------------------------------------------------------------------------


def matrices(x: np.ndarray, pairs: bool) -> np.ndarray:
    return x[..., 0] + 1j * x[..., 1] if pairs else x


def as_pairs(y: np.ndarray, pairs: bool) -> np.ndarray:
    return np.stack([np.real(y), np.imag(y)], -1) if pairs else np.real(y)


def each(f: Callable[..., np.ndarray], *xs: np.ndarray) -> np.ndarray:
    """f of each problem, which the last two dimensions hold."""
    lead = xs[0].shape[:-2]
    rows = [x.reshape((-1, *x.shape[-2:])) for x in xs]
    results = [f(*problem) for problem in zip(*rows, strict=True)]
    if not results:
        return np.zeros((*lead, 0))
    return np.stack(results).reshape((*lead, *results[0].shape))


def lu_factors(a: np.ndarray) -> np.ndarray:
    """As the core packs them: LAPACK's factors of the transpose, and a row of exchanged rows."""
    lu, pivots = scipy.linalg.lu_factor(a.T, check_finite=False)
    return np.concatenate([lu.T, (pivots + 1)[None]])


def unpacked(f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return f[:-1].T, np.real(f[-1]).astype(np.int32) - 1


def lu_solve(f: np.ndarray, b: np.ndarray, adjoint: bool) -> np.ndarray:
    if adjoint:
        return scipy.linalg.lu_solve(unpacked(f), b.conj(), 0, check_finite=False).conj()
    return scipy.linalg.lu_solve(unpacked(f), b, 1, check_finite=False)


def determinant(f: np.ndarray) -> np.ndarray:
    factors, pivots = unpacked(f)
    swaps = np.where(pivots == np.arange(len(pivots)), 1, -1)
    sign, size = np.prod(np.sign(np.diag(factors)) * swaps), np.log(np.abs(np.diag(factors))).sum()
    if np.iscomplexobj(factors):
        d = np.diag(factors)
        sign = np.prod(np.where(d == 0, 0, d / np.where(d == 0, 1, np.abs(d))) * swaps)
    whole = sign * np.exp(size)
    return np.array([np.real(sign), np.imag(sign), size, np.real(whole), np.imag(whole)])


def cholesky_solve(f: np.ndarray, b: np.ndarray) -> np.ndarray:
    return scipy.linalg.cho_solve((np.tril(f), True), b, check_finite=False)


def triangular_solve(f: np.ndarray, b: np.ndarray, adjoint: bool) -> np.ndarray:
    return scipy.linalg.solve_triangular(f, b, "C" if adjoint else "N", True, check_finite=False)


def damped(a: np.ndarray, damping: np.ndarray) -> np.ndarray:
    return np.linalg.cholesky(lower(a) + damping[0, 0] * np.eye(len(a)))


def lower(a: np.ndarray) -> np.ndarray:
    """The Hermitian matrix of a lower triangle."""
    below = np.tril(a, -1)
    return below + below.conj().T + np.diag(np.real(np.diag(a)))


def qr(a: np.ndarray, full: bool, vectors: bool) -> np.ndarray:
    q, r = np.linalg.qr(a, "complete" if full else "reduced")
    return np.concatenate([q.ravel(), r.ravel()]) if vectors else r.ravel()


def eigen(a: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(lower(a))
    return np.concatenate([values[None].astype(vectors.dtype), vectors])


def singular(a: np.ndarray, full: bool, vectors: bool) -> np.ndarray:
    if not vectors:
        return np.linalg.svd(a, compute_uv=False).astype(a.dtype)
    u, s, v = np.linalg.svd(a, full_matrices=full)
    return np.concatenate([s.astype(a.dtype), u.ravel(), v.ravel()])


def factored(f: Callable[..., np.ndarray]) -> Callable[..., Value]:
    """A routine on matrices, whose errors are those of matrices moved by rounding, and by their own."""

    def run(node: Node, *xs: Value) -> Value:
        pairs, *flags = node.attributes
        draw = np.random.default_rng(len(node.shape))

        def made(moved: bool) -> np.ndarray:
            given = []
            for x in xs:
                size = np.abs(x.v).max(initial=0.0)
                error = 8 * (1 + x.v.shape[-1]) * 2.0**-52 * size + np.where(
                    np.isfinite(x.e), x.e, size
                )
                v = x.v + draw.uniform(-1, 1, x.v.shape) * error if moved else x.v
                if moved and node.op in ("LUSolve", "LUInverse", "LUDeterminant") and x is xs[0]:
                    rows = [slice(None)] * v.ndim
                    rows[-3 if pairs else -2] = -1  # pivots are no numbers
                    v[tuple(rows)] = x.v[tuple(rows)]
                given.append(matrices(v, pairs))
            own = pairs and node.op != "LUDeterminant"
            return as_pairs(each(lambda *a: f(*a, *flags), *given), own).reshape(node.shape)

        try:
            v = made(False)
            most = np.max([np.abs(made(True) - v) for _ in range(3)], 0)
        except (np.linalg.LinAlgError, ValueError):
            return Value(np.full(node.shape, math.nan), np.full(node.shape, math.inf))
        scale = np.abs(v).max(initial=0.0)
        e = 8 * most + 1e-15 * scale
        if not all(x.known.all() for x in xs):
            e = np.full(node.shape, math.inf)
        return rounded(v, e, node.dtype, OF_FUNCTION)

    return run


def rows_of(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, x.shape[-1])


def sorted_places(v: np.ndarray, descending: bool) -> np.ndarray:
    """Stable, NaN as larger than any number."""
    if not descending:
        return np.argsort(v, -1, kind="stable")
    reversed_ = np.argsort(v[..., ::-1], -1, kind="stable")[..., ::-1]
    return v.shape[-1] - 1 - reversed_


def undecided(x: Value, at: np.ndarray) -> np.ndarray:
    """Rows in which errors decide the order."""
    if not x.e.any():
        return np.zeros(x.v.shape[:-1], bool)
    v, e = np.take_along_axis(x.v, at, -1), np.take_along_axis(x.e, at, -1)
    near = np.abs(np.diff(v, axis=-1)) <= e[..., 1:] + e[..., :-1]
    return (near & (e[..., 1:] + e[..., :-1] > 0)).any(-1) | ~np.isfinite(e).all(-1)


def order(node: Node, x: Value) -> Value:
    at = sorted_places(x.v, node.attributes[0])
    e = np.where(undecided(x, at)[..., None], math.inf, np.zeros(node.shape))
    return Value(at.astype(node.dtype), e)


def first_in_order(node: Node, x: Value) -> Value:
    count, largest, in_order = node.attributes
    at = sorted_places(x.v, largest)
    bad = undecided(x, at)
    if not in_order:  # as selection leaves them
        bad = np.ones(bad.shape, bool)
    e = np.where(bad[..., None], math.inf, np.zeros(node.shape))
    return Value(at[..., :count].astype(node.dtype), e)


def running_best(node: Node, x: Value) -> Value:
    inner, largest, values = node.attributes
    axis = x.v.ndim - 1 - inner
    v, e = np.moveaxis(x.v, axis, -1), np.moveaxis(x.e, axis, -1)
    at, near = np.zeros(v.shape, np.int64), np.zeros(v.shape, bool)
    best, found = v[..., 0].copy(), np.zeros(v.shape[:-1], np.int64)
    error = e[..., 0].copy()
    doubt = np.zeros(v.shape[:-1], bool)
    for k in range(v.shape[-1]):
        now = v[..., k]
        beyond = now >= best if largest else now <= best
        wins = beyond | ((now != now) if v.dtype == np.float64 else False)
        if e.any() and k:
            gap = np.abs(now.astype(float) - best)
            doubt = (doubt & ~(wins & (gap > e[..., k] + error))) | (
                (gap <= e[..., k] + error) & (e[..., k] + error > 0)
            )
        best, found = np.where(wins, now, best), np.where(wins, k, found)
        error = np.maximum(error, e[..., k])
        at[..., k], near[..., k] = found, doubt
    if values:
        y = np.take_along_axis(v, at, -1)
        bound = np.maximum.accumulate(e, -1)
        bound = bound if is_float(node.dtype) else unknown(bound)
        return Value(np.moveaxis(y, -1, axis), np.moveaxis(bound, -1, axis))
    return Value(
        np.moveaxis(at, -1, axis).astype(node.dtype),
        np.moveaxis(np.where(near, math.inf, 0.0), -1, axis),
    )


def least_of(dtype: str, least: bool) -> float:
    if is_float(dtype):
        largest = {"bfloat16": float.fromhex("0x1.fep127")}.get(dtype, PRECISION[dtype].largest)
        return -largest if least else largest
    if dtype == "bool":
        return 0 if least else 1
    info = np.iinfo(dtype)
    return info.min if least else info.max


def segment_best(node: Node, x: Value, ids: Value) -> Value:
    count, largest, values = node.attributes
    lead = x.v.shape[:-2]
    n, m = x.v.shape[-2:]
    v, e = x.v.reshape(-1, n, m), x.e.reshape(-1, n, m)
    segments = ids.v.reshape(-1, n)
    at = np.full((len(v), count, m), -1)
    best = np.full((len(v), count, m), least_of(node.dtype if values else "float64", largest))
    best = best.astype(v.dtype)
    bound = np.zeros(at.shape)
    for p, i, j in itertools.product(range(len(v)), range(n), range(m)):
        s = int(segments[p, i])
        if s < 0:
            continue
        old, now = at[p, s, j], v[p, i, j]
        error = max(bound[p, s, j], e[p, i, j])
        if old >= 0 and not values and error > 0:
            gap = abs(float(now) - float(v[p, old, j]))
            if gap <= 2 * error:
                error = math.inf
        bound[p, s, j] = error
        if old < 0 or (now > v[p, old, j] if largest else now < v[p, old, j]):
            at[p, s, j], best[p, s, j] = i, now
    if ids.e.any():
        bound[:] = math.inf
    shape = (*lead, count, m)
    if values:
        bound = bound if is_float(node.dtype) else unknown(bound)
        return Value(best.reshape(shape), bound.reshape(shape))
    bound = np.where(np.isinf(bound), math.inf, 0.0)
    return Value(at.reshape(shape).astype(node.dtype), bound.reshape(shape))


def place_in_line(node: Node, line: Value, x: Value) -> Value:
    side = "right" if node.attributes[0] else "left"
    lines, xs = rows_of(line.v), rows_of(x.v)
    v = np.stack([np.searchsorted(a, b, side) for a, b in zip(lines, xs, strict=True)])
    gap = np.abs(xs[:, :, None].astype(float) - lines[:, None, :].astype(float))
    e = rows_of(x.e)[:, :, None] + rows_of(line.e)[:, None, :]
    near = ((gap <= e) & (e > 0)).any(-1)
    return Value(
        v.reshape(node.shape).astype(node.dtype), np.where(near, math.inf, 0.0).reshape(node.shape)
    )


def among(node: Node, x: Value, tests: Value) -> Value:
    a, b = rows_of(x.v), rows_of(tests.v)
    gap = np.abs(a[:, :, None].astype(float) - b[:, None, :].astype(float))
    e = rows_of(x.e)[:, :, None] + rows_of(tests.e)[:, None, :]
    near = ((gap <= e) & (e > 0)).any(-1)
    v = (a[:, :, None] == b[:, None, :]).any(-1)
    return Value(v.reshape(node.shape), np.where(near, math.inf, 0.0).reshape(node.shape))


def count_between(node: Node, x: Value, edges: Value) -> Value:
    a, b = rows_of(x.v).astype(float), rows_of(edges.v)
    v = np.zeros((len(a), b.shape[-1] - 1), np.int64)
    for p, (row, edge) in enumerate(zip(a, b, strict=True)):
        for number in row:
            if edge[0] <= number <= edge[-1]:
                v[p, min(np.searchsorted(edge, number, "right"), len(edge) - 1) - 1] += 1
    gap = np.abs(a[:, :, None] - b[:, None, :])
    e = rows_of(x.e)[:, :, None] + rows_of(edges.e)[:, None, :]
    bad = ((gap <= e) & (e > 0)).any((-1, -2))
    return Value(
        v.reshape(node.shape),
        np.broadcast_to(np.where(bad, math.inf, 0.0)[:, None], v.shape).reshape(node.shape),
    )


def draw_by_weights(node: Node, weights: Value, u: Value) -> Value:
    w, drawn = rows_of(weights.v), rows_of(u.v)
    v, e = np.zeros(drawn.shape, np.int64), np.zeros(drawn.shape)
    spread = 2 * rows_of(weights.e).sum(-1)
    for p in range(len(w)):
        sums = w[p].cumsum()
        wanted = np.minimum(drawn[p] * sums[-1], np.nextafter(sums[-1], 0.0))
        v[p] = np.searchsorted(sums, wanted, "right")
        doubt = spread[p] + rows_of(u.e)[p] * sums[-1]
        near = (np.abs(wanted[:, None] - sums[None]) <= doubt[:, None] + 1e-15).any(-1)
        e[p] = np.where(near, math.inf, 0.0)
    return Value(v.reshape(node.shape).astype(node.dtype), e.reshape(node.shape))


INTEGER_FUNCTIONS = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.gcd,
                     np.lcm)  # fmt: skip


def of_integers(node: Node, a: Value, b: Value) -> Value:
    v = INTEGER_FUNCTIONS[node.attributes[0]](a.v, b.v)
    return Value(v.astype(node.dtype), unknown(a.e + b.e))


def permitted(node: Node, x: Value) -> Value:
    return exact(np.zeros(node.shape), node.dtype)


# Loops -------------------------------------------------------------------------------------------


class Body(NamedTuple):
    inputs: int
    next: list[int]
    nodes: list[Node]


@functools.cache
def op_names() -> list[str]:
    return [row["name"] for row in _core.op_table()]


def read_body(numbers: Sequence[int]) -> Body:
    names, rest = op_names(), list(numbers)

    def one() -> int:
        return rest.pop(0)

    def many() -> list[int]:
        count = one()
        found = rest[:count]
        del rest[:count]
        return found

    inputs, following, nodes = one(), many(), []
    while rest:
        op, dtype = names[one()], DTYPES[one()]
        shape, operands, attributes = tuple(many()), tuple(many()), many()
        nodes.append(Node(op, operands, dtype, shape, split(op, attributes)))
    return Body(inputs, following, nodes)


#: The attributes that are lists, of ops that have any: all of one op are as long as each other.
LISTS = {
    "Transpose": 1, "Slice": 2, "SliceScatter": 2,
    "ReduceSum": 1, "ReduceProd": 1, "ReduceMax": 1, "ReduceMin": 1,
    "Convolution": 4, "ConvolutionInput": 4, "ConvolutionWeight": 4, "WindowMax": 5, "WindowArgMax": 5,
}  # fmt: skip


def split(op: str, numbers: list[int]) -> tuple[Any, ...]:
    """The numbers of a node in a body as its attributes. Lists come first but a loop's, which is last."""
    if op == "Recurrence":
        return (*numbers[:6], numbers[6:])
    lists = LISTS.get(op, 0)
    if not lists:
        return tuple(numbers)
    scalars = 2 if op.startswith("Convolution") else 0
    length = (len(numbers) - scalars) // lists
    heads = [numbers[i * length : (i + 1) * length] for i in range(lists)]
    return (*heads, *numbers[lists * length :])


def recurrence(node: Node, *xs: Value) -> Value:
    steps, carried, sliced, result, last, reverse, _again, numbers = node.attributes
    body = read_body(numbers)
    state = list(xs[:carried])
    kept: list[Value | None] = [None] * steps
    for t in range(steps)[:: -1 if reverse else 1]:
        now: list[Value] = []
        for k, inner in enumerate(body.nodes):
            if k >= body.inputs:
                now.append(apply(inner, [now[i] for i in inner.inputs]))
            elif k < carried:
                now.append(state[k])
            else:
                now.append(Value(xs[k].v[t], xs[k].e[t]) if k < carried + sliced else xs[k])
        kept[t] = now[result] if not last else None
        state = [now[i] for i in body.next]
    if last:
        return state[result]
    if not steps:
        return exact(np.zeros(node.shape), node.dtype)
    return Value(np.stack([k.v for k in kept if k]), np.stack([k.e for k in kept if k]))


def alone(node: Node, *xs: Value) -> Value:
    """A collective of one process gives what it was given."""
    assert node.attributes[1] == 1, "only groups of one process can be interpreted"
    return Value(*(a.reshape(node.shape) for a in xs[0])) if xs else exact(0, node.dtype)


# The table ---------------------------------------------------------------------------------------


def first(node: Node, *xs: Value) -> Value:
    return xs[0]


OPS: dict[str, Callable[..., Value]] = {
    **dict.fromkeys(UNARY, unary),
    **dict.fromkeys(BINARY, binary),
    **dict.fromkeys(COMPARE, compare),
    **dict.fromkeys(PREDICATE, predicate),
    "Select": select,
    "Leaf": first,
    "Const": constant,
    "Iota": iota,
    "Alias": first,
    "StopGradient": first,
    "CallOutput": first,
    "ValueOf": first,
    "After": first,
    "Cast": cast,
    "ViewAsReal": view_as_real,
    "ViewAsComplex": view_as_complex,
    "Reshape": lambda node, x: Value(*(a.reshape(node.shape) for a in x)),
    "Transpose": lambda node, x: Value(*(a.transpose(node.attributes[0]) for a in x)),
    "BroadcastTo": lambda node, x: Value(*(np.broadcast_to(a, node.shape) for a in x)),
    "Slice": slice_of,
    "SliceScatter": slice_scatter,
    "Concat": concat,
    "MatMul": matmul,
    "Convolution": convolution,
    "ConvolutionInput": convolution,
    "ConvolutionWeight": convolution,
    "Attention": attention,
    "AttentionLogSum": attention,
    "AttentionRows": attention,
    "AttentionColumns": attention,
    "ReduceSum": reduce_sum,
    "ReduceProd": reduce_prod,
    "ReduceMax": reduce_best,
    "ReduceMin": reduce_best,
    "ArgMax": arg_best,
    "ArgMin": arg_best,
    "CumSum": cumsum,
    "CumProd": cumprod,
    "LinearRecurrence": linear_recurrence,
    "FourierTransform": fourier,
    "Gather": gather,
    "Label": gather,
    "ScatterAdd": scatter_add,
    "LastWriter": last_writer,
    "WindowMax": window,
    "WindowArgMax": window,
    "TakeAlong": take_along,
    "PutAlong": put_along,
    "Sample": sample,
    "SampleSource": sample,
    "SampleWeight": sample,
    "LUFactors": factored(lu_factors),
    "LUSolve": factored(lu_solve),
    "LUInverse": factored(lambda f: lu_solve(f, np.eye(f.shape[-1]), False)),
    "LUDeterminant": factored(determinant),
    "CholeskyFactor": factored(lambda a: np.linalg.cholesky(lower(a))),
    "DampedCholeskyFactor": factored(damped),
    "CholeskySolve": factored(lambda f, b, adjoint: cholesky_solve(f, b)),
    "TriangularSolve": factored(triangular_solve),
    "CholeskyInverse": factored(lambda f: np.linalg.inv(f @ f.conj().T)),
    "QRFactors": factored(qr),
    "EigenFactors": factored(eigen),
    "SingularFactors": factored(singular),
    "Order": order,
    "FirstInOrder": first_in_order,
    "RunningBest": running_best,
    "SegmentBest": segment_best,
    "PlaceInLine": place_in_line,
    "Among": among,
    "CountBetween": count_between,
    "DrawByWeights": draw_by_weights,
    "OfIntegers": of_integers,
    "Permitted": permitted,
    "RandomUniform": random_uniform,
    "Recurrence": recurrence,
    **dict.fromkeys(("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "CollectiveReduce"), alone),
    **dict.fromkeys(("AllToAll", "Barrier"), alone),
}  # fmt: skip


def apply(node: Node, xs: Sequence[Value]) -> Value:
    y = OPS[node.op](node, *xs)
    assert y.v.shape == node.shape, f"{node}: {y.v.shape}"
    return y


# Comparison --------------------------------------------------------------------------------------


class Difference(NamedTuple):
    where: tuple[int, ...]
    got: Any
    expected: Any
    bound: float


def difference(got: np.ndarray, expected: Value) -> Difference | None:
    """The first element that is farther from what is expected than it may be."""
    if got.shape != expected.v.shape:
        return Difference((), got.shape, expected.v.shape, 0.0)
    if got.dtype == bool or got.dtype.kind in "iu":
        wrong = (got != expected.v) & expected.known
    else:
        with np.errstate(invalid="ignore"):
            numbers = got.astype(expected.v.dtype)
            near = np.abs(numbers - expected.v) <= 2 * expected.e
            near |= (numbers == expected.v) | (np.isnan(numbers) & np.isnan(expected.v))
        wrong = ~near & expected.known
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    return Difference(at, got[at].item(), expected.v[at].item(), float(expected.e[at]))

"""The elementwise rows of the test table: one row for each elementwise op of csrc/ir/ops.def.

A row gives the names an op goes by, a reference written without gradcell (mpmath for values and
derivatives, NumPy for IEEE special values), the domain its operands are drawn from, what integers
give, how exact it must be and how many derivatives are checked. test_ops.py reads the rows; adding
an elementwise op means adding one row here. The structured ops have theirs in structured_rows.py.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mpmath import mp
from scipy import special

Interval = tuple[float, float]

#: Digits the references are computed with; float64 needs 16, the numeric derivatives the rest.
REFERENCE_DIGITS = 50


@dataclass(frozen=True)
class Row:
    """An elementwise op, and how to test it."""

    name: str  # in the op table
    function: str  # ops.<function>
    exact: Callable[..., Any]  # the value, on mpmath numbers
    numpy: Callable[..., Any]  # the value, on float32 and float64 arrays, special values included
    domain: tuple[tuple[Interval, ...], ...]  # for each operand, the intervals to draw from
    objects: tuple[str, ...] = ()  # ops.<object>(), by MindSpore's names
    aliases: tuple[str, ...] = ()  # further ops functions that give the same
    method: str | None = None  # Tensor.<method>
    operator: Callable[..., Any] | None = None
    hard: tuple[tuple[float, ...], ...] = ()  # further points for values, not for derivatives
    # What integers give: "same" dtype, "float32", "bool", "unsupported": MindSpore raises
    # TypeError there, and so may we, or else give what float32 operands give.
    integers: str = "unsupported"
    differentiable: bool = True  # False: the output is no number (explicit NONDIFF)
    order: int = 4  # the highest derivative that is checked
    ulp: dict[str, float] = field(default_factory=lambda: {"float32": 2.0, "float64": 2.0})
    signed_zero: bool = True  # whether the sign of a zero result is checked
    special: Callable[..., Any] | None = None  # mask of the special operands to compare

    @property
    def arity(self) -> int:
        return len(self.domain)


def unary(
    name: str,
    exact: Callable[..., Any],
    numpy: Callable[..., Any],
    *domain: Interval,
    hard: tuple[float, ...] = (),
    **rest: Any,
) -> Row:
    function = rest.pop("function", name.lower())
    rest.setdefault("objects", (name,))
    rest.setdefault("method", function)
    return Row(name, function, exact, numpy, (domain,), hard=tuple((x,) for x in hard), **rest)


def binary(
    name: str,
    function: str,
    exact: Callable[..., Any],
    numpy: Callable[..., Any],
    first: tuple[Interval, ...],
    second: tuple[Interval, ...],
    **rest: Any,
) -> Row:
    rest.setdefault("objects", (name,))
    rest.setdefault("method", function)
    rest.setdefault("integers", "same")
    return Row(name, function, exact, numpy, (first, second), **rest)


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype)


def _logit(x: np.ndarray) -> np.ndarray:
    return np.log(x / (1 - x))


def _erfc(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erfc, otypes=[np.float64])(x).astype(x.dtype)


def _erfinv(x: np.ndarray) -> np.ndarray:
    return np.copysign(special.erfinv(x.astype(np.float64)), x).astype(x.dtype)


def _hardswish(x: np.ndarray) -> np.ndarray:
    return np.where(x < -3, 0, np.where(x > 3, x, x * (x + 3) / 6)).astype(x.dtype)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(x.dtype)


def _finite_operands(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy and MindSpore disagree on x // inf and x % inf, so infinities are left out."""
    return ~np.isinf(x) & ~np.isinf(y)


def _floor_operands(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Quotients that overflow or lie below the type's resolution are left out as well."""
    with np.errstate(all="ignore"):
        quotient = np.abs(x / y)
    tame = (quotient < 1e6) & ((quotient > 1e-6) | (x == 0))
    return _finite_operands(x, y) & (tame | (y == 0) | np.isnan(x) | np.isnan(y))


def _exact_mod(x: Any, y: Any) -> Any:
    return x - y * mp.floor(x / y)


REAL: Interval = (-3.0, 3.0)
POSITIVE: Interval = (0.1, 4.0)
BOTH_SIDES = ((-4.0, -0.1), (0.1, 4.0))
BETWEEN_INTEGERS = ((-2.9, -2.6), (-1.9, -1.6), (-0.4, -0.1), (0.1, 0.4), (1.1, 1.4), (2.6, 2.9))
EXACT = {"float32": 0.51, "float64": 0.51}  # correctly rounded by the hardware
TINY = (1e-40, -1e-40, 5e-324, 1e-310, 1e-30, -1e-12, 1e-7)

UNARY = [
    unary("Neg", lambda x: -x, np.negative, REAL, hard=TINY, operator=operator.neg,
          integers="same", ulp=EXACT),
    unary("Abs", abs, np.abs, *BOTH_SIDES, hard=TINY, operator=operator.abs,
          integers="same", ulp=EXACT),
    unary("Sign", mp.sign, np.sign, *BOTH_SIDES, hard=TINY, integers="same", ulp=EXACT,
          signed_zero=False),
    unary("Square", lambda x: x * x, np.square, REAL, hard=(1e-20, 1e18), integers="same",
          ulp=EXACT),
    unary("Sqrt", mp.sqrt, np.sqrt, POSITIVE, hard=(1e-40, 5e-324, 1e30, 0.0), integers="float32",
          ulp=EXACT),
    unary("Rsqrt", lambda x: 1 / mp.sqrt(x), lambda x: 1 / np.sqrt(x), POSITIVE,
          hard=(1e-36, 1e30)),
    unary("Reciprocal", lambda x: 1 / x, lambda x: 1 / x, *BOTH_SIDES, hard=(1e-30, -1e30),
          integers="float32", ulp=EXACT),
    unary("Exp", mp.exp, np.exp, REAL, hard=(*TINY, 88.5, -80.0, 20.3, -20.3, 700.0, -700.0)),
    unary("Exp2", lambda x: mp.power(2, x), np.exp2, REAL,
          hard=(*TINY, 127.5, -126.3, -149.0, 20.3, -20.3, 1000.5, -1022.5)),
    unary("Expm1", mp.expm1, np.expm1, REAL, hard=(*TINY, 0.01, -0.01, 50.0, -50.0, 88.5)),
    unary("Log", mp.log, np.log, POSITIVE,
          hard=(1e-40, 5e-324, 1e30, 1.0, 1.0000001, 0.9999999, 1e-7)),
    unary("Log1p", mp.log1p, np.log1p, (-0.8, 3.0), hard=(*TINY, -0.999, 1e30)),
    unary("Log2", lambda x: mp.log(x, 2), np.log2, POSITIVE,
          hard=(1e-40, 5e-324, 1e30, 8.0, 1.0, 1.0000001, 0.9999999), objects=("Log2",)),
    unary("Log10", mp.log10, np.log10, POSITIVE,
          hard=(1e-40, 5e-324, 1e30, 1000.0, 1.0, 1.0000001, 0.9999999), objects=("Log10",)),
    unary("Sin", mp.sin, np.sin, REAL,
          hard=(*TINY, 10.0, -30.5, 3.1415927, 6.2831855, 1e3, 1e5, -123456.7, 1e8, 1e22)),
    unary("Cos", mp.cos, np.cos, REAL,
          hard=(*TINY, 10.0, -30.5, 1.5707964, 4.712389, 1e3, 1e5, -123456.7, 1e8, 1e22)),
    unary("Tan", mp.tan, np.tan, (-1.3, 1.3),
          hard=(*TINY, 10.0, -30.5, 1.57, 3.1415927, 1e3, 1e5, 1e8)),
    unary("Asin", mp.asin, np.arcsin, (-0.9, 0.9), hard=(*TINY, 1.0, -1.0, 0.999999)),
    unary("Acos", mp.acos, np.arccos, (-0.9, 0.9), hard=(*TINY, 1.0, -1.0, 0.999999),
          objects=("ACos",)),
    unary("Atan", mp.atan, np.arctan, REAL, hard=(*TINY, 50.0, -1e10, 1e30)),
    unary("Sinh", mp.sinh, np.sinh, REAL, hard=(*TINY, 0.01, 15.0, -40.0, 88.9)),
    unary("Cosh", mp.cosh, np.cosh, REAL, hard=(*TINY, 15.0, -40.0, 88.9)),
    unary("Tanh", mp.tanh, np.tanh, REAL, hard=(*TINY, 0.01, -0.1, 9.0, -20.0, 100.0)),
    unary("Asinh", mp.asinh, np.arcsinh, REAL, hard=(*TINY, 0.01, 1e10, -1e10, 1e30)),
    unary("Acosh", mp.acosh, np.arccosh, (1.2, 4.0), hard=(1.0, 1.0001, 1e10, 1e30)),
    unary("Atanh", mp.atanh, np.arctanh, (-0.85, 0.85), hard=(*TINY, 0.01, 0.9999, -0.9999)),
    unary("Sigmoid", lambda x: 1 / (1 + mp.exp(-x)), _sigmoid, REAL,
          hard=(*TINY, 20.0, -20.0, -80.0)),
    unary("Erf", mp.erf, _erf, (-2.0, 2.0), hard=(*TINY, 0.01, 3.5, -3.9, 6.0)),
    unary("Erfc", mp.erfc, _erfc, (-2.0, 2.0), hard=(*TINY, 3.5, -3.9, 5.0, 8.5)),
    unary("Erfinv", mp.erfinv, _erfinv, (-0.9, 0.9),
          hard=(*TINY, 0.01, 0.99, -0.9966, 0.9999, -0.999999, 0.99999994)),
    unary("Ndtr", mp.ncdf, lambda x: _erfc(-x * math.sqrt(0.5)) / 2, (-2.0, 2.0),
          hard=(*TINY, 3.99, 4.01, -3.99, -4.01, 5.0, -5.5, -9.0, -13.0),
          ulp={"float32": 4.0, "float64": 2.0}),
    unary("Logit", lambda x: mp.log(x / (1 - x)), _logit, (0.05, 0.45), (0.55, 0.95),
          hard=(1e-30, 1e-8, 0.4999, 0.2501, 0.2499, 0.75, 0.5000001, 0.99999),
          ulp={"float32": 2.0, "float64": 3.0}),
    unary("Floor", mp.floor, np.floor, *BETWEEN_INTEGERS, hard=(*TINY, 2.0, -2.0, 8388609.0, 1e20),
          ulp=EXACT),
    unary("Ceil", mp.ceil, np.ceil, *BETWEEN_INTEGERS, hard=(*TINY, 2.0, -2.0, 8388609.0, 1e20),
          ulp=EXACT),
    unary("Round", mp.nint, np.rint, *BETWEEN_INTEGERS,
          hard=(*TINY, 0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 8388609.0, 1e20), integers="same",
          ulp=EXACT),
    unary("Trunc", lambda x: mp.floor(x) if x > 0 else mp.ceil(x), np.trunc, *BETWEEN_INTEGERS,
          hard=(*TINY, 2.0, -2.0, 8388609.0, 1e20), integers="same", ulp=EXACT),
    unary("HSigmoid", lambda x: min(max(x + 3, 0), 6) / 6, lambda x: np.clip((x + 3) / 6, 0, 1),
          (-2.9, 2.9), (3.1, 4.0), (-4.0, -3.1), hard=(3.0, -3.0, 1e30, -1e30, *TINY),
          function="hardsigmoid", integers="float32"),
    unary("HSwish", lambda x: x * min(max(x + 3, 0), 6) / 6, _hardswish, (-2.9, 2.9), (3.1, 4.0),
          (-4.0, -3.1), hard=(3.0, -3.0, 1e30, -1e30, *TINY), function="hardswish",
          integers="float32"),
    unary("ReLU", lambda x: x if x > 0 else x * 0, lambda x: np.maximum(x, 0), *BOTH_SIDES,
          hard=TINY, method=None, integers="same", ulp=EXACT, signed_zero=False),
]  # fmt: skip

BINARY = [
    binary("Add", "add", operator.add, np.add, (REAL,), (REAL,), operator=operator.add, ulp=EXACT),
    binary("Sub", "sub", operator.sub, np.subtract, (REAL,), (REAL,), operator=operator.sub,
           aliases=("subtract",), ulp=EXACT),
    binary("Mul", "mul", operator.mul, np.multiply, (REAL,), (REAL,), operator=operator.mul,
           aliases=("multiply",), ulp=EXACT),
    binary("Div", "div", operator.truediv, np.divide, (REAL,), BOTH_SIDES,
           objects=("Div", "RealDiv"), operator=operator.truediv,
           aliases=("divide",), integers="float32", ulp=EXACT),
    binary("Pow", "pow", lambda x, y: mp.power(x, y), np.power, (POSITIVE,), (REAL,),
           operator=operator.pow,
           hard=((-2.0, 3.0), (-2.0, 2.0), (1e-10, 3.0), (1.0001, 1e4), (10.0, 37.9), (2.0, -126.0),
                 (0.0, 0.0), (0.0, 2.0), (-0.5, -3.0))),
    binary("Maximum", "maximum", max, np.maximum, ((-3.0, -1.0), (1.0, 3.0)),
           ((-0.9, 0.9), (3.1, 4.0)), ulp=EXACT, signed_zero=False),
    binary("Minimum", "minimum", min, np.minimum, ((-3.0, -1.0), (1.0, 3.0)),
           ((-0.9, 0.9), (3.1, 4.0)), ulp=EXACT, signed_zero=False),
    binary("Atan2", "atan2", mp.atan2, np.arctan2, BOTH_SIDES, BOTH_SIDES, integers="unsupported",
           aliases=("arctan2",), hard=((1e-20, 1.0), (1.0, 1e-20), (1e15, 1e16), (-3.0, 0.0))),
    binary("CopySign", "copysign", lambda x, y: abs(x) * mp.sign(y), np.copysign, BOTH_SIDES,
           BOTH_SIDES, integers="float32", ulp=EXACT, hard=((1e-40, -2.0), (-1e30, 1e-40))),
    binary("Ldexp", "ldexp", lambda x, y: x * mp.power(2, y), lambda x, y: x * np.exp2(y), (REAL,),
           (REAL,), integers="float32", hard=((0.75, 10.0), (-3.0, -20.0), (1.5, 0.5))),
    binary("Mod", "floor_mod", _exact_mod, np.mod, ((0.7, 1.3), (3.7, 4.3)),
           ((-2.4, -1.6), (1.6, 2.4)), objects=("FloorMod",), aliases=("remainder",), method=None,
           operator=operator.mod, special=_floor_operands,
           hard=((7.0, 3.0), (-7.0, 3.0), (7.0, -3.0), (-7.0, -3.0), (5.5, -2.0), (6.0, 3.0))),
    binary("Fmod", "fmod", lambda x, y: mp.sign(x) * (abs(x) % abs(y)), np.fmod,
           ((0.7, 1.3), (3.7, 4.3)), ((-2.4, -1.6), (1.6, 2.4)), objects=(), special=_floor_operands,
           hard=((7.0, 3.0), (-7.0, 3.0), (7.0, -3.0), (-7.0, -3.0), (5.5, -2.0), (6.0, 3.0))),
    binary("FloorDiv", "floor_div", lambda x, y: mp.floor(x / y), np.floor_divide,
           ((0.7, 1.3), (3.7, 4.3)), ((-2.4, -1.6), (1.6, 2.4)), method=None,
           operator=operator.floordiv, special=_floor_operands,
           hard=((7.0, 3.0), (-7.0, 3.0), (7.0, -3.0), (-7.0, -3.0), (6.0, 3.0), (-6.0, 3.0)),
           ulp=EXACT),
]  # fmt: skip

_COMPARED = ((-3.0, -1.0), (1.0, 3.0))


def compare(name: str, function: str, relation: Callable[..., Any], numpy: Any, short: str) -> Row:
    return binary(name, function, relation, numpy, _COMPARED, _COMPARED, integers="bool",
                  operator=relation, aliases=(short,), differentiable=False, order=0,
                  hard=((1.0, 1.0), (0.0, -0.0), (-2.0, -2.0), (1e-40, 0.0)))  # fmt: skip


COMPARE = [
    compare("Equal", "equal", operator.eq, np.equal, "eq"),
    compare("NotEqual", "not_equal", operator.ne, np.not_equal, "ne"),
    compare("Less", "less", operator.lt, np.less, "lt"),
    compare("LessEqual", "less_equal", operator.le, np.less_equal, "le"),
    compare("Greater", "greater", operator.gt, np.greater, "gt"),
    compare("GreaterEqual", "greater_equal", operator.ge, np.greater_equal, "ge"),
]


def predicate(name: str, function: str, numpy: Callable[..., Any]) -> Row:
    return unary(name, lambda x: bool(numpy(float(x))), numpy, REAL, function=function,
                 integers="bool", differentiable=False, order=0,
                 hard=(0.0, 1e-40, 3e38, -3e38))  # fmt: skip


PREDICATE = [
    predicate("IsFinite", "isfinite", np.isfinite),
    predicate("IsNan", "isnan", np.isnan),
    predicate("IsInf", "isinf", np.isinf),
    predicate("IsNegInf", "isneginf", np.isneginf),
]


def logical(name: str, function: str, numpy: Callable[..., Any], arity: int) -> Row:
    """Takes bools and gives bools; numbers count as x != 0."""
    domain = (((0.5, 2.0), (0.0, 0.0)),) * arity
    return Row(name, function, lambda *xs: bool(numpy(*(bool(x) for x in xs))), numpy, domain,
               objects=(name,), method=function, integers="bool", differentiable=False,
               order=0)  # fmt: skip


LOGICAL = [
    logical("LogicalAnd", "logical_and", np.logical_and, 2),
    logical("LogicalOr", "logical_or", np.logical_or, 2),
    logical("LogicalNot", "logical_not", np.logical_not, 1),
    logical("LogicalXor", "logical_xor", np.logical_xor, 2),
]

ROWS: list[Row] = UNARY + BINARY + COMPARE + PREDICATE + LOGICAL
DIFFERENTIABLE: list[Row] = [row for row in ROWS if row.differentiable]

#: Where a derivative jumps, MindSpore's convention: op, operands, derivative by each operand.
KINKS: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    ("abs", (0.0,), (0.0,)),
    ("abs", (-0.0,), (0.0,)),
    ("sign", (0.0,), (0.0,)),
    ("relu", (0.0,), (0.0,)),
    ("relu", (-0.0,), (0.0,)),
    ("floor", (1.0,), (0.0,)),
    ("ceil", (1.0,), (0.0,)),
    ("round", (0.5,), (0.0,)),
    ("sqrt", (0.0,), (np.inf,)),
    ("maximum", (1.0, 1.0), (0.5, 0.5)),
    ("minimum", (1.0, 1.0), (0.5, 0.5)),
    ("floor_div", (4.0, 2.0), (0.0, 0.0)),
    ("floor_mod", (4.0, 2.0), (1.0, -2.0)),
    ("pow", (0.0, 2.0), (0.0, 0.0)),
    ("pow", (0.0, 1.0), (1.0, 0.0)),
    ("pow", (-2.0, 2.0), (-4.0, np.nan)),
    ("pow", (-2.0, 3.0), (12.0, np.nan)),
]


def sample(row: Row, count: int, seed: int, dtype: Any = np.float64) -> list[np.ndarray]:
    """`count` points of the row's domain for each operand, as `dtype` holds them."""
    rng = np.random.default_rng(seed)
    operands = []
    for intervals in row.domain:
        ends = np.array(intervals)[rng.integers(len(intervals), size=count)]
        operands.append(rng.uniform(ends[:, 0], ends[:, 1]).astype(dtype))
    return operands


def exact_values(row: Row, operands: list[np.ndarray]) -> np.ndarray:
    """The row's value at each point, correct to float64's last digit."""
    with mp.workdps(REFERENCE_DIGITS):
        points = zip(*(x.ravel().tolist() for x in operands), strict=True)
        values = [row.exact(*(mp.mpf(x) for x in point)) for point in points]
        kind = np.bool_ if not row.differentiable else np.float64
        return np.array([kind(v) for v in values], dtype=kind).reshape(operands[0].shape)


def exact_partial(row: Row, operands: list[np.ndarray], times: tuple[int, ...]) -> np.ndarray:
    """The row differentiated times[i] times by operand i, at each point."""
    with mp.workdps(REFERENCE_DIGITS):
        points = zip(*(x.ravel().tolist() for x in operands), strict=True)
        values = [
            mp.diff(row.exact, tuple(mp.mpf(x) for x in point), times)
            if row.arity > 1
            else mp.diff(row.exact, mp.mpf(point[0]), times[0])
            for point in points
        ]
        return np.array([float(v) for v in values]).reshape(operands[0].shape)

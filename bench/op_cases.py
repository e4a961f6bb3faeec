"""One op a case: its inputs, and the same expression in gradcell and in PyTorch.

Expressions see the inputs by the names below, `ops`, `ms` and `nn` or `torch` and `F`. Sizes are 10^6 elements
unless an input says otherwise. Convolution, pooling and attention are in compare.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inputs import Array

_N = 1000


def _uniform(seed: int, low: float, high: float, *shape: int) -> Array:
    values = np.random.default_rng(seed).uniform(low, high, shape or (_N, _N))
    return values.astype(np.float32)


def _integers(seed: int, low: int, high: int, *shape: int, dtype: Any = np.int32) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape or (_N, _N)).astype(dtype)


def _bools(seed: int) -> Array:
    return np.random.default_rng(seed).random((_N, _N)) < 0.5


def _positive_definite(n: int) -> Array:
    a = np.random.default_rng(17).standard_normal((n, n))
    return (a @ a.T / n + np.eye(n)).astype(np.float32)


#: Every input by its name in the expressions. float32 [1000, 1000] where nothing else is said.
INPUTS: dict[str, Callable[[], Array]] = {
    "x": lambda: _uniform(0, -3, 3),
    "y": lambda: _uniform(1, -3, 3),
    "z": lambda: _uniform(2, -3, 3),
    "p": lambda: _uniform(3, 0.1, 3),
    "q": lambda: _uniform(4, 0.1, 3),
    "u": lambda: _uniform(5, -0.9, 0.9),
    "g": lambda: _uniform(6, 1.1, 4),
    "e": lambda: _uniform(7, 0.05, 0.95),
    "near1": lambda: _uniform(8, 0.99, 1.01),
    "distinct": lambda: (  # an order with no ties
        np.random.default_rng(9).permutation(_N * _N).reshape(_N, _N).astype(np.float32)
    ),
    "v": lambda: _uniform(10, -3, 3, _N * _N),
    "cube": lambda: _uniform(11, -3, 3, 100, 100, 100),
    "row": lambda: _uniform(12, -3, 3, _N),
    "column": lambda: _uniform(13, -3, 3, _N, 1),
    "row2": lambda: _uniform(14, -3, 3, _N),
    "square": lambda: _uniform(15, -1, 1, 256, 256),
    "square2": lambda: _uniform(16, -1, 1, 256, 256),
    "spd": lambda: _positive_definite(128),
    "batch": lambda: _uniform(18, -1, 1, 250, 32, 32),
    "batch2": lambda: _uniform(19, -1, 1, 250, 32, 32),
    "threes": lambda: _uniform(20, -1, 1, 333333, 3),
    "threes2": lambda: _uniform(21, -1, 1, 333333, 3),
    "i": lambda: _integers(22, -1000, 1000),
    "j": lambda: _integers(23, 1, 1000),
    "k": lambda: _integers(24, 0, 8),
    "long": lambda: _integers(25, -1000, 1000, dtype=np.int64),
    "byte": lambda: _integers(26, 0, 255, dtype=np.uint8),
    "b": lambda: _bools(27),
    "c": lambda: _bools(28),
    "half": lambda: _uniform(29, -3, 3).astype(np.float16),
    "double": lambda: _uniform(30, -3, 3).astype(np.float64),
    "rows": lambda: _integers(31, 0, _N, _N, dtype=np.int64),
    "unique_rows": lambda: np.random.default_rng(32).permutation(_N)[:500].astype(np.int64),
    "columns": lambda: _integers(33, 0, _N, _N, dtype=np.int64),
    "at": lambda: _integers(34, 0, _N, dtype=np.int64),
    "order": lambda: np.argsort(np.random.default_rng(35).random((_N, _N)), 1).astype(np.int64),
    "order0": lambda: np.argsort(np.random.default_rng(36).random((_N, _N)), 0).astype(np.int64),
    "labels": lambda: _integers(37, 0, _N, _N, dtype=np.int64),
    "sorted_row": lambda: np.sort(_uniform(38, -3, 3, _N)),
    "count": lambda: _integers(39, 0, 100, _N * _N, dtype=np.int64),
    "signs": lambda: (2 * _bools(40) - 1).astype(np.float32),
    "block": lambda: _uniform(41, -3, 3, 500, _N),
    "log_e": lambda: np.log(_uniform(42, 0.05, 0.95)),
    "mask_row": lambda: np.random.default_rng(43).random(_N) < 0.5,
    "nans": lambda: np.where(_bools(44), np.float32(np.nan), _uniform(44, -3, 3)),
    "long_v": lambda: np.random.default_rng(45).permutation(_N * _N).astype(np.int64),
    "images": lambda: _uniform(46, -3, 3, 10, 100, 10, 100),
}


@dataclass(frozen=True)
class OpCase:
    group: str
    name: str
    inputs: tuple[str, ...]
    gradcell: str
    torch: str
    #: The inputs that the gradient is by; none: there is no gradient to compare.
    by: tuple[str, ...] = ()
    #: Of the largest magnitude; None: the numbers are random.
    tolerance: float | None = 1e-5
    covers: tuple[str, ...] = ()  #: public ops that the expression is about


CASES: list[OpCase] = []


def _case(
    group: str,
    name: str,
    inputs: str,
    gradcell: str,
    torch: str | None = None,
    by: str | None = None,
    tolerance: float | None = 1e-5,
    covers: str | None = None,
) -> None:
    """torch None: the same text with torch for ops. by None: every floating input."""
    names = tuple(inputs.split())
    text = torch if torch is not None else gradcell.replace("ops.", "torch.")
    wanted = tuple(n for n in names if n not in NOT_DIFFERENTIABLE) if by is None else by.split()
    covered = (covers if covers is not None else name.split()[0]).split()
    CASES.append(
        OpCase(group, name, names, gradcell, text, tuple(wanted), tolerance, tuple(covered))
    )


def _same(
    group: str, names: str, inputs: str, module: str = "torch", by: str | None = None
) -> None:
    """Ops that have one name in both and take the inputs."""
    arguments = ", ".join(inputs.split())
    for name in names.split():
        _case(group, name, inputs, f"ops.{name}({arguments})", f"{module}.{name}({arguments})", by)


#: Integers and bools.
NOT_DIFFERENTIABLE = {
    "i", "j", "k", "long", "byte", "b", "c", "rows", "unique_rows", "columns", "at", "order", "order0",
    "labels", "count", "mask_row", "signs", "sorted_row", "long_v",
}  # fmt: skip


# Elementwise --------------------------------------------------------------------------------------

_same(
    "unary", "abs asinh atan cos cosh erf erfc exp exp2 expm1 neg sigmoid sin sinc sinh square", "x"
)
_same("unary", "tan tanh deg2rad rad2deg nan_to_num frac", "x")
_same("unary", "ceil floor round sign trunc fix isfinite isinf isnan signbit", "x", by="")
_same("unary", "log log10 log1p log2 reciprocal rsqrt sqrt lgamma digamma", "p")
_same("unary", "acos asin atanh erfinv", "u")
_same("unary", "acosh", "g")
_case("unary", "logit", "e", "ops.logit(e)", "torch.logit(e)")
_case("unary", "pow 3", "x", "ops.pow(x, 3.0)", covers="pow")
_case("unary", "pow 2.5", "p", "ops.pow(p, 2.5)", covers="pow")
_case("unary", "clamp", "x", "ops.clamp(x, -1.0, 1.0)", covers="clamp clip clip_by_value")
_case("unary", "x * 2 + 1", "x", "x * 2.0 + 1.0", covers="")
_same(
    "activations",
    "relu relu6 celu selu softsign hardswish hardsigmoid mish silu logsigmoid",
    "x",
    "F",
)
_same(
    "activations",
    "elu gelu softplus tanhshrink hardshrink softshrink leaky_relu hardtanh glu",
    "x",
    "F",
)
_case(
    "activations",
    "gelu tanh",
    "x",
    "ops.gelu(x, approximate='tanh')",
    "F.gelu(x, approximate='tanh')",
    covers="gelu",
)
_case("activations", "threshold", "x", "ops.threshold(x, 0.1, 20.0)", "F.threshold(x, 0.1, 20.0)")
_case("activations", "prelu", "x row", "ops.prelu(x, row)", "F.prelu(x, row)")
for _axis in (0, 1):
    _case(
        "activations",
        f"softmax axis {_axis}",
        "x",
        f"ops.softmax(x, {_axis})",
        f"F.softmax(x, {_axis})",
        covers="softmax",
    )
    _case(
        "activations",
        f"log_softmax axis {_axis}",
        "x",
        f"ops.log_softmax(x, {_axis})",
        f"F.log_softmax(x, {_axis})",
        covers="log_softmax",
    )
_case("activations", "softmin", "x", "ops.softmin(x, 1)", "F.softmin(x, 1)")

_same("binary", "add sub mul maximum minimum", "x y")
_same("binary", "hypot logaddexp logaddexp2 atan2", "x y")
_same("binary", "div", "x p")
_same("binary", "pow float_power", "p y")
_same("binary", "xlogy", "x p")
_case("binary", "fmod", "x p", "ops.fmod(x, p)", by="x")
_case("binary", "remainder", "x p", "ops.remainder(x, p)", by="x", covers="remainder mod floor_mod")
_same("binary", "floor_divide heaviside", "x p", by="")
_case("binary", "copysign", "x y", "ops.copysign(x, y)", by="x")
_case("binary", "ldexp", "x k", "ops.ldexp(x, k)")
_case("binary", "add row", "x row", "x + row", covers="add")
_case("binary", "mul column", "x column", "x * column", covers="mul")
_case("binary", "lerp", "x y e", "ops.lerp(x, y, e)")
_case(
    "binary", "addcmul", "x y z", "ops.addcmul(x, y, z, 0.5)", "torch.addcmul(x, y, z, value=0.5)"
)
_case(
    "binary", "addcdiv", "x y p", "ops.addcdiv(x, y, p, 0.5)", "torch.addcdiv(x, y, p, value=0.5)"
)
_same("binary", "eq ne lt le gt ge isclose", "x y", by="")
_same("binary", "logical_and logical_or logical_xor", "b c", by="")
_same("binary", "logical_not", "b", by="")
_case("binary", "where", "b x y", "ops.where(b, x, y)", covers="where select")
_case("binary", "where number", "b x", "ops.where(b, x, 0.0)", covers="where")
_case("binary", "masked_fill", "x b", "ops.masked_fill(x, b, 1.0)")
_same("integers", "add sub mul maximum minimum bitwise_and bitwise_or bitwise_xor", "i j")
_same("integers", "floor_divide remainder fmod gcd lcm", "i j")
_case("integers", "true divide", "i j", "i / j", covers="div")
_case("integers", "% number", "i", "i % 7", covers="mod")
_case("integers", "// number", "i", "i // 7", covers="floor_div")
_case("integers", "int64 % number", "long", "long % 7", covers="mod")
_case("integers", "int64 //", "long", "long // 7", covers="floor_div")
_case("integers", "uint8 %", "byte", "byte % 7", covers="mod")
_case(
    "integers", "truncate div", "i j", "ops.div(i, j, rounding_mode='trunc')", covers="truncate_div"
)
_same("integers", "bitwise_left_shift bitwise_right_shift", "j k")
_case("integers", "bitwise_not", "i", "ops.bitwise_not(i)", covers="bitwise_not invert")
_case("integers", "abs", "i", "ops.abs(i)")

# Reductions, scans --------------------------------------------------------------------------------

for _axis in (0, 1, None):
    _on = "all" if _axis is None else f"axis {_axis}"
    _t = "" if _axis is None else f", dim={_axis}"
    _d = f"(0, 1)" if _axis is None else f"{_axis}"
    for _name in ("sum", "mean"):
        _case(
            "reductions", f"{_name} {_on}", "x", f"ops.{_name}(x, {_axis})", f"torch.{_name}(x{_t})"
        )
    _case(
        "reductions",
        f"prod {_on}",
        "near1",
        f"ops.prod(near1, {_axis})",
        f"torch.prod(near1{_t})",
        tolerance=1e-4,
    )
    for _name in ("amax", "amin", "logsumexp"):
        _case(
            "reductions", f"{_name} {_on}", "x", f"ops.{_name}(x, {_d})", f"torch.{_name}(x, {_d})"
        )
    for _name in ("std", "var"):
        _case(
            "reductions",
            f"{_name} {_on}",
            "x",
            f"ops.{_name}(x, {_axis})",
            f"torch.{_name}(x{_t or ', dim=(0, 1)'}, correction=0)",
        )
    for _name in ("argmax", "argmin"):
        _case(
            "reductions",
            f"{_name} {_on}",
            "distinct",
            f"ops.{_name}(distinct, {_axis})",
            f"torch.{_name}(distinct{_t})",
            by="",
        )
    for _name in ("all", "any"):
        _case(
            "reductions", f"{_name} {_on}", "b", f"ops.{_name}(b, {_axis})", f"torch.{_name}(b{_t})"
        )
    _case(
        "reductions",
        f"count_nonzero {_on}",
        "i",
        f"ops.count_nonzero(i, {_axis if _axis is not None else ()})",
        f"torch.count_nonzero(i{_t})",
    )
    _case(
        "reductions",
        f"sum of int32 {_on}",
        "i",
        f"ops.sum(i, {_axis})",
        f"torch.sum(i{_t})",
        covers="sum",
    )
    _case(
        "reductions",
        f"sum of bools {_on}",
        "b",
        f"ops.sum(b, {_axis})",
        f"torch.sum(b{_t})",
        covers="sum",
    )
    _case(
        "reductions",
        f"norm {_on}",
        "x",
        f"ops.norm(x, dim={_axis})",
        f"torch.linalg.vector_norm(x{_t})",
        covers="norm vector_norm",
    )
    _case(
        "reductions",
        f"nansum {_on}",
        "nans",
        f"ops.nansum(nans, {_axis})",
        f"torch.nansum(nans{_t})",
        by="",
    )
    if _axis is not None:
        for _name in ("max", "min"):
            _case(
                "reductions",
                f"{_name} with index {_on}",
                "distinct",
                f"ops.{_name}(distinct, {_axis})",
                f"tuple(torch.{_name}(distinct, {_axis}))",
                by="",
                covers=_name,
            )
            _case(
                "reductions",
                f"{_name} {_on}",
                "x",
                f"ops.{_name}(x, {_axis})[0]",
                f"torch.{_name}(x, {_axis})[0]",
                covers=_name,
            )
        _case(
            "reductions",
            f"median {_on}",
            "distinct",
            f"ops.median(distinct, {_axis})[0]",
            f"torch.median(distinct, {_axis})[0]",
            by="",
            covers="median",
        )
        _case("scans", f"cumsum {_on}", "x", f"ops.cumsum(x, {_axis})", tolerance=1e-5)
        _case("scans", f"cumprod {_on}", "near1", f"ops.cumprod(near1, {_axis})", tolerance=1e-4)
        _case(
            "scans",
            f"cummax {_on}",
            "distinct",
            f"ops.cummax(distinct, {_axis})",
            f"tuple(torch.cummax(distinct, {_axis}))",
            by="",
        )
        _case(
            "scans",
            f"cummin {_on}",
            "distinct",
            f"ops.cummin(distinct, {_axis})",
            f"tuple(torch.cummin(distinct, {_axis}))",
            by="",
        )
        _case("scans", f"logcumsumexp {_on}", "x", f"ops.logcumsumexp(x, {_axis})")
        _case(
            "scans", f"diff {_on}", "x", f"ops.diff(x, axis={_axis})", f"torch.diff(x, dim={_axis})"
        )
        _case(
            "scans",
            f"trapz {_on}",
            "x",
            f"ops.trapz(x, dim={_axis})",
            f"torch.trapezoid(x, dim={_axis})",
        )
_case(
    "reductions", "sum axis 1 of 3", "cube", "ops.sum(cube, 1)", "torch.sum(cube, 1)", covers="sum"
)
_case(
    "reductions",
    "sum axes 0 and 2 of 3",
    "cube",
    "ops.sum(cube, (0, 2))",
    "torch.sum(cube, (0, 2))",
    covers="sum",
)
_case(
    "reductions",
    "amax axis 1 of 3",
    "cube",
    "ops.amax(cube, 1)",
    "torch.amax(cube, 1)",
    covers="amax",
)
_case(
    "reductions",
    "prod axis 1 of 3",
    "cube",
    "ops.prod(cube, 1)",
    "torch.prod(cube, 1)",
    covers="prod",
    by="",
)
_case(
    "reductions", "sum of float64", "double", "ops.sum(double)", "torch.sum(double)", covers="sum"
)
_case(
    "reductions",
    "sum of float16",
    "half",
    "ops.sum(half, 1)",
    "torch.sum(half, 1)",
    tolerance=2e-3,
    by="",
    covers="sum",
)
_case("reductions", "sum of a vector", "v", "ops.sum(v)", covers="sum")
_case("reductions", "amax of int32 axis 1", "i", "ops.amax(i, 1)", covers="amax")
_case("reductions", "aminmax", "x", "ops.aminmax(x)", "tuple(torch.aminmax(x))", by="")
_case(
    "reductions",
    "std_mean",
    "x",
    "ops.std_mean(x, 1)",
    "torch.std_mean(x, 1)",
    by="",
    covers="std_mean var_mean",
)
_case("reductions", "nanmean", "nans", "ops.nanmean(nans, 1)", "torch.nanmean(nans, 1)", by="")
_case(
    "reductions",
    "quantile",
    "distinct",
    "ops.quantile(distinct, 0.3, 1)",
    "torch.quantile(distinct, 0.3, 1)",
    by="",
)
_case("scans", "cumsum of a vector", "v", "ops.cumsum(v, 0)", tolerance=1e-4)

# Order --------------------------------------------------------------------------------------------

_case("order", "sort axis 1", "distinct", "ops.sort(distinct, 1)[0]", "torch.sort(distinct, 1)[0]")
_case("order", "sort axis 0", "distinct", "ops.sort(distinct, 0)[0]", "torch.sort(distinct, 0)[0]")
_case(
    "order",
    "sort of a vector",
    "distinct",
    "ops.sort(distinct.reshape(-1))[0]",
    "torch.sort(distinct.reshape(-1))[0]",
)
_case(
    "order", "argsort", "distinct", "ops.argsort(distinct, 1)", "torch.argsort(distinct, 1)", by=""
)
_case("order", "sort of int32", "i", "ops.sort(i, 1)[0]", "torch.sort(i, 1)[0]", by="")
_case(
    "order",
    "topk 10 of rows",
    "distinct",
    "ops.topk(distinct, 10)",
    "tuple(torch.topk(distinct, 10))",
    by="",
)
_case(
    "order",
    "topk 10 gradient",
    "distinct",
    "ops.topk(distinct, 10)[0]",
    "torch.topk(distinct, 10)[0]",
    covers="topk",
)
_case(
    "order",
    "topk 100 of a vector",
    "distinct",
    "ops.topk(distinct.reshape(-1), 100)[0]",
    "torch.topk(distinct.reshape(-1), 100)[0]",
    covers="topk",
)
_case(
    "order",
    "topk 10 of columns",
    "distinct",
    "ops.topk(distinct, 10, 0)[0]",
    "torch.topk(distinct, 10, 0)[0]",
    covers="topk",
    by="",
)
_case("order", "randperm", "", "ops.randperm(1000000)", "torch.randperm(1000000)", tolerance=None)
_case("order", "unique", "i", "ops.unique(i)[0]", "torch.unique(i)", tolerance=None)
_case("order", "searchsorted", "sorted_row x", "ops.searchsorted(sorted_row, x)", by="")
_case(
    "order",
    "bucketize",
    "x",
    "ops.bucketize(x, [-2.0, -1.0, 0.0, 1.0])",
    "torch.bucketize(x, torch.tensor([-2.0, -1.0, 0.0, 1.0]))",
    by="",
)
_case("order", "bincount", "count", "ops.bincount(count)", by="", covers="bincount")
_case(
    "order",
    "histc",
    "x",
    "ops.histc(x, 100, -3.0, 3.0)",
    "torch.histc(x.float(), 100, -3.0, 3.0)",
    by="",
)
_case("order", "isin", "i rows", "ops.isin(i, rows.astype(ms.int32))", "torch.isin(i, rows.int())")
_case("order", "nonzero", "b", "ops.nonzero(b)", covers="nonzero")
_case("order", "masked_select", "x b", "ops.masked_select(x, b)")

# Indexing -----------------------------------------------------------------------------------------


def _write(case: str, inputs: str, statement: str, by: str | None = None) -> None:
    """x = x + 0 first, so that both write to a tensor of their own."""
    text = f"written(x, lambda t: {statement})"
    _case("indexing", case, inputs, text, text, by, covers="")


_case("indexing", "x[rows]", "x rows", "x[rows]", covers="gather index_select take")
_case("indexing", "x[:, columns]", "x columns", "x[:, columns]", covers="gather")
_case("indexing", "x[rows, columns]", "x rows columns", "x[rows, columns]", covers="gather_nd")
_case("indexing", "x[mask]", "x b", "x[b]", covers="masked_select")
_case("indexing", "x[row mask]", "x mask_row", "x[mask_row]", covers="masked_select")
_case("indexing", "x[::2]", "x", "x[::2] * 1.0", covers="strided_slice")
_case("indexing", "x[:, ::2]", "x", "x[:, ::2] * 1.0", covers="strided_slice")
_case("indexing", "x[100:900, 100:900]", "x", "x[100:900, 100:900] * 1.0", covers="slice")
_write("x[rows] = number", "x unique_rows", "t.__setitem__(unique_rows, 1.0)")
_write("x[rows] = block", "x block unique_rows", "t.__setitem__(unique_rows, block)")
_write("x[:, columns] = number", "x unique_rows", "t.__setitem__((slice(None), unique_rows), 1.0)")
_write("x[rows, columns] = row", "x rows row", "t.__setitem__((rows, rows), 1.0)", by="x")
_write("x[mask] = number", "x b", "t.__setitem__(b, 1.0)")
_write("x[row mask] = number", "x mask_row", "t.__setitem__(mask_row, 1.0)")
_write("x[2:502] = block", "x block", "t.__setitem__(slice(2, 502), block)")
_write("x[:, 3] = number", "x", "t.__setitem__((slice(None), 3), 1.0)")
_write("x[::2] = number", "x", "t.__setitem__(slice(0, 1000, 2), 1.0)")
_case(
    "indexing",
    "gather_elements axis 1",
    "x order",
    "ops.gather_elements(x, 1, order)",
    "torch.gather(x, 1, order)",
    covers="gather_elements gather_d",
)
_case(
    "indexing",
    "gather_elements axis 0",
    "x order0",
    "ops.gather_elements(x, 0, order0)",
    "torch.gather(x, 0, order0)",
    covers="gather_elements",
)
_case(
    "indexing",
    "gather_elements one column",
    "x labels",
    "ops.gather_elements(x, 1, labels.reshape(-1, 1))",
    "torch.gather(x, 1, labels.reshape(-1, 1))",
    covers="gather_elements",
)
_case("indexing", "take", "v long_v", "ops.take(v, long_v)", "torch.take(v, long_v)")
_case(
    "indexing",
    "index_select axis 1",
    "x columns",
    "ops.index_select(x, 1, columns)",
    covers="index_select",
)
_case(
    "indexing",
    "index_add axis 0",
    "x y rows",
    "ops.index_add(x, rows.astype(ms.int32), y, 0)",
    "torch.index_add(x, 0, rows, y)",
    tolerance=1e-4,
    covers="index_add",
)
_case(
    "indexing",
    "index_add axis 1",
    "x y columns",
    "ops.index_add(x, columns.astype(ms.int32), y, 1)",
    "torch.index_add(x, 1, columns, y)",
    tolerance=1e-4,
    covers="index_add",
)
_case(
    "indexing",
    "index_fill",
    "x unique_rows",
    "ops.index_fill(x, 0, unique_rows.astype(ms.int32), 1.0)",
    "torch.index_fill(x, 0, unique_rows, 1.0)",
)
_case(
    "indexing",
    "scatter axis 1",
    "x y order",
    "ops.scatter(x, 1, order, y)",
    "torch.scatter(x, 1, order, y)",
    covers="scatter tensor_scatter_elements",
)
_case(
    "indexing",
    "scatter_add axis 1",
    "x y at",
    "ops.tensor_scatter_elements(x, at, y, 1, 'add')",
    "torch.scatter_add(x, 1, at, y)",
    covers="tensor_scatter_elements",
    tolerance=1e-4,
)
_case(
    "indexing",
    "tensor_scatter_add",
    "x y rows",
    "ops.tensor_scatter_add(x, rows.reshape(-1, 1), y)",
    "x.index_put((rows,), y, accumulate=True)",
    tolerance=1e-4,
)
_case(
    "indexing",
    "tensor_scatter_update",
    "x block unique_rows",
    "ops.tensor_scatter_update(x, unique_rows.reshape(-1, 1), block)",
    "x.index_put((unique_rows,), block)",
)
_case(
    "indexing",
    "scatter_nd of elements",
    "v long_v",
    "ops.scatter_nd(long_v.reshape(-1, 1), v, (1000000,))",
    "torch.zeros_like(v).index_put((long_v,), v)",
)
_case(
    "indexing",
    "gather_nd",
    "x rows columns",
    "ops.gather_nd(x, ops.stack([rows, columns], 1))",
    "x[rows, columns]",
)
_case("indexing", "one_hot", "labels", "ops.one_hot(labels, 1000)", "F.one_hot(labels, 1000)")
_case(
    "indexing",
    "unsorted_segment_sum",
    "x rows",
    "ops.unsorted_segment_sum(x, rows, 1000)",
    "torch.zeros_like(x).index_add(0, rows, x)",
    tolerance=1e-4,
)
_case(
    "indexing",
    "select_scatter",
    "x row",
    "ops.select_scatter(x, row, 0, 5)",
    "torch.select_scatter(x, row, 0, 5)",
)
_case(
    "indexing",
    "slice_scatter",
    "x block",
    "ops.slice_scatter(x, block, 0, 2, 502)",
    "torch.slice_scatter(x, block, 0, 2, 502)",
)
_case(
    "indexing",
    "embedding",
    "x at",
    "ops.gather(x, at[:, :10].reshape(-1), 0)",
    "F.embedding(at[:, :10].reshape(-1), x)",
    covers="gather",
    tolerance=1e-4,
)

# Movement -----------------------------------------------------------------------------------------

_case(
    "movement",
    "transpose",
    "x",
    "ops.transpose(x, (1, 0)) * 1.0",
    "x.T.contiguous() * 1.0",
    covers="transpose swapaxes swapdims movedim moveaxis",
)
_case(
    "movement",
    "permute of 3",
    "cube",
    "ops.permute(cube, (2, 0, 1)) * 1.0",
    "cube.permute(2, 0, 1).contiguous() * 1.0",
    covers="permute",
)
_case(
    "movement",
    "permute inner",
    "cube",
    "ops.permute(cube, (0, 2, 1)) * 1.0",
    "cube.permute(0, 2, 1).contiguous() * 1.0",
    covers="permute",
)
_case(
    "movement",
    "permute of 4",
    "images",
    "ops.permute(images, (0, 2, 1, 3)).reshape(100, 10000) * 1.0",
    "images.permute(0, 2, 1, 3).reshape(100, 10000) * 1.0",
    covers="permute",
)
_case("movement", "x + x.T", "x", "x + x.T", covers="")
for _axis in (0, 1):
    _case(
        "movement",
        f"concat axis {_axis}",
        "x y",
        f"ops.cat((x, y), {_axis})",
        f"torch.cat((x, y), {_axis})",
        covers="cat concat",
    )
    _case(
        "movement",
        f"stack axis {_axis}",
        "x y",
        f"ops.stack((x, y), {_axis})",
        f"torch.stack((x, y), {_axis})",
    )
    _case(
        "movement",
        f"split axis {_axis}",
        "x",
        f"sum(a * 2.0 for a in ops.split(x, 250, {_axis}))",
        f"sum(a * 2.0 for a in torch.split(x, 250, {_axis}))",
        covers="split chunk tensor_split unbind",
    )
    _case("movement", f"flip axis {_axis}", "x", f"ops.flip(x, ({_axis},))")
    _case("movement", f"roll axis {_axis}", "x", f"ops.roll(x, 37, {_axis})")
    _case(
        "movement",
        f"repeat_interleave axis {_axis}",
        "block",
        f"ops.repeat_interleave(block, 2, {_axis})",
    )
_case("movement", "hstack", "x y", "ops.hstack((x, y))", covers="hstack column_stack")
_case("movement", "vstack", "x y", "ops.vstack((x, y))", covers="vstack row_stack")
_case("movement", "dstack", "x y", "ops.dstack((x, y))")
_case("movement", "tile", "block", "ops.tile(block, (2, 1))")
_case("movement", "tile inner", "block", "ops.tile(block, (1, 2))", covers="tile")
_case("movement", "broadcast_to", "row", "ops.broadcast_to(row, (1000, 1000)) * 2.0")
_case(
    "movement",
    "broadcast column",
    "column",
    "ops.broadcast_to(column, (1000, 1000)) * 2.0",
    covers="broadcast_to",
)
_case("movement", "pad", "x", "ops.pad(x, (3, 3, 2, 2))", "F.pad(x, (3, 3, 2, 2))")
_case(
    "movement",
    "pad reflect",
    "cube",
    "ops.pad(cube, (3, 3), 'reflect')",
    "F.pad(cube, (3, 3), 'reflect')",
    covers="pad mirror_pad",
)
_case("movement", "rot90", "x", "ops.rot90(x, 1, (0, 1))")
_case("movement", "tril", "x", "ops.tril(x)")
_case("movement", "triu", "x", "ops.triu(x)")
_case("movement", "diagonal", "x", "ops.diagonal(x) * 1.0")
_case("movement", "diag", "row", "ops.diag(row)", covers="diag diagflat")
_case("movement", "trace", "x", "ops.trace(x)")
_case(
    "movement",
    "meshgrid",
    "row row2",
    "ops.meshgrid(row, row2, indexing='ij')",
    "tuple(a.contiguous() for a in torch.meshgrid(row, row2, indexing='ij'))",
    by="",
)
_case("movement", "kron", "square", "ops.kron(square[:31, :31], square[:32, :32])")
_case(
    "movement",
    "pixel_shuffle",
    "images",
    "ops.pixel_shuffle(images, 10)",
    "F.pixel_shuffle(images, 10)",
    covers="pixel_shuffle depth_to_space",
)
_case(
    "movement",
    "pixel_unshuffle",
    "images",
    "ops.pixel_unshuffle(images, 10)",
    "F.pixel_unshuffle(images, 10)",
    covers="pixel_unshuffle space_to_depth",
)
_case(
    "movement",
    "block_diag",
    "block",
    "ops.block_diag(block, block)",
    "torch.block_diag(block, block)",
)

# Products -----------------------------------------------------------------------------------------

_case("products", "outer", "row row2", "ops.outer(row, row2)", covers="outer addr")
_case(
    "products",
    "matmul 256",
    "square square2",
    "ops.matmul(square, square2)",
    covers="matmul mm tensor_dot",
)
_case("products", "matmul 1000", "x y", "ops.matmul(x, y)", tolerance=1e-4, covers="matmul")
_case(
    "products",
    "x @ y.T",
    "square square2",
    "ops.matmul(square, square2.T)",
    "square @ square2.T",
    covers="matmul",
)
_case("products", "bmm 250 of 32", "batch batch2", "ops.bmm(batch, batch2)", covers="bmm")
_case("products", "mv", "x row", "ops.mv(x, row)", tolerance=1e-4)
_case(
    "products",
    "vector times matrix",
    "x row",
    "ops.matmul(row, x)",
    covers="matmul",
    tolerance=1e-4,
)
_case("products", "dot", "v", "ops.tensor_dot(v, v, 1)", "torch.dot(v, v)", covers="dot vecdot")
_case("products", "inner", "square square2", "ops.inner(square, square2)")
_case("products", "addmm", "square square2", "ops.addmm(square, square, square2)")
_case(
    "products",
    "baddbmm",
    "batch batch2",
    "ops.baddbmm(batch, batch, batch2)",
    covers="baddbmm addbmm",
)
_case(
    "products",
    "einsum ij,kj->ik",
    "square square2",
    "ops.einsum('ij,kj->ik', square, square2)",
    covers="einsum",
)
_case(
    "products",
    "einsum bij,bij->b",
    "batch batch2",
    "ops.einsum('bij,bij->b', batch, batch2)",
    covers="einsum",
)
_case("products", "cross", "threes threes2", "ops.cross(threes, threes2, 1)")
_case(
    "products",
    "narrow matmul",
    "threes",
    "ops.matmul(threes, threes[:3])",
    "threes @ threes[:3]",
    covers="matmul",
)

# Losses, norms ------------------------------------------------------------------------------------

_same("losses", "mse_loss l1_loss smooth_l1_loss huber_loss", "x y", "F")
_case(
    "losses",
    "cross_entropy",
    "x labels",
    "ops.cross_entropy(x, labels.astype(ms.int32))",
    "F.cross_entropy(x, labels)",
)
_case(
    "losses",
    "nll_loss",
    "x labels",
    "ops.nll_loss(x, labels.astype(ms.int32))",
    "F.nll_loss(x, labels)",
)
_case(
    "losses",
    "binary_cross_entropy",
    "e q",
    "ops.binary_cross_entropy(e, e * 0.5)",
    "F.binary_cross_entropy(e, e.detach() * 0.5)",
    by="",
)
_case(
    "losses",
    "bce with logits",
    "x e",
    "ops.binary_cross_entropy_with_logits(x, e, ops.ones_like(x), ops.ones_like(x))",
    "F.binary_cross_entropy_with_logits(x, e)",
    by="x",
    covers="binary_cross_entropy_with_logits",
)
_case(
    "losses",
    "kl_div",
    "log_e e",
    "ops.kl_div(log_e, e, 'batchmean')",
    "F.kl_div(log_e, e, reduction='batchmean')",
    by="log_e",
)
_case(
    "losses",
    "gaussian_nll_loss",
    "x y p",
    "ops.gaussian_nll_loss(x, y, p)",
    "F.gaussian_nll_loss(x, y, p)",
)
_case(
    "losses",
    "poisson_nll_loss",
    "x p",
    "ops.poisson_nll_loss(x, p)",
    "F.poisson_nll_loss(x, p)",
    by="x",
)
_case(
    "losses",
    "soft_margin_loss",
    "x signs",
    "ops.soft_margin_loss(x, signs)",
    "F.soft_margin_loss(x, signs.to(x.dtype))",
)
_case(
    "losses",
    "hinge_embedding_loss",
    "x signs",
    "ops.hinge_embedding_loss(x, signs)",
    "F.hinge_embedding_loss(x, signs.to(x.dtype))",
)
_case(
    "losses",
    "margin_ranking_loss",
    "x y signs",
    "ops.margin_ranking_loss(x, y, signs)",
    "F.margin_ranking_loss(x, y, signs.to(x.dtype))",
)
_case(
    "losses",
    "triplet_margin_loss",
    "x y z",
    "ops.triplet_margin_loss(x, y, z, 1.0)",
    "F.triplet_margin_loss(x, y, z, 1.0)",
    tolerance=1e-4,
)
_case(
    "losses",
    "cosine_embedding_loss",
    "x y row",
    "ops.cosine_embedding_loss(x, y, ops.sign(row))",
    "F.cosine_embedding_loss(x, y, torch.sign(row))",
    by="x y",
    tolerance=1e-4,
)
_case(
    "norms",
    "layer_norm",
    "x row row2",
    "ops.layer_norm(x, (1000,), row, row2)",
    "F.layer_norm(x, (1000,), row, row2)",
    tolerance=1e-4,
)
_case(
    "norms",
    "rms_norm",
    "x row",
    "ops.rms_norm(x, row)[0]",
    "F.rms_norm(x, (1000,), row, 1e-6)",
    tolerance=1e-4,
)
_case(
    "norms",
    "batch_norm",
    "x row row2",
    "ops.batch_norm(x, row * 0.0, row * 0.0 + 1.0, row, row2, True)",
    "F.batch_norm(x, None, None, row, row2, True)",
    tolerance=1e-4,
    by="x",
)
_case(
    "norms",
    "normalise",
    "x",
    "x / ops.sqrt(ops.sum(x * x, 1, True))",
    "x / torch.sqrt(torch.sum(x * x, 1, True))",
    covers="",
)

# Random numbers, constants, casts -----------------------------------------------------------------

_case("random", "rand", "", "ops.rand(1000, 1000)", tolerance=None, covers="rand rand_like")
_case(
    "random",
    "randn",
    "",
    "ops.randn(1000, 1000)",
    tolerance=None,
    covers="randn randn_like standard_normal",
)
_case(
    "random",
    "randint",
    "",
    "ops.randint(0, 100, (1000, 1000))",
    tolerance=None,
    covers="randint randint_like",
)
_case(
    "random",
    "uniform",
    "",
    "ops.uniform((1000, 1000), ms.Tensor(-1.0), ms.Tensor(2.0))",
    "torch.empty(1000, 1000).uniform_(-1, 2)",
    tolerance=None,
)
_case(
    "random",
    "normal",
    "",
    "ops.normal((1000, 1000), 1.0, 2.0)",
    "torch.normal(1.0, 2.0, (1000, 1000))",
    tolerance=None,
)
_case(
    "random", "bernoulli", "e", "ops.bernoulli(e, e)", "torch.bernoulli(e)", tolerance=None, by=""
)
_case("random", "dropout", "x", "ops.dropout(x, 0.5)", "F.dropout(x, 0.5)", tolerance=None)
_case(
    "random",
    "multinomial",
    "e",
    "ops.multinomial(e, 10)",
    "torch.multinomial(e, 10, True)",
    tolerance=None,
    by="",
)
_case("random", "shuffle", "x", "ops.shuffle(x)", "x[torch.randperm(1000)]", tolerance=None, by="")
_case(
    "constants",
    "zeros",
    "",
    "ops.zeros((1000, 1000))",
    "torch.zeros((1000, 1000))",
    covers="zeros zeros_like",
)
_case(
    "constants",
    "full",
    "",
    "ops.full((1000, 1000), 3.0)",
    covers="full full_like ones ones_like fill",
)
_case("constants", "arange", "", "ops.arange(1000000)", covers="arange range")
_case("constants", "linspace", "", "ops.linspace(0.0, 1.0, 1000000)")
_case("constants", "eye", "", "ops.eye(1000)")
for _source in ("x", "half", "double", "i", "long", "byte", "b"):
    for _name, _torch in (
        ("float16", "half"), ("bfloat16", "bfloat16"), ("float32", "float"), ("float64", "double"),
        ("int32", "int"), ("int64", "long"), ("uint8", "byte"), ("bool_", "bool"),
    ):  # fmt: skip
        _kind = {
            "x": "float32",
            "half": "float16",
            "double": "float64",
            "i": "int32",
            "long": "int64",
            "byte": "uint8",
            "b": "bool",
        }[_source]
        if _kind == _name.rstrip("_") or (_name == "uint8" and _source != "b"):
            continue
        _grad = None if _source == "x" and _name in ("float16", "bfloat16", "float64") else ""
        _case(
            "casts",
            f"{_kind} to {_name.rstrip('_')}",
            _source,
            f"ops.cast({_source}, ms.{_name})",
            f"{_source}.{_torch}()",
            by=_grad,
            tolerance=1e-2 if "float16" in _name else 1e-5,
            covers="cast",
        )

# Linear algebra -----------------------------------------------------------------------------------

_case("linear algebra", "det", "spd", "ops.det(spd)", "torch.det(spd)", tolerance=1e-3)
_case("linear algebra", "inverse", "spd", "ops.inverse(spd)", "torch.inverse(spd)", tolerance=1e-3)
_case(
    "linear algebra",
    "cholesky",
    "spd",
    "ops.cholesky(spd)",
    "torch.linalg.cholesky(spd)",
    tolerance=1e-3,
    by="",
)
_case(
    "linear algebra",
    "qr",
    "square",
    "ops.qr(square)[1]",
    "torch.linalg.qr(square)[1]",
    tolerance=1e-3,
    by="",
)
_case(
    "linear algebra",
    "svd values",
    "square",
    "ops.svd(square, compute_uv=False)",
    "torch.linalg.svdvals(square)",
    tolerance=1e-3,
    by="",
)
_case(
    "linear algebra",
    "slogdet",
    "spd",
    "ops.slogdet(spd)[1]",
    "torch.slogdet(spd)[1]",
    tolerance=1e-3,
)
_case(
    "linear algebra",
    "tensor_solve",
    "spd row",
    "ops.matrix_solve(spd, row[:128].reshape(128, 1))",
    "torch.linalg.solve(spd, row[:128].reshape(128, 1))",
    tolerance=1e-3,
    covers="matrix_solve",
)
_case("linear algebra", "matrix_power", "spd", "ops.matrix_power(spd, 5)", tolerance=1e-3)
_case(
    "linear algebra",
    "eigh",
    "spd",
    "ops.eigh(spd)[0]",
    "torch.linalg.eigh(spd)[0]",
    tolerance=1e-3,
    by="",
)
_case(
    "linear algebra",
    "cov",
    "block",
    "ops.cov(block)",
    "torch.cov(block)",
    tolerance=1e-3,
    by="",
    covers="cov corrcoef",
)

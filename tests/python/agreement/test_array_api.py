"""gradcell.array_api beside the standard's text: every special case, every function of every dtype."""

from __future__ import annotations

import itertools
import math
import operator
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, array_api as xp

INF, NAN = math.inf, math.nan
ODD, EVEN, BROKEN = [1.0, 3.0], [2.0, 4.0], [0.5, 2.5]
POSITIVE = [1.0, 0.5, 2.0, 3.0, 10.5]
NEGATIVE = [-x for x in POSITIVE]
FINITE = [0.0, -0.0, *POSITIVE, *NEGATIVE]

#: What the words of a condition mean.
MEANT: dict[str, list[float]] = {
    "nan": [NAN], "+0": [0.0], "-0": [-0.0], "+inf": [INF], "-inf": [-INF], "0": [0.0, -0.0],
    "inf": [INF, -INF], "pos": POSITIVE, "neg": NEGATIVE, "nonzero": POSITIVE + NEGATIVE, "fin": FINITE,
    ">0": [*POSITIVE, INF], "<0": [*NEGATIVE, -INF], "not0": [*POSITIVE, *NEGATIVE, INF, -INF],
    "any": [*FINITE, INF, -INF, NAN], "number": [*FINITE, INF, -INF], ">1": [1.5, 2.0, INF],
    "<-1": [-1.5, -2.0, -INF], "<1": [0.5, 0.0, -0.0, -1.0, -INF], "1": [1.0], "-1": [-1.0],
    "|>1|": [1.5, -1.5, INF, -INF], "|1|": [1.0, -1.0], "|<1|": [0.5, -0.5, 0.0, -0.0],
    "not1": [0.0, -0.0, 2.0, -1.0, INF, -INF, NAN], "odd": ODD, "-odd": [-x for x in ODD],
    "not odd": [*EVEN, *BROKEN, INF], "-not odd": [-x for x in [*EVEN, *BROKEN, INF]],
    "broken": [*BROKEN, *(-x for x in BROKEN)], "halves": [0.5, 1.5, 2.5, -0.5, -1.5, -2.5],
    "whole": [1.0, 2.0, 3.0, -1.0, -2.0, -7.0, 1e10],
    "some": [0.5, 2.0, 3.0],  # no multiples of pi / 2
}  # fmt: skip

PI = math.pi
RESULTS: dict[str, Callable[..., float]] = {
    "x1": lambda a, b=0.0: a,
    "x2": lambda a, b: b,
    "|x1|": lambda a, b=0.0: abs(a),
    "|x2|": lambda a, b: abs(b),
    "-|x1|": lambda a, b: -abs(a),
    "even": lambda a, b=0.0: math.copysign(round(a), a),
    "product": lambda a, b: a * b,
    "sum": lambda a, b: a + b,
    "quotient": lambda a, b: a / b,
    "power": lambda a, b: a**b,
    "%": lambda a, b: math.copysign(a % b, b),
    "//": lambda a, b: a // b,
}

#: Functions "as if implemented as" one of the table, of x*1j or with the result turned: (name, whose rows,
#: what x is of a row's operand, what the result is of a row's one).
TURNED: list[tuple[str, str, Callable[..., Any], Callable[..., Any]]] = [
    ("asin", "asinh", lambda a, b: (b, -a), lambda p, q: (q, _minus(p))),
    ("atan", "atanh", lambda a, b: (b, -a), lambda p, q: (q, _minus(p))),
    ("sin", "sinh", lambda a, b: (b, -a), lambda p, q: (q, _minus(p))),
    ("tan", "tanh", lambda a, b: (b, -a), lambda p, q: (q, _minus(p))),
    ("cos", "cosh", lambda a, b: (b, -a), lambda p, q: (p, q)),
]

_CONSTANTS = {
    "nan": NAN, "+0": 0.0, "-0": -0.0, "0": 0.0, "+inf": INF, "-inf": -INF, "inf": INF, "1": 1.0, "-1": -1.0,
    "pi": PI, "pi/2": PI / 2, "pi/4": PI / 4, "3pi/4": 3 * PI / 4, "yes": True, "no": False,
}  # fmt: skip


def _minus(word: str) -> str:
    return " or ".join(f"-{w}" for w in word.split(" or "))


def _value(word: str, operands: tuple[float, ...]) -> tuple[float, bool]:
    """(What a word of a result says of these operands, whether it leaves the sign open)."""
    if word.startswith("?"):
        return _value(word[1:], operands)[0], True
    if word in _CONSTANTS:
        return _CONSTANTS[word], False
    if word in RESULTS:
        return RESULTS[word](*operands), False
    assert word.startswith("-"), word
    value, free = _value(word[1:], operands)
    return -value, free


def _cis(text: str, b: float) -> list[str] | None:
    if "cis" not in text:
        return None
    signs = ["+" if v > 0 else "-" for v in (math.cos(b), math.sin(b))]
    infinite, zeros = [f"{s}inf" for s in signs], [f"{s}0" for s in signs]
    return {"inf cis": infinite, "0 cis": zeros, "0 cis - 1": ["-1", zeros[1]]}[text]


def _rows(kind: str) -> Iterator[tuple[str, str, str]]:
    text = (Path(__file__).parents[1] / "golden" / "array_api.txt").read_text()
    table = text.split(f"# {kind}\n")[1].split("#")[0]
    for line in table.strip().replace("\n  ", " ").splitlines():
        name, _, rows = line.partition(": ")
        for row in rows.split(";"):
            condition, _, result = row.partition("->")
            yield name, condition.strip(), result.strip()


Case = tuple[str, str, tuple[float, ...], list[list[tuple[float, bool]]]]


def _operands(condition: str) -> Iterator[tuple[float, ...]]:
    return itertools.product(*(MEANT[word.strip()] for word in condition.split(",")))


def _allowed(words: Any, operands: tuple[float, ...]) -> list[list[tuple[float, bool]]]:
    return [[_value(w, operands) for w in word.split(" or ")] for word in words]


def real_cases() -> Iterator[Case]:
    """(function, its row, the operands, what the result may be: [[(number, the sign is open), ...]])."""
    for name, condition, result in _rows("real"):
        for operands in _operands(condition):
            yield name, f"{condition} -> {result}", operands, _allowed([result], operands)


def complex_cases() -> Iterator[Case]:
    """The same of complex functions: the operands and the results are the two parts of one number."""
    for name, condition, result in _rows("complex"):
        for operands in _operands(condition):
            words = _cis(result, operands[1]) or result.split(", ")
            row = f"{condition} -> {result}"
            yield name, row, operands, _allowed(words, operands)
            for other, source, given, changed in TURNED:
                if source == name:
                    back = _allowed(changed(*words), operands)
                    yield other, f"as {name}: {row}", given(*operands), back


#: Calls that differ, by what their label has, with the reason.
DIFFERENT = {
    "~x of int": "MindSpore's operator says whether an integer is 0; f.bitwise_invert turns bits over",
    "~x of uint": "the same",
}


def _fits(got: float, allowed: list[tuple[float, bool]], eps: float) -> bool:
    for want, free in allowed:
        if isinstance(want, bool):
            fits = got == want
        elif math.isnan(want):
            fits = math.isnan(got)
        elif want == 0 or math.isinf(want):
            fits = got == want or (free and got == -want)
            fits = fits and (free or math.copysign(1, got) == math.copysign(1, want))
        else:
            fits = abs(got - want) <= 8 * eps * abs(want) or (
                free and abs(got + want) <= 8 * eps * abs(want)
            )
        if fits:
            return True
    return False


def _failures(cases: list[Case], dtype: str) -> list[str]:
    """The cases of one function that do not hold, all computed at once."""
    name, function = cases[0][0], getattr(xp, cases[0][0])
    inputs = np.array([operands for _, _, operands, _ in cases])
    parts = np.dtype(dtype).itemsize // 2 if dtype.startswith("complex") else None
    if parts is not None:
        whole = np.empty(len(cases), dtype)
        whole.real, whole.imag = inputs[:, 0], inputs[:, 1]
        out = function(Tensor(whole)).asnumpy()
        results = [out.real, out.imag] if out.dtype.kind == "c" else [out]
    else:
        out = function(*(Tensor(column.astype(dtype)) for column in inputs.T)).asnumpy()
        results = [out]
    eps = float(np.finfo(dtype).eps)
    failed = []
    for i, (_, row, operands, allowed) in enumerate(cases):
        got = [r[i].item() for r in results]
        assert len(got) == len(allowed)
        if not all(_fits(g, a, eps) for g, a in zip(got, allowed, strict=True)):
            failed.append(f"{name}({dtype}) {row}: of {operands} {got}")
    return failed


def special_cases(dtype: str) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in complex_cases() if dtype.startswith("complex") else real_cases():
        found.setdefault(case[0], []).append(case)
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_every_special_case(dtype: str) -> None:
    counts: Counter[str] = Counter()
    failed: list[str] = []
    for cases in special_cases(dtype).values():
        wrong = _failures(cases, dtype)
        counts.update(rows=len({c[1] for c in cases}), cases=len(cases), wrong=len(wrong))
        failed += wrong
    print(dtype, dict(counts))
    assert failed == []


# Every function of every dtype, beside NumPy's, which follows the standard --------------------------

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
REALS, COMPLEXES = ["float32", "float64"], ["complex64", "complex128"]
NUMERIC = [*INTEGERS, *REALS, *COMPLEXES]
SHAPES: list[tuple[int, ...]] = [(), (0,), (3,), (2, 3), (2, 0, 3)]

#: {functions: the dtypes that the standard gives them}.
OF_ONE = {
    "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal sin sinh sqrt tan "
    "tanh": REALS + COMPLEXES,
    "abs conj isfinite isinf isnan negative positive real round sign square": NUMERIC,
    "imag": COMPLEXES,
    "signbit": REALS,
    "ceil floor trunc": INTEGERS + REALS,
    "bitwise_invert": ["bool", *INTEGERS],
    "logical_not": ["bool"],
}
OF_TWO = {
    "add subtract multiply": NUMERIC,
    "divide": REALS + COMPLEXES,
    "equal not_equal": ["bool", *NUMERIC],
    "pow": NUMERIC,
    "atan2 copysign hypot logaddexp nextafter": REALS,
    "bitwise_and bitwise_or bitwise_xor": ["bool", *INTEGERS],
    "bitwise_left_shift bitwise_right_shift": INTEGERS,
    "floor_divide remainder greater greater_equal less less_equal maximum minimum": INTEGERS
    + REALS,
    "logical_and logical_or logical_xor": ["bool"],
}
#: {functions of an axis: (their dtypes, whether an axis without elements is taken)}.
OF_AXIS = {
    "all any": (["bool", *NUMERIC], True),
    "max min": (INTEGERS + REALS, False),
    "argmax argmin": (INTEGERS + REALS, False),
    "mean": (REALS + COMPLEXES, False),
    "std var": (REALS, False),
    "sum prod": (NUMERIC, True),
    "count_nonzero": (["bool", *NUMERIC], True),
}
#: Calls of x and y, of shape [2, 3, 4], a vector v of 3, regular matrices s and positive definite ones h, [2,
#: 3, 3], and indices k; f is the namespace, "or" stands for the operator |.
CALLS: dict[str, list[str]] = {
    (
        "f.concat([x, y]) | f.concat([x, y], axis=-1) | f.concat([x, v], axis=None) | "
        "f.stack([x, y], axis=1) | f.flip(x) | f.flip(x, axis=(0, -1)) | f.roll(x, 2) | "
        "f.roll(x, (1, -1), axis=(0, 2)) | f.permute_dims(x, (2, 0, 1)) | f.moveaxis(x, 0, -1) | "
        "f.expand_dims(x, axis=1) | f.repeat(x, 2, axis=1) | f.squeeze(x[:, :1], axis=1) | "
        "f.reshape(x, (4, -1)) | f.reshape(x, (6, 4), copy=True) | f.tile(x, (2, 1, 1, 2)) | "
        "f.tile(x, (2,)) | f.broadcast_to(v, (2, 3)) | f.take(x, k, axis=1) | f.take(v, k) | "
        "f.where(x == y, x, y) | f.astype(x, f.float64) | f.tril(x, k=1) | f.triu(x, k=-1) | "
        "f.matrix_transpose(x) | x.mT | v.T | f.unstack(x, axis=1)[1] | "
        "f.broadcast_arrays(v, x[0].mT)[0] | f.meshgrid(v, x[0, 0])[0] | "
        "f.meshgrid(v, x[0, 0], indexing='ij')[1] | f.nonzero(x)[1] | "
        "f.take_along_axis(x, f.zeros_like(k)[None, None], axis=2) | f.zeros_like(x) | "
        "f.ones_like(x) | f.unique_counts(x).counts | f.unique_inverse(x).inverse_indices | "
        "f.unique_all(x).indices | f.linalg.diagonal(x, offset=1) | f.asarray(x, copy=True) | "
        "x[..., None, 1:] | x[x == y] | f.equal(x, y) | f.full_like(x, 1)"
    ): ["bool", *NUMERIC],
    (
        "f.sort(x) | f.sort(x, axis=0, stable=True) | f.sort(f.unique_values(v)) | "
        "f.argsort(v) | f.searchsorted(f.sort(v), x) | "
        "f.searchsorted(f.sort(v), v, side='right') | f.clip(x, 1, 2) | f.clip(x, min=y) | "
        "f.clip(x, None, 2) | f.minimum(x, 1) | x // 3 | x % 3"
    ): INTEGERS + REALS,
    (
        "f.cumulative_sum(v) | f.cumulative_sum(x, axis=1, include_initial=True) | "
        "f.cumulative_prod(x, axis=-1) | f.diff(x) | f.diff(x, n=2, axis=1) | "
        "f.diff(x, prepend=y, axis=0) | f.tensordot(x, y[0].mT, axes=1) | "
        "f.tensordot(x, y, axes=((0, 2), (0, 2))) | f.matmul(x, y.mT) | f.matmul(v, x) | "
        "x @ y.mT | f.vecdot(x, y) | f.vecdot(x, y, axis=0) | f.linalg.outer(v, v) | "
        "f.linalg.trace(x, offset=1) | f.linalg.cross(x.mT, y.mT) | "
        "f.linalg.cross(x, y, axis=-2) | f.sum(x, axis=(0, 1)) | x + 1 | 2 * x | x ** 2 | -x | "
        "f.sum(x, dtype=f.complex128) | f.prod(x, axis=0, keepdims=True)"
    ): NUMERIC,
    (
        "f.linalg.matrix_norm(x) | f.linalg.matrix_norm(x, ord=1, keepdims=True) | "
        "f.linalg.matrix_norm(x, ord=-1) | f.linalg.matrix_norm(x, ord=2) | "
        "f.linalg.matrix_norm(x, ord=-2) | f.linalg.matrix_norm(x, ord='nuc') | "
        "f.linalg.matrix_norm(x, ord=f.inf) | f.linalg.matrix_norm(x, ord=-f.inf) | "
        "f.linalg.vector_norm(x) | f.linalg.vector_norm(x, axis=1, keepdims=True) | "
        "f.linalg.vector_norm(x, axis=(0, 2)) | f.linalg.vector_norm(x, ord=0, axis=0) | "
        "f.linalg.vector_norm(x, ord=f.inf) | f.linalg.vector_norm(x, ord=-f.inf, axis=1) | "
        "f.linalg.vector_norm(v, ord=3) | f.linalg.vector_norm(x, ord=1, axis=0) | "
        "f.linalg.vector_norm(v, ord=-2.5) | f.linalg.det(s) | f.linalg.inv(s) | "
        "f.linalg.solve(s, x) | f.linalg.solve(s[0], v) | f.linalg.matrix_power(s, 3) | "
        "f.linalg.matrix_power(s, -2) | f.linalg.matrix_power(s, 0) | f.linalg.matrix_rank(x) | "
        "f.linalg.matrix_rank(x, rtol=0.5) | f.linalg.pinv(x) | f.linalg.pinv(x, rtol=0.1) | "
        "f.linalg.svdvals(x) | f.linalg.slogdet(s).sign | f.linalg.slogdet(s).logabsdet | "
        "f.linalg.cholesky(h) | f.linalg.cholesky(h, upper=True) | f.linalg.eigvalsh(h) | "
        "f.linalg.eigh(h).eigenvalues | f.abs(f.linalg.eigh(h).eigenvectors) | "
        "f.abs(f.linalg.qr(s).Q) | f.abs(f.linalg.qr(x.mT).R) | "
        "f.abs(f.linalg.qr(x.mT, mode='complete').R) | f.linalg.svd(x).S | "
        "f.abs(f.linalg.svd(s).U) | f.abs(f.linalg.svd(x, full_matrices=False).Vh) | "
        "f.linalg.svd(x).U @ f.linalg.svd(x).U.mT | x / 2 | "
        "f.mean(x, axis=(0, 2), keepdims=True) | f.divide(1, x) | 2.0 ** x"
    ): REALS + COMPLEXES,
    (
        "f.fft.rfft(x) | f.fft.rfftn(x) | f.fft.ihfft(x) | "
        "f.fft.rfft(x, n=3, axis=1, norm='ortho') | f.var(x, axis=1, correction=1) | "
        "f.std(x, correction=0.5) | f.var(x, axis=(0, 2), correction=1, keepdims=True)"
    ): REALS,
    (
        "f.fft.fft(x) | f.fft.ifft(x, n=5) | f.fft.fftn(x, axes=(0, 1)) | "
        "f.fft.ifftn(x, s=(2, 2), axes=(1, 2)) | f.fft.irfft(x) | f.fft.irfftn(x) | "
        "f.fft.hfft(x) | f.fft.fft(x, axis=0, norm='forward')"
    ): COMPLEXES,
    ("f.fft.fftshift(x) | f.fft.ifftshift(x, axes=1)"): REALS + COMPLEXES,
    ("x & y | x or y | x ^ y | ~x"): ["bool", *INTEGERS],
    ("x << 1 | x >> 1 | 1 << x"): INTEGERS,
    (
        "f.arange(5, dtype=x.dtype) | f.arange(1, 10, 3, dtype=x.dtype) | f.ones(3, dtype=x.dtype) | "
        "f.eye(3, 4, k=1, dtype=x.dtype) | f.full((2, 1), 3, dtype=x.dtype) | "
        "f.asarray([[1, 0]], dtype=x.dtype) | f.zeros((2, 0), dtype=x.dtype) | "
        "f.asarray(5, dtype=x.dtype) | f.empty((0, 3), dtype=x.dtype) | f.add(x, 1) | f.multiply(2, x)"
    ): NUMERIC,
    (
        "f.linspace(0, 1, 5, dtype=x.dtype) | f.linspace(-2, 1, 4, dtype=x.dtype, endpoint=False)"
    ): REALS + COMPLEXES,
}


def expressions() -> Iterator[tuple[str, str]]:
    """(A call, a dtype that the standard has for it)."""
    for texts, dtypes in CALLS.items():
        for text, dtype in itertools.product(texts.split(" | "), dtypes):
            yield text.replace(" or ", " | "), dtype


def _numbers(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Small numbers, no two of a row equal where that matters, of either sign where there is one."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        return rng.integers(1 if dtype.startswith("u") else -5, 6, shape).astype(dtype)
    out = rng.uniform(-1.5, 1.5, shape)
    return (out + 1j * rng.uniform(-1.5, 1.5, shape) if dtype in COMPLEXES else out).astype(dtype)


def _operands_of(name: str, dtype: str, shape: tuple[int, ...]) -> list[np.ndarray]:
    x, y = _numbers(dtype, shape, 1), _numbers(dtype, shape, 2)
    if name in ("pow", "bitwise_left_shift", "bitwise_right_shift") and dtype in INTEGERS:
        y = np.abs(y)
    elif name in ("floor_divide", "remainder") and dtype in INTEGERS:
        y = np.where(y == 0, 3, y).astype(dtype)
    return [x, y]


def _same(got: Any, want: Any) -> str:
    """What is wrong with a result; nothing where it is right."""
    want = np.asarray(want)
    if not isinstance(got, Tensor):
        return f"{type(got).__name__} is no Tensor"
    if got.dtype.name != want.dtype.name:
        return f"{got.dtype.name} for {want.dtype.name}"
    if tuple(got.shape) != want.shape:
        return f"shape {got.shape} for {want.shape}"
    if want.dtype.kind not in "fc":
        return "" if np.array_equal(got.asnumpy(), want) else f"{got.asnumpy()} for {want}"
    eps = float(np.finfo(want.dtype).eps)
    near = np.allclose(got.asnumpy(), want, 200 * eps, 200 * eps, equal_nan=True)
    return "" if near else f"{got.asnumpy()} for {want}"


Trial = tuple[str, Callable[[Any, Callable[[np.ndarray], Any]], Any]]


def trials() -> Iterator[Trial]:
    """(What is called, the call, of a namespace and of what makes an array of numbers one of its own)."""
    for table, count in ((OF_ONE, 1), (OF_TWO, 2)):
        for names, dtypes in table.items():
            for name, dtype, shape in itertools.product(names.split(), dtypes, SHAPES):

                def elements(f: Any, of: Any, name: str = name, dtype: str = dtype, shape: Any = shape,
                             count: int = count) -> Any:  # fmt: skip
                    return getattr(f, name)(*map(of, _operands_of(name, dtype, shape)[:count]))

                yield f"{name}({dtype}{list(shape)})", elements
    for names, (dtypes, empty) in OF_AXIS.items():
        for name, dtype, keepdims in itertools.product(names.split(), dtypes, [False, True]):
            for shape, axis in [((), None), ((4,), 0), ((2, 3), None), ((2, 3), -1), ((2, 3), (0, 1)),
                                ((2, 0, 3), 0), ((2, 0, 3), 1)]:  # fmt: skip
                if name.startswith("arg") and isinstance(axis, tuple):
                    continue
                if 0 in shape and axis == 1 and not empty:
                    continue

                def along(f: Any, of: Any, name: str = name, dtype: str = dtype, shape: Any = shape,
                          axis: Any = axis, keepdims: bool = keepdims) -> Any:  # fmt: skip
                    return getattr(f, name)(
                        of(_numbers(dtype, shape, 3)), axis=axis, keepdims=keepdims
                    )

                yield f"{name}({dtype}{list(shape)}, {axis=}, {keepdims=})", along
    for text, dtype in expressions():

        def call(f: Any, of: Any, text: str = text, dtype: str = dtype) -> Any:
            s = _numbers(dtype, (2, 3, 3), 7)
            names = {
                "x": of(_numbers(dtype, (2, 3, 4), 4)), "y": of(_numbers(dtype, (2, 3, 4), 5)),
                "v": of(_numbers(dtype, (3,), 6)), "s": of(s), "k": of(np.array([2, 0, -1])), "f": f,
            }  # fmt: skip
            if " % " in text or " // " in text:
                names["x"] = of(np.abs(_numbers(dtype, (2, 3, 4), 4)))
            if "h)" in text or "h," in text:
                names["h"] = of(s @ s.conj().swapaxes(-1, -2) + np.eye(3, dtype=dtype))
            return eval(text, names)

        yield f"{text} of {dtype}", call


def _wrong(trial: Trial) -> str:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = trial[1](np, lambda a: a)
        try:
            return _same(trial[1](xp, Tensor), want)
        except Exception as error:
            return f"{type(error).__name__}: {error}"


@pytest.mark.one_in(2)
def test_every_function_of_every_dtype() -> None:
    every = list(trials())
    wrong = {label: what for label, call in every if (what := _wrong((label, call)))}
    print(f"{len(every)} calls, {len(wrong)} wrong")
    assert {
        w: what for w, what in wrong.items() if not any(known in w for known in DIFFERENT)
    } == {}


# Derivatives --------------------------------------------------------------------------------------

#: Calls without a derivative, or whose result is no smooth function of their arguments.
NOT_SMOOTH = (
    "f.unique_all(x).indices", "f.linalg.matrix_rank", "f.abs(f.linalg.svd(s).U)", "f.linalg.svd(x).U",
    "mode='complete'", "f.empty_like(", "f.sum(x, dtype=f.complex128)",
)  # fmt: skip


def _slope(call: Callable[[Any, Callable[[np.ndarray], Any]], Any]) -> str:
    """Compare the gradient of a call with differences of NumPy's values along one direction; "none" where
    there is nothing to differentiate."""
    given: list[np.ndarray] = []
    first = np.asarray(call(np, lambda a: (given.append(a), a)[1]))
    places = [i for i, a in enumerate(given) if a.dtype.kind == "f"]
    if first.dtype.kind != "f" or first.size == 0 or not places:
        return "none"
    rng = np.random.default_rng(8)
    steps = {i: 1e-6 * rng.uniform(0.5, 1, given[i].shape) for i in places}
    for step in steps.values():
        if step.ndim > 1 and step.shape[-1] == step.shape[-2]:  # symmetric matrices stay so
            step += step.swapaxes(-1, -2)
    weights = rng.normal(size=first.shape)

    def total(*xs: Tensor) -> Tensor:
        left = iter(
            {**dict(enumerate(map(Tensor, given))), **dict(zip(places, xs, strict=True))}.items()
        )
        return xp.sum(call(xp, lambda a: next(left)[1]) * Tensor(weights))

    def moved(sign: int) -> Any:
        left = iter(range(len(given)))

        def shifted(a: np.ndarray) -> np.ndarray:
            i = next(left)
            return a + sign * steps[i] if i in steps else a

        return np.sum(np.asarray(call(np, shifted)) * weights)

    slopes = gc.grad(total, tuple(range(len(places))))(*(Tensor(given[i]) for i in places))
    slopes = slopes if isinstance(slopes, tuple) else (slopes,)
    got = sum(float(np.sum(g.asnumpy() * steps[i])) for g, i in zip(slopes, places, strict=True))
    want = float(moved(1) - moved(-1)) / 2
    close = np.isclose(got, want, 1e-4, 1e-10) or np.isnan(want)  # outside a domain
    return "" if close else f"{got} for {want}"


def test_every_derivative() -> None:
    """Of every call of float64 that has one."""
    wrong, counts = {}, Counter[str]()
    for label, call in trials():
        if (
            "float64" not in label
            or "[2, 0, 3]" in label
            or any(n in label for n in [*NOT_SMOOTH, *DIFFERENT])
        ):
            continue
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                what = _slope(call)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
        counts[what if what in ("", "none") else "wrong"] += 1
        if what not in ("", "none"):
            wrong[label] = what
    print(dict(counts))
    assert wrong == {}


# The rest of the standard -------------------------------------------------------------------------

NAMES = """
    e inf nan newaxis pi
    arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu
    zeros zeros_like astype can_cast finfo iinfo isdtype result_type bool int8 int16 int32 int64 uint8 uint16
    uint32 uint64 float32 float64 complex64 complex128
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or
    bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide
    greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp
    logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal
    positive pow real reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc
    take take_along_axis __array_namespace_info__ matmul matrix_transpose tensordot vecdot
    broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze
    stack tile unstack argmax argmin count_nonzero nonzero searchsorted where
    unique_all unique_counts unique_inverse unique_values argsort sort
    cumulative_prod cumulative_sum max mean min prod std sum var all any diff __array_api_version__
    linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv
    linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose
    linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot
    linalg.trace linalg.vecdot linalg.vector_norm
    fft.fft fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn fft.hfft fft.ihfft fft.fftfreq
    fft.rfftfreq fft.fftshift fft.ifftshift
"""
OF_ARRAYS = """
    dtype device mT ndim shape size T __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__
    __dlpack__ __dlpack_device__ __eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__
    __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__
    __rshift__ __setitem__ __sub__ __truediv__ __xor__ to_device __iadd__ __isub__ __imul__ __itruediv__
    __ifloordiv__ __imod__ __radd__ __rsub__ __rmul__ __rtruediv__ __rfloordiv__ __rpow__ __rmod__
    __rmatmul__ __rand__ __ror__ __rxor__ __rlshift__ __rrshift__
"""


def test_every_name_is_there() -> None:
    missing = [n for n in NAMES.split() if operator.attrgetter(n)(xp) is None and n != "newaxis"]
    missing += [n for n in OF_ARRAYS.split() if not hasattr(Tensor, n)]
    assert missing == []
    assert Tensor(1.0).__array_namespace__() is xp
    assert Tensor(1.0).__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="not '2030"):
        Tensor(1.0).__array_namespace__(api_version="2030.12")


def test_the_standards_promotions() -> None:
    """Of dtypes of one kind, and of real and complex ones; as NumPy has them."""
    kinds = [["bool"], INTEGERS, REALS + COMPLEXES]
    pairs = [(a, b) for kind in kinds for a, b in itertools.product(kind, repeat=2)]
    pairs = [(a, b) for a, b in pairs if ("uint64" in (a, b)) <= (a[0] == b[0] == "u")]
    assert len(pairs) == 1 + 64 - 8 + 16
    for a, b in pairs:
        x, y = Tensor(np.ones(2, a)), Tensor(np.ones(2, b))
        want = np.result_type(a, b).name
        found = [xp.result_type(x, y), xp.result_type(x.dtype, y.dtype), xp.concat([x, y]).dtype,
                 xp.where(x == x, x, y).dtype, xp.stack([x, y]).dtype]  # fmt: skip
        if a != "bool":
            found += [xp.add(x, y).dtype, (x * y).dtype, xp.tensordot(x, y, axes=1).dtype]
        assert {d.name for d in found} == {want}, (a, b, found)
        assert xp.can_cast(x, y.dtype) == np.can_cast(a, b)
    assert xp.result_type(xp.float32, 1.0, 2) == xp.float32
    assert xp.result_type(xp.float64, 1j) == xp.complex128
    assert not xp.can_cast(xp.int64, xp.float64)
    with pytest.raises(TypeError, match="a tensor or a dtype"):
        xp.result_type(1, 2.0)


def test_limits_and_kinds_of_dtypes() -> None:
    for name in REALS + COMPLEXES:
        of, want = xp.finfo(getattr(xp, name)), np.finfo(name)
        assert (of.bits, of.eps, of.max, of.min) == (want.bits, want.eps, want.max, want.min)
        assert of.smallest_normal == want.smallest_normal and of.dtype.name == want.dtype.name
        assert isinstance(of.eps, float)
    for name in INTEGERS:
        limits, wanted = xp.iinfo(Tensor(np.ones(1, name))), np.iinfo(name)
        assert (limits.bits, limits.max, limits.min) == (wanted.bits, wanted.max, wanted.min)
        assert limits.dtype.name == name
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
             "numeric"]  # fmt: skip
    for name, kind in itertools.product(["bool", *NUMERIC], kinds):
        assert xp.isdtype(getattr(xp, name), kind) == np.isdtype(np.dtype(name), kind), (name, kind)
    assert xp.isdtype(xp.int8, ("bool", xp.int8)) and not xp.isdtype(xp.int8, xp.int16)
    with pytest.raises(ValueError, match="kind"):
        xp.isdtype(xp.int8, "integer")


def test_what_python_numbers_become() -> None:
    dtypes = {
        "bool": [xp.asarray(True), xp.full((1,), False)],
        "int64": [xp.asarray(1), xp.arange(3), xp.full(2, 7), xp.asarray([[1], [2]])],
        "float32": [xp.asarray(1.5), xp.arange(3.0), xp.zeros(2), xp.ones(()), xp.empty((1, 2)), xp.eye(2),
                    xp.linspace(0, 1, 3), xp.full((2,), 0.5), xp.asarray([1, 2.5]), xp.fft.fftfreq(4)],
        "complex64": [xp.asarray(1j), xp.full((1,), 2j), xp.asarray([1.0, 1j])],
    }  # fmt: skip
    assert {k: {x.dtype.name for x in v} for k, v in dtypes.items()} == {k: {k} for k in dtypes}
    defaults = xp.__array_namespace_info__().default_dtypes()
    assert {d.name for d in defaults.values()} == {"float32", "complex64", "int64"}
    gc.set_default_dtype(gc.float64)
    try:
        assert xp.asarray(1j).dtype == xp.complex128 and xp.zeros(1).dtype == xp.float64
        assert xp.__array_namespace_info__().default_dtypes()["real floating"] == xp.float64
    finally:
        gc.set_default_dtype(gc.float32)
    assert xp.asarray([0.1, 1e300], dtype=xp.float64).tolist() == [0.1, 1e300]
    assert (
        xp.asarray(2**40).item() == 2**40 and xp.arange(0, 2**40, 2**38).tolist()[-1] == 3 * 2**38
    )


def test_arrays_are_shared_or_copied_as_asked() -> None:
    array = np.arange(3.0)
    assert xp.asarray(array).tolist() == xp.from_dlpack(array).tolist() == [0, 1, 2]
    shared, own = xp.asarray(array, copy=False), xp.asarray(array, copy=True)
    array[0] = 5
    assert shared[0].item() == 5 and own[0].item() == 0
    x = Tensor(array)
    assert xp.asarray(x) is x and xp.asarray(x, copy=True) is not x
    assert xp.astype(x, x.dtype, copy=False) is x and xp.astype(x, x.dtype) is not x
    for bad in (
        lambda: xp.asarray([1.0], copy=False),
        lambda: xp.asarray(x, dtype=xp.int8, copy=False),
    ):
        with pytest.raises(ValueError, match="copy=False"):
            bad()
    slope = gc.grad(lambda x: xp.sum(xp.asarray([[x[0], x[1]], [x[1], 1.0]]) ** 2))(x)
    assert slope.tolist() == [10, 4, 0]


def test_where_arrays_are() -> None:
    x = Tensor([1.0])
    info = xp.__array_namespace_info__()
    assert x.device == info.default_device() and x.device in info.devices()
    assert x.to_device(x.device).tolist() == xp.ones(1, device=x.device).tolist()
    assert set(info.capabilities()) == {
        "boolean indexing",
        "data-dependent shapes",
        "max dimensions",
    }
    assert set(info.dtypes(kind="integral")) == set(INTEGERS) and len(info.dtypes()) == 13
    with pytest.raises(ValueError, match="TPU"):
        xp.ones(1, device="TPU")


def test_each_nan_is_unique() -> None:
    x = Tensor(np.array([[np.nan, 2.0], [1.0, np.nan], [2.0, 1.0]]))
    found = xp.unique_all(x)
    assert found.values.tolist()[:2] == [1, 2] and found.counts.tolist() == [2, 2, 1, 1]
    assert found.indices.tolist()[:2] == [2, 1] and tuple(found.inverse_indices.shape) == (3, 2)
    restored = found.values[found.inverse_indices].asnumpy()
    np.testing.assert_array_equal(restored, x.asnumpy())
    slope = gc.grad(lambda x: xp.sum(xp.unique_values(x) ** 2))(Tensor([3.0, 1.0, 3.0]))
    assert slope.tolist() == [6, 2, 0]


@pytest.mark.parametrize("dtype", REALS)
def test_the_next_number(dtype: str) -> None:
    """Beside NumPy's: at powers of two, at the ends of the range, below the smallest normal number."""
    limits = np.finfo(dtype)
    powers = 2.0 ** np.arange(limits.minexp - limits.nmant, limits.maxexp)
    ends = [0.0, limits.max, np.inf, limits.smallest_subnormal, limits.smallest_normal, 1.0, 1.5]
    x = np.concatenate([powers, powers * 1.3, ends]).astype(dtype)
    x = np.concatenate([x, -x])
    for y in (np.inf, -np.inf, 0.0, -1.0):
        with np.errstate(over="ignore", under="ignore"):
            want = np.nextafter(x, np.asarray(y, dtype))
        got = xp.nextafter(Tensor(x), y).asnumpy()
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    assert gc.grad(lambda x: xp.nextafter(x, 9.0))(Tensor(2.0, getattr(gc, dtype))).item() == 1
    with pytest.raises(TypeError, match="float32 or float64"):
        xp.nextafter(Tensor([1]), 2)


def test_what_the_standard_refuses() -> None:
    x = Tensor(np.ones((2, 3)))
    for call in (
        lambda: xp.squeeze(x, axis=0), lambda: xp.nonzero(Tensor(1.0)), lambda: xp.cumulative_sum(x),
        lambda: xp.take(x, Tensor([0])), lambda: xp.linalg.cross(x[:, :2], x),
    ):  # fmt: skip
        with pytest.raises((ValueError, IndexError)):
            call()

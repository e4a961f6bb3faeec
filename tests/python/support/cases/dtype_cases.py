"""The cases of the tables with inputs of every dtype, of sizes 0 and 1 and without dimensions, and with a
number, a list, a NumPy scalar or a NumPy array in the place of one input: what they are called with, in
gradcell, MindSpore and NumPy. (dtypes.py compares what comes out.)
"""

from __future__ import annotations

import functools
import re
import warnings
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import agreement
import function_cases
import numpy as np
from function_cases import RANDOM

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
SIZES = {
    "as they are": lambda s: s,
    "size 0": lambda s: (0,) * len(s),
    "size 1": lambda s: (1,) * len(s),
    "no dimensions": lambda s: (),
}
#: The dtypes of the other sizes.
SIZED = DTYPES
#: What stands in the place of the last input: beside a tensor of each dtype.
BESIDE = ("a number", "a float", "a list", "a NumPy scalar", "a NumPy array")
FORMS = (*SIZES, *BESIDE)
#: Python's operators, the second operand on the right and on the left.
_BINARY = "+ - * / // % ** == != < <= > >= & | ^"
_UNARY = ("-x", "+x", "abs(x)", "~x")
_TWO = ["normal: 2 3", "unit: 2 3"]
CASES: dict[str, tuple[str, Any]] = {
    **function_cases.CASES,
    **{
        f"{text} of {inputs}": (text, inputs)
        for text, inputs in (
            *(
                (f"lambda x, y: {a} {o} {b}", _TWO)
                for o in _BINARY.split()
                for a, b in ("xy", "yx")
            ),
            *((f"lambda x: {text}", _TWO[:1]) for text in _UNARY),
            ("lambda x, y: divmod(x, y)", _TWO),
            ("lambda x, y: x @ y", ["normal: 3 3", "normal: 3 3"]),
        )
    },
}


def numpy_cases() -> dict[str, tuple[str, Any]]:
    """NumPy's names that MindSpore does not have, of one array or two."""
    try:
        from gradcell import numpy as ours
    except ImportError:  # (MindSpore is asked without gradcell)
        return {}
    asked = set(re.findall(r"\bms\.numpy\.(\w+)", "\n".join(CASES)))
    found = {}
    for name in sorted(set(ours.__all__) - asked):
        theirs = getattr(np, name, None)
        if not callable(theirs) or isinstance(theirs, type):
            continue
        inputs = _TWO[: getattr(theirs, "nin", 1)]
        names = ", ".join("xy"[: len(inputs)])
        text = f"lambda {names}: ms.numpy.{name}({names})"
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("error")  # what is on its way out is left out
                given = theirs(*[np.ones((2, 3))] * len(inputs))
        except Exception:
            continue  # it takes something else
        if isinstance(given, str):
            continue
        found[f"{text} of {inputs}"] = (text, inputs)
    return found


CASES |= numpy_cases()
#: Cases that are not functions of their inputs' elements: layers, transforms, programs, state.
_OTHERS = re.compile(
    r"\bnn\.|\bcell\b|\bms\.(?!numpy|mint|[a-z]+\d|bool_|scipy)|train|dataset|Parameter|vision|transforms\."
    r"|grad|jac|vjp|jvp|\bjet|linearize|vmap|HyperMap|\.Map\(|Print|print_|data_ptr|flush|requires|[hH]ook"
    r"|[pP]artial|[gG]rad|derivative"
    r"|mint\.nn\.[A-Z]|is_|itemsize|nbytes|Eps|DType|has_init|typeof|dtype|stride|itemset|get_bytes|scalar_|Depend|Scan\(|ForiLoop|WhileLoop|Primitive|InsertGradientOf"
)


class Trial(NamedTuple):
    case: str
    dtype: str
    form: str


@functools.cache
def names() -> tuple[str, ...]:
    """The cases that are functions of arrays."""
    return tuple(
        name
        for name, (expression, inputs) in CASES.items()
        if inputs
        and all(isinstance(i, str) for i in inputs)
        and not _OTHERS.search(expression)
        and not any(word in name for word in RANDOM)
        and any(a.dtype.kind in "fc" for a in arrays(name))
    )


def trials(part: str = "", one_in: int = 1, form: str = "", which: int = 0) -> Iterator[Trial]:
    """Those of cases whose names have a text in them, of one form or of all; of n parts the one that is
    asked for."""
    for name in names():
        if part not in name:
            continue
        for trial in trials_of(name):
            drawn = zlib.crc32(" ".join(trial).encode()) % one_in == which
            if drawn and form in ("", trial.form):
                yield trial


def trials_of(name: str) -> Iterator[Trial]:
    """Every dtype; a few of them in other sizes; and, if the case has two inputs, what stands beside each
    dtype. (NumPy has no bfloat16, and no arrays of it.)"""
    two = [a.dtype.kind for a in arrays(name)][1:] == ["f"]
    yield from (Trial(name, dtype, "as they are") for dtype in DTYPES)
    sizes = list(SIZES)[
        2 if "irfftn" in name else 1 :
    ]  # (NumPy's irfftn of nothing is what memory held)
    yield from (Trial(name, dtype, form) for form in sizes for dtype in SIZED)
    if two:
        yield from (Trial(name, d, form) for form in BESIDE for d in DTYPES if d != "bfloat16")


def arrays(name: str) -> list[np.ndarray]:
    """The inputs of a case as the tables have them."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return [agreement.array(i, rng) for i in CASES[name][1]]


def rounded(a: np.ndarray) -> np.ndarray:
    """The nearest numbers of bfloat16, as float32."""
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32)
    kept = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return kept.view(np.float32).reshape(a.shape)


def of_dtype(a: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers like those of a, of another dtype; bfloat16 as float32 numbers."""
    if a.dtype.kind not in "fc":
        return a
    if dtype.startswith("complex"):
        return (a if a.dtype.kind == "c" else a + 0.5j * np.flip(a)).astype(dtype)
    a = a.real
    if dtype == "bool":
        return a > 0.3
    if dtype.startswith("int"):
        return np.rint(a * 4).astype(dtype)
    if dtype.startswith("uint"):
        return np.abs(np.rint(a * 4)).astype(dtype)
    return rounded(a) if dtype == "bfloat16" else a.astype(dtype)


class Given(NamedTuple):
    """An input: a tensor of a dtype, or something else in its place."""

    value: Any
    dtype: str = ""


def inputs(trial: Trial) -> list[Given]:
    made = []
    for a in arrays(trial.case):
        to = SIZES.get(trial.form, SIZES["as they are"])(a.shape)
        a = np.resize(a, to) if np.prod(to) else np.zeros(to, a.dtype)
        dtype = trial.dtype if a.dtype.kind in "fc" else str(a.dtype)
        made.append(Given(np.asarray(of_dtype(a, dtype)), dtype))
    if trial.form in BESIDE:
        made[-1] = Given(beside(trial.form, made[-1].value))
    return made


def beside(form: str, a: np.ndarray) -> Any:
    """What stands in the place of an array: the numbers as Python or NumPy has them."""
    last = a.flat[-1]
    if form == "a number":
        return last.item()
    if form == "a float":
        return abs(float(last.real)) + 0.5
    if form == "a list":
        return a.tolist()
    return last if form == "a NumPy scalar" else a


def widened(given: list[Given]) -> list[Given]:
    """The same numbers in the widest dtype of their kind; integers as floats."""

    def one(g: Given) -> Given:
        if not isinstance(g.value, (np.ndarray, np.generic)):
            return g
        kind = g.value.dtype.kind
        wide = "complex128" if kind == "c" else "float64"
        return Given(g.value.astype(wide), wide if g.dtype else "")

    return [one(g) for g in given]


def tensors(ms: Any, given: list[Given]) -> list[Any]:
    return [tensor(ms, g) for g in given]


def tensor(ms: Any, g: Given) -> Any:
    if not g.dtype:
        return g.value
    made = ms.Tensor(g.value)
    return made.astype(ms.bfloat16) if g.dtype == "bfloat16" else made


class Result(NamedTuple):
    """One output: the name of its dtype, and its numbers (those of bfloat16 as float32)."""

    dtype: str
    numbers: np.ndarray


def result(y: Any) -> Result:
    if hasattr(y, "asnumpy"):
        dtype = str(y.dtype).lower()
        return Result(dtype, np.array((y.float() if dtype == "bfloat16" else y).asnumpy()))
    a = np.asarray(y)
    return Result(f"Python {type(y).__name__}", a)


def outcome(ms: Any, case: str, given: list[Given]) -> list[Result] | str:
    """The outputs of a case in a package, or the error it raises."""
    try:
        out = agreement.made(ms, CASES[case][0])(*tensors(ms, given))
        return [result(y) for y in agreement.flat(out)]
    except Exception as error:
        lines = [x for x in str(error).splitlines() if len(x.strip(" -")) > 12]
        return f"{type(error).__name__}: {' '.join(lines[:1])[:200]}"

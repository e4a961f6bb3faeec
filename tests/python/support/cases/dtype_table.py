"""What gradcell gives for the trials of dtype_cases.py, beside NumPy 2; and why it differs where it does.
tools/dtypes.py writes the page of the guide from it.

NumPy's answer is that of numpy_names.py. Where NumPy has no such function, or refuses the dtype, the answer
is gradcell's own for the same numbers in float64 or complex128, which other tests hold to references.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import agreement
import dtype_cases
import numpy as np
import numpy_names
from dtype_cases import CASES, Given, Result, Trial
from dtype_reasons import REASONS

import gradcell as gc

#: Relative errors of the narrower floats.
ERRORS = {"float16": 2e-2, "bfloat16": 6e-2, "float32": 5e-5, "complex64": 5e-5}
Outcome = list[Result] | str

# NumPy's answer ---------------------------------------------------------------------------------


def reference(trial: Trial, given: list[Given]) -> Outcome | None:
    """What NumPy gives, or the error it raises; None if it has no such function."""
    try:
        with np.errstate(all="ignore"):
            found = evaluated(trial.case, given)
            if any(r.dtype == "float16" for r in found) and trial.dtype in (
                "bool",
                "int8",
                "uint8",
            ):
                # float16 has few digits: NumPy's dtype, with the numbers of integers of 32 bits.
                wide = evaluated(trial.case, [of_32_bits(g) for g in given])
                found = [Result(r.dtype, w.numbers) for r, w in zip(found, wide, strict=True)]
            return found
    except numpy_names.Missing:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def evaluated(case: str, given: list[Given]) -> list[Result]:
    out = numpy_names.evaluate(CASES[case][0], *[g.value for g in given])
    return [Result(str(a.dtype), a) for a in map(np.asarray, agreement.flat(out))]


def of_32_bits(g: Given) -> Given:
    kind = getattr(getattr(g.value, "dtype", None), "kind", "")
    wide = {"b": "uint32", "u": "uint32", "i": "int32"}.get(kind)
    return Given(g.value.astype(wide), g.dtype) if wide else g


# Differences ------------------------------------------------------------------------------------


def difference(found: Result, wanted: Result, dtype: str) -> str:
    """How numbers differ; '' if they do not."""
    a, b = found.numbers, wanted.numbers
    if a.shape != b.shape:
        return f"shape | {list(a.shape)} for {list(b.shape)}"
    made = (
        "float32" if dtype[0] in "biu" and b.dtype.kind in "fc" else dtype
    )  # floats of integers are
    error = max(ERRORS.get(k, 1e-9) for k in (found.dtype, wanted.dtype, made))
    kinds = {a.dtype.kind, b.dtype.kind}
    if "U" in kinds:
        return "" if np.array_equal(a, b) else f"numbers | {a} for {b}"
    if kinds <= set("biu"):
        same = bool(np.equal(a.astype(object), b.astype(object)).all())
    else:
        same = near(*(v.astype(complex if "c" in kinds else float) for v in (a, b)), error)
    if same:
        return ""
    kind = "wraps" if wraps(a, b) else "numbers"
    return f"{kind} | {short(a)} for {short(b)} [{found.dtype} for {wanted.dtype}]"


def near(x: np.ndarray, y: np.ndarray, error: float) -> bool:
    with np.errstate(all="ignore"):
        both = np.isfinite(x) & np.isfinite(y)
        scale = np.abs(y[both]).max(initial=1e-2)
        far = np.abs(x - y)[both] > error * scale
    kinds = [np.array_equal(f(x), f(y)) for f in (np.isnan, np.isinf)]
    return not far.any() and all(kinds)


def wraps(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the integers are others' modulo the numbers of their dtype."""
    if a.dtype.kind not in "iu" or b.dtype.kind == "c" or not np.isfinite(b.astype(float)).all():
        return False
    if b.dtype.kind == "f" and (np.abs(b) > 2.0**62).any():
        return False
    period = 2 ** (8 * a.dtype.itemsize)
    pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    return all(y == round(y) and (x - round(y)) % period == 0 for x, y in pairs)


def short(a: np.ndarray) -> str:
    text = np.array2string(np.asarray(a), precision=5, threshold=6, edgeitems=2)
    return re.sub(r"\s+", " ", text)


def differences(trial: Trial) -> tuple[str, list[str]]:
    """(what the answer is compared with: 'NumPy', 'float64', or 'nothing' if nothing gives one; how it
    differs)."""
    given = dtype_cases.inputs(trial)
    wanted = reference(trial, given)
    found = dtype_cases.outcome(gc, trial.case, given)
    if isinstance(wanted, list):
        if isinstance(found, str):
            return "NumPy", [f"refused | {found}"]
        return "NumPy", compared(trial, found, wanted, True)
    if isinstance(found, str):
        if isinstance(wanted, str):
            return "NumPy", []
        alone = dtype_cases.outcome(gc, trial.case, dtype_cases.widened(given))
        return (
            ("nothing", []) if isinstance(alone, str) else ("float64", [f"refused alone | {found}"])
        )
    alone = dtype_cases.outcome(gc, trial.case, dtype_cases.widened(given))
    refuses = ["NumPy refuses |"] if isinstance(wanted, str) else []
    if isinstance(alone, str):
        return "nothing", []
    return "float64", refuses + [f"alone {d}" for d in compared(trial, found, alone, False)]


def compared(trial: Trial, found: list[Result], wanted: list[Result], exact: bool) -> list[str]:
    """How results differ. exact: the dtypes too; else floats may be narrower than those wanted."""
    if len(found) != len(wanted):
        return [f"count | {len(found)} for {len(wanted)}"]
    texts = []
    for a, b in zip(found, wanted, strict=True):
        text = difference(a, b, trial.dtype)
        theirs = b.dtype
        if trial.dtype == "bfloat16" and theirs == "float32":
            theirs = a.dtype
        if text:
            texts.append(text)
        elif exact and a.dtype != theirs and not a.dtype.startswith("Python"):
            texts.append(f"dtype | {a.dtype} for {theirs}")
    return list(dict.fromkeys(texts))


# The table --------------------------------------------------------------------------------------


def described(trial: Trial, text: str) -> str:
    """What the patterns of REASONS are matched with."""
    call = re.sub(r"^lambda( \w(, \w)*)?: ", "", CASES[trial.case][0])
    kind, _, what = text.partition(" | ")
    return f"{kind} | {trial.dtype} | {trial.form} | {call} | {what}"


def reason(line: str) -> str | None:
    return next((why for why, pattern in REASONS if re.search(pattern, line)), None)


def rows(trials: Iterable[Trial]) -> Iterator[tuple[Trial, str, list[tuple[str, str | None]]]]:
    """(trial, what it is compared with, [(how it differs, why)])."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for trial in trials:
            beside, texts = differences(trial)
            lines = [described(trial, text) for text in texts]
            yield trial, beside, [(line, reason(line)) for line in lines]


class Count(NamedTuple):
    """What the table says of some trials."""

    counts: Counter[str]
    reasons: dict[str, list[Trial]]  # the trials that differ, by reason
    unexplained: list[str]  # how trials differ that have none


def counted(trials: Iterable[Trial]) -> Count:
    count = Count(Counter(), {}, [])
    for trial, beside, found in rows(trials):
        count.counts["trials"] += 1
        without = [line for line, why in found if why is None]
        count.unexplained.extend(without)
        kind = "without a reason" if without else "with a reason" if found else f"equal to {beside}"
        count.counts[kind] += 1
        for why in dict.fromkeys(why for _, why in found if why):
            count.reasons.setdefault(why, []).append(trial)
    return count


def name_of(case: str) -> str:
    """The function that a case is about: the last one that its text names, with its namespace."""
    text = CASES[case][0].replace("ms.", "")
    text = re.sub(r"\b(?:mint|numpy)\.(?:float|int|bool|complex)\w*", "", text)
    found = re.search(r"\b(?:ops|mint|numpy)\.[\w.]+|\b[xyz]\.\w+|\)\.\w+", text)
    return re.sub(r"^[xyz)]\.", "Tensor.", found.group()) if found else "operators"

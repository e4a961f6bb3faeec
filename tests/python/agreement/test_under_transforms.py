"""Every case of the tables under jit and under vmap: what plain calls give, or a refusal that is listed with
its reason in golden/under_transforms.json, which docs/transforms.md sums up.

`python tests/python/agreement/test_under_transforms.py` writes what is refused now; the reasons are said
by hand.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import agreement
import numpy as np
import pytest
from function_cases import CASES, RANDOM

import gradcell as gc
from gradcell import Tensor

HERE = Path(__file__).parents[1]
LIST = HERE / "golden" / "under_transforms.json"
REASONS = {
    "shape": "the shape of the result depends on values",
    "host": "it reads numbers on the host: into Python, NumPy, bytes or a printed text",
    "parameter": "it assigns to a parameter from outside what differs from example to example",
    "numpy": "NumPy computes it, on values",
}


def made(name: str) -> tuple[Any, list[Any]]:
    expression, inputs = CASES[name]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    cell = agreement.made(gc, expression)
    if isinstance(cell, gc.nn.Cell):
        agreement.set_parameters(gc, cell, rng)
    return cell, agreement.tensors(gc, inputs, rng)


def call(name: str, transform: Any) -> Any:
    """(what the case gives under a transform, or the error; whether a value was asked for)."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        gc.set_seed(1)
        cell, given = made(name)
        try:
            out = transform(lambda *args: cell(*args))(*given)
        except Exception as error:
            return error, False
    return out, any("asked for a tensor's value" in str(w.message) for w in seen)


def twice(fn: Any) -> Any:
    """fn over a batch of two examples that are the same."""

    def batched(*args: Any) -> Any:
        axes = tuple(0 if isinstance(a, Tensor) else None for a in args)
        both = [gc.ops.stack([a, a]) if isinstance(a, Tensor) else a for a in args]
        return gc.vmap(fn, axes)(*both)

    return batched


def numbers(out: Any) -> list[np.ndarray]:
    return [agreement.values(y) for y in agreement.flat(out)]


def batchable(name: str) -> bool:
    """Whether there are tensors to map over, and tensors come out."""
    if not any(isinstance(x, Tensor) for x in made(name)[1]):
        return False
    results = agreement.flat(call(name, lambda fn: fn)[0])
    return bool(results) and not any(isinstance(y, str) for y in results)


def refusals() -> dict[str, list[str]]:
    """For each transform the cases that it refuses."""
    found: dict[str, list[str]] = {"jit": [], "vmap": []}
    for name in CASES:
        out, asked = call(name, gc.jit)
        if asked or isinstance(out, Exception):
            found["jit"].append(name)
        if batchable(name) and isinstance(call(name, twice)[0], Exception):
            found["vmap"].append(name)
    return found


STORED = json.loads(LIST.read_text()) if LIST.exists() else {"jit": {}, "vmap": {}}


@pytest.mark.one_in(12)
@pytest.mark.parametrize("name", CASES)
def test_under_jit_and_vmap(name: str) -> None:
    plain, _ = call(name, lambda fn: fn)
    assert not isinstance(plain, Exception), plain
    out, asked = call(name, gc.jit)
    refused = asked or isinstance(out, Exception)
    assert refused == (name in STORED["jit"]), out
    wanted = numbers(plain)
    random = any(word in name for word in RANDOM)
    if not refused and not random:
        same(numbers(out), wanted)
    if not batchable(name):
        return
    out, _ = call(name, twice)
    assert isinstance(out, Exception) == (name in STORED["vmap"]), out
    if not isinstance(out, Exception) and not random:
        same(numbers(out), [np.stack([w, w]) for w in wanted])


def same(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        assert got.shape == want.shape
        if want.dtype.kind in "fc":
            scale = np.abs(want[np.isfinite(want)]).max(initial=1e-30)
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * scale)
        else:
            np.testing.assert_array_equal(got, want)


def test_the_refusals_are_few_and_have_reasons() -> None:
    assert len(STORED["jit"]) <= 36
    assert len(STORED["vmap"]) <= 37
    for listed in STORED.values():
        assert set(listed) <= set(CASES)
        assert set(listed.values()) <= set(REASONS)


if __name__ == "__main__":
    found = refusals()
    reasons = {t: {name: STORED[t].get(name, "?") for name in names} for t, names in found.items()}
    LIST.write_text(json.dumps(reasons, indent=1) + "\n")
    sys.exit(any("?" in names.values() for names in reasons.values()))

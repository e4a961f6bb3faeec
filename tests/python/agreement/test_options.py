"""Options that are numbers, given what is none: an error that names the caller's line, of every function."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcell as gc
import gradcell.numpy as gnp
from gradcell import Tensor, mint, ops

SPACES = {
    "ops": ops, "mint": mint, "mint.nn.functional": mint.nn.functional, "mint.linalg": mint.linalg,
    "mint.special": mint.special, "numpy": gnp, "numpy.linalg": gnp.linalg, "numpy.fft": gnp.fft,
}  # fmt: skip
X, I = Tensor(np.linspace(0.1, 0.9, 12).reshape(3, 4)), Tensor(np.arange(12).reshape(3, 4) % 3)  # noqa: E741
IMAGE = Tensor(np.ones((1, 2, 6, 6)))
#: Arguments that a function may take; the first that it does take are its.
GIVEN: list[tuple[Any, ...]] = [
    (X,), (X, X), (X, X, X), (I,), (I, I), (X, I), (Tensor(np.eye(3) + 0.1),), (X[0],), (X[0], X[0]),
    (IMAGE[0],), (IMAGE,), (IMAGE[None],), (2,), (2, 3), ((2, 3),), (X, 1), (X, (1,)), (X, 1, 1),
    (X, 0, I), (X, 2), ([X, X],), (X, I[0][:3]), (0.0, 1.0, 5),
]  # fmt: skip
#: Options that have no effect on what is given here, and NumPy's names of estimators.
WITHOUT = {
    "cross_entropy ignore_index", "make_range delta", "randperm offset", "embedding norm_type",
    "pad constant_values", "pad end_values", *(
        f"histogram{which} bins" for which in ("", "2d", "dd", "_bin_edges")
    ),
}  # fmt: skip


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for space, module in SPACES.items():
        for name in sorted(module.__all__):
            f = getattr(module, name)
            if callable(f) and not inspect.isclass(f) and name[0].islower():
                yield f"{space}.{name}", f


def options(f: Callable[..., Any]) -> list[str]:
    """The names of those that are numbers by default."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except ValueError:
        return []
    return [p.name for p in parameters if type(p.default) in (int, float)]


def taken(f: Callable[..., Any]) -> tuple[Any, ...] | None:
    for given in GIVEN:
        with contextlib.suppress(Exception):
            f(*given)
            return given
    return None


CASES = [
    (name, f, option)
    for name, f in functions()
    for option in options(f)
    if f"{name.rpartition('.')[2]} {option}" not in WITHOUT
]


def test_there_are_many() -> None:
    assert len(CASES) > 250


@pytest.mark.parametrize(
    ("name", "f", "option"), CASES, ids=lambda v: v if isinstance(v, str) else ""
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_number_is_refused(name: str, f: Callable[..., Any], option: str) -> None:
    given = taken(f)
    if given is None or option in list(inspect.signature(f).parameters)[: len(given)]:
        return
    for other in ("a", object()):
        with pytest.raises((TypeError, ValueError), match=Path(__file__).name):
            f(*given, **{option: other})
            gc.runtime.synchronize()

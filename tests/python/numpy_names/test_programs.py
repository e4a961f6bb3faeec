"""Programs written for NumPy give the same numbers with `import gradcell.numpy as np`, and derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
IMPORT = "import numpy as np\n"


@pytest.fixture(autouse=True)
def in_float64() -> Iterator[None]:
    before = gc.get_default_dtype()
    gc.set_default_dtype(gc.float64)
    yield
    gc.set_default_dtype(before)


def run(path: Path, module: str) -> tuple[Any, Any]:
    """(the program, what it is given) with NumPy, or with another module by its name."""
    text = path.read_text()
    assert text.count(IMPORT) == 1
    space: dict[str, Any] = {}
    exec(compile(text.replace(IMPORT, f"import {module} as np\n"), path, "exec"), space)
    return space["program"], space["parameters"]


def test_there_are_fifteen() -> None:
    assert len(PROGRAMS) == 15


@pytest.mark.one_in(2)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_a_program_has_numpys_numbers_and_their_derivative(path: Path) -> None:
    reference, given = run(path, "numpy")
    program, parameters = run(path, "gradcell.numpy")
    assert isinstance(parameters, Tensor) and parameters.dtype == gc.float64
    np.testing.assert_allclose(parameters.asnumpy(), given, 1e-13, 1e-13)
    expected, got = reference(given.copy()), program(Tensor(given))
    assert isinstance(got, Tensor)
    np.testing.assert_allclose(got.asnumpy(), expected, 1e-12, 1e-12)

    rng = np.random.default_rng(1)
    weights, direction = rng.normal(size=expected.shape), rng.normal(size=given.shape)
    slope = gc.grad(lambda p: ops.sum(program(p) * Tensor(weights)))(Tensor(given)).asnumpy()
    h = 1e-6 * np.abs(given).max()

    def at(s: float) -> float:
        return float(np.sum(reference(given + s * h * direction) * weights))

    difference = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
    np.testing.assert_allclose(np.sum(slope * direction), difference, 1e-6, 1e-6)

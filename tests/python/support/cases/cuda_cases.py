"""What the CUDA tests record, run and compare with the CPU engine.

CASES: by name, a function and its arguments. Its results are compared by `compare`, and with an interpreter
that shares nothing with an engine by `compare_with_interpreter`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import cuda_network_cases
import cuda_op_cases
import numpy as np
from graph_interpreter import Value, difference, record

from gradcell import Tensor

CASES = {**cuda_op_cases.CASES, **cuda_network_cases.CASES}
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12}


def compare(name: str, got: list[np.ndarray], want: list[Tensor]) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        expected, dtype = w.asnumpy(), w.dtype.name
        assert g.shape == expected.shape
        if dtype not in TOLERANCE:
            np.testing.assert_array_equal(g, expected, err_msg=name)
            continue
        tolerance = TOLERANCE[dtype]
        finite = np.abs(expected[np.isfinite(expected)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        np.testing.assert_allclose(
            g, expected, rtol=tolerance, atol=tolerance * scale, err_msg=name
        )


@functools.cache
def interpreted(name: str) -> list[Value]:
    fn, arguments = CASES[name]
    return record(fn, *arguments).evaluate()


def compare_with_interpreter(name: str, got: Sequence[np.ndarray]) -> None:
    """What is known of each result: see graph_interpreter.py."""
    for k, (g, want) in enumerate(zip(got, interpreted(name), strict=True)):
        found = difference(g, want)
        assert found is None, f"{name}, result {k}: {found}"

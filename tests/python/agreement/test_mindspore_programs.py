"""Small programs beside MindSpore: names of private modules, small behaviours, errors, tensors of unknown
rank, compiled functions, data sets, training in many fields. What MindSpore gives, in both modes, is in
golden/mindspore_programs.json (support/mindspore_programs).
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program_references import REFERENCES

PROGRAMS = Path(__file__).parents[1] / "support" / "mindspore_programs" / "__main__.py"
STORED = json.loads((Path(__file__).parents[1] / "golden" / "mindspore_programs.json").read_text())

#: Programs whose result differs from MindSpore's, what it is here, and why.
NO_KERNEL = "MindSpore has no kernel for the CPU"
CLIPPED = (
    "MindSpore's kernel takes other rows' norms for some rows: [0.3, 0.4] becomes [0.075, 0.1]"
)
KEPT = "MindSpore compiles once, and keeps what attributes and Parameters were then"
CHANGED = [
    "list",
    *(["Float32", v] for v in ([3.0, -1.0, 6.0], [4.5, -5.5, 12.0], [10.5, 0.5, 18.0])),
]
BY_ONE = [["Int64", 1], ["Float32", 1.0], ["Float32", 1.0]]
DIFFERS: dict[str, tuple[Any, str]] = {
    "compiled: attribute_that_changes": (CHANGED, KEPT),
    "compiled: attribute_of_a_compiled_method_that_changes": (CHANGED, KEPT),
    "compiled: parameter_that_changes": (
        ["tuple", ["Float32", [1.0, -3.0, 4.0]], ["Float32", [1.5, -4.5, 6.0]]],
        KEPT,
    ),
    "compiled: gradients_by_numbers": (
        [
            "tuple",
            ["list", *BY_ONE, *(["tuple", ["Float32", [2.0] * 3], one] for one in BY_ONE)],
            ["tuple", ["Float32", [1.0, -3.0, 4.0]], ["Float32", 1.0]],
        ],
        "MindSpore leaves out the gradients by numbers",
    ),
    "compiled: own_gradients_too_many": (
        ["error", "RuntimeError"],
        "MindSpore drops gradients for which there is no input",
    ),
    "names: generated_ones": (["Float32", [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]], NO_KERNEL),
    "names: generated_updates": (["Float32", [[6.5, 0.0, -1.0], [5.5, 12.25, 0.75]]], NO_KERNEL),
    "names: gradient_of_softmax": (  # NumPy's
        [
            "Float32",
            [[0.432572227, 0.022401632, -0.454973859], [-0.37166965, 0.541820617, -0.170150967]],
        ],
        NO_KERNEL,
    ),
    "names: gradients_of_linearly_upsampled_images": (  # of weights 0, 1/3, 2/3 and 1
        [
            "tuple",
            ["Float32", [[[4 / 3, 14 / 3], [28 / 3, 38 / 3]]]],
            ["Float32", [[[[4 / 3, 14 / 3], [28 / 3, 38 / 3]]]]],
        ],
        NO_KERNEL,
    ),
    "behaviour: comparisons_of_uint64_with_numbers": (
        [
            "tuple",
            ["Bool", [False, True, True]],
            ["Bool", [False, True, False]],
            ["Bool", [True, True, False]],
        ],
        "MindSpore refuses a Python number beside a uint64 tensor",
    ),
    "behaviour: comparisons_of_unsigned_with_negative_numbers": (
        ["tuple", ["Bool", [True] * 3], ["Bool", [False] * 3], ["Bool", [False] * 3]],
        "MindSpore compares -1 as 255",
    ),
    "behaviour: dtype_of_numpy": (
        [
            "tuple",
            ["Float32", [1.0, 2.0]],
            ["Int32", [[0, -1, 2], [1, 0, 0]]],
            ["Float64", [1.5]],
            ["Bool", [True]],
        ],
        "gradcell accepts NumPy's dtypes",
    ),
    "rows: stopped_in_place": (
        [
            "tuple",
            ["Float32", [[0.5, 4.5, 8.0], [2.0, 0.125, 1.125]]],
            ["Float32", [[1.0, 3.0, 4.0], [2.0, 0.5, 1.5]]],
        ],
        NO_KERNEL,
    ),
    "rows: zeta_by_the_first": (  # mpmath's
        [
            "Float32",
            [[-3.9322397, 3.4562202, -0.1981262429], [-1.0245078426, -15.3599776, 0.5270646772]],
        ],
        "MindSpore gives 0, and has derivatives with respect to the second argument alone",
    ),
    "rows: clipped_by_the_norms_of_rows": (  # NumPy's, as the next one's
        ["Float32", [[0.1961161, 0.5883484, 0.7844645], [0.7844645, 0.1961161, 0.5883484]]],
        CLIPPED,
    ),
    "rows: embeddings_of_fields_of_a_largest_norm": (
        [
            "tuple",
            [
                "Float32",
                [
                    [[1.2, 1.6], [0.4923076923, 0.8615384615]],
                    [[0.1923076923, 5.9615384615], [0.0, 0.0]],
                ],
            ],
            ["Float32", [[1.4, 1.3076923077, 0.7], [1.0, 1.0, 1.3076923077]]],
        ],
        CLIPPED,
    ),
    "rows: reshaped_places": (
        ["tuple", ["Int64", [[0, 0], [0, 1], [2, 1]]], ["Int64", [3, 2]]],
        "MindSpore's places are those of memory that nothing was written to",
    ),
    "rows: gradients_by_concentrations_of_beta": (  # mpmath's
        [
            "tuple",
            ["Float32", [6.857142857, 1.466666667, 1.5]],
            ["Float32", [-1.246108208, -0.505903266, -0.1217186091]],
            ["Float32", [0.6998019407, 1.7409788503, 0.7029695093]],
        ],
        "MindSpore gives NaN at whole concentrations",
    ),
    "imports: mindspore.train.serialization": (
        ["list"],
        "MindSpore 2.10 has no _get_mindir_inputs",
    ),
}
#: Programs for which MindSpore's two modes give different numbers, and the one that is right, by losses
#: computed in NumPy (support/program_references.py). It is what gradcell gives in both of its modes.
MODES_DIFFER = {
    "applications: molecular_dynamics": "graph",
    "applications: weather": "pynative",
}
#: The relative difference allowed, by the file: float16's gradients, several steps of training. (The
#: autoencoder's first loss in float64, by NumPy, is gradcell's to 5e-8 and MindSpore's to 8e-7.)
DIGITS = {"precision": 4e-3, "applications": 1e-5, "fields": 1e-5, "trainings": 2e-5}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    command = [sys.executable, "-m", "gradcell", "run", str(PROGRAMS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def same(a: Any, b: Any, digits: float = 2e-6) -> bool:
    """Whether both are the same: numbers to six digits, or three of float16, errors by their type."""
    if isinstance(a, list) and a[:1] == ["error"]:
        return isinstance(b, list) and b[:2] == a[:2]
    if isinstance(a, list) and isinstance(b, list):
        digits = 2e-3 if a[:1] == ["Float16"] else digits
        return len(a) == len(b) and all(same(x, y, digits) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        close = math.isclose(a, b, rel_tol=digits, abs_tol=digits / 2)
        return close or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


def test_all_were_asked(found: dict[str, Any]) -> None:
    assert set(found) == set(STORED) >= set(DIFFERS)


@pytest.mark.parametrize("mode", ["graph", "pynative"])
@pytest.mark.parametrize("name", STORED)
def test_as_mindspore(name: str, mode: str, found: dict[str, Any]) -> None:
    here = found[name][mode]
    if name in DIFFERS:
        wanted = DIFFERS[name][0]
        assert same(wanted, here), here
        assert any(not same(given, here) for given in STORED[name].values())
    else:
        digits = DIGITS.get(name.partition(":")[0], 2e-6)
        wanted = STORED[name][MODES_DIFFER.get(name, mode)]
        assert same(wanted, here, digits), (wanted, here)


@pytest.mark.parametrize("name", MODES_DIFFER)
def test_the_reference_settles_what_is_right(name: str) -> None:
    given, right = STORED[name], MODES_DIFFER[name]
    wrong = {"graph": "pynative", "pynative": "graph"}[right]
    reference = REFERENCES[name.removeprefix("applications: ")]()
    np.testing.assert_allclose(given[right][1:], reference, rtol=1e-5)
    assert not np.allclose(given[wrong][1:], reference, rtol=1e-3)

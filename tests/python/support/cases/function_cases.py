"""The cases of the tables that are functions of tensors, one or more for every public name:
test_tables.py holds them to the names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agreement
import name_cases

TABLES = ("cell", "distributions", "mint", "numpy", "ops", "tensor")
#: Draws differ from call to call, or between a batch and its examples.
RANDOM = ("rand", "drop", "normal(", "poisson", "multinomial", "bernoulli", "shuffle", "seed", "gumbel",
          "exponential_", "uniform_", "gamma(", "laplace(", "choice", "sample", "empty", "rrelu",
          "categorical", "Shuffle", "Multinomial")  # fmt: skip
#: Whose derivative is, by what they are, not that of their values: hooks that change it, parameters (leaves)
#: made of an input, values that left the graph; and roundings.
OTHER_DERIVATIVE = (
    "backward_hook", "backward_pre_hook", "InsertGradientOf", "Parameter(", "asnumpy(", ".numpy(", "tolist(",
    "x.data *", "stop_gradient", "bfloat16()", ".item(",
)  # fmt: skip
HERE = Path(__file__).parents[2]
CASES: dict[str, tuple[str, Any]] = {}
for table in TABLES:
    for row in agreement.rows(HERE / "cases" / f"{table}.txt"):
        CASES[f"{row.expression} of {row.inputs}"] = (row.expression, row.inputs)
for expression, inputs, *_ in name_cases.NAMES:
    CASES[f"{expression} of {inputs}"] = (expression, inputs)

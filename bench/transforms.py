"""Jacobians, per-sample gradients, Hessian-vector products beside JAX; one Burgers step written in
four ways: how a derivative is written is not to matter.

    python bench/transforms.py
    python bench/transforms.py --cases Burgers

JAX's step is written per point in all four. Everything is as in compare.py; the results are
transforms.json, transforms.md and transforms.png.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import compare
from cases import GRADCELL, Case, Target

WAYS = ("nested grad", "batched Jacobians", "vmap(jacfwd(grad))", "jvp")


def transform_cases() -> list[Case]:
    """What is measured, and what gradcell is to reach: parts of JAX's time."""
    network = [
        ("Jacobians, 256 rows, 20-64-64-64-20", "jacobian", (20, 64, 64, 64, 20), 0.4),
        ("per-sample gradients, 256 rows, 100-256-256-10", "per_sample", (100, 256, 256, 10), 0.4),
        ("Hessian-vector product, 256 rows, 100-256-256-10", "hvp", (100, 256, 256, 10), 0.5),
    ]
    cases = [
        Case(name, "steady", step, {"widths": widths, "rows": 256}, (GRADCELL, "jax"),
             (Target(limit),), tolerance=1e-4, group="network")
        for name, step, widths, limit in network
    ]  # fmt: skip
    cases += [
        Case(f"Burgers step, {way}", "steady", "burgers", {"way": way, "points": 1024},
             (GRADCELL, "jax"), (), tolerance=1e-3, group="burgers")
        for way in WAYS
    ]  # fmt: skip
    return cases


def main(arguments: Sequence[str] | None = None) -> int:
    return compare.main(arguments, transform_cases(), "transforms")


if __name__ == "__main__":
    sys.exit(main())

"""gradcell: compiled (GRAPH_MODE and jit), and traced at every call (variant "pynative")."""

from __future__ import annotations

import time
from typing import Any

from steps import Step, gradcell_transforms, mindspore_api

ms = mindspore_api.use("gradcell")


def build(kind: str, params: dict[str, Any], variant: str) -> Step | None:
    pynative = variant == "pynative"
    ms.set_context(mode=ms.PYNATIVE_MODE if pynative else ms.GRAPH_MODE)
    if kind in gradcell_transforms.KINDS:
        return gradcell_transforms.build(kind, params)
    return mindspore_api.build(kind, params, compiled=not pynative, wait=None)


def planning_seconds(kind: str, params: dict[str, Any]) -> float:
    """What a step takes longer when its plan is not in the cache: best of 15 against best of 15."""
    step = build(kind, params, "pynative")
    assert step is not None
    best = {True: float("inf"), False: float("inf")}
    for _ in range(15):
        for planned in (False, True):
            if not planned:
                ms._core.clear_plan_cache()
            start = time.perf_counter()
            step.call()
            best[planned] = min(best[planned], time.perf_counter() - start)
    return best[False] - best[True]

"""Random programs of all dtypes against an interpreter of the recorded graphs in NumPy, whose bounds follow
from the dtypes (graph_interpreter.py); derivatives against finite differences of the interpreted graphs."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import graph_interpreter
import numpy as np
import pytest
from graph_interpreter import OPS, Node, Value, difference, exact, numbers_of, record
from typed_programs import FLOATS, NAMES, TURNS, Check, Program, Wrong, check

import gradcell as gc
from gradcell import Tensor, _core, ops

#: Programs of a case.
EACH = 25


@pytest.mark.parametrize("block", range(200))
@pytest.mark.one_in(200)
def test_programs(block: int) -> None:
    """tools/random_programs.py runs as many as are asked for."""
    counts: Counter[str] = Counter()
    for seed in range(EACH * block, EACH * (block + 1)):
        counts += check(seed)
    undecided, elements = (
        sum(counts[f"{t}: {what}"] for t in TURNS) for what in ("undecided", "elements")
    )
    assert undecided < 0.5 * elements


def test_every_op_is_interpreted() -> None:
    assert set(OPS) == {row["name"] for row in _core.op_table()}


def test_programs_have_every_step_under_every_transform() -> None:
    """In as many as the slow ones are."""
    met = Counter(
        (name, seed % len(TURNS)) for seed in range(200 * EACH) for name in Program(seed).names
    )
    assert len(met) == len(NAMES) * len(TURNS)


def altered(op: str, by: float) -> Any:
    right = OPS[op]

    def wrong(node: Node, *xs: Value) -> Value:
        y = right(node, *xs)
        return Value(y.v * (1 + by), y.e) if y.v.dtype == np.float64 else y

    return wrong


#: Ops that kernels and passes treat in ways of their own, and how far off a wrong one is.
SEEN = {"float16": 0.05, "bfloat16": 0.3, "float32": 1e-4, "float64": 1e-9}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "op", ["Mul", "Tanh", "MatMul", "ReduceSum", "Concat", "Slice", "Select", "CumSum"]
)
def test_what_is_wrong_is_seen(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter with another rule for one op disagrees with nearly every program that has it."""
    right, seen, tried = OPS[op], 0, 0
    for seed in range(400):
        program = Program(seed)
        checks = Check(program)
        graph = record(checks.floats, *checks.xs)
        live = [n for n in graph.nodes.values() if n.op == op and math.prod(n.shape)]
        if len(live) != 1 or len(graph.nodes) > 12:
            continue
        want = graph.evaluate()
        monkeypatch.setitem(OPS, op, altered(op, SEEN[program.dtype]))
        other = graph.evaluate()
        monkeypatch.setitem(OPS, op, right)
        moved = any(
            difference(b.v, Value(a.v, np.zeros(a.v.shape)))
            for a, b in zip(want, other, strict=True)
        )
        if not moved:
            continue
        tried += 1
        seen += any(difference(b.v, a) is not None for a, b in zip(want, other, strict=True))
        if tried == 12:
            break
    assert tried >= 3
    assert seen >= 0.7 * tried, (seen, tried)


def test_a_wrong_engine_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole check, with an interpreter that has a sine for a cosine."""
    monkeypatch.setitem(OPS, "Cos", graph_interpreter.unary)
    monkeypatch.setitem(graph_interpreter.UNARY, "Cos", np.sin)
    with_cos = [s for s in range(3000) if "cos" in Program(s).names and s % len(TURNS) in (0, 4)][
        :10
    ]
    assert len(with_cos) == 10
    wrong = 0
    for seed in with_cos:
        try:
            check(seed)
        except Wrong:
            wrong += 1
    assert wrong >= 8


# The interpreter itself --------------------------------------------------------------------------


def interpreted(fn: Any, *xs: Tensor) -> list[Value]:
    return record(fn, *xs).evaluate()


def test_bounds_are_of_the_dtypes_size() -> None:
    """Not so wide that they accept anything: of a layer a few roundings."""
    rng = np.random.default_rng(0)
    x, w = rng.uniform(-1, 1, (20, 8)), rng.uniform(-1, 1, (8, 5))
    for dtype, half in zip(FLOATS, (2.0**-11, 2.0**-8, 2.0**-24, 2.0**-53), strict=True):
        a, b = (Tensor(v).astype(getattr(gc, dtype)) for v in (x, w))
        (y,) = interpreted(lambda x, w: ops.tanh(ops.matmul(x, w)), a, b)
        assert 0 < y.e.max() < 100 * half
        assert difference(numbers_of(ops.tanh(ops.matmul(a, b))), y) is None


def test_a_tie_is_left_open() -> None:
    x = Tensor(np.float32([0.1, 0.2, 0.3]))
    (y,) = interpreted(lambda x: (x * 3 > x + x + x), x)
    assert not y.known.any()
    (y,) = interpreted(lambda x: x * 3 > x, x)
    assert y.known.all() and y.v.all()


def test_numbers_with_few_digits_are_exact() -> None:
    x = Tensor(np.float16([1, 2, 3, 4]))
    (y,) = interpreted(lambda x: ops.floor(ops.sum(x * 2) * 0.25), x)
    assert y.v == 5 and y.e == 0


def test_an_overflow_is_left_open() -> None:
    (y,) = interpreted(lambda x: x * x, Tensor(np.float16([300, 2])))
    assert y.known.tolist() == [False, True]


def test_comparisons_name_the_element() -> None:
    want = exact([1.0, 2.0], "float32")
    assert difference(np.float32([1, 2]), want) is None
    assert difference(np.float32([1, 3]), want) == ((1,), 3.0, 2.0, 0.0)
    assert difference(np.float32([1, np.nan]), want) is not None

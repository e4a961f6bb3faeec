"""Fewer, larger products: which of a step's products are joined, and that the result stays the same."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from cuda_cases import compare
from cuda_emulation import Batch, Plans, chosen
from network_cases import Case, applied, burgers_step, first_order, network, residual, tensor

import gradcell as ms
from gradcell import Tensor, _core, cuda, ops
from gradcell.base import tree

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

core = _core.ops

# Fewer rows than a kernel for a narrow network would take: the library multiplies.
CASES: dict[str, Case] = {
    "first order": first_order([4, 8, 8, 4], 20, ops.tanh),
    "residual": residual(2, [4, 8, 8, 4], 20, ops.tanh, np.float32),
    "residual of sines, float64": residual(2, [2, 8, 8, 8, 2], 20, ops.sin, np.float64),
    "third order": residual(3, [4, 8, 8, 4], 24, ops.tanh, np.float32),
    "no multiple of 16 bytes": residual(2, [3, 5, 5, 1], 7, ops.tanh, np.float32),
    "Burgers": burgers_step([8, 8, 8], 20),
}


def twice(x: Tensor, y: Tensor, *weights: Tensor) -> Any:
    """A network of two sets of rows: products share their weights, gradients are sums."""

    def loss(*weights: Tensor) -> Tensor:
        one, other = (applied(ops.sin(v), weights, ops.tanh) for v in (x, y))
        return ops.square(one - other).mean()

    return ms.value_and_grad(loss, tuple(range(len(weights))))(*weights)


CASES["two sets of rows"] = (twice, (tensor(12, 4), tensor(12, 4), *network([4, 8, 8, 4])))


def shared(x: Tensor, w: Tensor) -> Any:
    """What one product reads another writes, an operand is read twice, and results are outputs."""
    a, b = ops.sin(x), ops.cos(x)
    return ops.matmul(a, w), ops.matmul(b, w), ops.matmul(ops.matmul(a * b, w), w)


def few_terms(a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool) -> Any:
    """A product with few terms an element beside others, in a kernel of rows, in a sum of columns, and
    its gradients, which have many terms or few."""

    def all_of(a: Tensor, b: Tensor) -> list[Tensor]:
        y = core.matmul(a, b, transpose_a, transpose_b)
        return [y, ops.softmax(y * 2, -1), core.reduce_sum(ops.sin(y), [0], False)]

    def loss(a: Tensor, b: Tensor) -> Tensor:
        return ops.square(all_of(a, b)[1]).sum()

    return [*all_of(a, b), *ms.grad(loss, (0, 1))(a, b)]


for _k, _dtype in ((1, ms.float32), (2, ms.float64), (3, ms.bfloat16), (4, ms.float16)):
    for _ta, _tb, _batch in itertools.product((False, True), (False, True), ((), (3,))):
        _shapes = (7, _k)[:: -1 if _ta else 1], (_k, 6)[:: -1 if _tb else 1]
        CASES[f"{_k} terms, {_dtype}, {_ta}, {_tb}, {_batch}"] = (
            lambda a, b, ta=_ta, tb=_tb: few_terms(a, b, ta, tb),
            tuple(tensor(*_batch, *s).astype(_dtype) for s in _shapes),
        )
CASES["a row and a column"] = (
    lambda a, b: [core.matmul(a, b), core.matmul(b, a), ops.matmul(a, b) + ops.matmul(a * 2, b)],
    (tensor(1, 4), tensor(4, 1)),
)
CASES["sums with few terms"] = (
    lambda a, b: ops.tanh(ops.matmul(a, b) + ops.matmul(a * a, ops.sin(b))),
    (tensor(9, 2), tensor(2, 8)),
)

CASES["shared operands"] = (shared, (tensor(12, 8), tensor(8, 8)))


@pytest.fixture(scope="module")
def plans() -> Plans:
    return Plans(CASES, lambda name: cuda.plan_of(CASES[name][0], *CASES[name][1]))


@pytest.fixture(scope="module")
def batch(
    plans: Plans, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Batch:
    return Batch(chosen(request, plans), tmp_path_factory.mktemp("products"))


@pytest.mark.one_in(48)
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_cpu_engine(name: str, plans: Plans, batch: Batch) -> None:
    fn, arguments = CASES[name]
    want = tree.leaves(fn(*arguments))
    number = list(CASES).index(name)
    for aligned in (True, False):
        compare(name, batch.run(number, aligned=aligned, grid=2)[: len(want)], want)


def products(plan: Any) -> list[dict[str, Any]]:
    return [s["matmul"] for s in plan.steps if "matmul" in s]


def parts(plan: Any, operand: str) -> list[int]:
    """Of how many buffers the joined operands of the products are."""
    return [len(p[f"{operand}_parts"]) for p in products(plan) if p[f"{operand}_parts"]]


def test_products_by_the_same_weights_are_one(plans: Plans) -> None:
    plan = plans["two sets of rows"]
    assert parts(plan, "out").count(2) >= 2
    assert all(p["m"] == 24 for p in products(plan) if p["out_parts"])
    for p in products(plan):
        buffers = [p["a_parts"], p["b_parts"], p["out_parts"]]
        inside = [b for side in buffers for b in side]
        assert len(set(inside)) == len(inside)
    assert parts(plans["shared operands"], "out") == []  # outputs of the plan stay where they are


def test_gradients_of_weights_are_one_product(plans: Plans) -> None:
    for name in ("first order", "Burgers"):
        assert not any(p["accumulate"] for p in products(plans[name])), name
    assert max(parts(plans["Burgers"], "b")) >= 3
    assert parts(plans["no multiple of 16 bytes"], "b") == []


def test_products_with_few_terms_are_elementwise(plans: Plans) -> None:
    for name in ("sums with few terms", "a row and a column"):
        assert products(plans[name]) == [], name
        assert sum(s["flops"] for s in plans[name].steps) > 0
    few = cuda.plan_of(lambda a, b: ops.tanh(ops.matmul(a, b)), tensor(1000, 4), tensor(4, 64))
    assert len(few.steps) == 1 and few.bytes_moved == 4 * (4000 + 256 + 64000)
    assert few.steps[0]["flops"] == 2 * 1000 * 4 * 64
    assert len(products(cuda.plan_of(ops.matmul, tensor(1000, 5), tensor(5, 64)))) == 1


@pytest.mark.parametrize(
    ("layers", "rows", "before", "now"),
    [([256] * 4, 1000, 30, 17), ([256] * 8, 1000, 66, 37), ([8] * 3, 20, 18, 12)],
)
def test_a_step_has_fewer_products(layers: list[int], rows: int, before: int, now: int) -> None:
    fn, arguments = burgers_step(layers, rows)
    plan = cuda.plan_of(fn, *arguments)
    found = products(plan)
    terms = sum(
        max(1, len(p["a_parts"]) if p["transpose_a"] else len(p["out_parts"])) for p in found
    )
    assert terms == before  # as many as there were
    assert len(found) <= now


def needed(plan: Any) -> list[set[int]]:
    """For each step all steps that have to come before it."""
    writers: dict[int, list[int]] = {}
    found: list[set[int]] = []
    for number, step in enumerate(plan.steps):
        if "matmul" in step:
            m = step["matmul"]
            reads = [
                m["a"],
                m["b"],
                *m["a_parts"],
                *m["b_parts"],
                *([m["bias"]] if "bias" in m else []),
            ]
            writes = [m["out"], *m["out_parts"]]
        else:  # a kernel's arguments do not say which it writes: those that nobody wrote before
            every = [v for kind, v, *_ in step["arguments"] if kind == "buffer"]
            temporary = {b for b in every if plan.raw["buffers"][b][0] == "temporary"}
            reads = [b for b in every if b in writers]
            writes = [b for b in temporary if b not in writers]
        direct = {w for b in reads for w in writers.get(b, [])}
        found.append(direct.union(*(found[d] for d in direct)))
        for b in writes:
            writers.setdefault(b, []).append(number)
    return found


@pytest.mark.parametrize(("layers", "chain"), [([256] * 4, 13), ([256] * 8, 29)])
def test_no_products_are_left_that_could_be_one(layers: list[int], chain: int) -> None:
    """With L layers the longest chain of products is 4 L - 3: the network and its slope along x go up
    from the second layer, the adjoint for u_xx goes down to it, the adjoint of that up from it,
    both adjoints down to it, and last comes the gradient of the first weight. Off the chain are L
    gradients of weights. So there are 5 L - 3, whatever runs beside what."""
    fn, arguments = burgers_step(layers, 1000)
    plan = cuda.plan_of(fn, *arguments)
    before = needed(plan)
    found = [(k, s["matmul"]) for k, s in enumerate(plan.steps) if "matmul" in s]
    longest = {}
    for k, _ in found:
        longest[k] = 1 + max((longest[j] for j in before[k] if j in longest), default=0)
    assert max(longest.values()) == chain
    assert len(found) == chain + len(layers)
    for (i, p), (k, q) in itertools.combinations(found, 2):
        alike = [p[of] == q[of] for of in ("b", "transpose_b", "transpose_a", "n", "k")]
        assert not all(alike) or i in before[k], (p, q)


def test_large_operands_stay_where_they_are() -> None:
    """What is large would have to be kept for long, and its launches are no matter."""
    fn, arguments = burgers_step([256, 256], 100_000)
    plan = cuda.plan_of(fn, *arguments)
    assert parts(plan, "a") == parts(plan, "b") == parts(plan, "out") == []

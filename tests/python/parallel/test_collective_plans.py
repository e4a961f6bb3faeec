"""Collectives in graphs and plans, which one process can look at: places, waits, errors."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, _core, nn, ops

TWO = (0, 2, 0)  # group, size, rank
X = Tensor(np.ones((4, 3), np.float32))


def summed(x: Any) -> Any:
    return _core.ops.all_reduce(x, *TWO, 0)


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def test_each_call_is_an_effect_of_its_own() -> None:
    """Equal ones are not one, and none is dropped: others wait for each."""

    def function(x: Any) -> Any:
        summed(x)
        return summed(x) + summed(x)

    plan = gc.plan_text(function, X)
    assert (
        len(re.findall(r"collective \d+ AllReduce", plan)) == 2
    )  # (what is shown is what is used)
    adjoint = gc.graph_text(gc.grad(lambda x: function(x).sum()), X)
    assert adjoint.count("AllReduce") == 2


def test_gradients_travel_beside_the_adjoint() -> None:
    """The last layer's gradient starts before the first layer's is made, and what needs the sums
    waits until all gradients are."""
    sizes = [400, 600, 500, 300, 10]
    layers = [nn.Dense(a, b) for a, b in itertools.pairwise(sizes)]
    net = nn.SequentialCell(*layers)
    weights = net.trainable_params()

    def step(x: Any) -> Any:
        grads = gc.grad(lambda x: (net(x) ** 2).sum(), None, weights)(x)
        sums = [summed(g) for g in reversed(grads)]
        for p, s in zip(reversed(weights), sums, strict=True):
            p.set_data(p - 0.1 * s)
        return sums[0].sum()

    text = lines(gc.plan_text(step, Tensor(np.ones((64, 400), np.float32))))
    starts = [i for i, line in enumerate(text) if re.match(r"collective \d+ ", line)]
    waits = [i for i, line in enumerate(text) if line.startswith("wait")]
    assert [text[i].split()[1] for i in starts] == [str(k) for k in range(len(weights))]
    products = [i for i, line in enumerate(text) if line.startswith("call MatMul")]
    assert starts[1] < products[-1], "the first sums start while products are still to be made"
    assert min(waits) > products[-1], "nobody waits before the last product"


def test_a_chain_of_collectives_is_waited_for_one_by_one() -> None:
    text = lines(gc.plan_text(lambda x: summed(summed(x * 2.0) * 3.0) + x, X))
    order = [line for line in text if line.startswith(("collective", "wait"))]
    assert [line.split()[0] for line in order] == ["collective", "wait", "collective", "wait"]


def test_adjoints() -> None:
    def text(function: Any) -> str:
        return gc.graph_text(gc.grad(lambda x: (function(x) ** 2).sum()), X)

    assert text(summed).count("AllReduce") == 2
    assert "ReduceScatter" in text(lambda x: _core.ops.all_gather(x, *TWO))
    assert "AllGather" in text(lambda x: _core.ops.reduce_scatter(x, *TWO, 0))
    assert "CollectiveReduce" in text(lambda x: _core.ops.broadcast(x, *TWO, 1))
    assert text(lambda x: _core.ops.all_to_all(x, *TWO)).count("AllToAll") == 2
    assert "Equal" in text(lambda x: _core.ops.all_reduce(x, *TWO, 2))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: _core.ops.all_gather(Tensor(1.0), *TWO), ValueError, "dimensions"),
        (lambda: _core.ops.reduce_scatter(X[:3], *TWO, 0), ValueError, "not a multiple of 2"),
        (lambda: _core.ops.all_to_all(X[:3], *TWO), ValueError, "not a multiple of 2"),
        (lambda: _core.ops.all_reduce(X > 0, *TWO, 0), TypeError, "bool"),
        (lambda: _core.ops.all_reduce(X, *TWO, 1), TypeError, "gathered"),
        (lambda: _core.ops.broadcast(X, *TWO, 2), ValueError, "root 2"),
        (lambda: _core.ops.all_reduce(X, 0, 2, 2, 0), ValueError, "rank 2"),
        (lambda: _core.ops.all_reduce(X, *TWO, 9), ValueError, "reduction"),
        (lambda: summed(X), RuntimeError, "communication.init has not been called"),
        (lambda: gc.jit(summed)(X), RuntimeError, "communication.init has not been called"),
        (lambda: ops.AllReduce("mean"), ValueError, "op"),
        (lambda: ops.Broadcast(1), ValueError, "root_rank"),
        (lambda: ops.AlltoAll(2, 0, 0), ValueError, "split_count must be 1"),
        (lambda: gc.communication.create_group("g", [0, 1]), ValueError, "one process"),
        (lambda: gc.communication.create_group("g", "01"), TypeError, "rank_ids"),
    ],
)
def test_collectives_refuse_groups_that_are_not_there(
    call: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        call()


def test_a_group_of_one_is_its_input() -> None:
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    for op in (ops.AllReduce("prod"), ops.AllGather(), ops.ReduceScatter(), ops.Broadcast(0)):
        np.testing.assert_array_equal(op(x).asnumpy(), x.asnumpy())
    np.testing.assert_array_equal(ops.AlltoAll(1, 0, 1)(x).asnumpy(), x.asnumpy())
    np.testing.assert_array_equal(ops.Reduce(0)(x).asnumpy(), x.asnumpy())
    assert ops.Barrier()() is None


def test_buckets() -> None:
    from gradcell.communication.buckets import buckets

    kinds = ["float32"] * 5
    assert buckets([100, 9 << 20, 100, 100, 100], kinds) == [[4, 3, 2], [1], [0]]
    try:
        gc.set_auto_parallel_context(all_reduce_fusion_config=[1, 3])
        assert buckets([1] * 5, kinds) == [[4], [3, 2], [1, 0]]
        gc.reset_auto_parallel_context()
        gc.set_auto_parallel_context(comm_fusion={"allreduce": {"mode": "size", "config": 1}})
        assert buckets([600 << 10] * 4, kinds[:4]) == [[3], [2], [1], [0]]
        assert buckets([100 << 10] * 4, ["float32", "float64"] * 2) == [[3, 1], [2, 0]]
    finally:
        gc.reset_auto_parallel_context()

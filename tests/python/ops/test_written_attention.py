"""Attention written of products and a softmax is attention's family; derivatives of it too.

What is expected is NumPy's, of the formulas, in float64.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

import gradcell as gc
from gradcell import nn, ops

RNG = np.random.default_rng(0)
# Of fewer scores, which stay in the caches, whole matrices take less time.
B, H, L, S, D, E = 2, 3, 300, 310, 8, 5
INF = float("inf")


def draw(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


Q, K, V, COTANGENT = draw(B, H, L, D), draw(B, H, S, D), draw(B, H, S, E), draw(B, H, L, E)
LATER = np.arange(S) > np.arange(L)[:, None] + 10
PADDED = (np.arange(S) >= np.array([[250], [310]])).reshape(B, 1, 1, S)
BIAS = draw(1, H, L, S)


def expected(
    hidden: Any = None, fill: float = -INF, added: Any = None, scale: float = 1.0
) -> list[np.ndarray]:
    """The result, and its gradients by queries, keys and values."""
    s = Q @ K.swapaxes(-1, -2) * scale
    if added is not None:
        s = s + added
    if hidden is not None:
        s = np.where(hidden, fill, s)
    with np.errstate(invalid="ignore"):
        p = softmax(s, -1)
    dp = COTANGENT @ V.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    if hidden is not None:
        ds = np.where(hidden, 0, ds)
    ds = ds * scale
    return [p @ V, ds @ K, ds.swapaxes(-1, -2) @ Q, p.swapaxes(-1, -2) @ COTANGENT]


def tensor(x: np.ndarray) -> gc.Tensor:
    return gc.Tensor(x)


def by_matmul(q: Any, k: Any, v: Any) -> Any:
    return ops.matmul(ops.softmax(ops.matmul(q, k.transpose(0, 1, 3, 2)) / math.sqrt(D), -1), v)


def by_batch_matmul(q: Any, k: Any, v: Any) -> Any:
    s = ops.BatchMatMul(transpose_b=True)(q, k) * (1 / math.sqrt(D))
    s = ops.masked_fill(s, tensor(LATER), -1e9)
    return ops.BatchMatMul()(nn.Softmax()(s), v)


def by_where(q: Any, k: Any, v: Any) -> Any:
    s = ops.where(tensor(~LATER), (q * D**-0.5) @ k.swapaxes(-2, -1), -INF)
    return ops.Softmax(-1)(s) @ v


def by_two_masks(q: Any, k: Any, v: Any) -> Any:
    s = (q @ k.swapaxes(-2, -1)).masked_fill(tensor(LATER), -INF)
    return ops.softmax(s.masked_fill(tensor(PADDED), -INF)) @ v


def by_sum(q: Any, k: Any, v: Any) -> Any:
    s = q @ k.swapaxes(-2, -1) * 0.25 + tensor(np.where(PADDED, -10000.0, 0.0))
    return ops.softmax(s) @ v


def by_difference(q: Any, k: Any, v: Any) -> Any:
    return ops.softmax(q @ k.swapaxes(-2, -1) - tensor(BIAS)) @ v


def by_formula(q: Any, k: Any, v: Any) -> Any:
    s = q @ k.swapaxes(-2, -1)
    e = ops.exp(s - ops.ReduceMax(keep_dims=True)(s, -1))
    return (e / ops.ReduceSum(keep_dims=True)(e, -1)) @ v


def by_one_batch(q: Any, k: Any, v: Any) -> Any:
    """The heads of all examples as one axis, but where the mask is added."""
    q, k, v = (x.reshape(B * H, *x.shape[2:]) for x in (q, k, v))
    s = ops.bmm(q, k.transpose(0, 2, 1)).reshape(B, H, L, S) + tensor(BIAS)
    return ops.bmm(ops.softmax(s).reshape(B * H, L, S), v).reshape(B, H, L, E)


def by_additions_of_infinity(q: Any, k: Any, v: Any) -> Any:
    return ops.softmax(q @ k.swapaxes(-2, -1) + tensor(np.where(LATER, -INF, 0.0))) @ v


def masked_to_a_number(q: Any, k: Any, v: Any) -> Any:
    """Nobody's mask, but what it says is what is done."""
    return ops.softmax(ops.where(tensor(LATER), 0.5, q @ k.swapaxes(-2, -1))) @ v


WAYS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (by_matmul, {"scale": D**-0.5}),
    (by_batch_matmul, {"scale": D**-0.5, "hidden": LATER, "fill": -1e9}),
    (by_where, {"scale": D**-0.5, "hidden": LATER}),
    (by_two_masks, {"hidden": LATER | PADDED}),
    (by_sum, {"scale": 0.25, "added": np.where(PADDED, -10000.0, 0.0)}),
    (by_difference, {"added": -BIAS}),
    (by_formula, {}),
    (by_one_batch, {"added": BIAS}),
    (by_additions_of_infinity, {"added": np.where(LATER, -INF, 0.0)}),
    (masked_to_a_number, {"hidden": LATER, "fill": 0.5}),
]
IDS = [way.__name__ for way, _ in WAYS]


def with_gradients(way: Callable[..., Any]) -> Callable[..., Any]:
    def run(q: Any, k: Any, v: Any) -> Any:
        def loss(q: Any, k: Any, v: Any) -> Any:
            y = way(q, k, v)
            return ops.reduce_sum(y * tensor(COTANGENT.astype(y.dtype.name))), y

        (_, y), gradients = gc.value_and_grad(loss, (0, 1, 2), has_aux=True)(q, k, v)
        return (y, *gradients)

    return run


def inputs() -> list[gc.Tensor]:
    return [tensor(x) for x in (Q, K, V)]


def in_tiles(fn: Callable[..., Any], *args: Any) -> bool:
    """Whether nothing of the scores' size is computed."""
    lines = [
        x for x in gc.plan_text(fn, *args).splitlines() if "Logical" not in x
    ]  # bools are small
    text = "\n".join(lines)
    whole = re.search(rf"-> .*(, {L}, {S}\]|, {S}, {L}\])", text)
    return "call Attention" in text and not whole and not re.search(r"\bexp\b", text)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("way", "what"), WAYS, ids=IDS)
def test_values_and_gradients(way: Callable[..., Any], what: dict[str, Any]) -> None:
    fn = with_gradients(way)
    assert in_tiles(way, *inputs())
    assert in_tiles(fn, *inputs())
    for found, wanted in zip(fn(*inputs()), expected(**what), strict=True):
        np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-10, atol=1e-11)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("way", "what"), WAYS, ids=IDS)
def test_higher_derivatives_and_batches(way: Callable[..., Any], what: dict[str, Any]) -> None:
    """Along a direction: of the gradients by differences; one mode in the other, and examples."""
    directions = [draw(*x.shape) for x in (Q, K, V)]
    gradients = with_gradients(way)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return ops.reduce_sum(way(q, k, v) * tensor(COTANGENT))

    def along(q: Any, k: Any, v: Any) -> Any:
        found = gc.grad(loss, (0, 1, 2))(q, k, v)
        return sum(ops.reduce_sum(g * tensor(d)) for g, d in zip(found, directions, strict=True))

    def moved(by: float) -> list[np.ndarray]:
        args = [tensor(x + by * d) for x, d in zip((Q, K, V), directions, strict=True)]
        return [g.asnumpy() for g in gradients(*args)]

    h = 1e-5
    wanted = [(a - b) / (2 * h) for a, b in zip(moved(h), moved(-h), strict=True)]
    twice = gc.grad(along, (0, 1, 2))
    assert in_tiles(twice, *inputs())
    tangents = tuple(tensor(d) for d in directions)
    forward = gc.jvp(way, tuple(inputs()), tangents)[1]
    mixed = gc.jvp(gc.grad(loss, (0, 1, 2)), tuple(inputs()), tangents)[1]
    np.testing.assert_allclose(forward.asnumpy(), wanted[0], rtol=1e-5, atol=1e-6)
    for found in (twice(*inputs()), mixed):
        for a, b in zip(found, wanted[1:], strict=True):
            np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-5, atol=1e-6)


def test_single_precision() -> None:
    twice = [tensor(np.tile(x, (2, 1, 1, 1)).astype(np.float32)) for x in (Q, K, V, COTANGENT)]

    def loss(q: Any, k: Any, v: Any, cotangent: Any) -> Any:
        y = by_matmul(q, k, v)
        return ops.reduce_sum(y * cotangent), y

    fn = gc.value_and_grad(loss, (0, 1, 2), has_aux=True)
    assert in_tiles(fn, *twice)
    (_, y), gradients = fn(*twice)
    for found, wanted in zip((y, *gradients), expected(scale=D**-0.5), strict=True):
        np.testing.assert_allclose(found.asnumpy()[:B], wanted, rtol=2e-4, atol=2e-5)
        np.testing.assert_array_equal(found.asnumpy()[B:], found.asnumpy()[:B])


NONE_SEEN = np.broadcast_to(np.arange(L)[:, None] == 7, (L, S))


def without_a_key(fill: float) -> Callable[..., Any]:
    return lambda q, k, v: ops.softmax(
        ops.where(tensor(NONE_SEEN), fill, q @ k.swapaxes(-2, -1))
    ) @ v  # fmt: skip


@pytest.mark.parametrize("fill", [-INF, -1e9])
def test_a_query_that_sees_no_key(fill: float) -> None:
    """Of -inf alone a softmax has no value, of equal numbers it is the mean."""
    found = with_gradients(without_a_key(fill))(*inputs())
    assert in_tiles(without_a_key(fill), *inputs())
    for a, b in zip(found, expected(hidden=NONE_SEEN, fill=fill), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-10, atol=1e-11)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("where", ["q", "k", "v"])
@pytest.mark.parametrize("bad", [np.nan, INF])
@pytest.mark.parametrize("added", [False, True])
def test_what_is_no_number_comes_through_masks(where: str, bad: float, added: bool) -> None:
    """0 times NaN is NaN, in blocks that a mask hides whole, too."""
    far = np.arange(S) >= 64
    args = {"q": Q.copy(), "k": K.copy(), "v": V.copy()}
    args[where][0, 0, 100, 1] = bad

    def way(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.swapaxes(-2, -1)
        if added:
            return ops.softmax(s + tensor(np.where(far, -INF, 0.0))) @ v
        return ops.softmax(ops.where(tensor(far), -INF, s)) @ v

    with np.errstate(invalid="ignore"):
        s = args["q"] @ args["k"].swapaxes(-1, -2)
        s = s + np.where(far, -INF, 0.0) if added else np.where(far, -INF, s)
        wanted = softmax(s, -1) @ args["v"]
    assert in_tiles(way, *inputs())
    found = way(*(tensor(x) for x in args.values())).asnumpy()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-11)


def test_dropout_is_the_same_as_of_whole_weights() -> None:
    def way(q: Any, k: Any, v: Any, whole: bool = False) -> Any:
        p = ops.dropout(ops.softmax(q @ k.swapaxes(-2, -1)), 0.3)
        y = ops.matmul(p, v)
        return (y, p) if whole else y

    gc.set_seed(5)
    y, p = gc.jit(lambda *a: way(*a, whole=True))(*inputs())
    gc.set_seed(5)
    found = gc.jit(way)(*inputs())
    np.testing.assert_allclose(found.asnumpy(), y.asnumpy(), rtol=1e-10)
    np.testing.assert_allclose(found.asnumpy(), p.asnumpy() @ V, rtol=1e-10)
    assert 0.25 < np.mean(p.asnumpy() == 0) < 0.35
    assert in_tiles(way, *inputs())

    gc.set_seed(5)
    found = with_gradients(way)(*inputs())
    z = (p.asnumpy() != 0) / 0.7
    w = softmax(Q @ K.swapaxes(-1, -2), -1)
    dp = COTANGENT @ V.swapaxes(-1, -2) * z
    ds = w * (dp - (dp * w).sum(-1, keepdims=True))
    wanted = [p.asnumpy() @ V, ds @ K, ds.swapaxes(-1, -2) @ Q,
              p.asnumpy().swapaxes(-1, -2) @ COTANGENT]  # fmt: skip
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-6, atol=1e-8)


def test_what_is_used_elsewhere_stays_as_it_is() -> None:
    def weights_too(q: Any, k: Any, v: Any) -> Any:
        p = ops.softmax(q @ k.swapaxes(-2, -1))
        return p @ v, p

    def scores_too(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.swapaxes(-2, -1)
        return ops.softmax(s) @ v, ops.reduce_max(s)

    for fn in (weights_too, scores_too):
        assert "call Attention" not in gc.plan_text(fn, *inputs())
        np.testing.assert_allclose(fn(*inputs())[0].asnumpy(), expected()[0], rtol=1e-10)


def test_a_mask_that_is_learned_has_its_gradient() -> None:
    def loss(q: Any, k: Any, v: Any, bias: Any) -> Any:
        y = ops.softmax(q @ k.swapaxes(-2, -1) + bias) @ v
        return ops.reduce_sum(y * tensor(COTANGENT))

    found = gc.grad(loss, 3)(*inputs(), tensor(BIAS)).asnumpy()
    p = softmax(Q @ K.swapaxes(-1, -2) + BIAS, -1)
    dp = COTANGENT @ V.swapaxes(-1, -2)
    wanted = (p * (dp - (dp * p).sum(-1, keepdims=True))).sum(0, keepdims=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.one_in(2)
def test_constants_are_those_of_the_program() -> None:
    """Plans are found again for other constants, but not where they are part of it."""
    for scale in (0.5, 0.25, 2.0):
        want = expected(scale=scale)[0]
        found = (ops.softmax(tensor(Q) @ tensor(K).swapaxes(-2, -1) * scale) @ tensor(V)).asnumpy()
        np.testing.assert_allclose(found, want, rtol=1e-10)
        jitted = gc.jit(lambda q, k, v, s=scale: ops.softmax(q @ k.swapaxes(-2, -1) * s) @ v)
        np.testing.assert_allclose(jitted(*inputs()).asnumpy(), want, rtol=1e-10)


def test_queries_that_are_keys_and_values() -> None:
    def loss(x: Any) -> Any:
        return ops.reduce_sum(ops.softmax(x @ x.swapaxes(-2, -1)) @ x * tensor(draw_once))

    x, draw_once = draw(1, 2, 520, 4), draw(1, 2, 520, 4)
    found = gc.grad(loss)(tensor(x)).asnumpy()
    d, h = draw(*x.shape), 1e-6

    def value(y: np.ndarray) -> float:
        return float(np.sum(softmax(y @ y.swapaxes(-1, -2), -1) @ y * draw_once))

    slope = (value(x + h * d) - value(x - h * d)) / (2 * h)
    np.testing.assert_allclose(np.sum(found * d), slope, rtol=1e-6)


def test_half_types_are_rounded_as_written() -> None:
    """Scores of half types round at each step: they are what they were."""
    args = [tensor(x).astype(gc.bfloat16) for x in (Q, K, V)]
    assert "call Attention" not in gc.plan_text(by_matmul, *args)


@pytest.mark.parametrize("threads", [1, 3])
def test_gradients_do_not_depend_on_threads(threads: int) -> None:
    args = [tensor(draw(1, 3, 600, 16, dtype=np.float32)) for _ in range(3)]
    fn = gc.grad(lambda q, k, v: ops.reduce_sum(by_formula(q, k, v) ** 2), (0, 1, 2))
    before = [g.asnumpy() for g in fn(*args)]
    n = gc._core.max_threads()
    gc._core.set_max_threads(threads)
    try:
        after = [g.asnumpy() for g in fn(*args)]
    finally:
        gc._core.set_max_threads(n)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)

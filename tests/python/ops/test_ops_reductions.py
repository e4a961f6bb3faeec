"""Reductions: dtypes, values against NumPy, derivatives against central differences."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops_checks import T, check_derivatives, close, ramp

import gradcell as ms
from gradcell import Tensor, ops

X = np.random.default_rng(0).normal(size=(4, 3))


def test_reduction_dtypes() -> None:
    ints, flags, half = ramp(2, 3).astype(ms.int32), ramp(2, 3) > 2, ramp(2, 3).astype(ms.float16)
    assert ints.sum().dtype == ops.sum(ints).dtype == ms.int64
    assert ints.prod().dtype == ops.prod(ints).dtype == flags.sum().dtype == ms.int64
    assert ops.ReduceSum()(ints).dtype == ops.ReduceProd()(ints).dtype == ms.int32
    assert ops.ReduceMax()(ints).dtype == ints.max().dtype == ms.int32
    assert ints.mean().dtype == ops.ReduceMean()(ints).dtype == ms.int32
    assert half.sum().dtype == half.mean().dtype == half.prod().dtype == ms.float16
    assert ints.argmax().dtype == ops.argmax(ints).dtype == ms.int64
    assert ops.argmin(ints).dtype == ops.Argmax()(ints).dtype == ints.argmin().dtype == ms.int32
    assert ops.Argmax(output_type=ms.int64)(ints).dtype == ms.int64
    assert ints.var().dtype == ints.std().dtype == ints.norm().dtype == ms.float32
    assert ints.cumsum(0).dtype == flags.cumsum(0).dtype == ms.int32
    assert ints.astype(ms.int64).cumsum(0).dtype == ms.int64
    assert ops.cumsum(ints.astype(ms.int8), 0).dtype == ms.int8
    assert ints.sum(0, dtype=ms.float64).dtype == ms.float64
    assert ints.all().dtype == ints.any(0).dtype == ms.bool_


def test_truth_reductions() -> None:
    x = ramp(2, 3)
    assert not x.all() and x.any()
    np.testing.assert_array_equal(x.all(0).asnumpy(), [False, True, True])
    np.testing.assert_array_equal(ops.any(x > 3, 1, True).asnumpy(), [[False], [True]])
    empty = ops.zeros((0, 2))
    assert bool(empty.all()) and not bool(empty.any())


def test_empty_reductions() -> None:
    empty = ops.zeros((0, 3))
    assert float(empty.sum()) == 0.0 and float(empty.prod()) == 1.0
    assert empty.sum(0).shape == (3,) and empty.prod(1).shape == (0,)
    for call in (empty.max, empty.min, lambda: ops.max(empty, 0), lambda: ops.amin(empty)):
        with pytest.raises(ValueError, match="empty"):
            call()


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_prod_with_zeros(n: int, zeros: int) -> None:
    x = np.linspace(0.5, 1.5, n)
    x[:zeros] = 0.0
    close(ops.prod(T(x)), np.prod(x))
    first = ms.grad(ops.prod)(T(x)).asnumpy()
    expected = [np.prod(np.delete(x, i)) for i in range(n)]
    np.testing.assert_allclose(first, expected, rtol=1e-12)
    check_derivatives(ops.prod, x)


def test_max_shares_or_picks_ties() -> None:
    x = T(np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]]))
    values, index = ops.max(x, 1)
    close(values, [3.0, 2.0])
    np.testing.assert_array_equal(index.asnumpy(), [1, 0])
    close(ms.grad(lambda t: ops.max(t, 1)[0].sum())(x), [[0, 1, 0], [1, 0, 0]])
    close(ms.grad(lambda t: ops.amax(t, 1).sum())(x), [[0, 0.5, 0.5], [0.5, 0.5, 0]])
    close(ms.grad(lambda t: t.max())(x), [[0, 0.5, 0.5], [0, 0, 0]])
    values, index = ops.min(x, 0, keepdims=True)
    assert values.shape == index.shape == (1, 3) and index.dtype == ms.int64
    index, values = ops.ArgMinWithValue(1)(x)
    np.testing.assert_array_equal(index.asnumpy(), [0, 2])
    close(values, [1.0, 0.0])


def test_max_with_nan_and_infinity() -> None:
    x = T(np.array([[-np.inf, -np.inf], [np.inf, 1.0]]))
    close(ops.max(x, 1)[0], [-np.inf, np.inf])
    close(ops.logsumexp(x, 1), [-np.inf, np.inf])


def reductions(space: Any) -> list[str]:
    """The functions with a parameter that keeps dimensions."""
    found = []
    for name in getattr(space, "__all__", None) or vars(space):
        value = getattr(space, name, None)
        if name.startswith("_") or isinstance(value, type) or not callable(value):
            continue
        try:
            parameters = inspect.signature(value).parameters
        except (TypeError, ValueError):
            continue
        if {"keep_dims", "keepdim", "keepdims"} & {*parameters}:
            found.append(name)
    return found


SPELLINGS = [
    {"axis": 1, "keepdims": True},
    {"axis": 1, "keep_dims": True},
    {"dim": 1, "keepdim": True},
]


def test_reductions_take_numpys_keywords() -> None:
    """And PyTorch's and MindSpore's, ops and methods."""
    names = reductions(ops)
    assert {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"} <= {*names} and len(
        names
    ) >= 30
    for name in names:
        rest = {"q": 0.5} if "quantile" in name else {}
        for given in SPELLINGS:
            every = getattr(ops, name)(T(X), **given, **rest)
            for out in every if isinstance(every, tuple) else [every]:
                assert out.shape == (4, 1), name
            reference = getattr(np, name.removeprefix("reduce_"), None)
            if reference is not None and isinstance(
                every, Tensor
            ):  # max, min, median give indices, too
                close(every, reference(X, axis=1, keepdims=True, **rest))
    methods = reductions(Tensor)
    assert {"sum", "max", "min", "ptp", "argmax_with_value"} <= {*methods} and len(methods) >= 18
    for name in methods:
        rest = {"q": 0.5} if "quantile" in name else {}
        for given in SPELLINGS:
            every = getattr(T(X), name)(**given, **rest)
            for out in every if isinstance(every, tuple) else [every]:
                assert out.shape == (4, 1), name
    for name in ("mean", "prod", "any"):
        fn = getattr(ops, name)
        assert (fn(T(X), 0, True) == fn(T(X), dim=0, keepdim=True)).all()
        with pytest.raises(TypeError, match=f"ops.{name}: an argument is given under two names"):
            fn(T(X), axis=0, dim=0)
        with pytest.raises(
            TypeError, match=r"unexpected keyword argument 'axes'.*test_ops_reductions"
        ):
            fn(T(X), axes=0)


MOMENTS: list[tuple[str, Callable[..., Tensor], Callable[..., Any]]] = [
    ("var", lambda x: ops.var(x, 1), lambda x: np.var(x, 1)),
    ("var-all", lambda x: x.var(), np.var),
    ("var-ddof", lambda x: ops.var(x, (0, 1), 1, True),
     lambda x: np.var(x, (0, 1), ddof=1, keepdims=True)),
    ("std", lambda x: ops.std(x, 0, 1), lambda x: np.std(x, 0, ddof=1)),
    ("norm", lambda x: ops.norm(x), lambda x: np.linalg.norm(x)),
    ("norm-1", lambda x: ops.norm(x, 1, 1), lambda x: np.linalg.norm(x, 1, 1)),
    ("norm-3", lambda x: ops.norm(x, 3, 0), lambda x: np.linalg.norm(x, 3, 0)),
    ("norm-inf", lambda x: ops.norm(x, math.inf, 1, True),
     lambda x: np.linalg.norm(x, math.inf, 1, True)),
    ("norm-fro", lambda x: ops.norm(x, "fro"), lambda x: np.linalg.norm(x, "fro")),
    ("norm-matrix-1", lambda x: ops.norm(x, 1), lambda x: np.linalg.norm(x, 1)),
    ("norm-matrix-inf", lambda x: ops.norm(x, math.inf), lambda x: np.linalg.norm(x, math.inf)),
    ("logsumexp", lambda x: ops.logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1))),
    ("logsumexp-all", lambda x: ops.logsumexp(x, (0, 1), True),
     lambda x: np.log(np.exp(x).sum(keepdims=True))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fn", "reference"), MOMENTS, ids=[m[0] for m in MOMENTS])
def test_moments_and_norms(name: str, fn: Any, reference: Any) -> None:
    close(fn(T(X)), reference(X))
    check_derivatives(fn, X)

"""Assignment to parameters, HyperMap, MultitypeFuncGraph, clipping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops_checks import T, check_derivatives, close, ramp

import gradcell as ms
from gradcell import Parameter, Tensor, ops


def test_assign() -> None:
    p = Parameter(ramp(2), name="p")
    source = ramp(2) + 5
    close(ops.assign(p, source), [5, 6])
    close(ops.assign_add(p, ops.ones(2)), [6, 7])
    close(source, [5, 6])
    close(ops.AssignSub()(p, T([1, 2], ms.int32)), [5, 5])
    assert p.dtype == ms.float32
    for bad in (ramp(3), ramp(1), 1.0):
        with pytest.raises(ValueError, match="Assign"):
            ops.assign(p, bad)
    with pytest.raises(TypeError, match="Assign"):
        ops.assign(np.zeros(2), ramp(2))
    close(ops.scatter_add(p, T([1, 1]), T([1.0, 2.0])), [5, 8])
    close(ops.ScatterUpdate()(p, T([0]), T([9.0])), [9, 8])
    close(p, [9, 8])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int8, np.uint8])
@pytest.mark.parametrize("name", ["min", "max"])
def test_the_better_of_rows_and_updates(name: str, dtype: Any) -> None:
    """As NumPy's ufunc.at, whatever the dtype, for several updates of one place, NaN, infinities, nothing."""
    rng = np.random.default_rng(5)
    limit = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    values = [-np.inf, np.nan, np.inf] if np.dtype(dtype).kind == "f" else [limit.min, limit.max]
    x, at = rng.integers(0, 9, (4, 2, 3)).astype(dtype), rng.integers(0, 4, (3, 3)).astype(np.int32)
    new = rng.integers(0, 9, (3, 3, 2, 3)).astype(dtype)
    new.reshape(-1)[: 4 * len(values) : 4] = values
    x[3, 0, 0] = values[0]
    best, primitive = getattr(np, f"{name}imum"), getattr(ops, f"Scatter{name.title()}")()
    for function in (getattr(ops, f"scatter_{name}"), primitive):
        p, expected = Parameter(Tensor(x), name="p"), x.copy()
        best.at(expected, at, new)
        got = function(p, Tensor(at), Tensor(new))
        for found in (got, p):
            np.testing.assert_array_equal(found.asnumpy(), expected)
        assert p.dtype == Tensor(x).dtype
        function(p, Tensor(at[:0]), Tensor(new[:0]))
        np.testing.assert_array_equal(p.asnumpy(), expected)
        p.set_data(Tensor(x))
        ms.jit(lambda u, p=p, function=function: function(p, Tensor(at), u))(Tensor(new))
        np.testing.assert_array_equal(p.asnumpy(), expected)
        with pytest.raises(
            IndexError, match="write: index 4 is out of range for an axis of size 4"
        ):
            function(p, T([4]), Tensor(x[:1]))
        with pytest.raises(ValueError, match="updates of shape"):
            function(p, T([1]), Tensor(x))
        with pytest.raises(TypeError, match="Parameter"):
            function(Tensor(x), T([1]), Tensor(x[:1]))


def test_assign_inside_gradient(mode: int) -> None:
    p = Parameter(ops.zeros(2), name="p")

    def fn(x: Tensor) -> Tensor:
        ops.assign_add(p, x)
        return (x * p).sum()

    x = ramp(2) + 1
    close(ms.grad(fn)(x), [2, 4])
    close(ms.grad(fn)(x), [3, 6])
    close(p, [2, 4])


def test_hyper_map_and_map() -> None:
    xs, ys = (ramp(2), [ramp(1), (ramp(3),)]), (ramp(2), [ramp(1), (ramp(3),)])
    out = ops.HyperMap(ops.add)(xs, ys)
    close(out[1][1][0], [0, 2, 4])
    assert isinstance(out, tuple) and isinstance(out[1], tuple)
    close(ops.HyperMap()(ops.partial(ops.mul, T(3.0, ms.float32)), (ramp(2),))[0], [0, 3])
    seen: list[int] = []
    assert ops.Map(lambda x: seen.append(x) or x + 1, True)([1, 2, 3]) == (2, 3, 4)
    assert seen == [3, 2, 1]
    with pytest.raises(ValueError, match="one length"):
        ops.HyperMap()(ops.add, (ramp(1),), (ramp(1), ramp(1)))
    with pytest.raises(TypeError):
        ops.HyperMap()(3, (ramp(1),))


def test_hyper_map_updates_parameters(mode: int) -> None:
    sums = ms.ParameterTuple((Parameter(ops.zeros(2), name="a"), Parameter(ops.zeros(1), name="b")))

    @ms.jit
    def add(x: Tensor, y: Tensor) -> Any:
        return ops.HyperMap()(ops.partial(ops.assign_add), sums, (x, y))

    for _ in range(3):
        add(ops.ones(2), ops.ones(1))
    close(sums[0], [3, 3])
    close(sums[1], [3])


def test_multitype_func_graph() -> None:
    f = ops.MultitypeFuncGraph("f")

    @f.register("Tensor", "Tensor")
    def _(x: Any, y: Any) -> str:
        return "tensors"

    @f.register("Tensor", "Number")
    def _(x: Any, y: Any) -> str:
        return "tensor-number"

    @f.register("Tensor", "Bool")
    def _(x: Any, y: Any) -> str:
        return "tensor-bool"

    @f.register("Tuple", "Tuple")
    def _(x: Any, y: Any) -> Any:
        return ops.HyperMap(f)(x, y)

    x = ramp(2)
    assert f(x, x) == "tensors" and f(x, 1) == f(x, 1.5) == "tensor-number"
    assert f(x, True) == "tensor-bool" and f((x,), (x,)) == ("tensors",)
    assert f(Parameter(x, name="p"), x) == "tensors"
    for bad in ((1, 2), (x,), (x, None)):
        with pytest.raises(TypeError, match="'f' operation does not support"):
            f(*bad)


def test_clip_by_global_norm() -> None:
    xs = (ramp(2) + 3, ramp(2))
    norm = np.sqrt(9 + 16 + 0 + 1)
    out = ops.clip_by_global_norm(xs)
    assert isinstance(out, tuple)
    close(out[0], np.array([3, 4]) / norm, 1e-6)
    close(out[1], np.array([0, 1]) / norm, 1e-6)
    close(ops.clip_by_global_norm(list(xs), 100.0)[0], [3, 4])
    close(ops.clip_by_global_norm(ramp(2) + 3, 0.5), [0.3, 0.4], 1e-6)
    close(ops.clip_by_global_norm((ramp(2),), 1.0, T(4.0, ms.float32))[0], [0, 0.25])
    half = ops.clip_by_global_norm((ops.full((4,), 3e4, dtype=ms.float16),))[0]
    assert half.dtype == ms.float16
    close(half, np.full(4, 0.5), 1e-3)
    for bad in (0, -1.0):
        with pytest.raises(ValueError, match="clip_norm"):
            ops.clip_by_global_norm(xs, bad)
    with pytest.raises(TypeError):
        ops.clip_by_global_norm(("a",))
    close(ops.clip_by_norm([ramp(3)], 1.0)[0], np.arange(3) / (np.sqrt(5) + 1e-6), 1e-6)
    x = np.linspace(-1.5, 1.2, 12)
    check_derivatives(lambda t: ops.clip_by_global_norm((t, t * 2))[1], x, order=2)
